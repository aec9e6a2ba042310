"""Running a command for a primitive: confined, in the workspace as the rules show it, with bounded output; and saying how it went.

All primitives that run programs go through here, so that none of them runs unconfined.
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

if TYPE_CHECKING:
    from albert_tools.engine.sandbox.command.output import Output
    from albert_tools.engine.sandbox.command.task import Ended
    from albert_tools.engine.workspace.sandbox_view import Git

#: Bytes of output that are handed over: half from the start, where a command says what it does, half from the end, where it says
#: what went wrong.
MAX_OUTPUT = 64 * 1024
#: Bytes of output that are kept, to be read with `read_result`.
MAX_KEPT = 16 * 1024 * 1024
#: Seconds that a command may ask for.
MAX_TIMEOUT = 3600
#: Seconds kept back from what the caller has left, for ending the command and answering with its partial output.
_MARGIN = 0.5

#: Requests of a command that are on the record.
MAX_SEEN = 200

#: What every command has in its environment.
_LANG = "C.UTF-8"


class CommandResult(TypedDict):
    """What `bash` and `run_program` answer."""

    exit_code: int
    output: str
    truncated: bool
    signal: str | None
    size_bytes: int
    handle: str | None
    confinement: str


class Ran(NamedTuple):
    """A command that has ended by itself: how, and what it printed."""

    ended: Ended
    code: int
    output: Output
    errors: Output | None


async def run(
    context: CallContext,
    words: Sequence[str],
    *,
    cwd: str = "",
    timeout: float = MAX_TIMEOUT,
    environment: Mapping[str, str] | None = None,
    network: bool = False,
    method: str | None = None,
    apart: bool = False,
    git: Git | None = None,
    only: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Ran:
    """Run a command to its end, and record it.

    Args:
        context: The call's.
        words: The program and its arguments.
        cwd: Where it starts, relative to the workspace.
        timeout: Seconds that it may take.
        environment: What it has in its environment besides what every command has.
        network: Whether it may reach hosts that the rules name, or that the call was allowed for.
        method: The method that rules judge those by; else the one that is used.
        apart: Whether its errors are taken apart from its output.
        git: What it may change besides, because it is git itself.
        only: The programs, and folders of programs, that it may start, itself included, where the system can see to that.
        facts: What the record says of it besides how it ended.

    Raises:
        Failure: `timeout`, `memory_limit` or `process_limit`, each with the output so far in its details; `sandbox_unavailable`,
            `not_found`, `not_a_directory`, `permission_denied`, `too_large`, `io_error`.
    """
    import asyncio

    from albert_tools.engine.sandbox.command.confinement import found
    from albert_tools.engine.sandbox.command.output import Output
    from albert_tools.engine.sandbox.command.run_command import run as run_confined
    from albert_tools.engine.sandbox.command.task import Command
    from albert_tools.engine.workspace.git_lock import turn
    from albert_tools.engine.workspace.sandbox_view import command_view

    seconds, began = max(0.0, min(timeout, context.remaining - _MARGIN)), time.monotonic()
    output, errors = Output(MAX_OUTPUT, MAX_KEPT), Output(MAX_OUTPUT, MAX_KEPT) if apart else None
    ended: Ended | None = None
    begun: float | None = None
    connection = _Connection(context, method) if network else None
    try:
        wanted = context.settings.get("confinement")
        every = git is not None and (await asyncio.to_thread(found)).best(wanted) == "landlock"
        async with turn(str(context.workspace.root), git, seconds) as allowed:
            with command_view(context.workspace, cwd, git="all" if every else allowed) as (view, workspace):
                command = Command(
                    words,
                    view,
                    workspace,
                    {"PATH": _path(), "LANG": _LANG, **(environment or {})},
                    # Less, if it had to wait.
                    max(0.0, seconds - (time.monotonic() - began)),
                    bounds=_bounds(context.settings),
                    connect=connection.connect if connection is not None else None,
                    wanted=wanted,
                    only=only,
                )
                begun = time.monotonic()
                try:
                    ended = await run_confined(command, output, errors)
                except Failure:
                    # It never came to run.
                    begun = None
                    raise
    finally:
        # Also when it was called off: what it had done stays done.
        if begun is not None:
            context.effect("execute", **(facts or {}), cwd=cwd or ".", **_ending(ended, time.monotonic() - begun))
        for seen in connection.seen[:MAX_SEEN] if connection is not None else ():
            context.effect(
                "network",
                method=seen.method,
                url=seen.url,
                refused=seen.refused,
                size_bytes=seen.sent_bytes + seen.size_bytes,
            )
    if ended.over is not None:
        raise _over(ended, output, errors, seconds, command.bounds.memory, command.bounds.processes)
    if ended.code is None:
        raise Failure("io_error", "the command ended, and how is not known", hint="look at what it was to change")
    return Ran(ended, ended.code, output, errors)


def _ending(ended: Ended | None, seconds: float) -> dict[str, Any]:
    """What the record says of how it ended; and of one that didn't by itself, why, and after how long."""
    if ended is None:
        return {"exit_code": None, "confinement": None, "over": "cancelled", "seconds": round(seconds, 1)}
    by_force = {"over": ended.over, "seconds": round(seconds, 1)} if ended.over is not None else {}
    return {"exit_code": ended.code, "confinement": ended.confinement, **by_force}


