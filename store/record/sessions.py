"""The tables `sessions`, `usage` and `seen`: the sessions of a home, what they have used, and what they have seen.

`usage` has one row for each session and unit (``calls``, ``bytes_written``, …). `seen` has one row for each session and kind
(``private``, ``outside``), with the first example, and the request that has seen it, which is empty if several have. What a session
has used or seen counts for the session and for all its parents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from albert_tools.engine.model.record_types import Entry, SessionRow
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database, Row
from albert_tools.store.record.entry import decode, encode
from albert_tools.store.record.run_tables import run_of

#: The most levels of sessions that are read. Only a damaged table has so many.
_MAX_LEVELS = 100

_OPEN = "INSERT INTO sessions(id, token_hash, parent, ended, at, data) VALUES (?, ?, ?, 0, ?, ?)"
_END = "UPDATE sessions SET ended = 1 WHERE id = ?"
_PARENT = "SELECT parent FROM sessions WHERE id = ?"
#: With a row of values for each unit.
_CHARGE = """
INSERT INTO usage(session, unit, amount) VALUES {}
ON CONFLICT(session, unit) DO UPDATE SET amount = usage.amount + excluded.amount
"""
_STORE = "INSERT INTO stored(session, ref) VALUES (?, ?) ON CONFLICT(session, ref) DO NOTHING"
_SEE = """
INSERT INTO seen(session, kind, example, run) VALUES (?, ?, ?, ?)
ON CONFLICT(session, kind) DO UPDATE SET run = '' WHERE seen.run <> excluded.run
"""
#: The rows of a session: one for each unit that it has used, or one without a unit.
_READ = "SELECT s.id, s.parent, s.at, s.data, s.ended, u.unit, u.amount FROM sessions s LEFT JOIN usage u ON u.session = s.id"


def opened(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``session``."""
    data = entry.data
    execute(_OPEN, (data["session"], data["hash"], data["parent"] or "", entry.at, encode(data, "a session")))


def ended(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``session_ended``."""
    execute(_END, (entry.data["session"],))


def timed(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``session_times``: a session of a person has other times."""
    data = entry.data
    row = execute("SELECT data FROM sessions WHERE id = ?", (data["session"],)).fetchone()
    if row is not None:
        changed = decode(row[0]) | {"expires": data["expires"], "until": data["until"]}
        execute("UPDATE sessions SET data = ? WHERE id = ?", (encode(changed, "a session"), data["session"]))


def charged(execute: Execute, entry: Entry) -> None:
    """Apply the ``used`` of an entry: charge its amounts to a session and to its parents."""
    used = entry.data["used"].items()
    if not used:
        return
    charge = _CHARGE.format(", ".join(["(?, ?, ?)"] * len(used)))
    for session in line(execute, entry.data.get("session")):
        # One session in each statement: `read_ahead` relies on that.
        execute(charge, [value for unit, amount in used for value in (session, unit, amount)])


def saw(execute: Execute, entry: Entry) -> None:
    """Apply the ``saw`` of an entry: what a session, and so its parents, have seen."""
    for session in line(execute, entry.data.get("session")):
        for kind, example in entry.data["saw"].items():
            execute(_SEE, (session, kind, example, run_of(entry.data)))


def stored(execute: Execute, entry: Entry) -> None:
    """Apply the ``stored`` of an entry: the values that a session, and so its parents, may read."""
    for session in line(execute, entry.data.get("session")):
        for ref in entry.data["stored"]:
            execute(_STORE, (session, ref))


def prune(execute: Execute, until: str) -> None:
    """Delete what sessions may read, if they and all sessions within them have ended, or had expired at this time (ISO 8601)."""
    at = datetime.fromisoformat(until).timestamp()
    used: set[str] = set()
    rows = execute("SELECT id, data, ended FROM sessions", ()).fetchall()
    for session, data, ended in rows:
        expires = decode(data)["expires"]
        if not ended and (expires is None or expires >= at):
            used.update(line(execute, session))
    for session, *_ in rows:
        if session not in used:
            execute("DELETE FROM stored WHERE session = ?", (session,))


def line(execute: Execute, session: str | None) -> Iterator[str]:
    """The ids of a session and its parents."""
    for _ in range(_MAX_LEVELS):
        row = execute(_PARENT, (session,)).fetchone() if session else None
        if session is None or row is None:
            return
        yield session
        session = row[0]


class SessionTable:
    """The queries of `engine.model.protocols.SessionTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def line(self, session: str) -> list[SessionRow]:
        """See the protocol."""
        return self._line("s.id", session)

    def seen(self, sessions: Sequence[str], excluding: str | None = None) -> dict[str, str]:
        """See the protocol."""
        examples: dict[str, str] = {}
        for session in sessions:
            rows = self._database.rows(
                "SELECT kind, example, run FROM seen WHERE session = ? ORDER BY kind", (session,)
            )
            examples = {**{kind: example for kind, example, run in rows if run != excluding}, **examples}
        return examples

    def has_stored(self, session: str, ref: str) -> bool:
        """See the protocol."""
        return self._database.row("SELECT 1 FROM stored WHERE session = ? AND ref = ?", (session, ref)) is not None

    def by_token(self, token_hash: str) -> list[SessionRow]:
        """See the protocol."""
        return self._line("s.token_hash", token_hash)

    def newest(self, beginning: str) -> SessionRow | None:
        """See the protocol."""
        row = self._database.row(
            "SELECT id FROM sessions WHERE token_hash >= ? AND token_hash < ? ORDER BY token_hash DESC LIMIT 1",
            (beginning, f"{beginning}~"),
        )
        return None if row is None else self.line(row[0])[0]

    def ended(self, beginning: str) -> list[SessionRow]:
        """See the protocol."""
        return self._several("WHERE s.ended = 1 AND s.token_hash >= ? AND s.token_hash < ?", beginning, f"{beginning}~")

    def all(self) -> list[SessionRow]:
        """See the protocol."""
        return self._several("")

    def _several(self, condition: str, *values: str) -> list[SessionRow]:
        rows = self._database.rows(f"{_READ} {condition} ORDER BY s.id, u.unit", values)
        return [_session(list(of_one)) for _, of_one in groupby(rows, itemgetter(0))]

    def _line(self, column: str, value: str) -> list[SessionRow]:
        sessions: list[SessionRow] = []
        rows = self._database.rows(f"{_READ} WHERE {column} = ? ORDER BY u.unit", (value,))
        while rows and len(sessions) < _MAX_LEVELS:
            sessions.append(_session(rows))
            parent = rows[0][1]
            rows = self._database.rows(f"{_READ} WHERE s.id = ? ORDER BY u.unit", (parent,)) if parent else []
        return sessions


def _session(rows: list[Row]) -> SessionRow:
    _, _, at, data, ended, *_ = rows[0]
    # The column contains floating-point numbers; whole numbers become integers.
    used = {unit: amount if amount % 1 else int(amount) for *_, unit, amount in rows if unit is not None}
    return SessionRow(at, decode(data), bool(ended), used)
