"""The service's end of the zygote. It requests workers, and always has a few that are ready."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections import deque

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle
from albert_tools.engine.sandbox.worker.zygote_report import AWAITED, BORN, ENDED, FAILED, READY, REPORT, SPARE

#: Seconds until the zygote is ready, and seconds from a request to a worker. A busy machine needs that long to import.
START_SECONDS = 60.0
#: Seconds to wait for the zygote's end. Then it is killed.
_CLOSE_SECONDS = 2.0
#: Seconds from the end of a run to the end of its worker.
_RELEASE_SECONDS = 0.001
#: The most workers that are requested at once.
_MAX_REQUEST = 32


class ZygoteHandle:
    """The zygote's process, its control socket, and the workers that are ready. `max_bytes` limits each message of a worker.

    Attributes:
        kind: The fence of the workers.
        dead: Whether the zygote has ended.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, idle: int, max_bytes: int) -> None:
        self.kind = ""
        self.dead = False
        self._process = process
        self._control = control
        self._idle_target = idle
        self._max_bytes = max_bytes
        self._idle: deque[WorkerHandle] = deque()
        self._requested = 0
        self._waiting: deque[asyncio.Future[WorkerHandle]] = deque()
        self._workers: dict[int, WorkerHandle] = {}
        self._buffer = bytearray()
        self._descriptors: deque[int] = deque()
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[str] = self._loop.create_future()
        self._loop.add_reader(control.fileno(), self._on_readable)

    async def ready(self, settings: str) -> None:
        """Send the settings, wait until the zygote is ready, then request the first workers.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._loop.sock_sendall(self._control, settings.encode() + b"\n")
                self.kind = await self._ready
        except TimeoutError:
            await self.close()
            raise Failure("sandbox_unavailable", "the sandbox does not answer") from None
        except OSError as error:
            await self.close()
            raise Failure("sandbox_unavailable", f"the sandbox ended at once: {error.strerror}") from None
        except (Failure, asyncio.CancelledError):
            await self.close()
            raise
        self._request()

    async def acquire(self) -> WorkerHandle:
        """A worker that is confined and waits for its program.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        idle = self._take_idle()
        if idle is not None and idle.take_ready():
            # The usual case needs no timer.
            return idle
        try:
            async with asyncio.timeout(START_SECONDS):
                worker = idle or await self._next()
                try:
                    await worker.ready()
                except BaseException:
                    self.release(worker)
                    raise
                return worker
        except TimeoutError:
            raise Failure("sandbox_unavailable", "no worker came up", retryable=True) from None

    def _take_idle(self) -> WorkerHandle | None:
        while self._idle:
            worker = self._idle.popleft()
            if not worker.ended:
                if not self._idle:
                    self._request()
                return worker
        return None

    async def _next(self) -> WorkerHandle:
        if self.dead:
            raise _ended()
        waiting: asyncio.Future[WorkerHandle] = self._loop.create_future()
        self._waiting.append(waiting)
        self._request()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                # The worker arrived at the same moment. No other code would kill it.
                self.release(waiting.result())
            else:
                self._waiting = deque(each for each in self._waiting if each is not waiting)
            raise

    def release(self, worker: WorkerHandle) -> None:
        """Kill a worker and request the next one. This takes longer than some runs, so the caller gets its result before."""
        self._loop.call_later(_RELEASE_SECONDS, self._replace, worker)

    def _replace(self, worker: WorkerHandle) -> None:
        worker.kill()
        self._request()

    def _request(self) -> None:
        wanted = self._idle_target + len(self._waiting) - len(self._idle) - self._requested
        if wanted > 0 and not self.dead:
            wanted = min(wanted, _MAX_REQUEST)
            awaited = min(wanted, len(self._waiting))
            try:
                self._control.send(bytes([AWAITED] * awaited + [SPARE] * (wanted - awaited)))
                self._requested += wanted
            except BlockingIOError:
                self._loop.call_later(0.01, self._request)
            except OSError:
                self._on_end()

    def _on_readable(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 64)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors.extend(descriptors)
        if not data:
            self._on_end()
            return
        self._buffer += data
        while len(self._buffer) >= REPORT.size:
            kind, pid, number, length = REPORT.unpack_from(self._buffer)
            if len(self._buffer) < REPORT.size + length:
                return
            text = bytes(self._buffer[REPORT.size : REPORT.size + length]).decode("utf-8", "replace")
            del self._buffer[: REPORT.size + length]
            if kind == BORN:
                self._on_born(pid, number)
            elif kind == ENDED:
                self._on_worker_end(pid, number)
            elif kind == READY and not self._ready.done():
                self._ready.set_result(text)
            elif kind == FAILED and not self._ready.done():
                self._ready.set_exception(Failure("sandbox_unavailable", f"the sandbox can't be set up: {text}"))

    def _on_born(self, pid: int, descriptors: int) -> None:
        self._requested -= 1
        sock = socket.socket(fileno=self._descriptors.popleft())
        pidfd = self._descriptors.popleft() if descriptors > 1 else None
        worker = WorkerHandle(pid, sock, pidfd, self._loop, self._max_bytes)
        self._workers[pid] = worker
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(worker)
                return
        if len(self._idle) < self._idle_target:
            self._idle.append(worker)
        else:
            # The run that requested this worker was cancelled.
            worker.kill()

    def _on_worker_end(self, pid: int, status: int) -> None:
        worker = self._workers.pop(pid, None)
        if worker is not None:
            worker.reaped(status)
            if worker in self._idle:
                # The worker died before its use, because the fence or the rehearsal failed.
                self._idle.remove(worker)
                worker.kill()

    def _on_end(self) -> None:
        if self.dead:
            return
        self.dead = True
        self._loop.remove_reader(self._control.fileno())
        if not self._ready.done():
            self._ready.set_exception(_ended())
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(_ended())
        for worker in self._workers.values():
            worker.kill()

    async def close(self) -> None:
        """Kill all workers and the zygote, and wait for its process."""
        self._on_end()
        if self._ready.done() and not self._ready.cancelled():
            # Read the exception. Otherwise, asyncio warns that it was never retrieved.
            self._ready.exception()
        self._control.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        # A zygote that is not ready yet would first import everything.
        deadline = self._loop.time() + (_CLOSE_SECONDS if self.kind else 0.0)
        while self._process.poll() is None:
            if self._loop.time() > deadline:
                self._process.kill()
            await asyncio.sleep(0.001)


def _ended() -> Failure:
    return Failure("sandbox_unavailable", "the sandbox has ended", retryable=True)
