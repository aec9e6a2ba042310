"""What a regular expression means when it is held against lines, told in a way that two engines take alike.

RE2 and ripgrep's engine are both linear in the text, and differ: in what ``\\d`` is beyond ASCII, in what case means there, in
their rarer syntax. So a pattern is read here first, and written anew for each engine with nothing left to be understood
differently: sets of characters as ranges of code points, case as sets, ``^`` and ``$`` as ends of lines, and no set that has a
newline in it. In this form a text is searched as a whole, and the result is the one that each line alone would give.

What is read here is what patterns are made of nearly always: characters, ``.``, sets, groups, ``|``, repetition, ``^ $ \\b \\B``,
``\\d \\w \\s`` (ASCII, as in RE2). Of anything else `read` says so by None; it is for RE2 alone, line by line. A pattern means
the same whatever is installed, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: Single characters and sets that a pattern comes to, repetition counted; both engines take many more.
MAX_WEIGHT = 2_000
#: Groups within groups.
MAX_NESTING = 50
#: Of one repetition; RE2 takes no more.
MAX_REPEATED = 1_000
#: Characters of a set whose other case is looked for.
_MAX_FOLDED = 3_000

SPECIAL = frozenset("\\^$.|?*+()[]{}")

_REPEAT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_NEWLINE = ord("\n")
_LAST = 0x10FFFF

Ranges = list[tuple[int, int]]

_KINDS: dict[str, Ranges] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)],
}


#: RE2 takes these sets for a letter whatever its case, and finds U+212A and U+017F with `[Aa]|[Kk]` and `[Aa]|[Ss]`.
_FOLDED_BY_RE2 = {"[Kk]": "(?:K|k)", "[Ss]": "(?:S|s)"}


class Spelled(NamedTuple):
    """A pattern for each engine."""

    re2: str
    ripgrep: str


class _Other(Exception):
    """It is something that is not read here."""


def read(pattern: str, ignore_case: bool = False) -> Spelled | None:
    """The pattern for each engine; None when it is not one of those that are read here, or no pattern at all.

    Raises:
        Failure: `invalid_arguments`: it asks for a newline, which is in no line.
    """
    if "\n" in pattern:
        raise _newline()
    reader = _Reader(pattern, ignore_case)
    try:
        found = reader.alternatives(0)
        if reader.at < len(pattern):
            return None
    except _Other:
        return None
    return found[0]


class _Reader:
    """Reads from left to right. Each method gives what it has read, for each engine, and its weight."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.text = pattern
        self.at = 0
        self.folded = ignore_case
        if pattern.startswith("(?i)"):
            self.folded, self.at = True, 4

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        found = self.peek()
        if not found:
            raise _Other
        self.at += 1
        return found

    def alternatives(self, depth: int) -> tuple[Spelled, int]:
        if depth > MAX_NESTING:
            raise _Other
        parts = [self.sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence(depth))
        if len(parts) == 1:
            return parts[0]
        weight = sum(w for _, w in parts)
        return Spelled(*("|".join(p[n] for p, _ in parts) for n in (0, 1))), weight

    def sequence(self, depth: int) -> tuple[Spelled, int]:
        parts: list[tuple[Spelled, int]] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(depth))
        weight = sum(w for _, w in parts)
        if weight > MAX_WEIGHT:
            raise _Other
        return Spelled(*("".join(p[n] for p, _ in parts) for n in (0, 1))), weight

    def repeated(self, depth: int) -> tuple[Spelled, int]:
        found, weight, repeatable = self.atom(depth)
        times, count = "", 1
        repeat = _REPEAT.match(self.text, self.at)
        if repeat:
            least = int(repeat[1])
            most = int(repeat[3]) if repeat[3] else least
            if not least <= most <= MAX_REPEATED:
                raise _Other
            times, count = repeat[0], max(most, 1)
            self.at = repeat.end()
        elif self.peek() in ("*", "+", "?") and self.peek():
            times = self.take()
        if not times:
            return found, weight
        if not repeatable:
            raise _Other
        # Whether it takes much or little makes no difference to whether a line has a match.
        if self.peek() == "?":
            self.at += 1
        if (self.peek() and self.peek() in "*+?") or _REPEAT.match(self.text, self.at):
            raise _Other
        if weight * count > MAX_WEIGHT:
            raise _Other
        return Spelled(f"(?:{found.re2}){times}", f"(?:{found.ripgrep}){times}"), weight * count

    def atom(self, depth: int) -> tuple[Spelled, int, bool]:
        c = self.take()
        if c == "(":
            if self.peek() == "?":
                if self.text[self.at : self.at + 2] != "?:":
                    raise _Other
                self.at += 2
            inner, weight = self.alternatives(depth + 1)
            if self.take() != ")":
                raise _Other
            # A group that holds nothing counts, too, or one could be repeated without end.
            return Spelled(f"(?:{inner.re2})", f"(?:{inner.ripgrep})"), weight + 1, True
        if c == ".":
            return Spelled(".", "."), 1, True
        if c in "^$":
            return _both(f"(?m:{c})"), 1, False
        if c == "[":
            return _spelled(self.set_of()), 1, True
        if c == "\\":
            return self.escaped()
        if c in "*+?" or (c == "{" and _REPEAT.match(self.text, self.at - 1)):
            raise _Other
        return _spelled(self.cased([(ord(c), ord(c))])), 1, True

    def escaped(self) -> tuple[Spelled, int, bool]:
        c = self.take()
        if c in "bB":
            return Spelled(f"\\{c}", f"(?-u:\\{c})"), 1, False
        if c in "Az":
            return _both("(?m:^)" if c == "A" else "(?m:$)"), 1, False
        if c.lower() in _KINDS:
            ranges = _KINDS[c.lower()]
            return _spelled(ranges if c.islower() else _inverted(ranges)), 1, True
        point = self.character(c)
        return _spelled(self.cased([(point, point)])), 1, True

    def character(self, c: str) -> int:
        """The one character that a backslash and `c` stand for."""
        if c == "n":
            raise _newline()
        if c in _CONTROLS:
            return ord(_CONTROLS[c])
        if c == "x":
            found = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self.text, self.at)
            if not found:
                raise _Other
            self.at = found.end()
            point = int(found[1] or found[2], 16)
            if point > _LAST or 0xD800 <= point <= 0xDFFF:
                raise _Other
            return point
        if not c.isascii() or c.isalnum() or c == "_":
            raise _Other
        return ord(c)

    def set_of(self) -> Ranges:
        inverted = self.peek() == "^"
        self.at += inverted
        found: Ranges = []
        plain: Ranges = []
        first = True
        while first or self.peek() != "]":
            first = False
            low = self.member(found)
            if low is None:
                if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                    raise _Other
                continue
            high = low
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                other = self.member(found)
                if other is None or other < low:
                    raise _Other
                high = other
            plain.append((low, high))
        self.at += 1
        found += self.cased(plain)
        return _inverted(found) if inverted else found

    def member(self, kinds: Ranges) -> int | None:
        """One character of a set; None for a kind like ``\\d``, which goes to `kinds`."""
        c = self.take()
        if c == "[" and self.peek() == ":":
            raise _Other
        if c != "\\":
            return ord(c)
        c = self.take()
        if c.lower() in _KINDS:
            ranges = _KINDS[c.lower()]
            kinds += ranges if c.islower() else _inverted(ranges)
            return None
        return self.character(c)

    def cased(self, ranges: Ranges) -> Ranges:
        """With the upper and lower form of each character, where that is one character too, if case doesn't count."""
        if not self.folded:
            return ranges
        if sum(high - low + 1 for low, high in ranges) > _MAX_FOLDED:
            raise _Other
        more: Ranges = []
        for low, high in ranges:
            for point in range(low, high + 1):
                c = chr(point)
                more += [(ord(o), ord(o)) for o in (c.lower(), c.upper()) if len(o) == 1 and o != c]
        return [*ranges, *more]


