"""The service's end of one worker, which the zygote has forked."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER
from albert_tools.engine.sandbox.worker.child import Child

#: Seconds to wait for the zygote's report about a worker whose socket is closed.
_REAPING_SECONDS = 2.0


class WorkerHandle(Child):
    """The process and the socket of a worker. `exit_code` is None until the zygote reports it; it is negative for a signal."""

    def __init__(
        self,
        pid: int,
        sock: socket.socket,
        pidfd: int | None,
        loop: asyncio.AbstractEventLoop,
        max_bytes: int = MAX_ANSWER,
    ) -> None:
        super().__init__(sock, max_bytes, loop)
        self.pid = pid
        self.exit_code: int | None = None
        self._pidfd = pidfd
        self._killed = False
        self._reaped = asyncio.Event()

    def take_ready(self) -> bool:
        """Whether the worker has already reported that it is confined. A report is taken from the inbox."""
        if self.inbox and self.inbox[0] == ["ready"]:
            self.inbox.popleft()
            return True
        return False

    async def ready(self) -> None:
        """Wait until the worker is confined. Only then can its limits be lowered, because the fence sets them.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        if await self.receive() != ["ready"]:
            raise Failure("sandbox_unavailable", "the worker ended before it was ready", retryable=True)

    def reaped(self, status: int) -> None:
        """Store the wait status that the zygote reports."""
        self.exit_code = os.waitstatus_to_exitcode(status)
        self._reaped.set()

    async def wait(self) -> int | None:
        """The exit code of a worker that has ended; None if the zygote doesn't report it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAPING_SECONDS):
                await self._reaped.wait()
        return self.exit_code

    def kill(self) -> None:
        """Kill the process and release its handles. A second call has no effect."""
        if self._killed:
            return
        self._killed = True
        if self.exit_code is None:
            with suppress(OSError):
                if self._pidfd is not None:
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                else:
                    os.kill(self.pid, signal.SIGKILL)
        self.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
