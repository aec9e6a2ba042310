"""Decompresses the body of a response, piece by piece and up to a limit.

A few compressed bytes can expand to very many, so the limit applies during decompression.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

from albert_tools.engine.model.failure import Failure


async def unpacked(pieces: AsyncIterable[bytes], packing: str, most: int) -> tuple[bytes, bool]:
    """Returns the body, up to `most` bytes, and whether it is longer. `packing` is the content-encoding.

    Raises:
        Failure: `encoding_error`: the encoding is neither gzip nor deflate, or the data is damaged.
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
        raise Failure("encoding_error", f"the body has the content-encoding {name[:80]!r}, which was not asked for")
    return _Unpacker(name)


class _Unpacker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = False
        # 47: gzip or zlib, detected.
        self._stream = zlib.decompressobj(wbits=47)

    def of(self, piece: bytes, most: int) -> bytes:
        """The content of a piece, up to `most` bytes."""
        content = bytearray()
        try:
            while piece and len(content) < most:
                self._begun = True
                if self._stream.eof:
                    # Concatenated gzip members are one body.
                    self._stream = zlib.decompressobj(wbits=47)
                content += self._stream.decompress(piece, most - len(content))
                piece = self._stream.unused_data
        except zlib.error:
            raise self._damaged() from None
        return bytes(content)

    def end(self) -> None:
        """Check that the data is complete."""
        if self._begun and not self._stream.eof:
            raise self._damaged()

    def _damaged(self) -> Failure:
        return Failure("encoding_error", f"the body is not valid {self._name} data")
