"""Encodes the messages between service and worker as bytes on the socket.

A frame consists of a header, a structure in msgpack, and the large strings. The large strings are separate from the structure,
because msgpack would copy them::

    u32 bytes of structure | u32 large strings | u32 bytes of each … | structure | string | string …

Numbers are little-endian. In the structure, a large string is represented by an extension with its number. Both sides check sizes
before they allocate memory. A message is a list whose first element is its kind; `worker` lists the messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from albert_tools.engine.model.limits import MAX_STRUCTURE
from albert_tools.engine.sandbox.worker.boundary_values import BadFrame, Unexportable, export

_HEAD = struct.Struct("<II")
_EXTENSION = 1
#: Characters of a large string that are encoded at once.
_PART = 1 << 20
_encode = msgspec.msgpack.Encoder().encode


def pack(message: list[Any], value: Any = None, max_bytes: int = 0) -> bytes | bytearray:
    """Encode `message` as a frame. With `max_bytes`, `value` is exported and appended to the message.

    Raises:
        Unexportable: `value` has a wrong type or is too large.
    """
    strings: list[str] = []

    def aside(text: str) -> msgspec.msgpack.Ext:
        strings.append(text)
        return msgspec.msgpack.Ext(_EXTENSION, (len(strings) - 1).to_bytes(4, "little"))

    if max_bytes:
        message = [*message, export(value, max_bytes, aside)]
    structure = _encode(message)
    if len(structure) > MAX_STRUCTURE:
        raise Unexportable("result_limit", f"has more than {MAX_STRUCTURE:,} bytes of structure")
    if not strings:
        return _HEAD.pack(len(structure), 0) + structure
    lengths = struct.pack(f"<{len(strings)}I", *(len(s) if s.isascii() else len(s.encode()) for s in strings))
    frame = bytearray(_HEAD.pack(len(structure), len(strings)) + lengths + structure)
    for text in strings:
        # In parts, because a worker has no memory for a third copy of a large file.
        for start in range(0, len(text), _PART):
            frame += text[start : start + _PART].encode()
    return frame


class Unpacker:
    """Decodes bytes to messages. `max_bytes` limits the total size of the large strings in one frame."""

    def __init__(self, max_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes
        #: The number of bytes that the buffer must contain before it is decoded.
        self._wanted = 8
        #: The large strings of the present frame. A used string is replaced by None.
        self._beside: list[memoryview | None] = []
        self._decode = msgspec.msgpack.Decoder(list[Any], ext_hook=self._extension).decode

    def _extension(self, code: int, data: memoryview) -> str:
        number = int.from_bytes(data, "little")
        if code != _EXTENSION or len(data) != 4 or number >= len(self._beside):
            raise BadFrame("an extension that isn't ours")
        string, self._beside[number] = self._beside[number], None
        if string is None:
            # Otherwise, a small frame that uses one large string many times would become a huge value.
            raise BadFrame("a large string that is used twice")
        return str(string, "utf-8")

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that `data` completes.

        Raises:
            BadFrame: the bytes are not a frame, or the frame is too large.
        """
        buffer = self._buffer
        if not buffer and len(data) >= 8:
            structure, count = _HEAD.unpack_from(data)
            if not count and len(data) == 8 + structure <= MAX_STRUCTURE:
                # The common case: exactly one small frame.
                yield self._message(data, 8, structure, ())
                return
        buffer += data
        while len(buffer) >= self._wanted:
            structure, count = _HEAD.unpack_from(buffer)
            if structure > MAX_STRUCTURE or count * 4 > MAX_STRUCTURE:
                raise BadFrame("a frame larger than allowed")
            start = 8 + 4 * count
            if len(buffer) < start:
                self._wanted = start
                return
            lengths = struct.unpack_from(f"<{count}I", buffer, 8)
            beside = sum(lengths)
            if beside > self._max_bytes:
                raise BadFrame("a frame larger than allowed")
            self._wanted = start + structure + beside
            if len(buffer) < self._wanted:
                return
            frame: bytes | bytearray
            if len(buffer) == self._wanted:
                # The common case for a large frame: no copy.
                frame, self._buffer = buffer, bytearray()
                buffer = self._buffer
            else:
                frame = bytes(buffer[: self._wanted])
                del buffer[: len(frame)]
            self._wanted = 8
            yield self._message(frame, start, structure, lengths)

    def _message(self, frame: bytes | bytearray, start: int, structure: int, lengths: tuple[int, ...]) -> list[Any]:
        view = memoryview(frame)
        at = start + structure
        self._beside = []
        for length in lengths:
            self._beside.append(view[at : at + length])
            at += length
        try:
            return self._decode(view[start : start + structure])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadFrame(str(error)) from error
        finally:
            self._beside = []
