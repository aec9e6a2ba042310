"""Forged journals. The forger can write to the database, and knows how its hashes are made."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from albert_tools.store.record.entry import chained, encode, text_of

Edit = Callable[[list[Any]], Any]
NOTHING = bytes(32)


def steps_of(home: Path, run: str) -> list[Any]:
    """The header and the entries of a run's journal."""
    with closing(_opened(home)) as connection:
        return [json.loads(data) for (data,) in _steps(connection, run)]


def forged_journal(home: Path, run: str, edit: Edit) -> None:
    """Change the steps of a run, the first of which is the header, and give them a valid chain.

    `edit` changes the steps in place, or returns others. The ledger names the hashes of the former steps.
    """
    with closing(_opened(home)) as connection:
        _forge_steps(connection, run, edit)
        connection.commit()


def forged_record(home: Path, run: str, edit: Edit) -> None:
    """`forged_journal`, and write all entries of the ledger anew, so that it names the new hashes."""
    with closing(_opened(home)) as connection:
        names = _forge_steps(connection, run, edit)
        before = NOTHING
        entries = connection.execute("SELECT n, at, kind, run, data FROM entries ORDER BY n").fetchall()
        for n, at, kind, of, text in entries:
            data = json.loads(text)
            if of == run and "steps" in data:
                data["steps"] = names[min(data["steps"][0], len(names) - 1)]
            text = encode(data, "an entry")
            before = chained(before, text_of(n, at, kind, text))
            connection.execute("UPDATE entries SET data = ?, hash = ? WHERE n = ?", (text, before, n))
        connection.commit()
    # It names the hash of the last entry.
    (home / "state" / "record" / "gate").write_bytes(b"")


def _forge_steps(connection: sqlite3.Connection, run: str, edit: Edit) -> list[list[Any]]:
    """Returns how entries name the new steps."""
    steps = [json.loads(data) for (data,) in _steps(connection, run)]
    changed = edit(steps)
    connection.execute("DELETE FROM steps WHERE run = ?", (run,))
    names: list[list[Any]] = []
    before = NOTHING
    for seq, step in enumerate(steps if changed is None else changed):
        # As the journal writes it, so that unchanged steps keep their hash.
        text = json.dumps(step, separators=(",", ":"), ensure_ascii=False)
        before = chained(before, text)
        connection.execute("INSERT INTO steps VALUES (?, ?, ?, ?)", (run, seq, text, before))
        names.append([seq, before.hex()])
    connection.execute("UPDATE runs SET seq = ?, hash = ? WHERE id = ?", (*names[-1], run))
    return names


def _opened(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "state" / "record" / "record.sqlite3")


def _steps(connection: sqlite3.Connection, run: str) -> list[Any]:
    return connection.execute("SELECT data FROM steps WHERE run = ? ORDER BY seq", (run,)).fetchall()
