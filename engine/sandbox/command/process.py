"""A confined command while it runs: what can be waited for and ended, whichever way it is confined."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress

#: Seconds that ending everything may take before it is tried in another way.
PATIENCE = 10.0


class Process:
    """What was started. `top` is the process that everything of the command is below of; `code` says how it ended, afterwards."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.top = popen.pid
        self.code: int | None = None

    async def ended(self) -> None:
        """Wait until the command has ended by itself."""
        await exited(self._popen)

    async def end(self) -> None:
        """End everything that is left of it, and collect it. Again is harmless."""
        raise NotImplementedError


async def exited(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, without taking its exit code: until that is taken, its number is its own."""
    if not hasattr(os, "pidfd_open"):
        # Here it is taken after all.
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
    """Wait until something can be read there; of the descriptor of a process, until it has ended."""
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
    """Whether a process ends within so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await exited(process)
            return True
    return False


def kill(handle: int) -> None:
    """Kill a process by its descriptor."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
