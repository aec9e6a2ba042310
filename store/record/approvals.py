"""The table `approvals`: the questions to a person, and their answers.

`n` is the number of the question's entry, and `changed` is the number of the last entry about it. `covers` names the calls that a
lasting answer covers until it is revoked. Whether a question has expired depends on the clock, so the row doesn't say it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from albert_tools.engine.model.record_types import ApprovalRow, Entry
from albert_tools.store.record import queue_table
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import decode, encode

_ASK = """
INSERT INTO approvals(id, n, action, run, step, state, choice, answered_by, used_by, covers, changed, data)
VALUES (?, ?, ?, ?, ?, 'open', '', '', '', '', ?, ?)
"""
_ANSWER = """
UPDATE approvals SET state = ?, choice = ?, answered_by = ?, covers = ?, changed = ? WHERE id = ? AND state = 'open'
"""
_USE = "UPDATE approvals SET state = 'used', used_by = ?, changed = ? WHERE id = ? AND state IN ('yes', 'no')"
_REVOKE = (
    "UPDATE approvals SET state = 'revoked', covers = '', changed = ? WHERE id = ? AND state NOT IN ('used', 'revoked')"
)
_READ = "SELECT state, choice, answered_by, used_by, data FROM approvals"


def asked(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``asked``."""
    data = entry.data
    values = (data["approval"], entry.n, data["action"], data["run"], data["step"], entry.n, encode(data, "a question"))
    execute(_ASK, values)


def answered(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``answered``. The first answer counts."""
    data = entry.data
    choice, covers = data["choice"], data.get("covers", "")
    state = "no" if choice == "no" else "standing" if covers else "yes"
    execute(_ANSWER, (state, choice, data["by"], covers, entry.n, data["approval"]))
    queue_table.answered(execute, data["approval"])


def used(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``approval_used``."""
    execute(_USE, (entry.data["call"], entry.n, entry.data["approval"]))


def revoked(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``approval_revoked``."""
    execute(_REVOKE, (entry.n, entry.data["approval"]))
    queue_table.answered(execute, entry.data["approval"])


def prune(execute: Execute, last: int) -> None:
    """Delete the approvals that were used or revoked by entry `last` or before."""
    execute("DELETE FROM approvals WHERE state IN ('used', 'revoked') AND changed <= ?", (last,))


class ApprovalTable:
    """The queries of `engine.model.protocols.ApprovalTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, approval: str) -> ApprovalRow | None:
        """See the protocol."""
        return self._first("WHERE id = ?", approval)

    def ids(self, beginning: str) -> list[str]:
        """See the protocol."""
        query = "SELECT id FROM approvals WHERE substr(id, 1, ?) = ? ORDER BY n"
        return [row[0] for row in self._database.rows(query, (len(beginning), beginning))]

    def about(self, action: str) -> ApprovalRow | None:
        """See the protocol."""
        return self._first("WHERE action = ? AND state IN ('open', 'yes', 'no') ORDER BY n DESC LIMIT 1", action)

    def standing(self, covers: str) -> ApprovalRow | None:
        """See the protocol."""
        return self._first("WHERE covers = ? AND covers <> '' ORDER BY n DESC LIMIT 1", covers)

    def of_step(self, run: str, step: str) -> list[str]:
        """See the protocol."""
        query = (
            "SELECT id FROM approvals WHERE run = ? AND run <> '' AND step = ? AND state IN ('open', 'yes') ORDER BY n"
        )
        return [row[0] for row in self._database.rows(query, (run, step))]

    def all(self, states: Collection[str]) -> list[ApprovalRow]:
        """See the protocol."""
        query = f"{_READ} WHERE state IN ({', '.join('?' * len(states)) or 'NULL'}) ORDER BY n"
        return [_row(row) for row in self._database.rows(query, sorted(states))]

    def _first(self, where: str, value: str) -> ApprovalRow | None:
        row = self._database.row(f"{_READ} {where}", (value,))
        return None if row is None else _row(row)


def _row(row: tuple[Any, ...]) -> ApprovalRow:
    state, choice, by, used_by, data = row
    return ApprovalRow(state, choice, by, used_by, decode(data))
