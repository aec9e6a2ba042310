"""The search index: a cache that is updated from the files before each answer.

It is an SQLite database in the cache folder, with one row per entry, a row for each saved tool that an entry calls, and a
full-text table of names, descriptions and sources.
Saving a tool does not change the index. A whole list compares the stamps of all entries and reads the changed entries. Searches,
names and pages must be fast. So they skip each shard whose folder has an unchanged modification time. A save renames a file into
its shard, which changes this time. If the time is so recent that two writes could have the same time, it is not used. A file that
somebody edits in place is noticed by the next list, and its version by its hash whenever it is loaded.

A corrupt or outdated database is deleted and built again. If this fails, or if another process has locked the database, the same
tables are built in memory. So the index never causes an error; only an unreadable tools folder does.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import look_key
from albert_tools.engine.model.protocols import Summary
from albert_tools.store.places import make_folder
from albert_tools.store.tools.entry import Stamp, is_settled
from albert_tools.store.tools.scan import describe, entries_of, shards_of
from albert_tools.store.tools.search_words import MAX_WORDS, containing, name_words, words_of

_T = TypeVar("_T")

#: The layout of the tables below. A database with another layout is deleted.
LAYOUT = 3
#: Seconds to wait while another process updates the index.
PATIENCE = 5.0

_TABLES = """
CREATE TABLE shards (shard TEXT PRIMARY KEY, mtime INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, shard TEXT NOT NULL, file TEXT NOT NULL, stamp TEXT, deleted INTEGER NOT NULL,
    name TEXT NOT NULL, version TEXT NOT NULL, description TEXT NOT NULL, created TEXT NOT NULL,
    versions INTEGER NOT NULL, problem TEXT, author TEXT NOT NULL, look TEXT NOT NULL, UNIQUE (shard, file)
);
CREATE INDEX entries_by_look ON entries (look);
CREATE TABLE calls (callee TEXT NOT NULL, version TEXT NOT NULL, entry INTEGER NOT NULL);
CREATE INDEX calls_by_callee ON calls (callee);
CREATE INDEX calls_by_entry ON calls (entry);
"""
_FULL_TEXT = "CREATE VIRTUAL TABLE words USING fts5(name, description, source)"
#: A modification time that no folder has.
NEVER = -1
#: Error codes of a database that another process has locked.
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_SUMMARY = "e.name, e.version, e.description, e.created, e.versions, e.problem, e.author"

#: Connections that a forked process inherited. They stay open, because closing one could break the parent's connection.
_inherited: list[sqlite3.Connection] = []


class Index:
    """The index of the store at `folder`. It is stored in the folder `cache`; if that is None, in memory."""

    def __init__(self, folder: Path, cache: Path | None) -> None:
        self._folder = folder
        place = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
        self._path = None if cache is None else cache / f"tools-{place}-{LAYOUT}.sqlite3"
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._database: sqlite3.Connection | None = None
        self._memory: sqlite3.Connection | None = None

    def list(self) -> builtins.list[Summary]:
        """All entries that are not deleted, sorted by name.

        Raises:
            Failure: `io_error` if the tools' folder can't be read.
        """
        return self._answer(_by_name, everything=True)

    def page(self, after: str, limit: int) -> builtins.list[Summary]:
        """At most `limit` entries whose names follow `after`, sorted by name. Raises as `list`."""
        return self._answer(lambda database: _by_name(database, after, limit))

    def names(self) -> builtins.list[str]:
        """The names of the undamaged entries, sorted. Raises as `list`."""
        query = "SELECT name FROM entries WHERE NOT deleted AND problem IS NULL ORDER BY name"
        return self._answer(lambda database: [row[0] for row in database.execute(query)])

    def alike(self, name: str) -> builtins.list[str]:
        """Those of `names` that have the same `look_key` as `name`. Raises as `list`."""
        query = "SELECT name FROM entries WHERE look = ? AND NOT deleted AND problem IS NULL ORDER BY name"
        return self._answer(lambda database: [row[0] for row in database.execute(query, (look_key(name),))])

    def callers(self, name: str) -> builtins.list[tuple[str, str]]:
        """The names of the entries that call a saved tool, each with the version that it calls. Raises as `list`."""
        query = (
            "SELECT e.name, c.version FROM calls c JOIN entries e ON e.id = c.entry WHERE c.callee = ? ORDER BY e.name"
        )
        return self._answer(lambda database: database.execute(query, (name,)).fetchall())

    def search(self, text: str, limit: int, any_word: bool = False) -> builtins.list[Summary]:
        """The entries that contain every word of `text`. If there are none, or with `any_word`: any word. If still none: any word
        as part of another word of a name or a description.

        Raises:
            Failure: `io_error` if the tools' folder can't be read.
        """
        if limit <= 0 or not text.strip():
            return self.page("", max(0, limit))
        words = words_of(text)[:MAX_WORDS]
        return self._answer(lambda database: _search(database, words, limit, any_word)) if words else []

    def close(self) -> None:
        """Close the database. The next question opens it again."""
        if self._process == os.getpid():
            with self._lock:
                for database in filter(None, (self._database, self._memory)):
                    database.close()
                self._database = self._memory = None

    def _answer(self, query: Callable[[sqlite3.Connection], _T], everything: bool = False) -> _T:
        """The result of a query on the updated database. `everything` also checks shards whose folders are unchanged."""
        if self._process != os.getpid():
            _inherited.extend(d for d in (self._database, self._memory) if d is not None)
            self._lock, self._database, self._memory = threading.Lock(), None, None
            self._process = os.getpid()
        with self._lock:
            for attempt in (self._on_disk, self._on_disk_anew):
                try:
                    return query(self._updated(attempt(), everything))
                except (sqlite3.Error, OSError, Failure) as error:
                    if isinstance(error, Failure) and _about(error, self._folder):
                        raise
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED:
                        break
            return query(self._updated(self._in_memory(), everything))

    # The database

    def _on_disk(self) -> sqlite3.Connection:
        if self._path is None:
            return self._in_memory()
        if self._database is None:
            make_folder(self._path.parent)
            self._database = _open(str(self._path))
        return self._database

    def _on_disk_anew(self) -> sqlite3.Connection:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        for ending in ("", "-wal", "-shm") if self._path is not None else ():
            with suppress(FileNotFoundError):
                os.unlink(f"{self._path}{ending}")
        return self._on_disk()

    def _in_memory(self) -> sqlite3.Connection:
        if self._memory is None:
            self._memory = _open(":memory:")
        return self._memory

    # Freshness

    def _updated(self, database: sqlite3.Connection, everything: bool) -> sqlite3.Connection:
        """The database, after what has changed was read."""
        self._refresh(database, everything)
        return database

    def _refresh(self, database: sqlite3.Connection, everything: bool) -> None:
        now = time.time_ns()
        present = shards_of(self._folder)
        known: dict[str, int] = dict(database.execute("SELECT shard, mtime FROM shards"))
        look = [s for s, mtime in present.items() if everything or known.get(s) != mtime]
        gone = known.keys() - present.keys()
        if not look and not gone:
            return
        stamps: dict[str, dict[str, str | None]] = {shard: {} for shard in gone.union(look)}
        if everything:
            rows = database.execute("SELECT shard, file, stamp FROM entries").fetchall()
        else:
            of_shard = "SELECT shard, file, stamp FROM entries WHERE shard = ?"
            rows = [row for shard in stamps for row in database.execute(of_shard, (shard,))]
        for shard, file, stamp in rows:
            stamps.setdefault(shard, {})[file] = stamp  # another process may have added a shard
        stale = [(s, f) for s in gone for f in stamps[s]]
        for shard in look:
            files = entries_of(self._folder / shard)
            before = stamps.get(shard, {})
            stale += [(shard, f) for f, stamp in files.items() if before.get(f) != _text(stamp)]
            stale += [(shard, f) for f in before if f not in files]
        # If a folder has changed within the last tick of its clock, its time could stay equal after a second change. So it isn't
        # stored.
        times = {s: present[s] if is_settled(present[s], now) else NEVER for s in look}
        fresh = {s: mtime for s, mtime in times.items() if known.get(s) != mtime}
        if not stale and not fresh and not gone:
            return
        database.execute("BEGIN IMMEDIATE")
        try:
            # An entry that could not be read may become readable without a change of its folder.
            fresh |= {shard: NEVER for shard, file in stale if self._replace(database, shard, file)}
            database.executemany("REPLACE INTO shards VALUES (?, ?)", fresh.items())
            database.executemany("DELETE FROM shards WHERE shard = ?", [(s,) for s in gone])
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _replace(self, database: sqlite3.Connection, shard: str, file: str) -> bool:
        """Read an entry again. Returns True if it has to be read the next time, too."""
        key = (shard, file)
        old = database.execute("SELECT id FROM entries WHERE shard = ? AND file = ?", key).fetchone()
        if old is not None:
            database.execute("DELETE FROM entries WHERE id = ?", old)
            database.execute("DELETE FROM words WHERE rowid = ?", old)
            database.execute("DELETE FROM calls WHERE entry = ?", old)
        described = describe(self._folder / shard, file)
        if described is None:
            return False
        s = described.summary
        stamp = None if described.stamp is None else _text(described.stamp)
        values = (
            *key,
            stamp,
            described.deleted,
            s.name,
            s.version,
            s.description,
            s.created,
            s.versions,
            s.problem,
            s.author,
            look_key(s.name),
        )
        row = database.execute(f"INSERT INTO entries VALUES (NULL{', ?' * len(values)})", values).lastrowid
        if not described.deleted:
            words = (row, name_words(s.name), s.description, described.source)
            database.execute("INSERT INTO words (rowid, name, description, source) VALUES (?, ?, ?, ?)", words)
        database.executemany("INSERT INTO calls VALUES (?, ?, ?)", [(c.name, c.version, row) for c in described.calls])
        return stamp is None


def _open(path: str) -> sqlite3.Connection:
    # Transactions are explicit. The lock of the index serializes the threads.
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("BEGIN IMMEDIATE")
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        if layout == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                database.execute(statement)
            try:
                database.execute(_FULL_TEXT)
            except sqlite3.OperationalError:
                # This SQLite has no FTS5, so use a plain table. A search scans all its rows.
                database.execute("CREATE TABLE words (name, description, source)")
            database.execute(f"PRAGMA user_version = {LAYOUT}")
        database.execute("COMMIT")
        if layout not in (0, LAYOUT):
            raise sqlite3.DatabaseError(f"the index has layout {layout}")
    except BaseException:
        database.close()
        raise
    return database


def _by_name(database: sqlite3.Connection, after: str = "", limit: int = -1) -> list[Summary]:
    """The entries whose names follow `after`, sorted by name. A negative limit means all."""
    query = f"SELECT {_SUMMARY} FROM entries e WHERE NOT deleted AND name > ? ORDER BY name, file LIMIT ?"
    return [Summary(*row) for row in database.execute(query, (after, limit))]


def _search(database: sqlite3.Connection, words: list[str], limit: int, any_word: bool) -> list[Summary]:
    """See `Index.search`."""
    quoted = [f'"{word}"*' for word in words]
    for expression in ([] if any_word else [" AND ".join(quoted)]) + [" OR ".join(quoted)]:
        summaries = _matching(database, expression, limit)
        if summaries:
            return summaries
    return _containing(database, words, limit, summaries is None)


def _matching(database: sqlite3.Connection, expression: str, limit: int) -> list[Summary] | None:
    """The results of the full-text search. Matches in names rank highest. None if this SQLite has no FTS5."""
    query = (
        f"SELECT {_SUMMARY} FROM words w JOIN entries e ON e.id = w.rowid WHERE words MATCH ?"
        " ORDER BY bm25(words, 10.0, 4.0, 1.0), e.name LIMIT ?"
    )
    try:
        return [Summary(*row) for row in database.execute(query, (expression, limit))]
    except sqlite3.OperationalError as error:
        if any(sign in str(error) for sign in ("fts5", "no such column", "no such function", "MATCH")):
            return None
        raise


def _containing(database: sqlite3.Connection, words: list[str], limit: int, in_sources: bool) -> list[Summary]:
    """The entries that contain one of the words anywhere, found by a scan of all rows. More words rank higher; words in a name
    count twice. Sources are read only if there is no full-text search, because that is slow."""
    source, table = ("w.source", "entries e JOIN words w ON w.rowid = e.id") if in_sources else ("''", "entries e")
    rows = database.execute(f"SELECT {_SUMMARY}, {source} FROM {table} WHERE NOT e.deleted ORDER BY e.name")
    return containing(((Summary(*row[:7]), row[7]) for row in rows), words, limit)


def _text(stamp: Stamp) -> str:
    return "%d %d %d %d" % stamp  # noqa: UP031 - fastest, and called for every entry


def _about(error: Failure, folder: Path) -> bool:
    """Whether a failure concerns the tools' folder. Such a failure is reported; a failure of the cache is not."""
    path = str(error.details.get("path", ""))
    return path == str(folder) or path.startswith(f"{folder}{os.sep}")
