"""Stores the output of a command in limited memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

#: The most bytes of one read; equal to the capacity of a pipe.
_READ = 1 << 16


class Output:
    """Collects output. Stores the first and the last `limit` / 2 bytes, and also the first `whole` bytes."""

    def __init__(self, limit: int, whole: int = 0) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._whole = bytearray()
        self._most = max(whole, limit)
        #: The number of bytes printed in total.
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
        """Read from the pipe. The event loop calls this when there is output, and at the end of the output."""
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
        """Whether `text` omits a part of the output."""
        return self._dropped > 0

    @property
    def whole(self) -> bytes:
        """The beginning of the output, up to the limit of `whole`."""
        return bytes(self._whole)

    @property
    def complete(self) -> bool:
        """Whether `whole` contains the complete output."""
        return len(self._whole) == self.size

    def text(self) -> str:
        """The first and the last part; between them a line with the number of omitted bytes. Invalid UTF-8 is replaced by
        U+FFFD."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[… {self._dropped} bytes left out …]\n{tail}"
