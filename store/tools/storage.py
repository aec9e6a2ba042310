"""TinyDB's storage for one entry: held in memory, written as a whole.

TinyDB writes the file after every operation on a table; a save is several (drop the older copy, insert, name
the head), and a crash between two of them would leave an entry that nobody saved. So `write` here only keeps
the tables, and `commit` puts them on disk in one atomic step.

The text is meant for people and for `git diff`: one value to a line, keys sorted, other scripts as they are.
"""

from __future__ import annotations

import json
from pathlib import Path

from tinydb import TinyDB
from tinydb.storages import Storage

from albert_tools.store.atomic import write_atomic
from albert_tools.store.tools.migrate import Tables


class EntryStorage(Storage):
    """Begins with `tables`; `commit` replaces `path`. The shard's lock must be held throughout."""

    def __init__(self, shard: Path, path: Path, tables: Tables) -> None:
        self._shard = shard
        self._path = path
        self._tables = tables

    def read(self) -> Tables:
        """The tables as they stand, committed or not."""
        return self._tables

    def write(self, data: Tables) -> None:
        """Keep the tables for `commit`."""
        self._tables = data

    def commit(self) -> None:
        """Put the tables on disk, durably.

        Raises:
            OSError: as `write_atomic`.
        """
        write_atomic(self._shard, self._path, encode(self._tables))


def encode(tables: Tables) -> bytes:
    """The text of an entry's file."""
    return (json.dumps(tables, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def open_entry(shard: Path, path: Path, tables: Tables) -> tuple[TinyDB, EntryStorage]:
    """A database over one entry, and its storage, to commit."""
    database = TinyDB(shard, path, tables, storage=EntryStorage)
    storage = database.storage
    assert isinstance(storage, EntryStorage)
    return database, storage
