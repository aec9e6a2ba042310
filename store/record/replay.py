"""Reads the entries along their chain, checks each hash, and builds the state tables again from them.

The tables are built in memory. The walk reads a snapshot of the database on its own connection, so it doesn't disturb writers. It
begins at entry 1 with empty tables. If older entries were deleted (`trim`), it begins at the checkpoint, with the rows that the
checkpoint contains. The entry of the checkpoint is a part of the chain, so the chain vouches for these rows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.entry import CHECKPOINT, chained, decode, text_of
from albert_tools.store.record.gate import START, Tail
from albert_tools.store.record.run_tables import indexed_run
from albert_tools.store.record.schema import STATE_TABLES, TABLES, VERSION
from albert_tools.store.record.tables import apply

_COLUMNS = "SELECT n, at, kind, run, data, hash FROM record.entries"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM {}.sqlite_master"

_Row = tuple[int, str, str, str, str, bytes]


class Wrong(Exception):
    """The record is not what its processes have written. The message says what is wrong first."""


class Missing(Wrong):
    """The database has no tables: it is being created, or its content was removed."""


class Replay:
    """A walk along the chain. `tail` is the last entry that was checked. `main` has the tables that the checked entries give, and
    `record` has the tables of the snapshot."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Begin at the checkpoint or at the beginning. Raises `Wrong`."""
        self.connection = connection
        self.tail = START
        _check_schema(connection)
        lowest = connection.execute("SELECT min(n) FROM record.entries").fetchone()[0]
        if lowest is not None and lowest < 1:
            raise Wrong(f"entry {lowest} was inserted: the numbers of entries begin at 1")
        if lowest is not None and lowest > 1:
            self.tail = self._load_checkpoint(lowest - 1)
        #: The last entry that was deleted; 0 if none was.
        self.trimmed = self.tail.n

    def walk(self, until: int | None = None) -> None:
        """Check and apply the entries up to number `until`, or all. Raises `Wrong`."""
        before, expected, execute = self.tail.hash, self.tail.n + 1, self.connection.execute
        try:
            for row in execute(f"{_COLUMNS} WHERE n > ? AND n <= ? ORDER BY n", (self.tail.n, until or 2**62)):
                n, at, kind, run, data, digest = row
                if n != expected or digest != chained(before, text_of(n, at, kind, data)):
                    raise Wrong(self._explanation(expected, before, row))
                content = decode(data)
                if run != indexed_run(content):
                    raise Wrong(f"entry {n}: the column run was changed")
                apply(execute, Entry(at, n, kind, content))
                before, expected = digest, n + 1
        except Wrong:
            raise
        except Exception as error:  # A changed file can make SQLite, a decoder or an apply function fail in any way.
            raise Wrong(f"entry {expected} can't be read: {error}") from error
        finally:
            self.tail = Tail(expected - 1, before)

    def _explanation(self, expected: int, before: bytes, row: _Row) -> str:
        """What is wrong with the first wrong entry, whose number should be `expected`."""
        n = row[0]
        # Search for the entry that was written with this number.
        for at_n, at, kind, _, data, digest in self.connection.execute(f"{_COLUMNS} WHERE n >= ?", (n,)):
            if at_n != expected and digest == chained(before, text_of(expected, at, kind, data)):
                what = "is missing" if n > expected else "was inserted" if at_n == expected + 1 else "was replaced"
                return f"entry {expected} {what}: the entry that was written with this number is number {at_n} now"
        if n == expected + 1:
            return f"entry {expected} is missing"
        if n > expected:
            return f"entries {expected} to {n - 1} are missing"
        return f"entry {n} was changed: its content does not match its hash"

    def _load_checkpoint(self, n: int) -> Tail:
        """Insert the rows of the state after entry `n`, the last deleted one."""
        for part in self._parts(n):
            for table, rows in part["rows"].items():
                # An earlier format had other tables, too.
                for row in rows if table in STATE_TABLES else ():
                    self.connection.execute(f"INSERT INTO main.{table} VALUES ({', '.join('?' * len(row))})", row)
            digest = bytes.fromhex(part["hash"])
        return Tail(n, digest)

    def _parts(self, n: int) -> list[dict[str, Any]]:
        """The data of the entries of the last checkpoint. Raises `Wrong` if they don't follow entry `n`."""
        parts: list[dict[str, Any]] = []
        with closing(
            self.connection.execute(f"SELECT data FROM record.entries WHERE kind = '{CHECKPOINT}' ORDER BY n DESC")
        ) as rows:
            for (text,) in rows:
                data = decode(text)
                if data["last"] < n:
                    raise Wrong(f"entries {data['last'] + 1} to {n} are missing")
                parts.append(data)
                if data["part"] == 1:
                    break
        if not parts or parts[0]["last"] != n or len(parts) != parts[0]["parts"]:
            raise Wrong(
                f"entries 1 to {n} are missing" if not parts else f"the checkpoint after entry {n} is incomplete"
            )
        return parts


@contextmanager
def replaying(path: Path) -> Iterator[Replay]:
    """A walk on a snapshot of the database at `path`. Raises `Wrong`."""
    connection = sqlite3.connect("file::memory:", uri=True, isolation_level=None, cached_statements=256)
    try:
        try:
            _attach(connection, path)
            replay = Replay(connection)
        except Wrong:
            raise
        except Exception as error:  # See `walk`.
            raise Wrong(f"the file can't be read: {error}") from error
        yield replay
    finally:
        connection.close()


def _attach(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema=0")
    connection.executescript(TABLES)
    uri = f"file:{quote(os.fspath(path))}?mode=ro"
    try:
        connection.execute("ATTACH ? AS record", (uri,))
    except sqlite3.OperationalError:
        # On a read-only disk SQLite can't create the files that it needs. Without a write-ahead log it doesn't need them.
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:
            raise
        connection.execute("ATTACH ? AS record", (f"{uri}&immutable=1",))
    connection.execute("BEGIN")


def _check_schema(connection: sqlite3.Connection) -> None:
    """Raise `Wrong` if the database has other tables, views or triggers, or lacks some."""
    version = connection.execute("PRAGMA record.user_version").fetchone()[0]
    proper, actual = (set(connection.execute(_SCHEMA.format(name))) for name in ("main", "record"))
    if not version and not actual:
        raise Missing
    if version != VERSION:
        raise Wrong(f"the file has format {version}, and this version of Albert Tools reads {VERSION}")
    for kind, name, *_ in sorted(actual - proper):
        raise Wrong(f"the {kind} {name} does not belong to the record, or was changed")
    for kind, name, *_ in sorted(proper - actual):
        raise Wrong(f"the {kind} {name} is missing")
