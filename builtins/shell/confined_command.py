"""Runs a command for a primitive: confined to the workspace, with bounded output, and recorded.

Every primitive that runs programs uses this module, so no program runs unconfined.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.record_types import QUOTA

if TYPE_CHECKING:
    from albert_tools.engine.sandbox.command.output import Output, Shown
    from albert_tools.engine.sandbox.command.task import Ended
    from albert_tools.engine.workspace.sandbox_view import Git

#: Bytes of output in a result, of both streams together: half from the start, which shows what the command did, and half from the
#: end, which shows errors.
MAX_OUTPUT = 64 * 1024
#: Bytes of each stream that are stored, for `read_result`.
MAX_KEPT = 16 * 1024 * 1024
#: The longest timeout of a command, in seconds.
MAX_TIMEOUT = 3600
#: Seconds that are reserved at the end of the caller's time, to kill the command and return its partial output.
_MARGIN = 0.5

#: Bytes of one argument or variable of a program: Linux takes no more (MAX_ARG_STRLEN).
_MAX_WORD = 128 * 1024 - 1
#: The share of all that the system takes (ARG_MAX) that a command may use. The rest is for the sandbox.
_OF_ALL = 15 / 16

#: Network requests of one command that are recorded.
MAX_SEEN = 200


class CommandResult(TypedDict):
    """Result of `git`."""

    exit_code: int
    output: str
    truncated: bool
    signal: str | None
    size_bytes: int
    handle: str | None
    confinement: str


class ProgramResult(CommandResult):
    """Result of `bash` and `run_program`."""

    stdout: str
    stderr: str


#: What is true of a `CommandResult`.
OF_COMMAND = {
    ".exit_code": "little",
    ".truncated": "little",
    ".signal": "word",
    ".size_bytes": "little",
}


class CompletedCommand(NamedTuple):
    """A command that ended by itself, and its output.

    `errors` is None if `output` includes stderr; then `streams` may have stdout and stderr apart.
    """

    ended: Ended
    code: int
    output: Output
    errors: Output | None
    streams: tuple[Output, Output] | None = None

    def shown(self) -> tuple[Shown, Shown | None]:
        """What the result has of the output, and of stderr."""
        from albert_tools.engine.sandbox.command.output import shown_together

        if self.errors is None:
            return self.output.shown(MAX_OUTPUT), None
        return shown_together(self.output, self.errors, MAX_OUTPUT)


async def run(
    context: CallContext,
    words: Sequence[str],
    *,
    cwd: str = "",
    timeout: float = MAX_TIMEOUT,
    environment: Mapping[str, str] | None = None,
    network: bool = False,
    method: str | None = None,
    separate_errors: bool = False,
    streams: bool = False,
    git: Git | None = None,
    only: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
    hide: Sequence[str] = (),
    quiet: bool = False,
    recorded: bool = True,
) -> CompletedCommand:
    """Run a command to its end and record it.

    Args:
        context: Context of the call.
        words: The program and its arguments.
        cwd: Working directory, relative to the workspace.
        timeout: Seconds.
        environment: Additional environment variables.
        network: Whether the command may reach the hosts that the rules name or that were approved for this call.
        method: HTTP method with which the rules check requests; None for the method of each request.
        separate_errors: Whether stderr is returned separately from stdout.
        streams: Whether both streams are returned apart too, beside both together.
        git: The files that git may change: the working tree, or the configuration too.
        only: The only programs, and folders of programs, that may be started, if the confinement can enforce this. Includes
            the command.
        facts: Additional fields of the recorded effect.
        hide: Further paths that are hidden from git. From other programs, all repositories with hidden files are.
        quiet: Whether it prints no content of files (`quiet_commands`).
        recorded: Whether the command is recorded as an effect.

    Raises:
        Failure: `timeout`, `memory_limit` or `process_limit`, with the partial output in its details; `sandbox_unavailable`,
            `not_found`, `not_a_directory`, `permission_denied`, `too_large`, `io_error`.
    """
    import asyncio

    from albert_tools.builtins.git.hidden_paths import repositories_to_hide
    from albert_tools.builtins.shell.live_output import LiveOutput
    from albert_tools.engine.sandbox.command.confinement import found
    from albert_tools.engine.sandbox.command.launchers import Launchers
    from albert_tools.engine.sandbox.command.output import Output
    from albert_tools.engine.sandbox.command.run_command import run as run_confined
    from albert_tools.engine.sandbox.command.task import Command
    from albert_tools.engine.workspace.git_lock import turn
    from albert_tools.engine.workspace.sandbox_view import command_view

    seconds, started = max(0.0, min(timeout, context.remaining - _MARGIN)), time.monotonic()
    say = context.progress
    live = LiveOutput(say) if say is not None and not separate_errors else None
    output = Output(MAX_OUTPUT, MAX_KEPT, live=live.add if live is not None else None)
    errors = Output(MAX_OUTPUT, MAX_KEPT) if separate_errors else None
    apart = (Output(MAX_OUTPUT, both=output), Output(MAX_OUTPUT, both=output)) if streams else None
    ended: Ended | None = None
    running_since: float | None = None
    connection = _Connection(context, method) if network else None
    try:
        wanted = context.settings.get("confinement")
        every = git is not None and (await asyncio.to_thread(found)).best(wanted) == "landlock"
        async with turn(str(context.workspace.root), git, seconds) as allowed:
            # Other programs than git could print hidden files from the objects of a repository.
            if only is None:
                hide = await repositories_to_hide(context, run)
            owns: Git | None = "all" if every else allowed
            seen = command_view(context.workspace, cwd, git=owns, hide=hide, only_git=only is not None)
            with seen as (view, workspace):
                if recorded and not quiet:
                    await asyncio.to_thread(context.workspace.judge.note_visible, [view.root, *view.readable])
                    context.record_seen()
                command = Command(
                    words,
                    view,
                    workspace,
                    {**base_environment(), **(environment or {})},
                    # The time spent waiting for the git lock counts.
                    max(0.0, seconds - (time.monotonic() - started)),
                    bounds=_bounds(context.settings),
                    connect=connection.connect if connection is not None else None,
                    wanted=wanted,
                    only=only,
                    launchers=context.keep(Launchers),
                )
                running_since = time.monotonic()
                try:
                    ended = await run_confined(command, *(apart or (output, errors)))
                except Failure:
                    # The command did not start.
                    running_since = None
                    raise
    finally:
        if live is not None:
            live.close()
        # A cancelled command is recorded too, because it may have changed files.
        if running_since is not None and recorded:
            ending = _ending(ended, time.monotonic() - running_since)
            context.effect("execute", **(facts or {}), cwd=cwd or ".", **ending)
        for seen in connection.seen[:MAX_SEEN] if connection is not None else ():
            context.effect(
                "network",
                method=seen.method,
                url=seen.url,
                refused=seen.refused,
                size_bytes=seen.sent_bytes + seen.size_bytes,
            )
    ran = CompletedCommand(ended, ended.code or 0, output, errors, apart)
    if ended.over is not None:
        details = await _details(context, ran)
        raise _limit_exceeded(ended.over, details, seconds, command.bounds.memory, command.bounds.processes)
    if ended.code is None:
        raise Failure("io_error", "the exit code of the command is unknown", hint="check what it changed")
    return ran


def _ending(ended: Ended | None, seconds: float) -> dict[str, Any]:
    """The recorded end: exit code and confinement. For a killed command also the reason and the duration."""
    if ended is None:
        return {"exit_code": None, "confinement": None, "over": "cancelled", "seconds": round(seconds, 1)}
    killed = {"over": ended.over, "seconds": round(seconds, 1)} if ended.over is not None else {}
    return {"exit_code": ended.code, "confinement": ended.confinement, **killed}


async def result_of(context: CallContext, ran: CompletedCommand) -> CommandResult:
    """The result of a command. A long output is stored."""
    shown, _ = ran.shown()
    return {
        "exit_code": ran.code,
        "output": shown.text,
        "truncated": shown.omitted > 0,
        "signal": ran.ended.signal,
        "size_bytes": ran.output.size,
        "handle": await stored_output(context, ran) if shown.omitted else None,
        "confinement": ran.ended.confinement,
    }


async def program_result(context: CallContext, ran: CompletedCommand) -> ProgramResult:
    """The result of a command whose streams were collected apart too."""
    stdout, stderr = _streams_of(ran)
    return {**await result_of(context, ran), "stdout": stdout, "stderr": stderr}


def _streams_of(ran: CompletedCommand) -> tuple[str, str]:
    """The shown parts of stdout and stderr."""
    from albert_tools.engine.sandbox.command.output import shown_together

    assert ran.streams is not None
    output, errors = shown_together(*ran.streams, MAX_OUTPUT)
    return output.text, errors.text


async def stored_output(context: CallContext, ran: CompletedCommand) -> str | None:
    """Store the whole output, stderr after stdout, and return its handle. Returns None if it can't be stored: there is no content
    store, or the session's quota has no room."""
    if context.contents is None:
        return None
    import asyncio

    whole = ran.output.whole
    if ran.errors is not None and ran.errors.size:
        whole += b"\n[stderr]\n" + ran.errors.whole
    try:
        return await asyncio.to_thread(context.contents.put, whole)
    except Failure as failure:
        if failure.rule != QUOTA:
            raise
        # The command was run. Its caller gets at least what is shown of the output.
        return None


