"""Runs a project's tests and linters, confined and without a network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from albert_tools.builtins.shell.command_settings import COMMAND_SETTINGS
from albert_tools.builtins.shell.confined_command import (
    MAX_TIMEOUT,
    demand_startable,
    demand_text,
    invalid,
    run,
    stored_output,
)
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.parameter_types import Arguments, TimeoutSeconds, WorkingDirectory
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

#: Places where a project may have its own Python.
_OWN_PYTHONS = (".venv/bin/python", "venv/bin/python")

#: Leave no caches in the workspace, and print plain text.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "MYPY_CACHE_DIR": "/dev/null"}


class ToolRun(TypedDict):
    """Result of `run_tests` and `run_linter`."""

    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int
    cmd: list[str]
    truncated: bool
    handle: str | None
    confinement: str


#: What is true of a `ToolRun`.
_OF_RUN = {".exit_code": "little", ".duration_ms": "little", ".truncated": "little"}


def _refuse(arguments: Mapping[str, Any]) -> None:
    args = arguments["args"]
    for word in args:
        demand_text("args", word)
        if word.startswith("@"):
            # The programs read further arguments from such a file.
            raise invalid(
                "args", "no word begins with '@', which names a file with further arguments; write ./@x for such a path"
            )
    if "--" in args and any(word.startswith("-") for word in args[args.index("--") + 1 :]):
        # pytest takes options there, too.
        raise invalid("args", "what follows '--' are files; write ./-x for a name that begins with a dash")
    demand_startable(args)


@primitive(
    effects=["read", "write", "delete", "execute"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    uses={"args": "arguments", "cwd": "folder"},
    outputs=_OF_RUN,
    source="command",
    refuse=_refuse,
    settings=COMMAND_SETTINGS,
)
async def run_tests(
    context: CallContext,
    args: Arguments = [],  # noqa: B006  The schema's default; never modified.
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 300,
) -> ToolRun:
    """Run pytest in the workspace and return its output.

    Returns {"exit_code", "stdout", "stderr", "duration_ms", "cmd", "truncated", "handle", "confinement"}. "exit_code" is
    pytest's: 0 all passed, 1 some failed, 2 interrupted, 4 wrong usage, 5 no tests. If both streams together have more than
    64 KiB, each is shortened in the middle, "truncated" is true, and read_result(handle) reads all of stdout, and then of stderr.

    Tests are programs: they run confined like a command of bash, without a network, and can change the workspace. They run
    with the project's own Python (.venv/bin/python) if it is visible in the sandbox, otherwise with the Python of Albert Tools.

    Fails with `not_found` (pytest is not installed for that Python; no such cwd), `timeout` (details have the output so far),
    `memory_limit`, `process_limit`, `permission_denied`, `sandbox_unavailable`, `too_large` (args), `io_error`.

    Args:
        args: Arguments of pytest, for example ["tests/test_parser.py", "-k", "numbers", "-x"].
        cwd: Working directory, relative to the workspace; empty for the workspace itself.
        timeout: Seconds, at most 3600, and at most what the caller has left.
    """
    words = [_python(context, cwd), "-m", "pytest", "-p", "no:cacheprovider", *args]
    return await _run(context, "pytest", words, args, cwd, timeout)


@primitive(
    effects=["read", "write", "delete", "execute"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    judged={"linter": "operation"},
    uses={"args": "arguments", "cwd": "folder"},
    outputs=_OF_RUN,
    source="command",
    refuse=_refuse,
    settings=COMMAND_SETTINGS,
)
async def run_linter(
    context: CallContext,
    linter: Literal["ruff", "ruff-format", "mypy"],
    args: Arguments = ["."],  # noqa: B006  The schema's default; never modified.
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 120,
) -> ToolRun:
    """Run a linter in the workspace and return its output: ``ruff check``, ``ruff format`` or ``mypy``.

    Result and failures are those of run_tests. Exit code 0 means no findings, 1 means findings. With args such as ["--fix", "src"]
    ruff changes files.

    Args:
        linter: The linter.
        args: Its options and paths.
        cwd: Working directory, relative to the workspace; empty for the workspace itself.
        timeout: Seconds, at most 3600, and at most what the caller has left.
    """
    name, *subcommand = {"ruff": ["ruff", "check"], "ruff-format": ["ruff", "format"], "mypy": ["mypy"]}[linter]
    caching = ["--no-cache"] if name == "ruff" else []
    words = [_python(context, cwd), "-m", name, *subcommand, *caching, *args]
    return await _run(context, name, words, args, cwd, timeout)


async def _run(context: CallContext, name: str, words: list[str], args: list[str], cwd: str, timeout: float) -> ToolRun:
    started = time.monotonic()
    ran = await run(
        context,
        words,
        cwd=cwd,
        timeout=timeout,
        environment=_ENVIRONMENT,
        separate_errors=True,
        facts={"program": name, "args": words[words.index(name) + 1 :]},
    )
    output, errors = ran.shown()
    assert errors is not None
    if ran.code == 1 and errors.text.rstrip().endswith(f"No module named {name}"):
        raise Failure("not_found", f"{name} is not installed for the Python that runs it", hint=f"pip install {name}")
    truncated = output.omitted + errors.omitted > 0
    return {
        "exit_code": ran.code,
        "stdout": output.text,
        "stderr": errors.text,
        "duration_ms": round((time.monotonic() - started) * 1000),
        "cmd": words,
        "truncated": truncated,
        "handle": await stored_output(context, ran) if truncated else None,
        "confinement": ran.ended.confinement,
    }


def _python(context: CallContext, cwd: str) -> str:
    """The project's own Python if it is visible in the sandbox, otherwise the Python of Albert Tools."""
    for name in _OWN_PYTHONS:
        path = os.path.join(str(context.workspace.root), cwd, name)
        real = os.path.realpath(path)
        if os.access(path, os.X_OK) and real.startswith(
            ("/usr/", str(context.workspace.root), os.path.realpath(sys.base_prefix))
        ):
            return path
    return sys.executable
