"""Starts the process of a command, and limits all its processes together. Every confinement uses this module."""

from __future__ import annotations

import asyncio
import errno
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.process import Process
from albert_tools.engine.sandbox.command.task import Command
from albert_tools.engine.sandbox.kernel.cgroups import ControlGroup

#: The descriptors of standard input, output and error. The last two may be equal. `NO_INPUT` is an empty input.
Streams = tuple[int, int, int]
NO_INPUT = subprocess.DEVNULL


def spawn(
    words: Sequence[str],
    streams: Streams,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    cwd: str = "/",
) -> subprocess.Popen[bytes]:
    """Start a process. It inherits only `descriptors`, and no environment, because other processes in a namespace could read it.

    Raises:
        Failure: `too_large`, `io_error`.
    """
    try:
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=environment or {},
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise too_long() from None
        raise Failure("io_error", f"the command could not be started: {error.strerror}", retryable=True) from None


def too_long() -> Failure:
    """The failure of a command line that is too long."""
    return Failure(
        "too_large",
        "the command is longer than the operating system takes",
        hint="write it to a file in the workspace, and run that",
    )


def bound_together(pid: int, command: Command, process: Process, resources: AsyncExitStack) -> None:
    """Put a process, and all processes that it starts later, into a control group, if one can be created."""
    try:
        group = ControlGroup(command.bounds.memory, command.bounds.processes)
    except OSError:
        return
    # Don't wait for the removal, because it can be slow. At its next start, the service removes remaining groups.
    resources.callback(asyncio.get_running_loop().run_in_executor, None, group.remove)
    # This callback runs before the removal, because only an empty group can be removed.
    resources.push_async_callback(process.end)
    with suppress(OSError):
        group.take(pid)
        process.group = group
