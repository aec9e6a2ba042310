"""Running a project's tests and linters, confined and without a network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from albert_tools.builtins.shell.command_settings import COMMAND_SETTINGS
from albert_tools.builtins.shell.confined_command import MAX_TIMEOUT, Ran, demand_text, kept, run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.parameter_types import Arguments, TimeoutSeconds, WorkingDirectory
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

#: Where a project keeps its own Python, where it has one.
_OWN_PYTHONS = (".venv/bin/python", "venv/bin/python")

#: A run leaves nothing behind but what the tests themselves do.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "MYPY_CACHE_DIR": "/dev/null"}


class ToolRun(TypedDict):
    """What `run_tests` and `run_linter` answer."""

    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int
    cmd: list[str]
    truncated: bool
    handle: str | None
    confinement: str


def _refuse(arguments: Mapping[str, Any]) -> None:
    for word in arguments["args"]:
        demand_text("args", word)


@primitive(
    effects=["read", "write", "delete", "execute"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    refuse=_refuse,
    settings=COMMAND_SETTINGS,
)
async def run_tests(
    context: CallContext,
    args: Arguments = [],  # noqa: B006  It becomes the schema's default, and is never changed.
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 300,
) -> ToolRun:
    """Run pytest in the workspace and return what it printed, as it is.

    Returns {"exit_code", "stdout", "stderr", "duration_ms", "cmd", "truncated", "handle", "confinement"}. "exit_code" is
    pytest's: 0 all passed, 1 some failed, 2 interrupted, 4 wrong usage, 5 no tests. Of more than 64 KiB on a stream the
    first and last 32 KiB are kept, "truncated" is true, and read_result(handle) reads all of stdout.

    Tests are programs: they run confined like a command of bash, without a network, and can change the workspace. The
    project's own Python (.venv/bin/python) is used where it has one that can be seen, else the one that runs Albert Tools.

    Fails with `not_found` (pytest is not installed there; cwd), `timeout` (details hold the output so far), `memory_limit`,
    `process_limit`, `permission_denied`, `sandbox_unavailable`, `io_error`.

    Args:
        args: What to give pytest, for example ["tests/test_parser.py", "-k", "numbers", "-x"].
        cwd: The folder to run in, relative to the workspace.
        timeout: Seconds that it may take, up to 3600; less where the caller has less left.
    """
    words = [_python(context, cwd), "-m", "pytest", "-p", "no:cacheprovider", *args]
    return await _ran(context, "pytest", words, args, cwd, timeout)


@primitive(
    effects=["read", "write", "delete", "execute"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    refuse=_refuse,
    settings=COMMAND_SETTINGS,
)
async def run_linter(
    context: CallContext,
    linter: Literal["ruff", "ruff-format", "mypy"],
    args: Arguments = ["."],  # noqa: B006  It becomes the schema's default, and is never changed.
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 120,
) -> ToolRun:
    """Run a linter in the workspace and return what it printed, as it is: ``ruff check``, ``ruff format`` or ``mypy``.

    Returns what run_tests returns; exit code 0 means that nothing was found, 1 that something was. With args such as
    ["--fix", "src"] ruff changes files.

    Fails as run_tests does.

    Args:
        linter: Which one.
        args: What to give it: paths and options.
        cwd: The folder to run in, relative to the workspace.
        timeout: Seconds that it may take, up to 3600; less where the caller has less left.
    """
    name, *subcommand = {"ruff": ["ruff", "check"], "ruff-format": ["ruff", "format"], "mypy": ["mypy"]}[linter]
    caching = ["--no-cache"] if name == "ruff" else []
    words = [_python(context, cwd), "-m", name, *subcommand, *caching, *args]
    return await _ran(context, name, words, args, cwd, timeout)


async def _ran(context: CallContext, name: str, words: list[str], args: list[str], cwd: str, timeout: float) -> ToolRun:
    began = time.monotonic()
    ran = await run(
        context,
        words,
        cwd=cwd,
        timeout=timeout,
        environment=_ENVIRONMENT,
        apart=True,
        facts={"program": name, "args": words[words.index(name) + 1 :]},
    )
    assert ran.errors is not None
    _demand_installed(ran, name)
    return {
        "exit_code": ran.code,
        "stdout": ran.output.text(),
        "stderr": ran.errors.text(),
        "duration_ms": round((time.monotonic() - began) * 1000),
        "cmd": words,
        "truncated": ran.output.truncated or ran.errors.truncated,
        "handle": await kept(context, ran.output),
        "confinement": ran.ended.confinement,
    }


def _demand_installed(ran: Ran, name: str) -> None:
    """Raises Failure `not_found` where Python says that there is no such module."""
    assert ran.errors is not None
    if ran.code == 1 and ran.errors.text().rstrip().endswith(f"No module named {name}"):
        raise Failure(
            "not_found", f"{name} is not installed for the Python that would run it", hint=f"pip install {name}"
        )


def _python(context: CallContext, cwd: str) -> str:
    """The project's own Python, where it can be seen from inside."""
    for name in _OWN_PYTHONS:
        path = os.path.join(str(context.workspace.root), cwd, name)
        real = os.path.realpath(path)
        if os.access(path, os.X_OK) and real.startswith(
            ("/usr/", str(context.workspace.root), os.path.realpath(sys.base_prefix))
        ):
            return path
    return sys.executable
