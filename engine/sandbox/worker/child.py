"""The service's end of a child process: the socket, and what is common to programs and functions.

Messages from a child are untrusted. Their size is limited before they are decoded, and the queue of messages is limited. A
failure code that a child can't know is not forwarded (`believable`). If the bytes are not a valid message, the child is killed,
and the failure is a violation.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections import deque
from collections.abc import Awaitable
from typing import Any

from albert_tools.engine.model.error_codes import CODES, DENIALS, ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import BadFrame
from albert_tools.engine.sandbox.worker.codec import Unpacker

#: The most messages in the queue. While there are more, the socket isn't read.
MAX_WAITING = 256

#: The failure code for each exit code of a child that the service hasn't killed. SIGKILL means that the kernel was short of memory.
DEATHS = {
    -signal.SIGKILL: "memory_limit",
    -getattr(signal, "SIGXCPU", 24): "cpu_limit",
    -getattr(signal, "SIGSYS", 31): "sandbox_violation",
}

#: Codes that a child can't know. It makes no decisions, it can't end a run, and it doesn't have the service's information.
_SERVICE_ONLY = (
    DENIALS | ENDING | {"sandbox_violation", "worker_died", "internal_error", "damaged", "outdated", "depth_limit"}
)


def believable(code: object) -> bool:
    """Whether a child may report this failure code."""
    return isinstance(code, str) and code in CODES and code not in _SERVICE_ONLY


def broke_protocol(who: str, problem: object, tool: str | None = None) -> Failure:
    """The failure of a child that sent an invalid message."""
    return Failure("sandbox_violation", f"{who} broke the protocol ({problem}), so it was ended", tool=tool)


class _Buffer(threading.local):
    """The buffer for reading sockets. Each thread has its own buffer, because each may have an event loop with a sandbox."""

    def __init__(self) -> None:
        self.bytes = bytearray(262_144)


_BUFFER = _Buffer()


class Child:
    """The socket of one child. A subclass manages the process and kills it.

    Attributes:
        ended: Whether the child has closed the socket.
        violation: The error in the received bytes, if any.
        inbox: Received messages that `receive` has not returned yet.
    """

    def __init__(self, sock: socket.socket, max_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self.ended = False
        self.violation: str | None = None
        self.inbox: deque[list[Any]] = deque()
        self._socket = sock
        self._loop = loop
        self._unpacker = Unpacker(max_bytes)
        self._outgoing: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._receiver: asyncio.Future[None] | None = None
        self._reading = False
        sock.setblocking(False)
        self._start_reading()

    async def receive(self) -> list[Any] | None:
        """The next message; None if no message is left and the child has ended or sent an invalid message."""
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

    def send(self, frame: bytes | bytearray) -> Awaitable[None] | None:
        """Send a frame after all earlier frames. Returns an awaitable if the frame can't be sent at once, otherwise None.

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
        """Close the socket. A waiting `receive` and all waiting `send` calls return."""
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
            # If the sender was cancelled, its frame is still sent completely. Otherwise, the next frame would begin inside it.
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
