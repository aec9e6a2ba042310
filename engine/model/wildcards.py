"""Patterns in which ``*`` stands for any characters, matched in linear time.

A regular expression would look back from each star: with a few of them, a name that is long enough takes for ever, and names come
from agents.
"""

from __future__ import annotations

from typing import NamedTuple


class Starred(NamedTuple):
    """What stands between the stars, in order; `last` is None where there is no star."""

    first: str
    middle: tuple[str, ...]
    last: str | None

    @classmethod
    def of(cls, pattern: str) -> Starred:
        """Read a pattern; every character but the star is itself."""
        first, *others = pattern.split("*")
        return cls(first, tuple(filter(None, others[:-1])), others[-1] if others else None)

    def fits(self, text: str) -> bool:
        """Whether the whole of `text` fits."""
        if self.last is None:
            return text == self.first
        at, end = len(self.first), len(text) - len(self.last)
        if at > end or not text.startswith(self.first) or not text.endswith(self.last):
            return False
        for part in self.middle:
            # The first place is as good as any: it leaves the most to what follows.
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True
