"""Matching lines of a value that may be of any size, in time that is linear in it, whatever the pattern.

A pattern comes from an agent, and a pattern of Python's own `re` can take longer than the age of the world. RE2
(Google's library, the extra `patterns`) can't: its time is linear in the text. Its syntax without any special
character is plain text, and that is searched for without the library as well; so a pattern means the same with it and
without it, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.records import Line, Matches

#: Characters of a pattern.
MAX_PATTERN = 1000
#: Bytes of a line that are matched and held as one; the rest of a longer one counts as further lines.
MAX_LINE = 64 * 1024
#: Bytes that RE2 may use for a pattern; one that needs more is refused.
_MEMORY = 8 << 20
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a line holds a match of `pattern` (RE2's syntax).

    Raises:
        Failure: `invalid_arguments`: too long, not a pattern, or more than plain text while there is no RE2.
    """
    if len(pattern) > MAX_PATTERN:
        raise Failure("invalid_arguments", f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}")
    if _SPECIAL.isdisjoint(pattern):
        return lambda text: pattern in text
    try:
        import re2
    except ImportError as error:
        raise Failure(
            "invalid_arguments",
            "a pattern that is more than plain text needs RE2, which is not installed",
            hint="search for plain text, or: pip install 'albert-tools[patterns]'",
        ) from error
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise Failure("invalid_arguments", f"{pattern[:80]!r} is no pattern: {reason}") from error
    return lambda text: compiled.search(text) is not None


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
