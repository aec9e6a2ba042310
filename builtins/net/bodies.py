"""A body as it is meant, unpacked piece by piece, and never more of it than was asked for.

A few bytes can hold very many, so unpacking is told how many may come out before it begins.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

from albert_tools.engine.model.failure import Failure


async def unpacked(pieces: AsyncIterable[bytes], packing: str, most: int) -> tuple[bytes, bool]:
    """The body, up to `most` bytes, and whether there was more. `packing` is the content-encoding.

    Raises:
        Failure: `encoding_error`: it is packed in another way than gzip or deflate, or not as it says.
    """
    unpack = _unpacker(packing)
    received = bytearray()
    async for piece in pieces:
        received += piece if unpack is None else unpack.of(piece, most + 1 - len(received))
        if len(received) > most:
            return bytes(received[:most]), True
    if unpack is not None:
        unpack.end()
    return bytes(received), False


def _unpacker(packing: str) -> _Unpacker | None:
    name = packing.strip().lower()
    if name in ("identity", ""):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise Failure("encoding_error", f"the body is packed as {name[:80]!r}, though it was asked for as it is")
    return _Unpacker(name)


class _Unpacker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = False
        # gzip or zlib, whichever it is.
        self._stream = zlib.decompressobj(wbits=47)

    def of(self, piece: bytes, most: int) -> bytes:
        """What a piece holds, `most` bytes of it or a few more."""
        found = bytearray()
        try:
            while piece and len(found) < most:
                self._begun = True
                if self._stream.eof:
                    # Several packed one after the other are one body.
                    self._stream = zlib.decompressobj(wbits=47)
                found += self._stream.decompress(piece, most - len(found))
                piece = self._stream.unused_data
        except zlib.error:
            raise self._damaged() from None
        return bytes(found)

    def end(self) -> None:
        """The last piece was that."""
        if self._begun and not self._stream.eof:
            raise self._damaged()

    def _damaged(self) -> Failure:
        return Failure("encoding_error", f"the body is not the {self._name} data that its header says")
