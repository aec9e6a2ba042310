"""The SQLite database of a home's record: opens it, runs transactions, and turns its errors into failures.

The database is in WAL mode, so readers don't wait for the one writer. `SqliteDatabase` opens it at the first use, and creates it if
it is missing.
"""

from __future__ import annotations

import math
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private, make_private
from albert_tools.store.record.database import Database, Row
from albert_tools.store.record.durability import FileDurability
from albert_tools.store.record.gate import START, Gate, Tail
from albert_tools.store.record.owner import Owners
from albert_tools.store.record.schema import TABLES, VERSION

#: The database's file in the folder of the record. SQLite adds `-wal` and `-shm`.
FILE = "record.sqlite3"
#: The file of the gate in the same folder.
GATE = "gate"
#: Bytes of the write-ahead log that remain after a checkpoint.
_WAL_BYTES = 16 * 1024 * 1024
#: Steps of SQLite's machine between two looks at the deadline: a millisecond or so.
_STEPS = 100_000
#: Pages that `shrink` frees in one step.
_PAGES_AT_ONCE = 4000
_SETTINGS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    # Pages (of 4 KiB) after which a commit moves the write-ahead log into the database, which takes two syncs.
    "PRAGMA wal_autocheckpoint=4000",
    f"PRAGMA journal_size_limit={_WAL_BYTES}",
    "PRAGMA trusted_schema=0",
    # Overwrite deleted data.
    "PRAGMA secure_delete=1",
)
_TAIL = "SELECT n, hash FROM entries ORDER BY n DESC LIMIT 1"
#: What is none of `TABLES`, such as a view in the place of a table, or a trigger.
_FOREIGN = "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL AND instr(?, sql) = 0"


class _Opened(NamedTuple):
    """The open database: the connection, the gate, and the device and inode of the file."""

    connection: sqlite3.Connection
    gate: Gate
    inode: tuple[int, int]


