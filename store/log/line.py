"""One line of the log: the chain's hash, a space, and a JSON object.

    9f2c…e1 {"n":3,"at":"2026-01-31T08:00:00.000001Z","kind":"decision","rule":"allow-1"}

The hash is BLAKE3 over the hash of the line before it (32 bytes) and this line's JSON as it stands, so a line
vouches for all lines before it, and anything that can hash can check it without knowing what the JSON means. It stands
in front so that a line torn off in the middle of a write never looks like a whole one: the newline comes last,
and a newline can't occur in compact JSON. Keys are sorted and scripts are written as they are, so that equal entries are
equal bytes and a person can read them.

The first line of a segment is its header, chained to 32 zero bytes; for a segment that continues another, the
header names that one and its last hash.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from blake3 import blake3

from albert_tools.engine.model.failure import Failure

FORMAT = 1
#: What a header follows from.
NOTHING = bytes(32)
#: Bytes of an entry's JSON. Readers hold a line per segment in memory; larger values belong into the content store.
MAX_ENTRY = 1 << 20
#: Bytes that a line has besides its JSON, the newline not counted.
LEAD = 65
MAX_LINE = LEAD + MAX_ENTRY
#: How deep an entry's values may nest: far less than any reader's stack, since an entry that can be written but not
#: read would stop every reader.
MAX_DEPTH = 64
#: The entry that ends a segment; written by the log itself.
CLOSED = "closed"
#: The entries that say what a folded segment takes the place of; written by the log itself.
FOLDED = "folded"
#: Bytes that `n`, `at` and their names take at most.
_STAMP = 64

#: Bytes of a time with the quote and comma behind it.
_TIME = len('2026-01-31T08:00:00.000001Z",')

#: Beginnings by kind; a program that makes up kinds without end gets no more than this remembered.
_LEADS: dict[str, bytes] = {}
_MOST_LEADS = 256

_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_as_is = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Malformed(ValueError):
    """A line that no writer writes."""


def body(kind: str, data: Mapping[str, Any]) -> bytes:
    """The JSON of an entry behind its number and time: ``"kind":…,…}``.

    Raises:
        Failure: `invalid_arguments` for an empty or reserved kind or a reserved name; `not_json` for a value that JSON
            has no form for; `too_large`.
    """
    if "n" in data or "at" in data or "kind" in data:
        raise Failure(
            "invalid_arguments", "'n', 'at' and 'kind' are the log's own, and can't be names in an entry's data"
        )
    lead = _LEADS.get(kind) or _lead(kind)
    fields = encoded(data, MAX_ENTRY - _STAMP - len(lead), "an entry of kind", kind)
    return lead + b"," + fields[1:] if data else lead + b"}"


def encoded(
    data: Mapping[str, Any], most: int, what: str, name: str, depth: int = MAX_DEPTH, sort: bool = True
) -> bytes:
    """The JSON of `data` in at most `most` bytes and `depth` levels; `what` and `name` say whose it is.

    Raises:
        Failure: `not_json`, `too_large`.
    """
    try:
        # Keys may be what JSON turns into text; only a dict says so to the encoder.
        text = (_encode if sort else _encode_as_is)(data if type(data) is dict else dict(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise Failure("not_json", f"{what} {name!r} can't be written as JSON: {error}") from error
    if len(text) > most:
        raise Failure(
            "too_large",
            f"{what} {name!r} has {len(text)} bytes, more than {most}",
            hint="store the large value in the content store and record its reference",
        )
    # Counting brackets is fast and settles it for nearly every entry.
    if len(text) - len(text.translate(None, b"[{")) >= depth and _deeper(data, depth):
        raise Failure("not_json", f"{what} {name!r} nests deeper than {depth}")
    return text


def closing(following: str | None) -> bytes:
    """The body of the entry that ends a segment; `following` is the segment that continues it."""
    return b'"kind":"%b","next":%b}' % (CLOSED.encode(), _encode(following))


def folding(segments: Mapping[str, Any]) -> bytes:
    """The body of an entry that names segments that were folded: the last one's number and hash, and what continued it."""
    return b'"kind":"%b","segments":%b}' % (FOLDED.encode(), _encode(dict(segments)))


