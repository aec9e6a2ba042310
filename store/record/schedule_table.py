"""The table `schedules`: what begins a run at certain times. `last` is the last time at which one has begun, or was added."""

from __future__ import annotations

from albert_tools.engine.model.record_types import Entry, Schedule
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import decode, encode

_ADD = """
INSERT INTO schedules(name, last, data) VALUES (?, ?, ?)
ON CONFLICT(name) DO UPDATE SET last = excluded.last, data = excluded.data
"""
_READ = "SELECT name, last, data FROM schedules"


def added(execute: Execute, entry: Entry) -> None:
    """Apply ``schedule``."""
    execute(_ADD, (entry.data["name"], entry.at, encode(entry.data, "a schedule")))


def begun(execute: Execute, entry: Entry) -> None:
    """Apply ``schedule_begun``: the run for the time `last` was queued."""
    execute("UPDATE schedules SET last = ? WHERE name = ?", (entry.data["last"], entry.data["name"]))


def removed(execute: Execute, entry: Entry) -> None:
    """Apply ``schedule_removed``."""
    execute("DELETE FROM schedules WHERE name = ?", (entry.data["name"],))


class ScheduleTable:
    """The queries of `engine.model.protocols.ScheduleTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Schedule | None:
        """See the protocol."""
        row = self._database.row(f"{_READ} WHERE name = ?", (name,))
        return None if row is None else Schedule(row[0], row[1], decode(row[2]))

    def all(self) -> list[Schedule]:
        """See the protocol."""
        return [
            Schedule(name, last, decode(data)) for name, last, data in self._database.rows(f"{_READ} ORDER BY name")
        ]
