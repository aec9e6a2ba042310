"""The content store in PostgreSQL. A value is a row of the table `contents`, and its age is by the server's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from albert_tools.engine.model.failure import Failure
from albert_tools.store.contents.stored_contents import BLOCK, Collected, StoredContents, not_found, parts_of, ref_of
from albert_tools.store.home_tables import HomeTables

#: The most bytes of a value. It is more than a file that a tool may write. A larger one would occupy the connection for long.
MAX_BYTES = 128 * 1024 * 1024

# An equal content is not written again.
_PUT = """
INSERT INTO contents VALUES (%s, clock_timestamp(), %s) ON CONFLICT (ref) DO UPDATE SET stored = EXCLUDED.stored,
content = CASE WHEN contents.content = EXCLUDED.content THEN contents.content ELSE EXCLUDED.content END
"""
_PART = "SELECT substr(content, %s, %s) FROM contents WHERE ref = %s"
_SIZE = "SELECT octet_length(content) FROM contents WHERE ref = %s"
_TOUCH = "UPDATE contents SET stored = clock_timestamp() WHERE ref = %s RETURNING octet_length(content)"
_OLD = "stored < clock_timestamp() - make_interval(secs => %s)"
_ALL = f"SELECT ref, {_OLD} FROM contents ORDER BY ref"
_DELETE = f"DELETE FROM contents WHERE ref = %s AND {_OLD} RETURNING octet_length(content)"


class PostgresContents(StoredContents):
    """The values in a database."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables

    def put(self, content: bytes) -> str:
        """See `ContentStore`. Raises Failure `too_large`, too."""
        if len(content) > MAX_BYTES:
            raise Failure("too_large", f"a value in a database has at most {MAX_BYTES:,} bytes")
        ref = ref_of(content)
        with self._tables.transaction() as connection:
            connection.execute(_PUT, (ref, content))
        return ref

    def size(self, ref: str) -> int:
        """See `ContentStore`."""
        parts_of(ref)
        for (size,) in self._tables.rows(_SIZE, (ref,)):
            return int(size)
        raise not_found(ref)

    def _blocks(self, ref: str) -> Iterator[bytes]:
        for start in range(0, self.size(ref) + 1, BLOCK):
            (row,) = self._tables.rows(_PART, (start + 1, BLOCK, ref)) or [(None,)]
            if row[0] is None:
                raise not_found(ref)
            yield row[0]

    def _touch(self, ref: str) -> int | None:
        with self._tables.transaction() as connection:
            row = connection.execute(_TOUCH, (ref,)).fetchone()
        return None if row is None else int(row[0])

    def _collect(self, keep: Callable[[str], bool], older_than_seconds: float) -> Collected:
        rows = self._tables.rows(_ALL, (older_than_seconds,))
        taken = []
        for ref, is_old in rows:
            if is_old and not keep(ref):
                # Only if it was not stored again meanwhile.
                with self._tables.transaction() as connection:
                    taken += connection.execute(_DELETE, (ref, older_than_seconds)).fetchall()
        return Collected(len(taken), sum(size for (size,) in taken), len(rows) - len(taken))

    def _place(self, ref: str) -> str:
        return f"{self._tables.name}, the row {ref} of the table contents"
