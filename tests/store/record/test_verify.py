"""Verification finds and names every change that another program makes to a record, as far as the record can show it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.entry import chained, text_of
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.schema import STATE_TABLES, VERSION
from albert_tools.store.record.sqlite import FILE, GATE
from albert_tools.store.record.verify import make_anchor, verify
from tests.helpers.begun_runs import begun
from tests.store.record.conftest import Place, Tamper
from tests.store.record.test_tables import Life

#: The number of entries of kind `step` in the record `six`.
COUNT = 6
RUN = "0123456789abcdef"


@pytest.fixture
def six(folder: Path) -> Path:
    """A closed record with six entries. Returns the folder."""
    with Record(folder) as record:
        for i in range(COUNT):
            record.append("step", {"i": i, "text": "ä", "run": "r"})
    return folder


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed record with rows in all tables."""
    folder = tmp_path_factory.mktemp("lived") / "record"
    life = Life(folder, 2)
    for _ in range(150):
        life.step()
    # Which session sees something depends on the random ids of sessions.
    while not life.record.database.rows("SELECT * FROM seen"):
        life.step()
    journal = begun(Runs(life.records[0]), RUN, {"program": "b3:00"})
    journal.append({"step": "0"})
    life.records[0].append("queued", {"run": RUN, "queue": "q", "priority": 1, "workspace": "/w"})
    life.records[0].append("worker", {"name": "w", "owner": "f" * 16})
    life.records[0].append("schedule", {"name": "s"})
    journal.close()
    for record in life.records:
        record.close()
    return folder


def problems(place: Place, anchor: dict[str, Any] | None = None) -> list[str]:
    return [*verify(place, anchor).problems]


def test_an_unchanged_record_is_valid(six: Path) -> None:
    found = verify(six)
    assert found.ok
    assert (found.entries, found.tail.n, found.trimmed) == (COUNT, COUNT, 0)
    assert "Without an anchor" in found.unseen
    assert "cut off" in found.unseen


def test_others_write_during_a_verification(place: Place) -> None:
    with Record(place) as record:
        for _ in range(5):
            record.append("step", {})
            assert verify(place).ok


# Entries


@pytest.mark.parametrize("n", [1, 3, COUNT])
@pytest.mark.parametrize(
    "change",
    [
        "at = '2020-01-01T00:00:00.000000Z'",
        "kind = 'other'",
        """data = replace(data, 'ä', 'ö')""",
        "data = data || ' '",
        "data = CAST(data AS BLOB)",
        "hash = zeroblob(32)",
        "hash = hex(hash)",
    ],
)
def test_a_changed_entry_is_named(six: Path, tamper: Tamper, n: int, change: str) -> None:
    tamper(f"UPDATE entries SET {change} WHERE n = {n}")
    assert problems(six) == [f"entry {n} was changed: its content does not match its hash"]


def test_the_column_run_is_checked(six: Path, tamper: Tamper) -> None:
    tamper("UPDATE entries SET run = 's' WHERE n = 4")
    assert problems(six) == ["entry 4: the column run was changed"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM entries WHERE n = 1", "entries 1 to 1 are missing"),
        ("DELETE FROM entries WHERE n = 3", "entry 3 is missing"),
        ("DELETE FROM entries WHERE n IN (3, 4, 5)", "entries 3 to 5 are missing"),
        (
            "UPDATE entries SET n = 9 WHERE n = 3",
            "entry 3 is missing: the entry that was written with this number is number 9 now",
        ),
        (
            "INSERT INTO entries SELECT 0, at, kind, run, data, hash FROM entries WHERE n = 2",
            "entry 0 was inserted: the numbers of entries begin at 1",
        ),
        (
            "INSERT INTO entries SELECT 7, at, kind, run, data, hash FROM entries WHERE n = 2",
            "entry 7 was changed: its content does not match its hash",
        ),
    ],
)
def test_missing_and_moved_entries_are_named(six: Path, tamper: Tamper, statement: str, problem: str) -> None:
    tamper(statement)
    assert problems(six) == [problem]


@pytest.mark.parametrize("number", range(1, COUNT + 1))
def test_an_inserted_entry_is_named(six: Path, tamper: Tamper, number: int) -> None:
    with closing(sqlite3.connect(six / FILE)) as connection:
        before = (connection.execute("SELECT hash FROM entries WHERE n = ?", (number - 1,)).fetchone() or [bytes(32)])[
            0
        ]
        connection.execute("UPDATE entries SET n = -n WHERE n >= ?", (number,))
        connection.execute("UPDATE entries SET n = 1 - n WHERE n < 0")
        values = "2026-01-01T00:00:00.000000Z", "step", "{}"
        forged = chained(before, text_of(number, *values))
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, '', ?, ?)", (number, *values, forged))
        connection.commit()
    # The forged entry follows from the one before it. The next entry shows that it isn't the original one.
    assert problems(six) == [f"entry {number + 1} was changed: its content does not match its hash"]
    tamper(f"UPDATE entries SET hash = zeroblob(32) WHERE n = {number}")
    moved = f"the entry that was written with this number is number {number + 1} now"
    assert problems(six) == [f"entry {number} was inserted: {moved}"]


