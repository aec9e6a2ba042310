"""Encodes the messages between service and confined function: a length (four bytes, little-endian) and a JSON list.

The format is JSON and not msgpack, because `json` is faster to import.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from albert_tools.engine.sandbox.worker.boundary_values import BadFrame

_LENGTH = struct.Struct("<I")


def frame(text: bytes) -> bytes:
    """The frame of an encoded message."""
    return _LENGTH.pack(len(text)) + text


class JsonUnpacker:
    """Decodes bytes to messages of at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that `data` completes.

        Raises:
            BadFrame: the bytes are not a message, or the message is too large.
        """
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            if end - _LENGTH.size > self._max_bytes:
                raise BadFrame("a message larger than allowed")
            if len(buffer) < end:
                return
            text = bytes(buffer[_LENGTH.size : end])
            del buffer[:end]
            yield _message(text)


def _message(text: bytes) -> list[Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("a message that is not JSON") from None
    if not isinstance(message, list) or not message:
        raise BadFrame("a message that is not a list")
    return message
