"""TinyDB's storage for one entry. It stores the tables in memory and writes the whole file at once.

TinyDB writes after every operation on a table. A save needs several operations, and a crash between two of them would leave an
inconsistent entry. So `write` only stores the tables in memory, and `commit` writes them to disk in one atomic step.

The file is readable for people and `git diff`: one value per line, sorted keys, non-ASCII text unescaped.
"""

from __future__ import annotations

import json
from pathlib import Path

from tinydb import TinyDB
from tinydb.storages import Storage

from albert_tools.store.atomic import write_atomic
from albert_tools.store.tools.entry import Tables


class EntryStorage(Storage):
    """Starts with `tables`; `commit` replaces the file at `path`. The caller must have the lock of the shard all the time."""

    def __init__(self, shard: Path, path: Path, tables: Tables) -> None:
        self._shard = shard
        self._path = path
        self._tables = tables

    def read(self) -> Tables:
        """The present tables, including uncommitted changes."""
        return self._tables

    def write(self, data: Tables) -> None:
        """Store the tables in memory until `commit`."""
        self._tables = data

    def commit(self) -> None:
        """Write the tables to disk, durably.

        Raises:
            OSError: as `write_atomic`.
        """
        write_atomic(self._shard, self._path, encode(self._tables))


def encode(tables: Tables) -> bytes:
    """The text of an entry's file."""
    return (json.dumps(tables, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def open_entry(shard: Path, path: Path, tables: Tables) -> tuple[TinyDB, EntryStorage]:
    """Open a database for one entry. Returns the database and its storage, which has the method `commit`."""
    database = TinyDB(shard, path, tables, storage=EntryStorage)
    storage = database.storage
    assert isinstance(storage, EntryStorage)
    return database, storage