def test_swapped_entries_are_named(six: Path, tamper: Tamper) -> None:
    tamper(
        "UPDATE entries SET n = -2 WHERE n = 2",
        "UPDATE entries SET n = 2 WHERE n = 5",
        "UPDATE entries SET n = 5 WHERE n = -2",
    )
    assert problems(six) == ["entry 2 was replaced: the entry that was written with this number is number 5 now"]


# Rows beside the entries


def test_rows_that_the_entries_do_not_give_are_named(folder: Path, lived: Path, tamper: Tamper) -> None:
    shutil.copytree(lived, folder)
    assert problems(folder) == []
    with closing(sqlite3.connect(folder / FILE)) as connection:
        (ended,) = connection.execute("SELECT id FROM sessions ORDER BY id LIMIT 1").fetchone()
        (gone,) = connection.execute("SELECT id FROM approvals ORDER BY id LIMIT 1").fetchone()
        session, unit = connection.execute("SELECT session, unit FROM usage ORDER BY 1, 2 LIMIT 1").fetchone()
    tamper(
        f"UPDATE sessions SET ended = 1 - ended WHERE id = '{ended}'",
        f"DELETE FROM approvals WHERE id = '{gone}'",
        f"UPDATE usage SET amount = amount - 1 WHERE session = '{session}' AND unit = '{unit}'",
        "INSERT INTO repeats VALUES ('forged', 1000, 'd', 'r', 'o', 'kept', 1)",
        "UPDATE runs SET owner = 'somebody', cancelled = 1",
    )
    assert sorted(problems(folder)) == sorted(
        [
            f"table sessions, id '{ended}': changed in ended",
            f"table approvals, id '{gone}': the row is missing",
            f"table usage, session '{session}', unit '{unit}': changed in amount",
            "table repeats, key 'forged': no entry gives this row",
            f"table runs, id '{RUN}': changed in owner, cancelled",
        ]
    )


def test_every_changed_value_of_every_table_is_found(folder: Path, lived: Path) -> None:
    with closing(sqlite3.connect(lived / FILE)) as connection:
        columns = [
            (table, name, is_key)
            for table in STATE_TABLES
            for _, name, *_, is_key in connection.execute(f"PRAGMA table_info({table})")
        ]
        rows = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in STATE_TABLES}
    assert all(rows.values())
    for table, column, _ in columns:
        shutil.copytree(lived, folder)
        with closing(sqlite3.connect(folder / FILE)) as connection:
            new = f"CASE typeof({column}) WHEN 'text' THEN {column} || 'x' ELSE {column} + 100000 END"
            key = ", ".join(name for of, name, is_key in columns if of == table and is_key)
            last = f"SELECT {key} FROM {table} ORDER BY {key} DESC LIMIT 1"
            connection.execute(f"UPDATE {table} SET {column} = {new} WHERE ({key}) = ({last})")
            connection.commit()
        found = problems(folder)
        assert any(problem.startswith(f"table {table}, ") for problem in found), (table, column, found)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM uses; END",
            "the trigger t does not belong to the record, or was changed",
        ),
        ("CREATE VIEW v AS SELECT 1", "the view v does not belong to the record, or was changed"),
        ("CREATE TABLE more(x)", "the table more does not belong to the record, or was changed"),
        ("DROP INDEX approvals_by_action", "the index approvals_by_action is missing"),
        (
            "ALTER TABLE usage ADD COLUMN more TEXT",
            "the table usage does not belong to the record, or was changed",
        ),
        (
            f"PRAGMA user_version = {VERSION + 1}",
            f"the file has format {VERSION + 1}, and this version of Albert Tools reads {VERSION}",
        ),
    ],
)
def test_another_schema_is_found(six: Path, tamper: Tamper, statement: str, problem: str) -> None:
    tamper(statement)
    assert problems(six) == [problem]


# The file


def _content(path: Path) -> list[Any]:
    """All that a reader can see in a database."""
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
        rows = [connection.execute(f"SELECT * FROM {s[1]}").fetchall() for s in schema if s[0] == "table"]
        checks = [connection.execute(f"PRAGMA {name}").fetchall() for name in ("user_version", "integrity_check")]
    return [schema, rows, checks]


