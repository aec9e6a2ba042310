"""A running command, with the same interface for every confinement. It can be awaited and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress

from albert_tools.engine.sandbox.kernel.cgroups import ControlGroup, memory_kills_around

#: Seconds to wait for the end of all processes before another way is tried.
PATIENCE = 10.0


class Process:
    """A command. `top` and its descendants are all its processes. `code` is its exit code after its end.

    `group` is its control group, if it has one.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.top = popen.pid
        self.code: int | None = None
        self.group: ControlGroup | None = None
        self._kills_before = memory_kills_around()

    async def ended(self) -> None:
        """Wait until the command ends."""
        await exited(self._popen)

    def lost_to_memory(self) -> bool:
        """Whether the kernel has killed a process because there was no memory left.

        Without a control group, it may have been another process of the service's group; then the output is not trusted either.
        """
        if self.group is not None:
            return self.group.memory_kills() > 0
        return memory_kills_around() > self._kills_before

    async def end(self) -> None:
        """Kill all remaining processes of the command and wait for them. A second call has no effect."""
        raise NotImplementedError


async def exited(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, but don't reap it, so that its number isn't reused."""
    if not hasattr(os, "pidfd_open"):
        # Without pidfds, the process is reaped here.
        while process.poll() is None:
            await asyncio.sleep(0.02)
        return
    if process.returncode is not None:
        return
    handle = os.pidfd_open(process.pid)
    try:
        await readable(handle)
    finally:
        os.close(handle)


async def readable(handle: int) -> None:
    """Wait until a descriptor is readable. A pidfd becomes readable when its process ends."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(handle, settle)
    try:
        await ready
    finally:
        loop.remove_reader(handle)


async def within(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    """Returns whether a process ends within this time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await exited(process)
            return True
    return False


def kill(handle: int) -> None:
    """Kill a process by its pidfd."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