def _lead(kind: str) -> bytes:
    """How the body of an entry of `kind` begins; remembered, since there are few kinds."""
    if not kind or kind in (CLOSED, FOLDED):
        raise Failure("invalid_arguments", f"{kind!r} is not a kind of entry")
    try:
        lead = b'"kind":%b' % _encode(kind)
    except ValueError as error:
        raise Failure("not_json", f"{kind!r} can't be written as JSON: {error}") from error
    if len(_LEADS) < _MOST_LEADS:
        _LEADS[kind] = lead
    return lead


def _deeper(data: Mapping[str, Any], limit: int) -> bool:
    """Whether `data` nests deeper than `limit`, by levels rather than by calling itself."""
    level: list[Any] = [data]
    for _ in range(limit):
        inner = (v.values() if isinstance(v, Mapping) else v for v in level)
        level = [x for values in inner for x in values if isinstance(x, Mapping | list | tuple | set | frozenset)]
        if not level:
            return False
    return True


def stamped(n: int, at: str, body: bytes) -> bytes:
    """An entry's JSON."""
    return f'{{"n":{n},"at":"{at}",'.encode() + body


def header(segment: str, created: str, pid: int, boot: str | None, previous: tuple[str, int, bytes] | None) -> bytes:
    """The JSON of a segment's first line; `previous` is the segment that it continues, its last entry and hash."""
    before = previous and {"segment": previous[0], "n": previous[1], "hash": previous[2].hex()}
    fields = {"format": FORMAT, "segment": segment, "created": created, "pid": pid, "boot": boot, "previous": before}
    return msgspec.json.encode(fields)


def chain(previous: bytes, text: bytes) -> bytes:
    """The hash of the line with JSON `text` behind the line with hash `previous`."""
    return blake3(previous + text).digest()


def line(digest: bytes, text: bytes) -> bytes:
    """The line itself."""
    return hexlify(digest) + b" " + text + b"\n"


def proved(previous: bytes, content: bytes, most: int = MAX_LINE) -> tuple[bytes, bytes]:
    """The hash and the JSON of a line without its newline, of at most `most` bytes, behind the line with hash `previous`.

    Raises:
        Malformed: when it is not exactly what was written there.
    """
    text = content[LEAD:]
    digest = chain(previous, text)
    if content[:LEAD] != hexlify(digest) + b" " or len(content) > most:
        raise Malformed("its content, its hash or an earlier line was changed")
    return digest, text


def split(content: bytes, most: int = MAX_LINE) -> tuple[bytes, bytes]:
    """The hash and the JSON of a line without its newline.

    Raises:
        Malformed: in words, when it has not the form of a line.
    """
    if len(content) > most:
        raise Malformed("it is too long for a line")
    if len(content) <= LEAD or content[LEAD - 1] != 0x20:
        raise Malformed("it does not have the form of a line")
    try:
        digest = bytes.fromhex(content[: LEAD - 1].decode("ascii"))
    except ValueError as error:
        raise Malformed("its hash is invalid") from error
    # One spelling only: capitals would be a change that no hash can see.
    if hexlify(digest) != content[: LEAD - 1]:
        raise Malformed("its hash is invalid")
    return digest, content[LEAD:]


def overwritten(content: bytes, previous: Iterable[bytes], most: int = MAX_LINE) -> bool:
    """Whether a last line without a newline is whole but for another byte in the newline's place.

    `previous` are the hashes that it may follow from. A line that was torn off is never that.
    """
    try:
        stated, text = split(content[:-1], most)
    except Malformed:
        return False
    return any(chain(digest, text) == stated for digest in previous)


def kind_of(kind: str) -> bytes:
    """What stands behind the time in an entry of `kind`; for `one_of`."""
    return b'"kind":%b' % _encode(kind)


def one_of(text: bytes, n: int, kinds: tuple[bytes, ...]) -> bool:
    """Whether the JSON of entry `n` may be of one of these kinds; told from its beginning, without decoding it.

    True for what doesn't begin as every entry does: then decoding tells.
    """
    lead = b'{"n":%d,"at":"' % n
    behind = len(lead) + _TIME
    return text.startswith(kinds, behind) or not text.startswith(lead) or text[behind - 2 : behind] != b'",'


def fields(text: bytes) -> dict[str, Any]:
    """The JSON of a line.

    Raises:
        Malformed: when it isn't an object.
    """
    try:
        return _decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Malformed("its JSON can't be read") from error