def _both(text: str) -> Spelled:
    return Spelled(text, text)


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: Ranges = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _inverted(ranges: Ranges) -> Ranges:
    found: Ranges = []
    following = 0
    for low, high in _merged(ranges):
        if low > following:
            found.append((following, low - 1))
        following = high + 1
    if following <= _LAST:
        found.append((following, _LAST))
    return found


def _without(ranges: Ranges, first: int, last: int) -> Ranges:
    found: Ranges = []
    for low, high in ranges:
        if low < first:
            found.append((low, min(high, first - 1)))
        if high > last:
            found.append((max(low, last + 1), high))
    return found


def _spelled(ranges: Ranges) -> Spelled:
    """A set, without the newline, which is in no line, and without halves of surrogate pairs, which are in no text."""
    left = _without(_without(_merged(ranges), _NEWLINE, _NEWLINE), 0xD800, 0xDFFF)
    if not left:
        raise _Other
    if len(left) == 1 and left[0][0] == left[0][1]:
        return _both(_point(left[0][0]))
    text = "[" + "".join(_point(a) if a == b else f"{_point(a)}-{_point(b)}" for a, b in left) + "]"
    return Spelled(_FOLDED_BY_RE2.get(text, text), text)


def _point(point: int) -> str:
    c = chr(point)
    return c if c.isascii() and c.isalnum() else f"\\x{{{point:X}}}"


def _newline() -> Failure:
    why = "it asks for a newline, and is held against one line at a time"
    hint = "search for one of the lines, and read_file around it"
    return refused_argument("pattern", why, hint=hint, said=f"pattern: {why}")