async def _details(context: CallContext, ran: CompletedCommand) -> dict[str, Any]:
    """The partial output of a killed command, for the details of its failure."""
    shown, errors = ran.shown()
    truncated = shown.omitted > 0 or (errors is not None and errors.omitted > 0)
    details: dict[str, Any] = {"output": shown.text, "truncated": truncated}
    if errors is not None:
        details["errors"] = errors.text
    if ran.streams is not None:
        details["stdout"], details["stderr"] = _streams_of(ran)
    if truncated:
        details["handle"] = await stored_output(context, ran)
    return details


def demand_text(field: str, text: str) -> None:
    """Check that `text` can be an argument of a program.

    Raises:
        Failure: `invalid_arguments`.
    """
    if "\0" in text:
        raise invalid(field, "it can't contain a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise invalid(field, "it must be valid Unicode; this contains half a surrogate pair")


def demand_startable(words: Sequence[str], environment: Sequence[str] = ()) -> None:
    """Check that the operating system can start a program with these arguments and variables.

    Raises:
        Failure: `too_large`.
    """
    sizes = [len(text.encode()) for text in (*words, *environment)]
    # Each takes a NUL at its end and a pointer, too.
    if max(sizes, default=0) > _MAX_WORD or sum(sizes) + 9 * len(sizes) > _OF_ALL * os.sysconf("SC_ARG_MAX"):
        from albert_tools.engine.sandbox.command.spawn_command import too_long

        raise too_long()


def invalid(field: str, message: str) -> Failure:
    """The failure for an argument that cannot be passed to a program."""
    return refused_argument(field, message, said=f"{field}: {message}")


def base_environment() -> dict[str, str]:
    """The environment variables of every command. The folder of this Python is the last one of the search path, for systems
    without another Python."""
    from albert_tools.engine.sandbox.command.confinement import PATH

    return {
        "PATH": f"{PATH}:{os.path.dirname(os.path.abspath(sys.executable))}",
        "LANG": "C.UTF-8",
        # A command can't read the machine's settings. Behind Landlock they seem to exist, and git and node would fail.
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "OPENSSL_CONF": os.devnull,
        # A folder of tracked files could be a bare repository, whose settings name programs.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
    }


def _bounds(settings: Mapping[str, Any]) -> Any:
    from albert_tools.engine.sandbox.command.task import Bounds, MiB

    bounds = Bounds()
    if "memory_mb" in settings:
        bounds = bounds._replace(memory=int(settings["memory_mb"] * MiB))
    if "processes" in settings:
        bounds = bounds._replace(processes=int(settings["processes"]))
    return bounds


class _Connection:
    """Connects a command to the network under the rules of the call. `seen` lists its requests."""

    def __init__(self, context: CallContext, method: str | None) -> None:
        rules = context.network
        if rules is None:
            raise Failure(
                "permission_denied",
                "commands have no network here: no rules for the network apply",
                hint="run it without `network`",
                rule="network",
            )
        self._rules = rules
        self._demand_request = context.guard_requests()
        self._method = method
        self.seen: list[Any] = []

    def connect(self, listener: socket.socket) -> Any:
        """Creates a proxy on that socket."""
        from albert_tools.builtins.net.proxy import FilteringProxy

        proxy = FilteringProxy(
            self._judge, address_rules=lambda: self._rules.address_rules, listening=listener, still=self._demand_request
        )
        self.seen = proxy.seen
        return proxy

    async def _judge(self, url: str, method: str) -> None:
        self._rules.demand(url, self._method or method)
        self._demand_request()


def _limit_exceeded(over: str, details: dict[str, Any], seconds: float, memory: int, processes: int) -> Failure:
    """The failure for a command that was killed."""
    if over == "timeout":
        return Failure(
            "timeout",
            f"the command was still running after {seconds:g} s and was killed, with every process that it started",
            hint="use a longer timeout or do less at once; its changes so far stay",
            details=details,
        )
    if over == "memory":
        return Failure(
            "memory_limit",
            f"a process of the command was killed: there was no memory left, or more than {memory // 1024**2:,} MiB was used",
            hint="do less at once; do not trust its output; its changes so far stay",
            details=details,
        )
    return Failure(
        "process_limit",
        f"the command had more than {processes:,} processes at once and was killed",
        hint="start fewer at once (make -j 4); its changes so far stay",
        details=details,
    )
