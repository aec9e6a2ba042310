"""Patterns of paths, as `.gitignore` and shells write them, matched in time that no pattern can make long.

The libraries for this make a regular expression of a pattern, and Python's can take ages for one with many stars. Here a name is
matched star by star, going back to the last star only, which takes at most the product of both lengths; and a path part by part, by
the set of places in the pattern that can be next.

A pattern without a slash is held against the last part of a path, at any depth; one with a slash against the whole. ``*`` and ``?``
and ``[abc]`` stay within a part, ``**`` is any number of parts, ``{a,b}`` is either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: Characters of a pattern, and patterns that its braces may stand for.
MAX_PATTERN = 1000
MAX_ALTERNATIVES = 64

#: Parts that a pattern has, in all that its braces stand for.
MAX_PARTS = 500

#: A part of a pattern, as tests of one character each; None is a star.
_Part = list[Callable[[str], bool] | None]


class Globs:
    """Some patterns; a path matches if it matches one of them."""

    def __init__(self, patterns: Iterable[str], field: str = "pattern") -> None:
        """`field` names the argument in the failure.

        Raises:
            Failure: `invalid_arguments`: one is no pattern.
        """
        self._names: list[_Part] = []
        self._paths: list[list[_Part | None]] = []
        for pattern in patterns:
            if len(pattern) > MAX_PATTERN:
                raise _wrong(field, pattern, f"it has more than {MAX_PATTERN:,} characters")
            alternatives = _alternatives(pattern, field)
            if sum(each.count("/") + 1 for each in alternatives) > MAX_PARTS:
                raise _wrong(field, pattern, f"it has more than {MAX_PARTS} parts, in all that its braces stand for")
            for each in alternatives:
                self._add(each, pattern, field)

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def matches(self, path: str) -> bool:
        """Whether a path, with ``/`` and without one at its beginning or end, matches."""
        parts = path.split("/")
        return any(_fits(part, parts[-1]) for part in self._names) or any(_leads(p, parts) for p in self._paths)

    def _add(self, text: str, pattern: str, field: str) -> None:
        parts = [p for p in text.removeprefix("./").split("/") if p]
        if not parts or "\0" in text:
            raise _wrong(field, pattern, "it is empty" if not parts else "a path can't hold a NUL")
        if ".." in parts:
            raise _wrong(field, pattern, "'..' is in no path; say with `path` where to look")
        if len(parts) == 1 and "/" not in text and parts[0] != "**":
            self._names.append(_compiled(parts[0], pattern, field))
            return
        # Several ``**`` in a row are no more than one.
        once = [p for n, p in enumerate(parts) if p != "**" or parts[n - 1 : n] != ["**"]]
        self._paths.append([None if p == "**" else _compiled(p, pattern, field) for p in once])


def _alternatives(pattern: str, field: str) -> list[str]:
    """Every pattern that one with braces stands for. Braces in braces are taken from the inside out."""
    found, ahead = [], [pattern]
    while ahead:
        text = ahead.pop()
        inner = re.search(r"\{([^{}]*)\}", text)
        if inner is None or "," not in inner[1]:
            found.append(text)
        else:
            ahead += [text[: inner.start()] + choice + text[inner.end() :] for choice in inner[1].split(",")]
        if len(found) + len(ahead) > MAX_ALTERNATIVES:
            raise _wrong(field, pattern, f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return found


def _compiled(part: str, pattern: str, field: str) -> _Part:
    found: _Part = []
    at = 0
    while at < len(part):
        c = part[at]
        at += 1
        if c == "*":
            if not found or found[-1] is not None:
                found.append(None)
        elif c == "?":
            found.append(lambda _: True)
        elif c == "[":
            at, test = _set(part, at, pattern, field)
            found.append(test)
        else:
            if c == "\\":
                if at == len(part):
                    raise _wrong(field, pattern, "it ends with a backslash")
                c, at = part[at], at + 1
            found.append(c.__eq__)
    return found


def _set(part: str, at: int, pattern: str, field: str) -> tuple[int, Callable[[str], bool]]:
    inverted = part[at : at + 1] in ("!", "^")
    at += inverted
    end = part.find("]", at + 1)
    if end < 0:
        raise _wrong(field, pattern, "'[' has no ']'; write [[] for the character itself")
    ranges = list(_ranges(part[at:end]))
    return end + 1, lambda c: any(low <= c <= high for low, high in ranges) != inverted


def _ranges(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        if at + 2 < len(text) and text[at + 1] == "-":
            yield text[at], text[at + 2]
            at += 3
        else:
            yield text[at], text[at]
            at += 1


def _fits(part: _Part, name: str) -> bool:
    """Whether a name fits a part. A later star makes up for whatever an earlier one took, so only the last is tried again."""
    at = here = 0
    star, mark = -1, 0
    while here < len(name):
        if at < len(part) and part[at] is None:
            star, mark = at, here
            at += 1
            continue
        test = part[at] if at < len(part) else None
        if test is not None and test(name[here]) is True:
            at, here = at + 1, here + 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return all(test is None for test in part[at:])


def _leads(pattern: list[_Part | None], parts: list[str]) -> bool:
    places = _stepped(pattern, {0})
    for name in parts:
        following = set()
        for place in places:
            if place < len(pattern):
                part = pattern[place]
                if part is None:
                    following |= {place, place + 1}
                elif _fits(part, name):
                    following.add(place + 1)
        places = _stepped(pattern, following)
        if not places:
            return False
    return len(pattern) in places


def _stepped(pattern: list[_Part | None], places: set[int]) -> set[int]:
    """The places, and those behind a ``**`` that stands for nothing; at the very end it stands for one part at least."""
    return places | {place + 1 for place in places if place < len(pattern) - 1 and pattern[place] is None}


def _wrong(field: str, pattern: str, why: str) -> Failure:
    wrong = f"{pattern[:80]!r} is no pattern: {why}"
    return refused_argument(field, wrong, rule="pattern", said=f"{field}: {wrong}")
