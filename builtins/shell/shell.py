"""Running a command in the workspace, with a shell or without, confined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.builtins.shell.command_settings import COMMAND_SETTINGS
from albert_tools.builtins.shell.confined_command import (
    MAX_TIMEOUT,
    CommandResult,
    demand_text,
    invalid,
    result_of,
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


def _refuse_command(arguments: Mapping[str, Any]) -> None:
    demand_text("command", arguments["command"])
    variables(arguments["env"])


def _refuse_program(arguments: Mapping[str, Any]) -> None:
    for word in arguments["argv"]:
        demand_text("argv", word)
    if not arguments["argv"][0]:
        raise invalid("argv", "the name of the program is empty")
    variables(arguments["env"])


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    judged={"command": "shell", "env": "environment"},
    refuse=_refuse_command,
    settings=COMMAND_SETTINGS,
)
async def bash(
    context: CallContext,
    command: CommandText,
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 30,
    env: Environment = [],  # noqa: B006  It becomes the schema's default, and is never changed.
    network: bool = False,
) -> CommandResult:
    """Run a command with bash, confined to the workspace, and return what it printed, once it has ended.

    Returns {"exit_code", "output", "truncated", "signal", "size_bytes", "handle", "confinement"}. A non-zero exit code is
    an answer, not a failure. "output" is stdout and stderr together, in the order printed; bytes that are not UTF-8 appear
    as U+FFFD. Of more than 64 KiB the first and last 32 KiB are kept, with a line between that says how much is missing,
    "truncated" is true, and read_result(handle) reads the whole (its first 16 MiB). "signal" is null, or the name
    ("SIGKILL") of the signal that ended bash; then "exit_code" is 128 + its number.

    The command starts in the workspace, which is all that it can change; of the rest it sees the system's programs and a
    private /tmp that is gone afterwards. It has no network unless asked for. stdin is empty; nothing is kept between
    calls; what is left in the background is ended with the command. It can't change git's hooks and configuration, nor
    start-up files of shells.

    Fails with `timeout` (everything the command started is ended; details hold "output" and "truncated" so
    far; what it had done stays done), `memory_limit`, `process_limit`, `not_found` or `not_a_directory` (cwd),
    `permission_denied` (not allowed, or cwd outside the workspace), `sandbox_unavailable` (it can't be confined here, so it
    doesn't run), `invalid_arguments`, `io_error`.

    Args:
        command: What bash is to run, for example "grep -rn TODO src | head".
        cwd: The folder to run it in, relative to the workspace; the workspace itself when empty.
        timeout: Seconds that it may take, up to 3600; less where the caller has less left.
        env: Environment variables, each "NAME=value"; besides PATH, HOME, TMPDIR and LANG there are no others.
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
        facts={"command": command},
    )
    return await result_of(context, ran)


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    timeout=MAX_TIMEOUT,
    schemas={"argv": {"minItems": 1}},
    paths={"cwd": "read"},
    judged={"argv": "program", "env": "environment"},
    refuse=_refuse_program,
    settings=COMMAND_SETTINGS,
)
async def run_program(
    context: CallContext,
    argv: Arguments,
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 30,
    env: Environment = [],  # noqa: B006  It becomes the schema's default, and is never changed.
    network: bool = False,
) -> CommandResult:
    """Run a program with its arguments, without a shell: nothing in them is expanded or split.

    Returns what bash returns, and is confined like it. Exit code 127 means that there is no such program, 126 that it can't
    be run. To be preferred to bash where an argument comes from somewhere else: no character in it means anything.

    Fails as bash does.

    Args:
        argv: The program, by name or path, and its arguments, for example ["git", "log", "-1"].
        cwd: The folder to run it in, relative to the workspace; the workspace itself when empty.
        timeout: Seconds that it may take, up to 3600; less where the caller has less left.
        env: Environment variables, each "NAME=value"; besides PATH, HOME, TMPDIR and LANG there are no others.
        network: Whether it may reach the hosts that the owner's rules name, by HTTP and HTTPS through a proxy.
    """
    ran = await run(
        context,
        argv,
        cwd=cwd,
        timeout=timeout,
        environment=variables(env),
        network=network,
        facts={"argv": argv},
    )
    return await result_of(context, ran)


def variables(entries: list[str]) -> dict[str, str]:
    """Environment variables by name.

    Raises:
        Failure: `invalid_arguments`.
    """
    found = {}
    for entry in entries:
        name, _, value = entry.partition("=")
        if not name.isidentifier() or not name.isascii():
            raise invalid("env", f"{name[:80]!r} is not the name of an environment variable")
        demand_text("env", value)
        found[name] = value
    return found
