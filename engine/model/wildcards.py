"""Patterns in which ``*`` matches any characters. Matching takes linear time.

A regular expression would backtrack at each star. With a few stars, a long name from an agent would take extremely long.
"""

from __future__ import annotations

from typing import NamedTuple


class Starred(NamedTuple):
    """The texts between the stars, in order. `last` is None if there is no star."""

    first: str
    middle: tuple[str, ...]
    last: str | None

    @classmethod
    def of(cls, pattern: str) -> Starred:
        """Read a pattern. Every character except the star is literal."""
        first, *others = pattern.split("*")
        return cls(first, tuple(filter(None, others[:-1])), others[-1] if others else None)

    def fits(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        if self.last is None:
            return text == self.first
        at, end = len(self.first), len(text) - len(self.last)
        if at > end or not text.startswith(self.first) or not text.endswith(self.last):
            return False
        for part in self.middle:
            # The first match is the best one, because it leaves the longest remaining text.
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True
