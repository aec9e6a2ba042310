"""The lines of an open file, read without a buffer of its own: all of them from a byte on, or only the last."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from albert_tools.store.log import line

#: Bytes read at once.
BLOCK = 256 * 1024
#: Bytes read first to find the last line.
GLANCE = 4096


def lines(
    handle: int, offset: int = 0, size: int = sys.maxsize, most: int = line.MAX_LINE
) -> Iterator[tuple[int, bytes, bool]]:
    """The lines from `offset` on up to byte `size`, as (offset, content without newline, whether it ended with one).

    One that is far longer than `most` comes in pieces, each too long to be a line.
    """
    rest = b""
    position = offset
    # No larger than need be: a look reads a line or two, and zeroing a large buffer would be most of its cost.
    while position < size and (block := os.pread(handle, min(BLOCK, size - position), position)):
        position += len(block)
        pieces = (rest + block).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            yield offset, piece, True
            offset += len(piece) + 1
        if len(rest) > most:
            yield offset, rest, True
            offset, rest = position, b""
    if rest:
        yield offset, rest, False


def last_line(handle: int, size: int, most: int = line.MAX_LINE) -> bytes | None:
    """The last whole line before byte `size`, without its newline and unproved; None where it is the first or there is none.

    Raises:
        OSError: as the system says.
    """
    for glance in (GLANCE, most + GLANCE):
        start = max(0, size - glance)
        pieces = os.pread(handle, size - start, start).rpartition(b"\n")[0].rpartition(b"\n")
        if pieces[1]:
            return pieces[2]
    return None
