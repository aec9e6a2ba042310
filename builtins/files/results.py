"""Reads parts of a result that was too large to return."""

from __future__ import annotations

from typing import TypedDict

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext, ContentStore

#: The most bytes that one call returns.
MAX_SLICE = 256 * 1024

#: The bytes of a UTF-8 character after its first byte.
_CONTINUING = bytes(range(0x80, 0xC0))


class Slice(TypedDict):
    """The result of `read_result`."""

    content: str
    size_bytes: int
    next_offset: int | None


@primitive(
    effects=["read"],
    idempotent=True,
    family="artifacts",
    schemas={
        "handle": {"minLength": 1, "maxLength": 100},
        "offset": {"minimum": 0},
        "limit": {"minimum": 4, "maximum": MAX_SLICE},
        "pattern": {"maxLength": 1000},
    },
    outputs={".size_bytes": "little", ".next_offset": "little"},
    # The stored value can be the result of any tool. A page of the web is the least trusted.
    source="web",
)
def read_result(
    context: CallContext,
    handle: str,
    offset: int = 0,
    limit: int = 64 * 1024,
    pattern: str = "",
) -> Slice:
    """Read part of a result that was too large to return.

    Such a result has the form {"truncated": true, "handle", "size_bytes", "kind", "head", "tail"}. Returns {"content",
    "size_bytes", "next_offset"}: text of at most `limit` bytes from byte `offset` on, the size of the whole result, and
    the offset of the next part, null at the end. With a pattern, "content" has the matching lines that begin at or after
    `offset`, joined by newlines.

    Fails with "not_found" if no value has this handle (values that no record names are deleted after a while), and with
    "damaged" if the stored value has changed.

    Args:
        handle: The handle in the result, "b3:" and 64 hex digits.
        offset: The first byte to read.
        limit: The most bytes to return.
        pattern: Return only lines that match this regular expression (RE2 syntax).
    """
    contents = context.contents
    if contents is None:
        raise Failure("not_found", "there is no content store, so no large results")
    size = contents.size(handle)
    if pattern:
        matches = contents.matching(handle, pattern, offset, limit)
        context.effect("read", handle=handle, size_bytes=size)
        content = "\n".join(line.text for line in matches.lines)
        return {"content": content, "size_bytes": size, "next_offset": matches.next_offset}
    content, following = text_of(contents, handle, size, offset, limit)
    context.effect("read", handle=handle, size_bytes=max(0, (following or size) - offset))
    return {"content": content, "size_bytes": size, "next_offset": following}


def text_of(contents: ContentStore, handle: str, size: int, offset: int, limit: int) -> tuple[str, int | None]:
    """Returns text of at most `limit` bytes (at least 4) of a value from `offset` on, and the next offset, or None at the end.

    No character is cut. Bytes that are not UTF-8 become U+FFFD.

    Raises:
        Failure: the same as `ContentStore.slice`.
    """
    data = _whole_characters(contents.slice(handle, offset, limit), offset + limit >= size)
    end = offset + len(data)
    if offset:
        # Drop the rest of a character that begins before `offset`. Offsets that this function returned never split a character.
        data = data.lstrip(_CONTINUING) if len(data) - len(data.lstrip(_CONTINUING)) < 4 else data
    return data.decode("utf-8", "replace"), end if end < size else None


def _whole_characters(data: bytes, last: bool) -> bytes:
    """`data` without an incomplete character at its end, which the next part contains."""
    for length in range(1, min(4, len(data)) + 1):
        lead = data[-length]
        if lead < 0x80:
            return data
        if lead >= 0xC0:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return data[:-length] if needed > length and not last and length < len(data) else data
    return data
