"""The record in a PostgreSQL database, which processes on several machines use.

The row of the table `gate` is locked by the one process that writes, and names the last entry. The server ends a transaction whose
process stands still. Commits are not synced, so the gate is open during a sync; `PostgresDurability` syncs them.

A connection has an *owner*, an advisory lock. With the connection, a process loses its owner and the gate at once. So what another
process has taken over from it stays taken. A process whose connection is lost makes a new one with a new owner, and can't go on
with its runs (`Database.connection_number`).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from albert_tools.engine.authority.reviews import BY_RULES
from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_layout import FIND, check, create, damaged, find
from albert_tools.store.postgres_roles import KINDS, SIGNED, Login, login
from albert_tools.store.postgres_server import Link, Server, can_be_stored, ends_connection, failure_of
from albert_tools.store.record.database import Database, Row, unfinished
from albert_tools.store.record.durability import lost
from albert_tools.store.record.gate import START, Tail
from albert_tools.store.record.owner import check_owner
from albert_tools.store.record.postgres_durability import FIRST_FROM, PostgresDurability, has_kept
from albert_tools.store.record.read_ahead import Found, Query, ReadAhead
from albert_tools.store.record.schema import ALL_TABLES
from albert_tools.store.record.turn import Turn

_FORMAT = "SELECT format, n, hash FROM gate"
_BEGIN, _GATE = "BEGIN ISOLATION LEVEL READ COMMITTED", f"{_FORMAT} FOR UPDATE"
_SAVE, _UNDO = "SAVEPOINT block", "ROLLBACK TO SAVEPOINT block"
_LEAVE = "UPDATE gate SET n = ?, hash = ?"
_OWN = "SELECT pg_advisory_lock(?)"
_HOLDS = (
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint = ? AND objid::bigint = ? AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_OWNED, _EVICT = f"SELECT 1 {_HOLDS}", f"SELECT pg_terminate_backend(pid) {_HOLDS}"
_SIZE = f"SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = ({FIND})"

_T = TypeVar("_T")


@dataclass
class _Shared:
    """A block of `together`, why it has failed, the last entry after it, and the connection on which it was committed."""

    about: Hashable
    block: Callable[[], None]
    ended: Callable[[bool], None]
    error: Exception | None = None
    n: int = 0
    connection_number: int = 0


class _Statement(NamedTuple):
    """A statement with PostgreSQL's placeholders, whether it returns rows, and the tables that it names."""

    text: str
    reads: bool
    tables: frozenset[str]


_TABLE = re.compile(rf"\b(?:{'|'.join(ALL_TABLES)})\b")
_statements: dict[str, _Statement] = {}


def _statement(text: str) -> _Statement:
    statement = _statements.get(text)
    if statement is None:
        ours = text.replace("%", "%%").replace("?", "%s")
        tables = frozenset(_TABLE.findall(text))
        statement = _statements[text] = _Statement(ours, text.lstrip().startswith("SELECT"), tables)
    return statement


def _tables(text: str) -> frozenset[str]:
    return _statement(text).tables


