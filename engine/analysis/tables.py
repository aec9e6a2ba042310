"""Tables that only grow, and whether something was read before it had grown.

An analysis runs a program in rounds. Another round is needed only if an entry has grown after it was read in this one, because the
reader has seen too little. A program without loops and helpers mostly needs a single round.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Rounds:
    """The rounds of an analysis. `changed` says whether this one needs another."""

    def __init__(self) -> None:
        self.changed = False
        self._tables: list[Table[Any, Any]] = []

    def begin(self) -> None:
        """Begin a round: nothing was read in it."""
        self.changed = False
        for table in self._tables:
            table.forget()

    def table(self, nothing: V) -> Table[Any, V]:
        """A new table, whose missing entries are `nothing`."""
        self._tables.append(Table(self, nothing))
        return self._tables[-1]


class Table(Generic[K, V]):
    """A table that notes which entries are read. A value is replaced by one that says more, or is changed in place."""

    __slots__ = ("_entries", "_nothing", "_read", "_rounds")

    def __init__(self, rounds: Rounds, nothing: V) -> None:
        self._rounds, self._nothing = rounds, nothing
        self._entries: dict[K, V] = {}
        self._read: set[K] = set()

    def __getitem__(self, key: K) -> V:
        self._read.add(key)
        return self._entries.get(key, self._nothing)

    def peek(self, key: K) -> V:
        """An entry, for code that only adds to it. That is not noted as reading."""
        return self._entries.get(key, self._nothing)

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[key] = value
        self.grown(key)

    def grown(self, key: K) -> None:
        """Note that an entry says more than before."""
        if key in self._read:
            self._rounds.changed = True

    def forget(self) -> None:
        """Forget what was read."""
        self._read.clear()
