"""Asks in one message for all that a transaction will probably read.

The time of a decision on a server is that of its round trips. The transactions of a session read the same rows: the session, its
rate limits. So the first query of a transaction takes along those that have followed it the last time. An answer holds until the
transaction changes one of the query's tables, because nobody else writes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from albert_tools.store.record.database import Row

#: A statement and its values.
Query = tuple[str, tuple[Any, ...]]
#: The most queries that are sent together, the most rows of one, and the most first queries that are remembered.
_TOGETHER, _ROWS, _REMEMBERED = 12, 100, 1000


class Found(list[Row]):
    """The rows of a query, with the methods of a cursor that the record uses."""

    def fetchone(self) -> Row | None:
        """The first row, or None."""
        return self[0] if self else None

    def fetchall(self) -> list[Row]:
        """All rows."""
        return list(self)


class ReadAhead:
    """The queries of one transaction after the other. `ask` executes some at once, and `tables` names the tables of a statement."""

    def __init__(self, ask: Callable[[list[Query]], list[Found]], tables: Callable[[str], frozenset[str]]) -> None:
        self._ask, self._tables = ask, tables
        #: The answers that hold, by query; the queries of this transaction in order; for a first query, those that followed.
        self._answers: dict[Query, Found] = {}
        self._asked: dict[Query, None] = {}
        self._followers: dict[Query, list[Query]] = {}

    def read(self, statement: str, values: Sequence[Any]) -> Found:
        """The rows of a query."""
        query = (statement, tuple(values))
        if not self._tables(statement):
            return self._ask([query])[0]  # It is not about rows.
        if query not in self._answers:
            queries = [query] if self._asked else [query, *self._followers.get(query, ())]
            self._answers.update(zip(queries, self._ask(queries), strict=True))
        if len(self._answers[query]) <= _ROWS:
            self._asked[query] = None
        return self._answers[query]

    def changed(self, statement: str) -> None:
        """The transaction executes a statement that changes its tables."""
        tables = self._tables(statement)
        self._answers = {q: found for q, found in self._answers.items() if tables.isdisjoint(self._tables(q[0]))}

    def end(self) -> None:
        """The transaction has ended."""
        first, *others = islice(self._asked, _TOGETHER) if self._asked else (None,)
        if first is not None:
            self._followers.pop(first, None)
            self._followers[first] = others
            if len(self._followers) > _REMEMBERED:
                del self._followers[next(iter(self._followers))]
        self._asked, self._answers = {}, {}
