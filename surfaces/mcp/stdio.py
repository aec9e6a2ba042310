"""The server over stdin and stdout, for one client.

The client is hostile input. A line has a maximum length, and a longer one is skipped. While too many requests have no answer yet,
no more are read: a client that sends without reading fills its own pipe, not our memory. Whatever else this process and its
children print goes to stderr.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, cast

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from albert_tools.surfaces.mcp.request_limits import MAX_BYTES, MAX_MESSAGE, MAX_REQUESTS
from albert_tools.surfaces.standard_streams import claim_streams

#: Bytes of a line that is read even if the requests without an answer have too many. It may cancel one of them.
SMALL = 64 * 1024
#: Bytes that are read at once, and bytes that a writable pipe takes without blocking.
_CHUNK, _PIPE_BUF = 64 * 1024, 4096


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the client until it closes one of its streams."""
    gate = _Gate()
    source, target = claim_streams()
    lines, output = cast(Any, _Lines(source, gate)), cast(Any, _Output(target))
    try:
        async with stdio_server(lines, output) as (read, write):
            await server.run(_Requests(read, gate), _Answers(write, gate), server.create_initialization_options())
    except* BrokenPipeError:
        # The client no longer reads.
        pass


class _Gate:
    """Counts the requests that have no answer yet, and their bytes."""

    def __init__(self) -> None:
        self._bytes = 0
        #: The bytes of each request, by its id. A hostile client uses an id more than once.
        self._open: list[tuple[types.RequestId, int]] = []
        #: The bytes of the lines that are read but not parsed yet, in order.
        self._lines: deque[int] = deque()
        self._changed = anyio.Event()

    async def admit(self, line: bytearray) -> str:
        """Wait until there is room for a line. Returns its text."""
        size = len(line)
        while len(self._open) >= MAX_REQUESTS or (size > SMALL and self._bytes + size > MAX_BYTES):
            await self._changed.wait()
        self._lines.append(size)
        return line.decode("utf-8", "replace")

    def enter(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Count the next parsed line, if it is a request."""
        size = self._lines.popleft()
        if not isinstance(item, SessionMessage) or not isinstance(item.message, types.JSONRPCRequest):
            return item
        number = item.message.id
        self._open.append((number, size))
        self._bytes += size

        async def unanswered() -> None:
            # A cancelled request gets no answer.
            self.leave(number)

        return SessionMessage(item.message, ServerMessageMetadata(on_request_unanswered=unanswered))

    def leave(self, number: types.RequestId | None) -> None:
        """A request has its answer."""
        at = next((at for at, (known, _) in enumerate(self._open) if known == number), None)
        if at is not None:
            self._bytes -= self._open.pop(at)[1]
            self._changed.set()
            self._changed = anyio.Event()


class _Lines:
    """The lines of a file descriptor."""

    def __init__(self, source: int, gate: _Gate) -> None:
        self._source = source
        self._gate = gate

    async def __aiter__(self) -> AsyncIterator[str]:
        rest, skipping = bytearray(), False
        while data := await self._read():
            *lines, last = data.split(b"\n")
            for line in lines:
                rest += line
                if rest and not skipping:
                    yield await self._gate.admit(rest)
                rest, skipping = bytearray(), False
            if not skipping:
                rest += last
            if len(rest) > MAX_MESSAGE:
                os.write(2, f"albert mcp: skipped a message of more than {MAX_MESSAGE:,} bytes\n".encode())
                rest, skipping = bytearray(), True

    async def _read(self) -> bytes:
        while True:
            await _ready(anyio.wait_readable(self._source))
            with suppress(BlockingIOError):
                return os.read(self._source, _CHUNK)


class _Output:
    """Writes to a file descriptor. Unlike a thread that writes, this can be cancelled while the client does not read."""

    def __init__(self, target: int) -> None:
        self._target = target

    async def write(self, text: str) -> None:
        left = memoryview(text.encode())
        while left:
            await _ready(anyio.wait_writable(self._target))
            with suppress(BlockingIOError):
                left = left[os.write(self._target, left[:_PIPE_BUF]) :]

    async def flush(self) -> None:
        """Nothing is buffered."""


async def _ready(wait: Awaitable[None]) -> None:
    try:
        await wait
    except PermissionError:
        # A regular file is always ready, and can't be waited for.
        await anyio.lowlevel.checkpoint()


class _Stream:
    """A stream of messages that passes the gate."""

    def __init__(self, inner: Any, gate: _Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Requests(_Stream):
    """The client's messages."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._gate.enter(await self._inner.__anext__())

    async def receive(self) -> SessionMessage | Exception:
        return self._gate.enter(await self._inner.receive())


class _Answers(_Stream):
    """The server's messages."""

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._inner.send(item)
        finally:
            if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                self._gate.leave(item.message.id)
