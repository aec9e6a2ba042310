"""What a record needs of its database, and what its databases share: transactions that nest, and the end of a forked child.

All SQL of the record is written once, in the dialect that SQLite and PostgreSQL share, with `?` for values. Inside a transaction,
this thread is the only writer of the home.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, Protocol

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.durability import Durability
from albert_tools.store.record.gate import START

Row = tuple[Any, ...]


class OwnerTable(Protocol):
    """The processes that use the record (`owner.Owners`, `postgres.PostgresDatabase`)."""

    def own(self) -> str:
        """The id of this process's owner: 16 hex digits. Raises Failure `io_error`."""

    def is_own(self, owner: str) -> bool:
        """Whether this process is the owner."""

    def alive(self, owner: str) -> bool:
        """Whether the process of an owner uses the record. Raises Failure `invalid_arguments`, `io_error`."""

    def evict(self, owner: str) -> bool:
        """End the connection of an owner to the record. Returns whether that is possible. Raises as `alive`."""


class Database(ABC):
    """A database that any thread may use. A forked child must not: it has to execute a new program first.

    Raises, in every method but `at_end`:
        Failure: `io_error` if the database can't be used (retryable if another process keeps it locked), `damaged` if it is not
            what this home has written.
    """

    durability: Durability
    #: Changes with each new connection to a server. With the old one, this process has lost what it owned, so a run that was opened
    #: before must not go on.
    connection_number = 0
    #: Whether definitions name the database's user.
    names_users = False
    #: See `Ledger.gathers`.
    gathers = False
    #: When reading an SQLite file fails, in seconds of `time.monotonic`. Set one before the first use for a file of somebody else,
    #: because a hostile file can keep a query busy for ever.
    deadline = math.inf

    def __init__(self, name: str) -> None:
        """`name` is for messages."""
        self.name = name
        self._threads = threading.RLock()
        #: How many `transaction` blocks the thread with the lock is inside of.
        self._depth = 0
        self._failed: Failure | None = None
        self._at_end: list[Callable[[bool], None]] = []
        #: The end of the chain, inside a transaction.
        self.tail = START
        _databases.add(self)

    def transaction(self, *abouts: Hashable) -> AbstractContextManager[None]:
        """All of the block is committed at its end, or nothing if an exception leaves the block.

        `abouts` are as for `expect`.

        The code inside takes microseconds. It never awaits and never waits for the disk. A nested block is a part of the outer one:
        if an exception leaves it, nothing of the outer one is committed. If a server is lost during the commit, nobody may know
        whether it was committed; then the failure says so.
        """
        return _Block(self, abouts)

    def _enter_block(self, abouts: tuple[Hashable, ...]) -> None:
        if not self._depth:
            try:
                self._begin(abouts)
            except BaseException:
                self._end(committed=False)
                raise
        self._depth += 1

    def _leave_block(self, error: BaseException | None) -> None:
        if self._depth > 1:
            self._depth -= 1
            if error is not None and self._failed is None:
                # The block may have made a part of its changes. A caller that catches the exception must not commit them.
                self._failed = error if isinstance(error, Failure) else unfinished(error)
            return
        committed = False
        try:
            if error is None:
                if self._failed is not None:
                    raise self._failed.copy()
                self._commit()
                committed = True
        finally:
            self._end(committed)

    def _end(self, committed: bool) -> None:
        self._depth = 0
        self._failed = None
        self._leave(committed)
        if self._at_end:
            ended, self._at_end = self._at_end, []
            for call in ended:
                call(committed)

    @abstractmethod
    async def expect(self, about: Hashable) -> None:
        """The task will read what tasks with an equal `about` have read. On a server, it is read in one message."""

    @abstractmethod
    async def together(self, about: Hashable, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """See `Ledger.together`."""

    def at_end(self, call: Callable[[bool], None]) -> None:
        """Call `call` when the present transaction has ended. Its argument says whether the transaction was committed."""
        self._at_end.append(call)

    def version(self) -> int | None:
        """A number that is the same as long as no other process has written; None if only a query can tell.

        What a process wrote that died at the same moment is noticed in the next transaction.
        """
        return None

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement inside a transaction, which can't be committed if it fails. Returns a cursor for a SELECT."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query. Outside of a transaction, it reads what was committed last. A missing database has no rows."""

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row of a query, or None."""
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    @property
    @abstractmethod
    def owners(self) -> OwnerTable:
        """The processes that use the record."""

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether the tables exist. Readers use it, so that reading creates nothing."""

    @property
    def user(self) -> str:
        """The user whose name the database requires in decisions; empty if it requires none."""
        return ""

    def may(self, kind: str) -> bool:
        """Whether this user may append entries of a kind. Only a database with roles of its own refuses one."""
        return True

    def signed(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data of an entry, inside a transaction. If a decision must name the database's user, it does."""
        return data

    @abstractmethod
    def size(self) -> int:
        """The bytes that an existing database takes."""

    @abstractmethod
    def shrink(self) -> None:
        """Give the space of deleted rows free, so that others can write in between. Call it outside of a transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the database. This process counts as dead. A later transaction opens the database again."""

    @abstractmethod
    def _begin(self, abouts: tuple[Hashable, ...]) -> None:
        """Wait until no other process is inside, begin, and set `tail`."""

    @abstractmethod
    def _commit(self) -> None:
        """Commit."""

    @abstractmethod
    def _leave(self, committed: bool) -> None:
        """Roll back what was not committed, and let others enter. Also called if `_begin` has failed. Raises nothing."""

    @abstractmethod
    def _abandon(self) -> bool:
        """In a forked child: forget what the parent has open, without closing it. Returns whether it had anything open."""

    def _forked(self) -> None:
        if self._abandon():
            self.durability.broken = Failure(
                "io_error",
                f"a forked child of the process that uses the record {self.name} can't use it",
                hint="open the service after the fork, or start a new program",
            )
        self._threads = threading.RLock()
        self._depth, self._at_end = 0, []


class _Block(AbstractContextManager[None]):
    """A block of `Database.transaction`. A generator would take three times as long.

    An interrupt (`KeyboardInterrupt`) can come between any two steps, also before `__exit__` has done anything.
    """

    __slots__ = ("_abouts", "_database", "_depth")

    def __init__(self, database: Database, abouts: tuple[Hashable, ...]) -> None:
        self._database = database
        self._abouts = abouts
        #: The depth inside of the block; 0 outside.
        self._depth = 0

    def __enter__(self) -> None:
        self._database._threads.acquire()
        before = self._database._depth
        try:
            self._database._enter_block(self._abouts)
            self._depth = before + 1
        except BaseException as error:
            try:
                if self._database._depth > before:
                    self._database._leave_block(error)
            finally:
                self._database._threads.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._database._leave_block(error)
        except BaseException as interrupt:
            if self._database._depth == self._depth:
                # It had not left the block yet.
                self._database._leave_block(interrupt)
            raise
        finally:
            self._depth = 0
            self._database._threads.release()

    def __del__(self) -> None:
        if self._depth:
            # An interrupt has come before `__exit__`.
            with suppress(BaseException):
                self.__exit__(None, InterruptedError(), None)


def unfinished(error: BaseException) -> Failure:
    """The failure of a transaction in which an exception was raised."""
    return Failure("io_error", f"a change of the record failed, so nothing was written: {type(error).__name__}")


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _after_fork() -> None:
    for database in list(_databases):
        database._forked()


os.register_at_fork(after_in_child=_after_fork)