async def result_of(context: CallContext, ran: Ran) -> CommandResult:
    """How it went, as a result; the whole of a long output is kept."""
    return {
        "exit_code": ran.code,
        "output": ran.output.text(),
        "truncated": ran.output.truncated,
        "signal": ran.ended.signal,
        "size_bytes": ran.output.size,
        "handle": await kept(context, ran.output),
        "confinement": ran.ended.confinement,
    }


async def kept(context: CallContext, output: Output) -> str | None:
    """The handle of what was too long to be handed over; None where nothing is missing or nothing is kept."""
    if not output.truncated or context.contents is None:
        return None
    import asyncio

    return await asyncio.to_thread(context.contents.put, output.whole)


def demand_text(field: str, text: str) -> None:
    """That `text` can be an argument of a program.

    Raises:
        Failure: `invalid_arguments`.
    """
    if "\0" in text:
        raise invalid(field, "it can't hold a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise invalid(field, "it must be valid Unicode; this one holds half a surrogate pair")


def invalid(field: str, message: str) -> Failure:
    """The failure that an argument comes to which no program can be given."""
    return refused_argument(field, message, said=f"{field}: {message}")


def _path() -> str:
    """Where a command finds programs; this Python's own last, for where the system has none."""
    from albert_tools.engine.sandbox.command.confinement import PATH

    return f"{PATH}:{os.path.dirname(os.path.abspath(sys.executable))}"


def _bounds(settings: Mapping[str, Any]) -> Any:
    from albert_tools.engine.sandbox.command.task import Bounds, MiB

    found = Bounds()
    if "memory_mb" in settings:
        found = found._replace(memory=int(settings["memory_mb"] * MiB))
    if "processes" in settings:
        found = found._replace(processes=int(settings["processes"]))
    return found


class _Connection:
    """What serves a command's connections, by the rules of the call; `seen` is what it asked for."""

    def __init__(self, context: CallContext, method: str | None) -> None:
        rules = context.network
        if rules is None:
            raise Failure(
                "permission_denied",
                "commands have no network where nothing judges what they reach",
                hint="run it without network",
                rule="network",
            )
        self._rules = rules
        self._method = method
        self.seen: list[Any] = []

    def connect(self, listener: socket.socket) -> Any:
        """A proxy on that socket."""
        from albert_tools.builtins.net.proxy import FilteringProxy

        proxy = FilteringProxy(self._judge, named=self._rules.named, listening=listener)
        self.seen = proxy.seen
        return proxy

    async def _judge(self, url: str, method: str) -> None:
        self._rules.demand(url, self._method or method)


def _over(ended: Ended, output: Output, errors: Output | None, seconds: float, memory: int, processes: int) -> Failure:
    """The failure that it comes to when a command had to be ended."""
    details: dict[str, Any] = {"output": output.text(), "truncated": output.truncated}
    if errors is not None:
        details["errors"] = errors.text()
    if ended.over == "timeout":
        return Failure(
            "timeout",
            f"the command was still running after {seconds:g} s, and was ended with all that it had started",
            hint="give it a longer timeout, or less to do; what it had done stays done",
            details=details,
        )
    if ended.over == "memory":
        return Failure(
            "memory_limit",
            f"the command took more than {memory // 1024**2:,} MiB of memory, and was ended",
            hint="give it less to do at once; what it had done stays done",
            details=details,
        )
    return Failure(
        "process_limit",
        f"the command had more than {processes:,} processes at once, and was ended",
        hint="let it start fewer (make -j 4); what it had done stays done",
        details=details,
    )
