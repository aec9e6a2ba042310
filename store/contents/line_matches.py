"""Matching lines of a value that may be of any size, in time that is linear in it (`engine.model.line_patterns`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from albert_tools.engine.model.record_types import Line, Matches

#: Bytes of a line that are matched and held as one; the rest of a longer one counts as further lines.
MAX_LINE = 64 * 1024


def matching(blocks: Iterable[bytes], matches: Callable[[str], bool], offset: int, limit: int) -> Matches:
    """The lines of `blocks` that begin at or behind byte `offset` and match, until they have `limit` bytes together.

    At least one, if any matches. Takes all of `blocks`, though it may look at no more.
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
