"""The record of a home: a chain of entries, and tables with the state that decisions need, in one database.

The caller of `append` redacts secrets.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command
from albert_tools.engine.model.record_types import STORED, Entry
from albert_tools.store.record.approvals import ApprovalTable
from albert_tools.store.record.clock import Clock, text_of
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import CHECKPOINT, MAX_BYTES, MAX_CHECKPOINT_BYTES, chained, decode, encode
from albert_tools.store.record.entry import text_of as entry_text
from albert_tools.store.record.gate import Tail
from albert_tools.store.record.query_cache import QueryCache
from albert_tools.store.record.queue_table import QueueTable
from albert_tools.store.record.repeats import RepeatTable
from albert_tools.store.record.reviews import ReviewTable
from albert_tools.store.record.run_tables import indexed_run, run_of
from albert_tools.store.record.schedule_table import ScheduleTable
from albert_tools.store.record.sessions import SessionTable
from albert_tools.store.record.sqlite import SqliteDatabase
from albert_tools.store.record.steps import Step
from albert_tools.store.record.tables import apply, changes_cached, changes_tables
from albert_tools.store.record.uses import UseTable

_KIND = re.compile(r"[a-z][a-z_]{0,40}\Z")
_INSERT = "INSERT INTO entries(n, at, kind, run, data, hash) VALUES (?, ?, ?, ?, ?, ?)"
#: Bytes on the disk for each byte of an entry, with its hash and indexes (measured: 1.5 to 2.2). An entry of the kinds `_HAS_ROW`
#: is almost whole in a row of another table, too (3.1 to 3.9).
_ENTRY_FACTOR, _ROW_FACTOR = 2.2, 3.9
_HAS_ROW = ("session", "asked")
#: Bytes on the disk for each byte of a step's data, and for the step besides its data.
_STEP_FACTOR, _STEP_BYTES = 1.4, 128
#: How many entries are read in one transaction.
_BATCH = 1000
_ENTRIES_AFTER = f"SELECT n, data FROM entries WHERE n > ? ORDER BY n LIMIT {_BATCH}"
#: Few at once, because a step can have megabytes.
_STEPS_AFTER = "SELECT run, seq, data FROM steps WHERE (run, seq) > (?, ?) ORDER BY run, seq LIMIT 20"


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


class OpenJournal(Protocol):
    """The journal of a run that this process executes (`journal.StepJournal`)."""

    header: dict[str, Any]

    def beginning(self) -> dict[str, Any] | None:
        """The data of the entry ``run`` with which a new run begins; None if it has one. The caller appends it at once."""

    def new_rows(self) -> list[Step]:
        """The rows that are not inserted yet. Only inside a transaction."""

    def insert(self, rows: list[Step], n: int) -> None:
        """Insert `new_rows` in the transaction that appends entry `n`, which names the last of them."""


def _database(place: Path | str) -> Database:
    if isinstance(place, Path):
        return SqliteDatabase(place)
    try:
        from albert_tools.store.record.postgres import PostgresDatabase
    except ImportError as error:
        problem = f"a record on PostgreSQL needs psycopg: {error}"
        raise Failure("not_found", problem, hint=install_command("fleet")) from error
    return PostgresDatabase(place)


class Record:
    """`Ledger` on a database. `nanoseconds` is the system's clock.

    `place` is a folder for an SQLite database, which the first use creates, or the URL of a PostgreSQL database. The URL needs the
    extra ``fleet``.

    Any thread may call every method. Any number of processes may have the record open.
    """

    def __init__(self, place: Path | str, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        """Raises Failure `invalid_arguments` for a bad URL, `not_found` without the extra."""
        self.place = place.absolute() if isinstance(place, Path) else place
        self.database = _database(place)
        self.sessions = SessionTable(self.database)
        self.approvals = ApprovalTable(self.database)
        self._cache = QueryCache(self.database)
        self.uses = UseTable(self.database, self._cache)
        self.repeats = RepeatTable(self.database)
        self.reviews = ReviewTable(self.database, self._cache)
        self.queue = QueueTable(self.database, self.alive)
        self.schedules = ScheduleTable(self.database)
        self._clock = Clock(nanoseconds)
        self._owners = self.database.owners
        #: The journals that are open here, by run. `append` writes their new steps together with an entry of their run.
        self.journals: dict[str, OpenJournal] = {}

    @property
    def owner(self) -> str:
        """See `Ledger.owner`."""
        return self._owners.own()

    @property
    def gathers(self) -> bool:
        """See `Ledger.gathers`."""
        return self.database.gathers

    def is_own(self, owner: str) -> bool:
        """Whether this process is the owner. Unlike `owner`, this creates no file."""
        return self._owners.is_own(owner)

    def alive(self, owner: str) -> bool:
        """See `Ledger.alive`."""
        return self._owners.alive(owner)

    def evict(self, owner: str, otherwise: str) -> None:
        """End the connection of another process to the record, so that its runs can be taken over. `otherwise` says what a person
        can do if this record can't.

        Raises:
            Failure: `permission_denied`, `io_error`.
        """
        if not self._owners.evict(owner):
            raise Failure("permission_denied", "this home can't evict a worker", hint=otherwise)

    def transaction(self) -> AbstractContextManager[None]:
        """See `Ledger.transaction`."""
        return self.database.transaction()

    def may(self, kind: str) -> bool:
        """See `Record.may`."""
        return self.database.may(kind)

    async def together(self, about: Hashable, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """See `Ledger.together`."""
        await self.database.together(about, block, ended)

    async def expect(self, about: Hashable) -> None:
        """See `Ledger.expect`."""
        await self.database.expect(about)

    def append(self, kind: str, data: Mapping[str, Any]) -> int:
        """See `Ledger.append`."""
        if not _KIND.match(kind):
            raise Failure("invalid_arguments", f"{kind!r} is not a kind of entry")
        run = run_of(data)
        journal = self.journals.get(run)
        most = MAX_CHECKPOINT_BYTES if kind == CHECKPOINT else MAX_BYTES
        database = self.database
        session = data.get("session") or (journal.header.get("session") if journal is not None else None)
        with database.transaction((kind, session)):
            if journal is not None and (beginning := journal.beginning()) is not None:
                self.append("run", beginning)
            rows = journal.new_rows() if journal is not None else []
            data = database.signed(kind, data)
            if rows:
                data = {**data, "steps": rows[-1].name}
            content = encode(data, f"an entry of kind {kind!r}", most)
            if session:
                # What is stored for a session is charged to it.
                used = data.get("used") or {}
                factor = _ROW_FACTOR if kind in _HAS_ROW else _ENTRY_FACTOR
                steps = sum(_STEP_BYTES + int(_STEP_FACTOR * _bytes(row.data)) for row in rows)
                size = used.get(STORED, 0) + int(factor * _bytes(content)) + steps
                data = {**data, "session": session, "used": {**used, STORED: size}}
                content = encode(data, f"an entry of kind {kind!r}", most)
            before = database.tail
            n, at = before.n + 1, self._clock.now()
            digest = chained(before.hash, entry_text(n, at, kind, content))
            database.execute(_INSERT, (n, at, kind, indexed_run(data), content, digest))
            if journal is not None and rows:
                journal.insert(rows, n)
            if changes_tables(kind, data):
                if changes_cached(kind, data):
                    self._cache.clear()
                # The data is decoded, so that `verify`, which reads it, gets the same rows.
                apply(database.execute, Entry(at, n, kind, decode(content)))
            database.tail = Tail(n, digest)
        return n

    def durable(self, n: int | None = None) -> None:
        """See `Ledger.durable`."""
        if n is None:
            with self.database.transaction():
                n = self.database.tail.n
        self.database.durability.wait(n)

    async def adurable(self, n: int) -> None:
        """See `Ledger.adurable`."""
        await self.database.durability.wait_async(n)

    def entries(
        self, kinds: Collection[str] | None = None, since: datetime | None = None, run: str | None = None
    ) -> Iterator[Entry]:
        """See `Ledger.entries`."""
        conditions, values = ["n > ?"], []
        if kinds is not None:
            conditions.append(f"kind IN ({', '.join('?' * len(kinds)) or 'NULL'})")
            values += sorted(kinds)
        if since is not None:
            conditions.append("at >= ?")
            values.append(text_of(since))
        if run is not None:
            conditions.append("run = ? AND run <> ''")
            values.append(run)
        query = f"SELECT n, at, kind, data FROM entries WHERE {' AND '.join(conditions)} ORDER BY n LIMIT {_BATCH}"
        last = 0
        while True:
            rows = self.database.rows(query, (last, *values))
            for last, at, kind, data in rows:
                yield Entry(at, last, kind, decode(data))
            if len(rows) < _BATCH:
                return

    def texts(self) -> Iterator[str]:
        """The data of all entries, and all steps. Raises Failure `damaged`, `io_error`."""
        n, step = 0, ("", -1)
        while rows := self.database.rows(_ENTRIES_AFTER, (n,)):
            yield from (data for _, data in rows)
            n = rows[-1][0]
        while rows := self.database.rows(_STEPS_AFTER, step):
            yield from (data for _, _, data in rows)
            step = rows[-1][:2]

    def close(self) -> None:
        """Close the database. A later call opens it again. Raises Failure `io_error`."""
        self.journals.clear()
        self._cache.clear()
        self.database.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
