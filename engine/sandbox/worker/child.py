"""The service's end of a child process: its socket, and what is the same for workers and confined functions.

What comes from a child is hostile. Messages are bounded before they are decoded, wait in a queue of bounded length, and are
believed by nobody: a code that claims more than the child can know is not passed on (`believable`), and anything that is not a
message ends the child as a violation.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import Any, Protocol

from albert_tools.engine.model.error_codes import CODES, DENIALS, ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import BadFrame

#: Messages that wait to be received; the child isn't read from while there are more.
MAX_WAITING = 256

#: What the exit code of a child means that the service hasn't ended. SIGKILL: the kernel was short of memory.
DEATHS = {
    -signal.SIGKILL: "memory_limit",
    -getattr(signal, "SIGXCPU", 24): "cpu_limit",
    -getattr(signal, "SIGSYS", 31): "sandbox_violation",
}

#: Codes that claim more than a child can know: it decides nothing, ends no run, and doesn't know what the service knows.
_SERVICE_ONLY = (
    DENIALS | ENDING | {"sandbox_violation", "worker_died", "internal_error", "damaged", "outdated", "depth_limit"}
)


def believable(code: object) -> bool:
    """Whether a child can have failed with this code."""
    return isinstance(code, str) and code in CODES and code not in _SERVICE_ONLY


def broke_protocol(who: str, problem: object, tool: str | None = None) -> Failure:
    """The failure of a child that sent something else than its messages."""
    return Failure("sandbox_violation", f"{who} broke the protocol ({problem}), so it was ended", tool=tool)


class Unpacker(Protocol):
    """Turns bytes into messages."""

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that `data` completes. Raises `BadFrame`."""


class _Buffer(threading.local):
    """What sockets are read into, one read at a time: one for each thread, since each may have a loop with a sandbox."""

    def __init__(self) -> None:
        self.bytes = bytearray(262_144)


_BUFFER = _Buffer()


class Child:
    """The socket of one child. A subclass knows the process and kills it.

    Attributes:
        ended: Whether no more bytes come.
        violation: What was wrong with the bytes that came, if anything.
        inbox: Messages that have come and are not received yet.
    """

    def __init__(self, sock: socket.socket, unpacker: Unpacker, loop: asyncio.AbstractEventLoop) -> None:
        self.ended = False
        self.violation: str | None = None
        self.inbox: deque[list[Any]] = deque()
        self._socket = sock
        self._loop = loop
        self._unpacker = unpacker
        self._outgoing: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._receiver: asyncio.Future[None] | None = None
        self._reading = False
        sock.setblocking(False)
        self._start_reading()

    async def receive(self) -> list[Any] | None:
        """The next message; None when the child has ended, or broke the protocol, and no message is left."""
        while not self.inbox:
            if self.ended or self.violation:
                return None
            self._start_reading()
            self._receiver = self._loop.create_future()
            try:
                await self._receiver
            finally:
                self._receiver = None
        return self.inbox.popleft()

    def send(self, frame: bytes) -> Awaitable[None] | None:
        """Send a frame after those before it. Gives something to await if it can't be sent at once.

        A frame to a child that has ended is dropped.
        """
        sent = 0
        if not self._outgoing:
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                pass
            except OSError:
                return None
            if sent == len(frame):
                return None
            self._loop.add_writer(self._socket.fileno(), self._on_writable)
        gone = self._loop.create_future()
        self._outgoing.append((memoryview(frame)[sent:], gone))
        return gone

    def close(self) -> None:
        """Close the socket; `receive` and every `send` that waits return."""
        self._stop_reading()
        self._stop_writing()
        self.ended = True
        self._wake()
        self._socket.close()

    def _on_writable(self) -> None:
        while self._outgoing:
            rest, gone = self._outgoing[0]
            try:
                sent = self._socket.send(rest)
            except BlockingIOError:
                return
            except OSError:
                break
            if sent < len(rest):
                self._outgoing[0] = rest[sent:], gone
                return
            self._outgoing.popleft()
            # A frame whose sender was cancelled is sent to its end, or the next would begin within it.
            if not gone.done():
                gone.set_result(None)
        self._stop_writing()

    def _stop_writing(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        while self._outgoing:
            _, gone = self._outgoing.popleft()
            if not gone.done():
                gone.set_result(None)

    def _on_readable(self) -> None:
        buffer = _BUFFER.bytes
        try:
            size = self._socket.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self.ended = True
            self._stop_reading()
        else:
            try:
                self.inbox.extend(self._unpacker.feed(bytes(memoryview(buffer)[:size])))
            except BadFrame as error:
                self.violation = str(error)
                self._stop_reading()
            if len(self.inbox) > MAX_WAITING:
                self._stop_reading()
        self._wake()

    def _start_reading(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._socket.fileno())

    def _wake(self) -> None:
        if self._receiver is not None and not self._receiver.done():
            self._receiver.set_result(None)
