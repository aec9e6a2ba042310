"""The small files of a home in PostgreSQL: rows of the table `files`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from albert_tools.engine.model.home_file import Stamp
from albert_tools.store.home_tables import HomeTables

#: Seconds after which a process asks again what others have changed. Each call needs the stamps of the mode and the rules.
FRESH_SECONDS = 0.1

_WRITE = """
INSERT INTO files VALUES (%s, %s, 1) ON CONFLICT (name) DO UPDATE SET content = EXCLUDED.content, changed = files.changed + 1
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))"


class PostgresFiles:
    """The files of a home. `clock` returns seconds."""

    def __init__(self, tables: HomeTables, clock: Callable[[], float] = time.monotonic) -> None:
        self.tables = tables
        self._clock = clock
        self._known: dict[str, int] = {}
        self._until = float("-inf")

    def changes(self) -> dict[str, int]:
        """How often each file was written, as of `FRESH_SECONDS` ago or later. Raises Failure `io_error`."""
        now = self._clock()
        if now >= self._until:
            self._known = dict(self.tables.rows("SELECT name, changed FROM files"))
            self._until = now + FRESH_SECONDS
        return self._known

    def forget(self) -> None:
        """Ask the server the next time."""
        self._until = float("-inf")


class PostgresFile:
    """A `HomeFile` in a database."""

    def __init__(self, files: PostgresFiles, name: str) -> None:
        self._files, self._name = files, name

    def __str__(self) -> str:
        return f"{self._name} in {self._files.tables.name}"

    def stamp(self) -> Stamp | None:
        """See `HomeFile`."""
        changed = self._files.changes().get(self._name)
        return None if changed is None else (changed, 0, 0, 0)

    def read(self) -> bytes | None:
        """See `HomeFile`."""
        for (content,) in self._files.tables.rows("SELECT content FROM files WHERE name = %s", (self._name,)):
            return bytes(content)
        return None

    def write(self, content: bytes) -> None:
        """See `HomeFile`."""
        with self._files.tables.transaction() as connection:
            connection.execute(_WRITE, (self._name, content))
        self._files.forget()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See `HomeFile`. What is written inside is committed at the end of the block."""
        with self._files.tables.transaction() as connection:
            connection.execute(_LOCK, (self._name,))
            try:
                self._files.forget()
                yield
            finally:
                self._files.forget()  # What was seen inside may not be committed.
