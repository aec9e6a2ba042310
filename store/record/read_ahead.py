"""Asks in one message for all that a call will probably read.

The time of a decision on a server is that of its round trips. Calls of one tool by one session read the same rows: the session, its
rate limits. So who begins to read says what it is *about*, and gets what was read the last time about the same. An answer holds
until a statement changes the query's rows; the owner of this object says when it may have been changed by others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import islice
from typing import Any

from albert_tools.store.record.database import Row

#: A statement and its values.
Query = tuple[str, tuple[Any, ...]]
#: The most queries that are remembered about one thing, the most rows of one, and the most things.
_TOGETHER, _ROWS, _REMEMBERED = 12, 100, 1000
#: Tables of which each row belongs to a session. A statement whose first value is a text changes the rows of this session only.
_OF_SESSIONS = frozenset({"usage", "uses"})


class Found(list[Row]):
    """The rows of a query, with the methods of a cursor that the record uses."""

    def fetchone(self) -> Row | None:
        """The first row, or None."""
        return self[0] if self else None

    def fetchall(self) -> list[Row]:
        """All rows."""
        return list(self)


class ReadAhead:
    """The answers that hold, and what is usually read. `tables` names the tables of a statement."""

    def __init__(self, tables: Callable[[str], frozenset[str]]) -> None:
        self._tables = tables
        self._answers: dict[Query, Found] = {}
        #: What is read now is about this. Its queries so far, in order.
        self._about: Hashable = None
        self._asked: dict[Query, None] = {}
        self._usual: dict[Hashable, list[Query]] = {}

    def likely(self, abouts: Collection[Hashable]) -> list[Query]:
        """What will probably be read about these things, without what is known."""
        queries = dict.fromkeys(query for about in abouts for query in self._usual.get(about, ()))
        return [query for query in queries if query not in self._answers]

    def start(self, about: Hashable) -> None:
        """What is read from now on is about `about`; None: about nothing that comes again."""
        if self._asked and self._about is not None:
            self._usual.pop(self._about, None)
            self._usual[self._about] = list(islice(self._asked, _TOGETHER))
            if len(self._usual) > _REMEMBERED:
                del self._usual[next(iter(self._usual))]
        self._about, self._asked = about, {}

    def add(self, queries: Sequence[Query], answers: Sequence[Found]) -> None:
        """Keep these answers."""
        self._answers.update(zip(queries, answers, strict=True))

    def read(self, query: Query, ask: Callable[[list[Query]], list[Found]]) -> Found:
        """The rows of a query. If they are not known, `ask` is called with the query, and with what is likely to follow."""
        if not self._tables(query[0]):
            return ask([query])[0]  # It is not about rows.
        if query not in self._answers:
            queries = list(dict.fromkeys([query, *self.likely([self._about])]))
            self.add(queries, ask(queries))
        rows = self._answers[query]
        if len(rows) <= _ROWS:
            self._asked[query] = None
        return rows

    def changed(self, statement: str, values: Sequence[Any]) -> None:
        """A statement changes its tables."""
        tables = self._tables(statement)
        session = values[0] if tables <= _OF_SESSIONS and values and isinstance(values[0], str) else None

        def holds(query: Query, rows: Found) -> bool:
            if tables.isdisjoint(self._tables(query[0])):
                return True
            is_others = session is not None and query[1] and session not in query[1]
            return bool(is_others) and not any(session in row for row in rows)

        self._answers = {query: answer for query, answer in self._answers.items() if holds(query, answer)}

    def forget(self) -> None:
        """No answer holds any more."""
        self._answers = {}
