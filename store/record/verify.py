"""Verifies a record, and says what can't be verified.

The chain shows that no entry was changed, removed, moved or inserted, unless all later entries were written anew, too. The other
tables are built again from the entries and compared. SQLite's own check covers the rest of the file: its indexes and free space.

Two changes leave a valid chain: entries that are cut off at the end, and a record that is written anew. An *anchor* shows them: the
number and the hash of an entry, kept elsewhere. The gate also shows a cut end, until the machine is restarted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.store.private_folder import check_private
from albert_tools.store.record.clock import text_of
from albert_tools.store.record.gate import START, Tail, read_last
from albert_tools.store.record.record import Record
from albert_tools.store.record.replay import Missing, Replay, Wrong, replaying
from albert_tools.store.record.schema import STATE_TABLES
from albert_tools.store.record.snapshot import as_folder
from albert_tools.store.record.sqlite import FILE, GATE
from albert_tools.store.record.steps import Step, first_wrong

ANCHOR_FORMAT = 2
#: The most wrong rows, and the most faults of the file, that are listed.
MAX_LISTED = 100

_UNSEEN = (
    "entries that were cut off at the end before the machine was started",
    "a record that was written anew, with fresh hashes",
)


class Verification(NamedTuple):
    """The result of `verify`. `entries` counts the verified entries, and `tail` is the last of them.

    `problems` begins with the first wrong entry. `unseen` says what could not be seen. The entries up to `trimmed` were deleted by
    `trim`.
    """

    entries: int = 0
    tail: Tail = START
    trimmed: int = 0
    problems: tuple[str, ...] = ()
    unseen: str = ""

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


def verify(place: Path | str, anchor: Mapping[str, Any] | None = None) -> Verification:
    """Verify a record, also against `anchor`, a result of `make_anchor`. Other processes may write meanwhile.

    `place` is as for `Record`. A record on PostgreSQL is copied first, so this needs the space for it in the folder for temporary
    files. Its pages are not checked; PostgreSQL's `pg_amcheck` does it.

    Raises:
        Failure: `io_error` if the folder is not private or the database can't be read; `invalid_arguments` if `anchor` is not an
            anchor.
    """
    known = None if anchor is None else _read_anchor(anchor)
    try:
        with as_folder(place) as folder:
            return _verify(folder, known, anchor)
    except Wrong as wrong:
        return Verification(problems=(str(wrong),), unseen=_unseen(anchor, 0))


def _verify(folder: Path, known: Tail | None, anchor: Mapping[str, Any] | None) -> Verification:
    # The gate is read before the snapshot is taken, so it names no later entry.
    last = read_last(folder / GATE) if check_private(folder, "the record") else START
    problems: list[str] = []
    replay = None
    try:
        if not (folder / FILE).exists():
            raise Missing
        with replaying(folder / FILE) as replay:
            replay.walk()
            problems += _wrong_ends(replay, last, known)
            problems += _wrong_rows(replay)
            problems += _wrong_steps(replay.connection)
            problems += _file_faults(replay.connection)
    except Missing:
        written = max(last.n, known.n if known else 0)
        if written:
            problems.append(f"the record is missing, and its entry {written} was written")
    except Wrong as wrong:
        problems.append(str(wrong))
    tail, trimmed = (replay.tail, replay.trimmed) if replay else (START, 0)
    return Verification(tail.n - trimmed, tail, trimmed, tuple(problems), _unseen(anchor, trimmed))


def make_anchor(record: Record) -> dict[str, Any]:
    """A small JSON document with the number and the hash of the last entry. The entry is durable.

    Raises:
        Failure: `damaged` if the record is not valid, because the anchor would vouch for it; `io_error`.
    """
    verification = verify(record.place)
    if not verification.ok:
        raise Failure(
            "damaged",
            f"the record is not valid: {verification.problems[0]}",
            hint="see `albert ledger verify`",
            details={"path": record.database.name},
        )
    if verification.tail.n:
        with record.transaction():
            pass  # This process knows the last entry now, so it can be synced.
        record.durable(verification.tail.n)
    return {
        "format": ANCHOR_FORMAT,
        "at": text_of(datetime.now(UTC)),
        "n": verification.tail.n,
        "hash": verification.tail.hash.hex(),
    }


def _read_anchor(anchor: Mapping[str, Any]) -> Tail:
    try:
        n, digest = anchor["n"], bytes.fromhex(anchor["hash"])
        if anchor["format"] == ANCHOR_FORMAT and isinstance(anchor["at"], str) and type(n) is int and len(digest) == 32:
            return Tail(n, digest)
    except (KeyError, TypeError, ValueError):
        pass
    raise Failure("invalid_arguments", "this is not an anchor", hint="give the output of `albert ledger anchor`")


def _wrong_ends(replay: Replay, last: Tail, anchor: Tail | None) -> Iterator[str]:
    """Whether the record has the entries that the gate and the anchor name."""
    for known, who in ((last, "since the machine was started"), (anchor, "when the anchor was made")):
        if known is None or known.n <= replay.trimmed:
            continue
        if known.n > replay.tail.n:
            yield f"the record ends after entry {replay.tail.n}, and entry {known.n} existed {who}: the end was cut off"
        elif (
            replay.connection.execute("SELECT hash FROM record.entries WHERE n=?", (known.n,)).fetchone()[0]
            != known.hash
        ):
            yield f"entry {known.n} had another hash {who}: the record was written anew"


def _unseen(anchor: Mapping[str, Any] | None, trimmed: int) -> str:
    cannot = f"this can't be seen: {'; '.join(_UNSEEN)}"
    if anchor is None:
        text = f"Without an anchor, {cannot}. `albert ledger anchor` makes an anchor; keep it elsewhere."
    elif anchor["n"] < trimmed:
        text = f"The anchor's entry {anchor['n']} was deleted by `albert ledger trim`. So {cannot}. Make a new anchor."
    else:
        text = f"Of the entries after the anchor of {anchor['at']} (entry {anchor['n']}), {cannot}."
    if trimmed:
        text += (
            f" Entries 1 to {trimmed} were deleted; nothing proves that the checkpoint states their result correctly."
        )
    return text


# Tables


def _wrong_rows(replay: Replay) -> Iterator[str]:
    """The rows that differ from what the entries give."""
    # A changed row may contain text that isn't UTF-8.
    replay.connection.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        for table in STATE_TABLES:
            yield from _wrong_rows_of(replay.connection, table)
    except sqlite3.Error as error:
        raise Wrong(f"the file is damaged: {error}") from error


def _wrong_rows_of(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    execute = connection.execute
    columns = [(name, key) for _, name, _, _, _, key in execute(f"PRAGMA main.table_info({table})")]
    keys = [name for name, key in columns if key]
    same_key = f"WHERE {' AND '.join(f'{name} IS ?' for name in keys)}"

    def different(one: str, other: str) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...] | None]]:
        """The rows of a table that the other table lacks: the key as text, the row, and the other's row with this key."""
        rows = execute(
            f"SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {other}.{table} LIMIT {MAX_LISTED}"
        ).fetchall()
        for row in rows:
            key = {name: row[i] for i, (name, key) in enumerate(columns) if key}
            where = ", ".join(f"{name} {value!r}" for name, value in key.items())
            yield (
                f"table {table}, {where}",
                row,
                execute(f"SELECT * FROM {other}.{table} {same_key}", [*key.values()]).fetchone(),
            )

    for where, row, actual in different("main", "record"):
        if actual is None:
            yield f"{where}: the row is missing"
        else:
            names = [name for (name, _), a, b in zip(columns, row, actual, strict=True) if a != b]
            yield f"{where}: changed in {', '.join(names)}"
    for where, _, proper in different("record", "main"):
        if proper is None:
            yield f"{where}: no entry gives this row"


def _wrong_steps(connection: sqlite3.Connection) -> Iterator[str]:
    """The steps that differ from the hashes in the entries."""
    execute = connection.execute
    try:
        for run, *last in execute("SELECT id, seq, hash FROM main.runs"):
            rows = execute("SELECT seq, data, hash FROM record.steps WHERE run=? ORDER BY seq", (run,))
            wrong = first_wrong((Step(*row) for row in rows), last)
            if wrong is not None:
                yield f"table steps, run {run!r}: {wrong[1]}"
        for (run,) in execute("SELECT DISTINCT run FROM record.steps WHERE run NOT IN (SELECT id FROM main.runs)"):
            yield f"table steps, run {run!r}: no entry gives these rows"
    except sqlite3.Error as error:
        raise Wrong(f"the file is damaged: {error}") from error


def _file_faults(connection: sqlite3.Connection) -> Iterator[str]:
    """What SQLite finds wrong in the structure of the file."""
    try:
        for (text,) in connection.execute(f"PRAGMA record.integrity_check({MAX_LISTED})"):
            if text != "ok":
                yield f"the file is damaged: {text}"
    except sqlite3.Error as error:
        yield f"the file is damaged: {error}"
