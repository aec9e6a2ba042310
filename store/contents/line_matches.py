"""Finds the matching lines of a value of any size, in linear time (`engine.model.line_patterns`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from albert_tools.engine.model.record_types import Line, Matches

#: The most bytes of a line. The rest of a longer line counts as further lines.
MAX_LINE = 64 * 1024


def matching(blocks: Iterable[bytes], matches: Callable[[str], bool], offset: int, limit: int) -> Matches:
    """The matching lines of `blocks` that begin at or after byte `offset`, with at most `limit` bytes in total.

    If any line matches, the result contains at least one line. All `blocks` are read, because the caller checks their hash.
    """
    lines: list[Line] = []
    taken = 0
    following: int | None = None
    for position, content in _lines(blocks):
        if position < offset or following is not None:
            continue
        text = content.decode("utf-8", "replace")
        if not matches(text):
            continue
        if lines and taken + len(content) > limit:
            following = position
        else:
            lines.append(Line(position, text))
            taken += len(content)
    return Matches(lines, following)


def _lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The offset and the content of each line."""
    position = 0
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            for start in range(0, max(1, len(line)), MAX_LINE):
                yield position + start, line[start : start + MAX_LINE]
            position += len(line) + 1
        while len(rest) > MAX_LINE:
            yield position, rest[:MAX_LINE]
            rest, position = rest[MAX_LINE:], position + MAX_LINE
    if rest:
        yield position, rest