@pytest.mark.parametrize(("flip", "step"), [(0x01, 2003), pytest.param(0x80, 61, marks=pytest.mark.slow)])
def test_a_flipped_byte_anywhere_in_the_file_is_found_or_harmless(
    folder: Path, lived: Path, flip: int, step: int
) -> None:
    """Harmless is what changes nothing that a reader sees, and nothing that SQLite checks: a byte in the free space of a page."""
    shutil.copytree(lived, folder)
    path = folder / FILE
    content = path.read_bytes()
    whole = _content(path)
    harmless = 0
    # Each byte of the file's header, and some of the others: the step is a prime number.
    for i in [*range(100), *range(100, len(content), step)]:
        path.write_bytes(content[:i] + bytes([content[i] ^ flip]) + content[i + 1 :])
        found = problems(folder)
        if not found:
            harmless += 1
            assert _content(path) == whole, f"byte {i}"
    path.write_bytes(content)
    assert problems(folder) == []
    assert harmless


def test_a_missing_database_is_found(six: Path) -> None:
    (six / FILE).unlink()
    assert problems(six) == [f"the record is missing, and its entry {COUNT} was written"]
    (six / GATE).unlink()
    assert problems(six) == []


def test_a_file_that_is_not_a_database_is_found(six: Path) -> None:
    (six / FILE).write_bytes(b"hello" * 1000)
    assert problems(six) == ["the file can't be read: file is not a database"]
    (six / FILE).write_bytes(b"")
    assert problems(six) == [f"the record is missing, and its entry {COUNT} was written"]


# The end, and anchors


def _rewrite(folder: Path, change: Callable[[str], str]) -> None:
    """Change the data of all entries and give them fresh hashes, as somebody who knows the format can."""
    with closing(sqlite3.connect(folder / FILE)) as connection:
        before = bytes(32)
        for n, at, kind, data in connection.execute("SELECT n, at, kind, data FROM entries ORDER BY n").fetchall():
            before = chained(before, text_of(n, at, kind, change(data)))
            connection.execute("UPDATE entries SET data = ?, hash = ? WHERE n = ?", (change(data), before, n))
        connection.commit()


def _restart(folder: Path) -> None:
    """What the gate knows ends with a restart of the machine."""
    (folder / GATE).unlink()


def test_the_gate_shows_a_cut_end_until_the_machine_is_restarted(six: Path, tamper: Tamper) -> None:
    tamper("DELETE FROM entries WHERE n > 4")
    assert problems(six) == [
        f"the record ends after entry 4, and entry {COUNT} existed since the machine was started: the end was cut off"
    ]
    with pytest.raises(Failure) as caught:
        Record(six).append("step", {})
    assert caught.value.code == "damaged"
    _restart(six)
    assert problems(six) == []


def test_an_anchor_shows_a_cut_end(six: Path, tamper: Tamper) -> None:
    with Record(six) as record:
        anchor = json.loads(json.dumps(make_anchor(record)))
    assert problems(six, anchor) == []
    tamper("DELETE FROM entries WHERE n > 3")
    _restart(six)
    assert problems(six) == []
    assert problems(six, anchor) == [
        f"the record ends after entry 3, and entry {COUNT} existed when the anchor was made: the end was cut off"
    ]
    (six / FILE).unlink()
    assert problems(six, anchor) == [f"the record is missing, and its entry {COUNT} was written"]


def test_an_anchor_shows_a_rewritten_record(six: Path) -> None:
    with Record(six) as record:
        anchor = make_anchor(record)
    _rewrite(six, lambda data: data.replace('"i":2', '"i":9'))
    _restart(six)
    assert problems(six) == []
    assert problems(six, anchor) == [
        f"entry {COUNT} had another hash when the anchor was made: the record was written anew"
    ]


def test_an_anchor_does_not_cover_later_entries(place: Place) -> None:
    with Record(place) as record:
        assert make_anchor(record)["n"] == 0
        record.append("a", {})
        anchor = make_anchor(record)
        record.append("b", {})
        found = verify(place, anchor)
    assert found.ok
    assert f"after the anchor of {anchor['at']} (entry 1)" in found.unseen


def test_a_damaged_record_gives_no_anchor(six: Path, tamper: Tamper) -> None:
    tamper("DELETE FROM entries WHERE n = 3")
    with Record(six) as record, pytest.raises(Failure, match="entry 3 is missing") as caught:
        make_anchor(record)
    assert caught.value.code == "damaged"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"format": 1, "at": "x", "n": 1, "hash": "0" * 64},
        {"format": 2, "at": "x", "n": "1", "hash": "0" * 64},
        {"format": 2, "at": "x", "n": 1, "hash": "0" * 62},
        {"format": 2, "at": "x", "n": 1, "hash": "x" * 64},
    ],
)
def test_an_invalid_anchor_is_refused(folder: Path, document: dict[str, object]) -> None:
    with pytest.raises(Failure) as caught:
        verify(folder, document)
    assert caught.value.code == "invalid_arguments"
