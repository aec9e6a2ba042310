"""The table `repeats`: the dedupe keys of calls, numbered in the order in which the calls began.

The entry contains the number. If it were computed from the rows, `trim` would change the numbers of later keys.
"""

from __future__ import annotations

from datetime import datetime

from albert_tools.engine.model.record_types import DedupeKey, Entry
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database

#: The most keys that are retained. The oldest keys are dropped first.
MAX_KEYS = 100_000

_DROP = "DELETE FROM repeats WHERE key = ?"
_BEGIN = "INSERT INTO repeats(key, seq, digest, run, owner, state, at) VALUES (?, ?, ?, ?, ?, 'begun', ?)"
_DROP_OLD = "DELETE FROM repeats WHERE seq <= ?"
_KEEP = "UPDATE repeats SET state = 'kept' WHERE key = ? AND run = ?"
_FREE = "DELETE FROM repeats WHERE key = ? AND run = ?"


def repeat(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``repeat``. Only the run that began a key can finish it."""
    data = entry.data
    key, run = data["key"], data["run"]
    if data["state"] == "begun":
        seq, at = data["seq"], datetime.fromisoformat(entry.at).timestamp()
        execute(_DROP, (key,))
        execute(_BEGIN, (key, seq, data["digest"], run, data["owner"], at))
        execute(_DROP_OLD, (seq - MAX_KEYS,))
    else:
        execute(_KEEP if data["state"] == "kept" else _FREE, (key, run))


def prune(execute: Execute, until: str) -> None:
    """Delete the keys of calls that began before `until` and have ended."""
    execute("DELETE FROM repeats WHERE at < ? AND state = 'kept'", (datetime.fromisoformat(until).timestamp(),))


class RepeatTable:
    """The queries of `engine.model.protocols.RepeatTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> DedupeKey | None:
        """See the protocol."""
        row = self._database.row("SELECT digest, run, owner, state, at FROM repeats WHERE key = ?", (key,))
        return None if row is None else DedupeKey(*row)

    def last(self) -> int:
        """See the protocol."""
        row = self._database.row("SELECT seq FROM repeats ORDER BY seq DESC LIMIT 1")
        return 0 if row is None else int(row[0])
