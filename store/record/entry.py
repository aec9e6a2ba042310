"""One entry of the record as text, and its hash.

    {"n":3,"at":"2026-01-31T08:00:00.000001Z","kind":"denied","data":{"call":"…","tool":"bash"}}

The hash is BLAKE3 over the hash of the entry before (32 bytes) and this text, so an entry vouches for all entries before it. A
program can check the chain without knowing what the entries mean. Keys are sorted, so equal data gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from blake3 import blake3

from albert_tools.engine.model.failure import Failure

#: The most bytes of an entry's data. Larger values belong into the content store.
MAX_BYTES = 1 << 20
#: The kind of the entries that contain the state after the deleted entries (`retention`). A row in such an entry can be larger than
#: the entry from which it was made, because its quotation marks are escaped.
CHECKPOINT = "checkpoint"
MAX_CHECKPOINT_BYTES = 4 * MAX_BYTES
#: The most levels of nesting. A reader must be able to read all that a writer can write.
MAX_DEPTH = 64

_sorted = msgspec.json.Encoder(order="deterministic").encode
_as_given = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(dict[str, Any]).decode


def encode(
    data: Mapping[str, Any], what: str, most: int = MAX_BYTES, depth: int = MAX_DEPTH, *, sort: bool = True
) -> str:
    """`data` as JSON. NaN and the infinities become null. `what` names it in messages.

    Raises:
        Failure: `not_json`, `too_large`.
    """
    try:
        # The encoder turns keys that are not text into text, but only in a dict.
        text = (_sorted if sort else _as_given)(data if type(data) is dict else dict(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise Failure("not_json", f"{what} can't be written as JSON: {error}") from error
    if len(text) > most:
        raise Failure(
            "too_large",
            f"{what} has {len(text)} bytes, more than {most}",
            hint="store the large value in the content store and record its reference",
        )
    # Counting brackets is fast, and few brackets can't nest deeply.
    if text.count(b"[") + text.count(b"{") >= depth and _deeper(data, depth):
        raise Failure("not_json", f"{what} nests deeper than {depth}")
    return text.decode()


def _deeper(data: Mapping[str, Any], limit: int) -> bool:
    """Whether `data` has more than `limit` levels."""
    level: list[Any] = [data]
    for _ in range(limit):
        inner = (v.values() if isinstance(v, Mapping) else v for v in level)
        level = [x for values in inner for x in values if isinstance(x, Mapping | list | tuple | set | frozenset)]
        if not level:
            return False
    return True


def text_of(n: int, at: str, kind: str, data: str) -> str:
    """The text of an entry. `kind` is a name (a-z and _), and `data` is JSON."""
    return f'{{"n":{n},"at":"{at}","kind":"{kind}","data":{data}}}'


def chained(before: bytes, text: str) -> bytes:
    """The hash of an entry with this text after the entry with the hash `before`."""
    return blake3(before + text.encode()).digest()
