"""What a command prints, in bounded memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

#: Bytes of one read; a pipe holds as much.
_READ = 1 << 16


class Output:
    """Collects output. Keeps the first and the last `limit` / 2 bytes, and the first `whole` bytes."""

    def __init__(self, limit: int, whole: int = 0) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._whole = bytearray()
        self._most = max(whole, limit)
        #: Bytes printed in all.
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        self.size += len(data)
        if len(self._whole) < self._most:
            self._whole += data[: self._most - len(self._whole)]
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def take(self, pipe: int, closed: asyncio.Future[None]) -> None:
        """Read from the pipe; the event loop calls this when there is something to read, or the end."""
        try:
            data = os.read(pipe, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.add(data)
        else:
            closed.get_loop().remove_reader(pipe)
            if not closed.done():
                closed.set_result(None)

    @property
    def truncated(self) -> bool:
        """Whether `text` leaves anything out."""
        return self._dropped > 0

    @property
    def whole(self) -> bytes:
        """The output from its beginning, as much as is kept."""
        return bytes(self._whole)

    @property
    def complete(self) -> bool:
        """Whether `whole` is all of the output."""
        return len(self._whole) == self.size

    def text(self) -> str:
        """The first and the last part, and between them a line with the number of bytes left out. Invalid UTF-8 becomes U+FFFD."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[… {self._dropped} bytes left out …]\n{tail}"
