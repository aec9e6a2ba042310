"""The table `uses`: the calls that rate limits count.

A bucket belongs to a rate limit and a session; calls without a session share the buckets of the session "". The uses of a bucket
are numbered, and their times never decrease. To find out whether the last 20 were within an hour, read the 20th last.
"""

from __future__ import annotations

from albert_tools.engine.model.record_types import FAILING, WINDOW_SECONDS, Entry
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database
from albert_tools.store.record.query_cache import QueryCache

_LAST = "SELECT seq, at FROM uses WHERE session = ? AND bucket = ? ORDER BY seq DESC LIMIT 1"
_INSERT = "INSERT INTO uses(session, bucket, seq, at) VALUES (?, ?, ?, ?)"
_SET_BACK = "UPDATE uses SET at = ? WHERE at > ?"
_FIRST = "SELECT seq FROM uses WHERE session = ? AND bucket = ? ORDER BY seq LIMIT 1"
_PRUNE = "DELETE FROM uses WHERE session = ? AND bucket = ? AND seq < ? AND at <= ?"
_TIMES = """
SELECT last.at, (SELECT at FROM uses WHERE session = last.session AND bucket = last.bucket AND seq = last.seq + 1 - ?)
FROM uses last WHERE session = ? AND bucket = ? ORDER BY seq DESC LIMIT 1
"""
_FAILING = "SELECT bucket FROM uses WHERE session = ? AND bucket >= ? AND bucket < ? LIMIT 1"
_FORGET = "DELETE FROM uses WHERE session = ? AND bucket >= ? AND bucket < ? AND bucket <> ?"
#: The names of the buckets of `failed` begin with the first text; the second is the first text after all of them.
_BUCKETS = (FAILING, FAILING[:-1] + chr(ord(FAILING[-1]) + 1))
#: A bucket is pruned each time it has got this many uses. Pruning deletes at most twice as many, so it is fast.
_PRUNED_EACH = 64


def counted(execute: Execute, entry: Entry) -> None:
    """Apply the ``windows`` of an entry: count the call in its buckets."""
    for bucket in entry.data["windows"]:
        for session in entry.data["sessions"] or ("",):
            # `clock`, not the entry's time: that one stays ahead for a while after the clock was set back. The entry of a request
            # that reads is written at its end, after those of requests that began later.
            _count(execute, session, bucket, entry.data["clock"], in_order=True)


def _count(execute: Execute, session: str, bucket: str, at: float, *, in_order: bool = False) -> None:
    """Add a use. With `in_order`, its time is at least that of the last use."""
    last = execute(_LAST, (session, bucket)).fetchone()
    seq = last[0] + 1 if last is not None else 1
    at = max(at, last[1]) if in_order and last is not None else at
    execute(_INSERT, (session, bucket, seq, at))
    if not seq % _PRUNED_EACH:
        (first,) = execute(_FIRST, (session, bucket)).fetchone()
        execute(_PRUNE, (session, bucket, first + 2 * _PRUNED_EACH, at - WINDOW_SECONDS))


def failed(execute: Execute, entry: Entry) -> None:
    """Apply the ``failing`` of an entry: the session's request that failed, and its time; or None after a success.

    Only failures in a row count, so the failures of other requests are forgotten.
    """
    session, request, at = entry.data["failing"]
    bucket = "" if request is None else f"{FAILING}{request}"
    execute(_FORGET, (session, *_BUCKETS, bucket))
    if bucket:
        _count(execute, session, bucket, at)


def set_back(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``clock_set_back``: count uses with a future time from now on."""
    now = entry.data["clock"]
    execute(_SET_BACK, (now, now))


class UseTable:
    """The queries of `engine.model.protocols.UseTable`."""

    def __init__(self, database: Database, cache: QueryCache) -> None:
        self._database = database
        self._cache = cache

    def times(self, session: str, bucket: str, count: int) -> tuple[float, float | None] | None:
        """See the protocol."""
        row = self._database.row(_TIMES, (count, session, bucket))
        return None if row is None else (row[0], row[1])

    def failing(self, session: str) -> str | None:
        """See the protocol."""
        row = self._cache.get((_FAILING, session), lambda: self._database.row(_FAILING, (session, *_BUCKETS)))
        return None if row is None else str(row[0]).removeprefix(FAILING)
