"""The table `repeats`: the dedupe keys of calls. `n` is the number of the entry with which the call began."""

from __future__ import annotations

from datetime import datetime

from albert_tools.engine.model.record_types import DedupeKey, Entry
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database

#: The most keys that are retained. The oldest keys are dropped first.
MAX_KEYS = 100_000
#: Keys are counted at entries whose number is a multiple of this, because counting is slow. No regular pattern of entries misses
#: all multiples of a prime number.
_COUNTED_EACH = 997

_DROP = "DELETE FROM repeats WHERE key = ?"
_BEGIN = "INSERT INTO repeats(key, n, digest, run, owner, state, at) VALUES (?, ?, ?, ?, ?, 'begun', ?)"
_DROP_OLD = "DELETE FROM repeats WHERE n <= (SELECT n FROM repeats ORDER BY n DESC LIMIT 1 OFFSET ?)"
_KEEP = "UPDATE repeats SET state = 'kept' WHERE key = ? AND run = ?"
_FREE = "DELETE FROM repeats WHERE key = ? AND run = ?"


def repeat(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``repeat``. Only the run that began a key can finish it."""
    data = entry.data
    key, run = data["key"], data["run"]
    if data["state"] == "begun":
        execute(_DROP, (key,))
        execute(
            _BEGIN, (key, entry.n, data["digest"], run, data["owner"], datetime.fromisoformat(entry.at).timestamp())
        )
        if not entry.n % _COUNTED_EACH:
            execute(_DROP_OLD, (MAX_KEYS,))
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
        found = self._database.row("SELECT digest, run, owner, state, at FROM repeats WHERE key = ?", (key,))
        return None if found is None else DedupeKey(*found)
