"""The tables of a home on PostgreSQL that are not the record's, on a connection of their own. Commits are synced."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from albert_tools.store.postgres_layout import check, create, find
from albert_tools.store.postgres_server import Link, Server, can_be_stored, ends_connection, failure_of

Row = tuple[Any, ...]

#: Two statements in one message. Another release can have replaced the tables.
_BEGIN = "BEGIN; SELECT format FROM gate"


class HomeTables:
    """The tables of the database with this URL. The first change creates them; before, reading finds nothing.

    Any thread may use them. A forked child makes a connection of its own.
    """

    def __init__(self, url: str) -> None:
        """Raises Failure `invalid_arguments`."""
        self._server = Server(url)
        #: The database, for messages. It has no password.
        self.name = self._server.name
        self._lock = threading.RLock()
        self._link = Link(self._server, self._forget, synchronous_commit="on")
        self._process = os.getpid()
        #: Whether the connection has found the tables.
        self._is_ready = False
        #: The connection inside a transaction of this thread.
        self._inside: psycopg.Connection | None = None

    def _forget(self) -> None:
        self._is_ready = False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._process != os.getpid():
            self._link.abandon()
            self._lock, self._inside, self._is_ready = threading.RLock(), None, False
            self._process = os.getpid()
        with self._lock:
            yield

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query. Raises Failure `io_error`, `damaged`."""

        def read(connection: psycopg.Connection) -> list[Row]:
            self._is_ready = self._is_ready or find(connection, self.name)
            return connection.execute(statement, values, binary=True).fetchall() if self._is_ready else []

        if not all(map(can_be_stored, values)):
            return []
        with self._locked():
            if self._inside is not None:
                return self._inside.execute(statement, values, binary=True).fetchall()
            return self._link.retried(read)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """All that the block executes is committed at its end and survives a crash, or nothing. Raises as `rows`.

        A nested block is a part of the outer one.
        """

        def begin(connection: psycopg.Connection) -> psycopg.Connection:
            if not self._is_ready:
                create(connection, self.name)
                self._is_ready = True
            cursor = connection.execute(_BEGIN, prepare=False)
            cursor.nextset()
            (layout,) = cursor.fetchone() or (None,)
            check(layout, self.name)
            return connection

        with self._locked():
            if self._inside is not None:
                try:
                    yield self._inside
                except psycopg.Error as error:
                    raise failure_of(error, self._server) from error
                return
            self._inside = connection = self._link.retried(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                if isinstance(error, psycopg.Error):
                    if ends_connection(error, connection):
                        self._link.drop()
                    raise failure_of(error, self._server) from error
                raise
            finally:
                self._inside = None

    def close(self) -> None:
        """Close the connection. The next use makes another one."""
        with self._locked():
            self._link.drop()
