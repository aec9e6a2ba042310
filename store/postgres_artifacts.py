"""The artifact store in PostgreSQL. A record is a row of the table `artifacts`."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.model.protocols import ContentStore
from albert_tools.store.artifacts import StoredArtifacts
from albert_tools.store.home_tables import HomeTables

#: Few at once, because a record can have a megabyte.
_AFTER = "SELECT name, record FROM artifacts WHERE name > %s ORDER BY name LIMIT 50"


class PostgresArtifacts(StoredArtifacts):
    """The artifacts in a database."""

    def __init__(self, tables: HomeTables, contents: ContentStore) -> None:
        super().__init__(contents)
        self._tables = tables

    def texts(self) -> Iterator[str]:
        """See `StoredArtifacts`."""
        last = ""
        while rows := self._tables.rows(_AFTER, (last,)):
            yield from (record.decode("utf-8", "replace") for _, record in rows)
            last = rows[-1][0]

    def _get(self, name: str) -> bytes | None:
        for (record,) in self._tables.rows("SELECT record FROM artifacts WHERE name = %s", (name,)):
            return bytes(record)
        return None

    def _add(self, name: str, record: bytes) -> bytes | None:
        statement = "INSERT INTO artifacts VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING 1"
        with self._tables.transaction() as connection:
            is_new = connection.execute(statement, (name, record)).fetchone() is not None
        return None if is_new else self._get(name)

    def _place(self, name: str) -> str:
        return f"{self._tables.name}, the row {name} of the table artifacts"
