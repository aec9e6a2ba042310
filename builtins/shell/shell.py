"""Runs a command in the workspace, confined, with or without a shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.builtins.shell.command_settings import COMMAND_SETTINGS
from albert_tools.builtins.shell.confined_command import (
    MAX_TIMEOUT,
    OF_COMMAND,
    ProgramResult,
    demand_startable,
    demand_text,
    invalid,
    program_result,
    run,
)
from albert_tools.engine.model.parameter_types import (
    Arguments,
    CommandText,
    Environment,
    TimeoutSeconds,
    WorkingDirectory,
)
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.shell.quiet_commands import is_quiet_command, is_quiet_program


def _refuse_command(arguments: Mapping[str, Any]) -> None:
    demand_text("command", arguments["command"])
    variables(arguments["env"])
    demand_startable([arguments["command"]], arguments["env"])


def _refuse_program(arguments: Mapping[str, Any]) -> None:
    for word in arguments["argv"]:
        demand_text("argv", word)
    if not arguments["argv"][0]:
        raise invalid("argv", "the name of the program is empty")
    variables(arguments["env"])
    demand_startable(arguments["argv"], arguments["env"])


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    uses={"cwd": "folder"},
    judged={"command": "shell", "env": "environment"},
    outputs=OF_COMMAND,
    source="command",
    refuse=_refuse_command,
    settings=COMMAND_SETTINGS,
)
async def bash(
    context: CallContext,
    command: CommandText,
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 30,
    env: Environment = [],  # noqa: B006  The schema's default; never modified.
    network: bool = False,
) -> ProgramResult:
    """Run a command with bash, confined to the workspace, and return its output when it ends.

    Returns {"exit_code", "output", "stdout", "stderr", "truncated", "signal", "size_bytes", "handle", "confinement"}. A non-zero
    exit code is a result, not a failure. "output" is "stdout" and "stderr" together, in the order in which they arrive (for the
    exact order, print both to stdout: 2>&1); bytes that are not UTF-8 appear as U+FFFD. Of an output over 64 KiB, "output" has
    the first and last 32 KiB, including a line between them that says how much is missing, "stdout" and "stderr" are shortened
    to as much together, "truncated" is true, and read_result(handle) reads all of "output" (up to 16 MiB). "signal" is null, or
    the name of the signal that ended bash ("SIGKILL"); then "exit_code" is 128 + its number.

    The command starts in the workspace and can change nothing else. It also sees the system's programs and a private /tmp,
    which is deleted afterwards. It has no network unless `network` is true. stdin is empty. Each call starts a new shell;
    processes left in the background are killed. Git's hooks and configuration and start-up files of shells are read-only. If the
    rules forbid files that the repository tracks, use the tool `git` instead of the program; if they list the writable paths,
    use it to commit.

    Fails with `timeout` (every process is killed; details have "output", "stdout" and "stderr" so far; changes made so far stay),
    `memory_limit`, `process_limit`, `not_found` or `not_a_directory` (cwd), `permission_denied` (not allowed, or cwd outside
    the workspace), `sandbox_unavailable` (this machine cannot confine it, so it does not run), `invalid_arguments`, `too_large`
    (more than Linux starts: 128 KiB for a command, some 1.8 MiB with `env`), `io_error`.

    Args:
        command: The command line, for example "grep -rn TODO src | head".
        cwd: Working directory, relative to the workspace; empty for the workspace itself.
        timeout: Seconds, at most 3600, and at most what the caller has left.
        env: Environment variables, each "NAME=value", in addition to PATH, HOME, TMPDIR and LANG; no others are set.
        network: Whether it may reach the hosts that the owner's rules name, by HTTP and HTTPS through a proxy.
    """
    words = ["bash", "--noprofile", "--norc", "-c", command]
    ran = await run(
        context,
        words,
        cwd=cwd,
        timeout=timeout,
        environment=variables(env),
        network=network,
        streams=True,
        facts={"command": command},
        quiet=not env and is_quiet_command(command),
    )
    return await program_result(context, ran)


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    timeout=MAX_TIMEOUT,
    schemas={"argv": {"minItems": 1}},
    paths={"cwd": "read"},
    uses={"cwd": "folder"},
    judged={"argv": "program", "env": "environment"},
    outputs=OF_COMMAND,
    source="command",
    refuse=_refuse_program,
    settings=COMMAND_SETTINGS,
)
async def run_program(
    context: CallContext,
    argv: Arguments,
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 30,
    env: Environment = [],  # noqa: B006  The schema's default; never modified.
    network: bool = False,
) -> ProgramResult:
    """Run a program with its arguments, without a shell: nothing is expanded or split.

    Prefer it to bash if an argument comes from elsewhere: no character in it has a special meaning. Confinement, result and
    failures are those of bash. Exit code 127 means that the program was not found, 126 that it cannot be executed.

    Args:
        argv: The program, by name or path, and its arguments, for example ["git", "log", "-1"].
        cwd: Working directory, relative to the workspace; empty for the workspace itself.
        timeout: Seconds, at most 3600, and at most what the caller has left.
        env: Environment variables, each "NAME=value", in addition to PATH, HOME, TMPDIR and LANG; no others are set.
        network: Whether it may reach the hosts that the owner's rules name, by HTTP and HTTPS through a proxy.
    """
    ran = await run(
        context,
        argv,
        cwd=cwd,
        timeout=timeout,
        environment=variables(env),
        network=network,
        streams=True,
        facts={"argv": argv},
        quiet=not env and is_quiet_program(argv),
    )
    return await program_result(context, ran)


def variables(entries: list[str]) -> dict[str, str]:
    """Parse "NAME=value" entries.

    Raises:
        Failure: `invalid_arguments`.
    """
    variables = {}
    for entry in entries:
        name, _, value = entry.partition("=")
        if not name.isidentifier() or not name.isascii():
            raise invalid("env", f"{name[:80]!r} is not the name of an environment variable")
        demand_text("env", value)
        variables[name] = value
    return variables
