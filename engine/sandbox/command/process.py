"""A running command, the same behind every confinement: it can be waited for and ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress

#: Seconds for ending everything before another way is tried.
PATIENCE = 10.0


class Process:
    """A command. All of its processes are below `top`; `code` is its exit code, once it has ended."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.top = popen.pid
        self.code: int | None = None

    async def ended(self) -> None:
        """Wait until the command has ended by itself."""
        await exited(self._popen)

    async def end(self) -> None:
        """End and collect everything that is left of the command. Again is harmless."""
        raise NotImplementedError


async def exited(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, without collecting it, so that its number isn't reused."""
    if not hasattr(os, "pidfd_open"):
        # Without pidfds it is collected after all.
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
    """Wait until a descriptor can be read from; a pidfd can when its process has ended."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not found.done():
            found.set_result(None)

    loop.add_reader(handle, settle)
    try:
        await found
    finally:
        loop.remove_reader(handle)


async def within(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    """Whether a process ends within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await exited(process)
            return True
    return False


def kill(handle: int) -> None:
    """Kill a process by its pidfd."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