class PostgresDatabase(Database):
    """The database with this URL, as libpq reads it. The user needs the right to create a schema only the first time."""

    names_users = True
    gathers = True

    def __init__(self, url: str) -> None:
        """Raises Failure `invalid_arguments`."""
        self._server = Server(url)
        super().__init__(self._server.name)
        self._link = Link(self._server, self._lost, synchronous_commit="off")
        #: Whether the connection has found the tables.
        self._is_ready = False
        self._owner = ""
        #: The user of the connection, once the tables are found. Who creates them owns them.
        self._login: Login | None = None
        #: The last entry that this process has seen, and the one at the beginning of the present transaction.
        self.committed = self._before = START
        #: Whether a message of the present transaction has failed, and the statements that the server has not got yet.
        self._is_lost = False
        self._buffer: list[Query] = []
        #: The answers of the present transaction, and those of what the event loop's tasks do next.
        self._ahead = ReadAhead(_tables)
        self._looked = ReadAhead(_tables)
        self._blocks = Turn(self._share)
        #: Where the statements of the present block begin in `_buffer`; -1 without a block, or if the server has got a part of it.
        self._mark = -1
        self._looks = Turn(self._look, self._end_look)
        #: The thread of these tasks.
        self._looking = 0
        self.durability: PostgresDurability = PostgresDurability(
            self._server, lambda: self.committed, lambda: self.connection_number
        )

    # Opening

    @property
    def exists(self) -> bool:
        """See `Database`."""
        with self._threads:
            return self._is_ready or self._retried(self._find)

    def _find(self, connection: psycopg.Connection) -> bool:
        """Find the tables, and check that they have the entry that the gate names, and all that was synced.

        A crash of the server loses the last commits, if they were not synced.
        """
        is_ready = find(connection, self.name)
        tail = self._checked(connection.execute(_FORMAT).fetchone()) if is_ready else START
        for known in (tail, self.durability.synced):
            if known.n and not (is_ready and self._has(connection, known)):
                raise self._cut_off(known)
        self.committed, self._is_ready = tail, is_ready
        self._login = login(connection) if is_ready else None
        return is_ready

    def _has(self, connection: psycopg.Connection, known: Tail) -> bool:
        return has_kept(connection.execute(FIRST_FROM, (known.n,)).fetchone(), known)

    def _checked(self, row: Row | None) -> Tail:
        """The end of the chain by the row of the gate."""
        layout, n, digest = row or (None, 0, b"")
        check(layout, self.name)
        return Tail(n, digest)

    def _cut_off(self, known: Tail) -> Failure:
        problem = f"the record {self.name} has lost entry {known.n}: it was cut off or replaced"
        return damaged(problem, self.name, n=known.n)

    def _lost(self) -> None:
        """The connection is given up, with all that belongs to it."""
        self.connection_number += 1
        self._is_ready, self._owner = False, ""

    def _retried(self, use: Callable[[psycopg.Connection], _T]) -> _T:
        """As `Link.retried`. A forked child of a process that uses the record makes no new connection."""
        if self._link.connection is None and self.durability.broken is not None:
            raise self.durability.broken.copy()
        return self._link.retried(use)

    # Roles

    @property
    def user(self) -> str:
        """See `Database`."""
        return self._login.name if self.exists and self._login is not None and not self._login.is_owner else ""

    def may(self, kind: str) -> bool:
        """See `Database`."""
        return not self.user or self._login is None or self._login.has(KINDS[kind])

    def signed(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Database`."""
        if kind not in SIGNED or not self.user:
            return data
        by_rules = kind == "review" and data.get("by") == BY_RULES
        return {**data, "user" if by_rules else SIGNED[kind]: self.user}

    # Transactions

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """See `Database`. What returns nothing is buffered until the next SELECT or the end, to save round trips."""
        if not all(map(can_be_stored, values)):  # On the server, it would end the transaction for all blocks.
            self._failed = Failure("io_error", f"the database {self.name} can't store a text with NUL")
            raise self._failed
        if _statement(statement).reads:
            return self._ahead.read((statement, tuple(values)), self._send)
        self._ahead.changed(statement, values)
        self._buffer.append((statement, tuple(values)))
        return None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """See `Database`."""
        if not all(map(can_be_stored, values)):
            return []
        with self._threads:
            if self._depth:
                rows: list[Row] = self.execute(statement, values).fetchall()
                return rows
            if self._looking == threading.get_ident():
                return self._looked.read((statement, tuple(values)), self._ask).fetchall()
            return self._ask([(statement, tuple(values))])[0]

    def _ask(self, queries: list[Query]) -> list[Found]:
        """The answers outside of a transaction, in one message."""

        def ask(connection: psycopg.Connection) -> list[Found]:
            return (
                self._execute(connection, queries)
                if self._is_ready or self._find(connection)
                else [Found()] * len(queries)
            )

        return self._retried(ask)

    async def expect(self, about: Hashable) -> None:
        """See `Database`. All tasks that are ready now read in one message.

        What they read holds until each of them has gone on once. Nothing that another process does meanwhile can have reached them.
        """
        await self._looks.join(about)
        self._looked.start(about)

    def _look(self, abouts: list[Hashable]) -> None:
        with self._threads:
            self._looked.forget()
            if queries := self._looked.likely(abouts):
                with suppress(Failure):  # Who needs an answer asks again.
                    self._looked.add(queries, self._ask(queries))
        self._looking = threading.get_ident()

    def _end_look(self) -> None:
        self._looking = 0
        self._looked.start(None)

    async def together(self, about: Hashable, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """See `Database`."""
        shared = _Shared(about, block, ended)
        await self._blocks.join(shared)
        if shared.error is not None:
            raise shared.error
        if shared.connection_number != self.connection_number:
            raise lost(shared.n)  # `wait_async` only knows whether the connection is lost from now on.

    def _share(self, blocks: list[_Shared]) -> None:
        """One transaction for all blocks."""
        try:
            with self.transaction(*(shared.about for shared in blocks)):
                for shared in blocks:
                    self._take_in(shared)
            for shared in blocks:
                shared.connection_number = self.connection_number
        except BaseException as error:
            for shared in blocks:
                shared.error = shared.error or (error.copy() if isinstance(error, Failure) else unfinished(error))
            if not isinstance(error, Exception):
                raise

    def _take_in(self, shared: _Shared) -> None:
        """Call a block. If it fails, undo what it has done, so that the others can go on."""
        self._ahead.start(shared.about)
        self._mark, tail, before = len(self._buffer), self.tail, len(self._at_end)
        self.at_end(shared.ended)
        try:
            shared.block()
            if self._failed is not None:
                raise self._failed.copy()
            shared.n = self.tail.n
        except Exception as error:
            if self._is_lost:
                raise
            shared.error, self._failed, self.tail = error, None, tail
            if self._mark < 0:
                self._buffer = [(_UNDO, ())]
                self._ahead.forget()
            else:
                del self._buffer[self._mark :]
            undone, self._at_end = self._at_end[before:], self._at_end[:before]
            for call in undone:
                call(False)

    def _begin(self, abouts: tuple[Hashable, ...]) -> None:
        self._buffer, self._mark, self._is_lost = [], -1, False
        self._looked.forget()
        self._ahead.start(abouts[0] if abouts else None)
        queries = self._ahead.likely(abouts)
        self.tail = self._before = self._retried(lambda connection: self._enter(connection, queries))

    def _enter(self, connection: psycopg.Connection, queries: Sequence[Query] = ()) -> Tail:
        """Begin, lock the gate and read its row, with the answers to the queries, in one message."""
        if not (self._is_ready or self._find(connection)):
            create(connection, self.name)
            self._is_ready = True
        gate, *answers = self._execute(connection, [(_BEGIN, ()), (_GATE, ()), *queries])
        tail = self._checked(gate.fetchone())
        if tail.n < self.committed.n or (tail.n == self.committed.n and tail != self.committed):
            raise self._cut_off(self.committed)
        self._ahead.add(queries, answers)
        return tail

    def _execute(self, connection: psycopg.Connection, statements: Sequence[Query]) -> list[Found]:
        """Execute statements in one message. Returns the rows of each that has any. Raises psycopg.Error."""
        if len(statements) == 1:
            ((statement, values),) = statements
            cursor = connection.execute(_statement(statement).text, values)
        else:
            # The server takes several statements in one message only with their values in the text.
            literal = psycopg.ClientCursor(connection).mogrify
            texts = (literal(_statement(statement).text, values) for statement, values in statements)
            cursor = connection.execute("; ".join(texts), prepare=False)
        return [Found(each.fetchall()) for each in cursor.results() if each.description is not None]

    def _send(self, queries: list[Query]) -> list[Found]:
        """Execute what is buffered, and the queries, in one message."""
        if self._mark >= 0 and queries:
            if len(self._buffer) > self._mark:
                self._buffer.insert(self._mark, (_SAVE, ()))
                self._mark = -1
            else:
                self._mark = 0
        connection, statements = self._link.connection, [*self._buffer, *queries]
        assert connection is not None, "only inside a transaction"
        self._buffer = []
        try:
            return self._execute(connection, statements)
        except psycopg.Error as error:
            if ends_connection(error, connection):
                connection.close()
            self._is_lost, self._failed = True, failure_of(error, self._server)
            raise self._failed from error

    def _commit(self) -> None:
        if self.tail != self._before:
            self._buffer.append((_LEAVE, (self.tail.n, self.tail.hash)))
        self._buffer.append(("COMMIT", ()))
        try:
            self._send([])
        except Failure as failure:
            if not self._was_committed(failure):
                raise
        self.committed = self.tail

    def _was_committed(self, failure: Failure) -> bool:
        """Whether the server had committed before the connection was lost. Raises Failure if nobody can know."""
        connection = self._link.connection
        if connection is None or not connection.closed or self.tail == self._before:
            return False
        try:
            self._retried(self._enter)  # This waits until the server has ended the transaction.
        except Failure as error:
            unknown = f"{failure.message}; whether the change was recorded is unknown"
            raise failure.copy(message=unknown) from error
        assert self._link.connection is not None
        return self._has(self._link.connection, self.tail)

    def _leave(self, committed: bool) -> None:
        self._ahead.start(None)
        self._ahead.forget()
        connection = self._link.connection
        if connection is None:
            return
        with suppress(psycopg.Error):
            if connection.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                connection.execute("ROLLBACK")
        # A connection in any other state is replaced at the next use.

    # Owners

    @property
    def owners(self) -> PostgresDatabase:
        """See `Database`."""
        return self

    def own(self) -> str:
        """See `OwnerTable`."""
        with self._threads:
            if not self._owner:
                owner = os.urandom(8).hex()
                self._locks(_OWN, int.from_bytes(bytes.fromhex(owner), "big", signed=True))
                self._owner = owner
            return self._owner

    def is_own(self, owner: str) -> bool:
        """See `OwnerTable`."""
        return owner == self._owner != ""

    def alive(self, owner: str) -> bool:
        """See `OwnerTable`."""
        check_owner(owner)
        return self.is_own(owner) or bool(self._locks(_OWNED, int(owner[:8], 16), int(owner[8:], 16)))

    def evict(self, owner: str) -> bool:
        """See `OwnerTable`. The user needs the right to end the connection of the other one."""
        check_owner(owner)
        ended = self._locks(_EVICT, int(owner[:8], 16), int(owner[8:], 16))
        return bool(ended) and all(row[0] for row in ended)

    def _locks(self, statement: str, *values: int) -> list[Row]:
        """The rows of a query that needs no tables."""
        with self._threads:
            if self._depth:
                return self.rows(statement, values)
            return self._retried(lambda connection: connection.execute(_statement(statement).text, values).fetchall())

    # Space, and the end

    def size(self) -> int:
        """See `Database`."""
        row = self.row(_SIZE)
        return int(row[0]) if row else 0

    def shrink(self) -> None:
        """See `Database`. The server uses the space again, for what is written later."""
        with self._threads:
            self._retried(lambda connection: connection.execute("VACUUM entries"))

    def close(self) -> None:
        """See `Database`."""
        with self._threads:
            self.durability.close()
            self._link.drop()

    def _abandon(self) -> bool:
        return any([self._link.abandon(), self.durability.link.abandon()])
