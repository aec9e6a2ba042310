"""Finds matching lines in a value of any size, in linear time (`engine.model.line_patterns`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from albert_tools.engine.model.record_types import Line, Matches

#: Bytes of a line; a longer one is split and counts as several.
MAX_LINE = 64 * 1024


def matching(blocks: Iterable[bytes], matches: Callable[[str], bool], offset: int, limit: int) -> Matches:
    """The matching lines of `blocks` from byte `offset` on, until they have `limit` bytes together, at least one.

    Consumes all `blocks`, even after the limit.
    """
    found: list[Line] = []
    taken = position = 0
    following: int | None = None
    rest = b""

    def line(content: bytes) -> None:
        nonlocal taken, following
        text = content.decode("utf-8", "replace")
        if position >= offset and following is None and matches(text):
            if found and taken + len(content) > limit:
                following = position
            else:
                found.append(Line(position, text))
                taken += len(content)

    for block in blocks:
        if following is not None:
            continue
        pieces = (rest + block).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            for start in range(0, max(1, len(piece)), MAX_LINE):
                part = piece[start : start + MAX_LINE]
                line(part)
                position += len(part)
            position += 1
        while len(rest) > MAX_LINE:
            line(rest[:MAX_LINE])
            rest, position = rest[MAX_LINE:], position + MAX_LINE
    if rest and following is None:
        line(rest)
    return Matches(found, following)
