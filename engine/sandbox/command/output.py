"""Stores the output of a command in limited memory."""

from __future__ import annotations

import codecs
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

#: The most bytes of one read; equal to the capacity of a pipe.
_READ = 1 << 16
#: The most bytes of the line that replaces omitted output.
_MARKER = 64


class Shown(NamedTuple):
    """A text of output. Without `omitted` bytes, it is complete."""

    text: str
    omitted: int


class Output:
    """Collects output. Stores the first and the last `limit` / 2 bytes, and also the first `whole` bytes.

    `both`, if given, collects this output too, together with that of another stream. `live` gets it as it comes.
    """

    def __init__(
        self,
        limit: int,
        whole: int = 0,
        both: Output | None = None,
        live: Callable[[bytes], None] | None = None,
    ) -> None:
        self._both = both
        self._live = live
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._whole = bytearray()
        self._most = max(whole, limit)
        #: The number of bytes printed in total.
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        if self._both is not None:
            self._both.add(data)
        if self._live is not None:
            self._live(data)
        self.size += len(data)
        if len(self._whole) < self._most:
            self._whole += data[: self._most - len(self._whole)]
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]

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
    def whole(self) -> bytes:
        """The beginning of the output, up to the limit of `whole`."""
        return bytes(self._whole)

    @property
    def complete(self) -> bool:
        """Whether `whole` contains the complete output."""
        return len(self._whole) == self.size

    def shown(self, room: int) -> Shown:
        """The output as at most `room` bytes of UTF-8. `room` must not exceed `limit`. Invalid UTF-8 is replaced by U+FFFD.

        Of a larger output, the first and the last part are shown, and between them a line with the number of omitted bytes.
        """
        stored = self._head + self._tail
        if len(stored) == self.size and _encoded(stored) <= room:
            return Shown(_text(stored), 0)
        half = (room - _MARKER) // 2
        # One invalid byte becomes three.
        head = stored[:half] if _encoded(stored[:half]) <= half else stored[: half // 3]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        first = decoder.decode(head)
        used = len(head) - len(decoder.getstate()[0])
        tail = _tail(stored, max(used, len(stored) - half))
        if _encoded(tail) > half:
            tail = _tail(stored, max(used, len(stored) - half // 3))
        omitted = self.size - used - len(tail)
        marker = f"\n[… {omitted} bytes left out …]\n" if omitted else ""
        return Shown(first + marker + _text(tail), omitted)


def shown_together(output: Output, errors: Output, room: int) -> tuple[Shown, Shown]:
    """Both outputs, as at most `room` bytes of UTF-8 together. Each may have what the other one does not need."""
    sizes = [len(each.shown(room).text.encode()) for each in (output, errors)]
    return output.shown(max(room // 2, room - sizes[1])), errors.shown(max(room // 2, room - sizes[0]))


def _tail(data: bytes | bytearray, start: int) -> bytes | bytearray:
    """The end of `data` from `start`, without the rest of a character that begins before it."""
    # A character has at most four bytes. If it is cut, its parts are decoded to another text than the whole.
    while start < len(data) and _text(data[max(start - 3, 0) : start + 3]) != (
        _text(data[max(start - 3, 0) : start]) + _text(data[start : start + 3])
    ):
        start += 1
    return data[start:]


def _text(data: bytes | bytearray) -> str:
    """Data as text. Invalid UTF-8 is replaced."""
    return data.decode("utf-8", "replace")


def _encoded(data: bytes | bytearray) -> int:
    """The bytes of `data` after its invalid UTF-8 was replaced."""
    return len(_text(data).encode())
