"""Deletes old entries, and leaves a checkpoint in their place.

The state tables depend on all entries, also on deleted ones. So the transaction that deletes the entries up to `n` also appends
a *checkpoint*: the hash of entry `n`, and the rows that the tables had after it, as `Replay` gives them. From then on the chain
begins after entry `n`, and the tables can still be built again. A checkpoint can need several entries, its *parts*.

Rows on which no decision depends are left out (`tables.prune`). Applying the entry of a checkpoint deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.clock import text_of
from albert_tools.store.record.entry import CHECKPOINT
from albert_tools.store.record.record import Record
from albert_tools.store.record.replay import Replay, Wrong, replaying
from albert_tools.store.record.schema import STATE_TABLES
from albert_tools.store.record.snapshot import as_folder
from albert_tools.store.record.sqlite import FILE
from albert_tools.store.record.tables import prune

#: The fewest days for which entries are retained: dedupe keys look back a day.
MIN_DAYS = 1.0
#: The most entries that one transaction deletes. Other processes wait for it.
BATCH = 50_000
#: The bytes of rows after which the next part begins.
_PART_BYTES = 256 * 1024


class Trimmed(NamedTuple):
    """The result of `trim`: how many entries were deleted, and the size of the file before and after, in bytes."""

    entries: int
    before: int
    after: int


def trim(record: Record, until: datetime) -> Trimmed:
    """Delete the entries that are older than `until`, which is at least `MIN_DAYS` ago.

    Raises:
        Failure: `damaged` if an old entry is not valid; `io_error`, `damaged` as `Record.append`. Earlier batches stay deleted.
    """
    database = record.database
    if not database.exists:
        return Trimmed(0, 0, 0)
    before, deleted = database.size(), 0
    (last,) = database.row("SELECT max(n) FROM entries") or (0,)
    while count := _trim_batch(record, text_of(until), last or 0):
        deleted += count
    if deleted:
        database.shrink()
    return Trimmed(deleted, before, database.size())


def _trim_batch(record: Record, until: str, last: int) -> int:
    """Delete at most `BATCH` entries, none after entry `last`. Returns how many were deleted."""
    try:
        with as_folder(record.place, BATCH) as folder, replaying(folder / FILE) as replay:
            count = _count_older(replay, until, min(last, replay.trimmed + BATCH))
            if not count:
                return 0
            replay.walk(replay.trimmed + count)
            parts = list(_parts(replay, until))
    except Wrong as wrong:
        raise Failure(
            "damaged",
            f"nothing is deleted, because the record is not valid: {wrong}",
            hint="see `albert ledger verify`",
            details={"path": record.database.name},
        ) from None
    n, digest = replay.tail
    with record.transaction():
        if record.database.row("SELECT hash FROM entries WHERE n=?", (n,)) != (digest,):
            raise Failure("io_error", "another process deletes old entries at the same time", retryable=True)
        for part in parts:
            record.append(CHECKPOINT, part)
        record.database.execute("DELETE FROM entries WHERE n <= ?", (n,))
    return count


def _count_older(replay: Replay, until: str, last: int) -> int:
    """How many of the entries up to `last` are older than `until`. An entry after a newer one does not count."""
    query = "SELECT n FROM record.entries WHERE n <= ? AND at >= ? ORDER BY n LIMIT 1"
    newer = replay.connection.execute(query, (last, until)).fetchone()
    return (last if newer is None else int(newer[0]) - 1) - replay.trimmed


def _parts(replay: Replay, until: str) -> Iterator[dict[str, Any]]:
    """The data of the checkpoint's entries."""
    n, digest = replay.tail
    prune(replay.connection.execute, Entry("", n, CHECKPOINT, {"last": n, "until": until}))
    parts: list[dict[str, list[Any]]] = [{}]
    size = 0
    for table in STATE_TABLES:
        for row in replay.connection.execute(f"SELECT * FROM main.{table}"):
            length = len(msgspec.json.encode(row))
            if size and size + length > _PART_BYTES:
                parts.append({})
                size = 0
            parts[-1].setdefault(table, []).append(row)
            size += length
    for i, rows in enumerate(parts):
        yield {"last": n, "hash": digest.hex(), "until": until, "part": i + 1, "parts": len(parts), "rows": rows}
