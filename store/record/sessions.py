"""The tables `sessions` and `usage`: the sessions of a home, and what they have used.

`usage` has one row for each session and unit (``calls``, ``bytes_written``, …). A charge counts for the session and for all its
parents.
"""

from __future__ import annotations

from albert_tools.engine.model.record_types import Entry, SessionRow
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import decode, encode

_OPEN = "INSERT INTO sessions(id, token_hash, parent, ended, at, data) VALUES (?, ?, ?, 0, ?, ?)"
_END = "UPDATE sessions SET ended = 1 WHERE id = ?"


def _line(condition: str) -> str:
    """A common table expression: a session and its parents. Only a damaged table has more levels than its limit."""
    return f"""
    WITH RECURSIVE line(id, parent, level) AS (
      SELECT id, parent, 0 FROM sessions WHERE {condition}
      UNION ALL SELECT s.id, s.parent, level + 1 FROM line JOIN sessions s ON s.id = line.parent WHERE level < 100)
    """


_CHARGE = f"""
INSERT INTO usage(session, unit, amount) {_line("id = ?")} SELECT id, ?, ? FROM line WHERE true
ON CONFLICT(session, unit) DO UPDATE SET amount = usage.amount + excluded.amount
"""
_COLUMNS = "s.id, s.at, s.data, s.ended, usage.unit, usage.amount"
_OF_LINE = "FROM line JOIN sessions s ON s.id = line.id LEFT JOIN usage ON usage.session = s.id ORDER BY level"
_READ_LINE = f"{_line('id = ?')} SELECT {_COLUMNS} {_OF_LINE}"
_READ_BY_TOKEN = f"{_line('token_hash = ?')} SELECT {_COLUMNS} {_OF_LINE}"
_READ_ALL = f"SELECT {_COLUMNS} FROM sessions s LEFT JOIN usage ON usage.session = s.id"


def opened(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``session``."""
    data = entry.data
    execute(_OPEN, (data["session"], data["hash"], data["parent"] or "", entry.at, encode(data, "a session")))


def ended(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``session_ended``."""
    execute(_END, (entry.data["session"],))


def charged(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``use``: charge its amounts to a session and to its parents."""
    session = entry.data.get("session")
    if session is not None:
        for unit, amount in entry.data.get("used", {}).items():
            execute(_CHARGE, (session, unit, amount))


class SessionTable:
    """The queries of `engine.model.protocols.SessionTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_token(self, token_hash: str) -> list[SessionRow]:
        """See the protocol."""
        return self._read(_READ_BY_TOKEN, token_hash)

    def line(self, session: str) -> list[SessionRow]:
        """See the protocol."""
        return self._read(_READ_LINE, session)

    def all(self) -> list[SessionRow]:
        """See the protocol."""
        return self._read(_READ_ALL)

    def _read(self, query: str, *values: str) -> list[SessionRow]:
        found: dict[str, SessionRow] = {}
        for session, at, data, ended, unit, amount in self._database.rows(query, values):
            if session not in found:
                found[session] = SessionRow(at, decode(data), bool(ended), {})
            if unit is not None:
                found[session].used[unit] = amount
        return list(found.values())