class SqliteDatabase(Database):
    """The database in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.path = self.folder / FILE
        super().__init__(str(self.path))
        self._opened: _Opened | None = None
        #: `tail` is read again if `data_version` is not `_version`, which is -1 after a rollback.
        self._version = -1
        self._committed = 0
        #: The size of the file at the last transaction.
        self._size = 0
        self.durability = FileDurability(Path(f"{self.path}-wal"), lambda: self._committed)
        self._owners = Owners(self.folder / "processes")

    @property
    def owners(self) -> Owners:
        """See `Database`."""
        return self._owners

    @property
    def exists(self) -> bool:
        """See `Database`. Also raises Failure `io_error` if the folder is not private."""
        return check_private(self.folder, "the record") and self.path.exists()

    def size(self) -> int:
        """See `Database`."""
        return self.path.stat().st_size

    # Transactions

    async def expect(self, about: Hashable) -> None:
        """See `Database`. No read takes long here."""

    async def together(self, about: Hashable, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """See `Database`. A transaction takes less time than other tasks take to get ready."""
        with self.transaction():
            self.at_end(ended)
            block()

    def version(self) -> int | None:
        """See `Database`."""
        with self._threads:
            if self._opened is None or self._depth or self._version < 0 or self._opened.gate.last() != self.tail:
                return None
            return self._version

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """See `Database`."""
        assert self._opened is not None, "only inside a transaction"
        try:
            return self._opened.connection.execute(statement, values)
        except sqlite3.Error as error:
            self._failed = self._failure(error)
            raise self._failed from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """See `Database`."""
        with self._threads:
            if self._opened is None:
                if not self.exists:
                    return []
                with self.transaction():
                    pass  # This opens and checks the database. Each later transaction checks it again.
            opened = self._opened
            assert opened is not None
            try:
                if not self._depth:
                    self._check_file(opened)
                return opened.connection.execute(statement, values).fetchall()
            except UnicodeEncodeError:
                return []  # No row contains a text that is not Unicode.
            except sqlite3.Error as error:
                failure = self._failure(error)
                if self._depth:
                    self._failed = failure
                raise failure from error

    def _begin(self, abouts: tuple[Hashable, ...]) -> None:
        self._enter()

    def _enter(self) -> _Opened:
        if self.durability.broken is not None:
            raise self.durability.broken.copy()
        opened = self._opened = self._opened or self._open()
        if opened.connection.in_transaction:
            # An interrupt has come while the last transaction ended.
            self._leave(committed=False)
        opened.gate.enter()
        size = self._check_file(opened)
        try:
            opened.connection.execute("BEGIN IMMEDIATE")
            if size < self._size:
                self._check_size(opened, size)
            self._size = size
            self._check_tail(opened)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        return opened

    def _commit(self) -> None:
        opened = self._opened
        assert opened is not None
        try:
            opened.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from error
        if self.tail.n != self._committed:
            self._committed = self.tail.n
            opened.gate.write_last(self.tail)

    def _leave(self, committed: bool) -> None:
        if not committed:
            self._version = -1
        if self._opened is None:
            return
        try:
            if self._opened.connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._opened.connection.execute("ROLLBACK")
        finally:
            self._opened.gate.leave()

    def _check_file(self, opened: _Opened) -> int:
        """Refuse a file that other processes would not open. Returns its size."""
        try:
            facts = os.stat(self.name)
        except OSError as error:
            raise self._replaced() from error
        if (facts.st_dev, facts.st_ino) != opened.inode:
            raise self._replaced()
        return facts.st_size

    def _check_size(self, opened: _Opened, size: int) -> None:
        """Refuse a file that another program has made smaller. `shrink` does this, too."""
        pages, page_size = (
            opened.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        if size >= pages * page_size:
            return
        # The missing pages are in the write-ahead log, or they are lost. This connection may have them in memory.
        with closing(sqlite3.connect(f"file:{quote(str(self.path))}?mode=ro", uri=True)) as other:
            try:
                whole = other.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            except sqlite3.DatabaseError:
                whole = False
        if not whole:
            raise self._damaged(f"the record {self.path} was truncated")

    def _replaced(self) -> Failure:
        return Failure(
            "io_error",
            f"the record {self.path} was deleted or replaced while this process used it",
            hint="put the file back and restart this process; without the file, restart to begin a new record",
            details={"path": str(self.path)},
        )

    def _check_tail(self, opened: _Opened) -> None:
        """Refuse a database that lacks entries which were committed since the machine was started."""
        version = opened.connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return
        known = opened.gate.last()
        tail = Tail(*(opened.connection.execute(_TAIL).fetchone() or START))
        self._committed = tail.n
        if known.n:
            row = opened.connection.execute("SELECT hash FROM entries WHERE n=?", (known.n,)).fetchone()
            if tail.n < known.n or (row is not None and row[0] != known.hash):
                raise self._damaged(
                    f"the record ends at entry {tail.n}, and entry {known.n} was written: it was cut off or replaced",
                    n=tail.n,
                    written=known.n,
                )
        self.tail, self._version = tail, version

    # Opening and closing

    def _open(self) -> _Opened:
        make_private(self.folder, "the record")
        gate = Gate(self.folder / GATE)
        try:
            # Two processes that create the database at the same time would disturb each other.
            gate.enter()
            connection, inode = self._connect()
            gate.leave()
        except BaseException as error:
            gate.close()
            if isinstance(error, sqlite3.Error):
                raise self._failure(error) from error
            raise
        return _Opened(connection, gate, inode)

    def _connect(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        try:
            # SQLite gives its other files the mode of this file. An existing file is not opened here: closing it would release the
            # locks of another connection of this process.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            facts = os.stat(self.path, follow_symlinks=False)
        except OSError as error:
            raise io_failure("open the record", self.path, error) from error
        if not stat.S_ISREG(facts.st_mode):
            raise Failure(
                "io_error",
                f"the record {self.path} is not a regular file",
                hint="move it away",
                details={"path": str(self.path)},
            )
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=1.0
        )
        if self.deadline < math.inf:
            connection.set_progress_handler(lambda: time.monotonic() > self.deadline, _STEPS)
        try:
            if not facts.st_size:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            for setting in _SETTINGS:
                connection.execute(setting)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if not version:
                connection.executescript(f"BEGIN IMMEDIATE;{TABLES}PRAGMA user_version={VERSION};COMMIT;")
            elif version != VERSION:
                raise Failure(
                    "damaged",
                    f"the record {self.path} has format {version}, and this version of Albert Tools reads {VERSION}",
                    hint="use the version that wrote it, or move the file away to begin a new record",
                )
            elif foreign := connection.execute(_FOREIGN, (TABLES,)).fetchone():
                raise self._damaged(f"Albert Tools has not made {foreign[0]!r} in the record {self.path}")
        except BaseException:
            connection.close()
            raise
        return connection, (facts.st_dev, facts.st_ino)

    def shrink(self) -> None:
        """See `Database`. It gives pages back to the file system, step by step."""
        free = None
        while free != 0:
            with self._threads:
                try:
                    opened = self._enter()
                    # `execute` would free one page only. This method commits the empty transaction first.
                    opened.connection.executescript(
                        f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE}); PRAGMA wal_checkpoint"
                    )
                    free = opened.connection.execute("PRAGMA freelist_count").fetchone()[0]
                except sqlite3.Error as error:
                    raise self._failure(error) from error
                finally:
                    self._leave(True)

    def close(self) -> None:
        """See `Database`."""
        with self._threads:
            self._owners.close()
            self.durability.close()
            opened, self._opened = self._opened, None
            if opened is None:
                return
            self._version = -1
            # The last process to close the database moves the write-ahead log into it.
            opened.gate.enter()
            try:
                opened.connection.close()
            except sqlite3.Error as error:
                raise self._failure(error) from error
            finally:
                opened.gate.close()

    def _damaged(self, problem: str, **details: Any) -> Failure:
        return Failure(
            "damaged",
            problem,
            hint=f"keep {self.folder} unchanged and examine it; to begin a new record, move the folder away",
            details={"path": str(self.path), **details},
        )

    def _failure(self, error: sqlite3.Error) -> Failure:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or str(error).startswith("Could not decode"):
            return self._damaged(f"the record {self.path} is damaged: {error}")
        hint = None
        if name.startswith("SQLITE_FULL"):
            hint = "free some disk space and try again"
        elif name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_IOERR")):
            hint = "check the disk and the permissions, or set ALBERT_HOME to a folder that you can write to"
        return Failure(
            "io_error",
            f"can't use the record {self.path}: {error}",
            hint=hint,
            retryable=name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")),
            details={"path": str(self.path)},
        )

    def _abandon(self) -> bool:
        """See `Database`. In a forked child, SQLite would rely on its parent's locks."""
        if self._opened is None:
            return False
        # The connection can't be closed here, because closing may write to the file.
        _parents_connections.append(self._opened.connection)
        self._opened.gate.abandon()
        self._opened = None
        return True


#: What a forked child must neither use nor close: closing would take the files from its parent.
_parents_connections: list[object] = []
