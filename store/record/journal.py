"""The open journal of a run.

`append` only buffers, because a step that only reads can be made again after a crash. The transaction of the run's next entry
writes the buffer, so what is known of a step (that it has read private data, for example) is written with it. If there is a buffer,
`flush` appends an entry for this purpose.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_VALUE_DEPTH
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import chained, decode, encode
from albert_tools.store.record.record import Record
from albert_tools.store.record.steps import START, Step, first_wrong

#: The most bytes of a step's JSON. Larger arguments and outputs are moved to the content store.
MAX_BYTES = 16 * 1024 * 1024
#: The most levels of nesting of a step: a value of a program, and what is around it.
MAX_DEPTH = MAX_VALUE_DEPTH + 24

_INSERT = "INSERT INTO steps(run, seq, data, hash) VALUES (?, ?, ?, ?)"
#: One statement, so that it reads one state of both tables.
_READ = (
    "SELECT created, owner, cancelled, runs.seq, runs.hash, steps.seq, data, steps.hash FROM runs "
    "LEFT JOIN steps ON steps.run = runs.id WHERE runs.id = ? ORDER BY steps.seq"
)


class StepJournal:
    """`Journal` in a `Record`, as `Runs` opens it. `last` is the run's last row; without it, the journal is new."""

    def __init__(self, record: Record, run: str, header: Mapping[str, Any], last: Step | None = None) -> None:
        """Raises Failure `not_json`, `too_large`."""
        self.id = run
        self.header = dict(header)
        self._record = record
        #: `Database.connection_number` in the transaction that has begun or opened the run.
        self._connection_number = record.database.connection_number
        self._lock = threading.Lock()
        #: The rows that are not committed, and how many of them the present transaction has inserted.
        self._rows: list[Step] = []
        self._inserted = 0
        #: The number of the last entry that wrote rows, and of the last one that was committed.
        self._entry = self._written = 0
        self._last = last
        #: Whether the run's beginning was committed, and whether the present transaction contains it.
        self._exists, self._begins = last is not None, False
        if last is None:
            self._add(encode(header, f"the header of run {run}", MAX_BYTES, MAX_DEPTH, sort=False))

    def entries(self) -> list[dict[str, Any]]:
        """See `Journal.entries`."""
        self.flush()
        return read(self._record.database, self.id).entries

    def append(self, entry: Mapping[str, Any], most: int | None = None) -> None:
        """See `Journal.append`."""
        data = encode(entry, f"a step of run {self.id}", most or MAX_BYTES, MAX_DEPTH, sort=False)
        self._demand_open()
        with self._lock:
            self._add(data)

    def flush(self) -> None:
        """See `Journal.flush`."""
        self._demand_open()
        if not self._rows:
            return
        with self._record.transaction():
            if self.new_rows():
                self._record.append("steps", {"run": self.id})

    async def sync(self) -> None:
        """See `Journal.sync`."""
        self.flush()
        await self._record.adurable(self._written)

    def close(self) -> None:
        """See `Journal.close`."""
        record = self._record
        if record.journals.get(self.id) is not self:
            return
        try:
            # While this process lives, no other process changes the owner.
            if self._exists and (
                self._rows or record.database.row("SELECT owner FROM runs WHERE id=?", (self.id,)) == (record.owner,)
            ):
                record.append("steps", {"run": self.id, "released": True})
        finally:
            record.journals.pop(self.id, None)

    def beginning(self) -> dict[str, Any] | None:
        """See `OpenJournal.beginning`."""
        if self._exists:
            self._demand_connection()
        if self._exists or self._begins:
            return None
        self._begins = True
        facts = {name: self.header[name] for name in ("tool", "version", "trace") if self.header.get(name)}
        return {"run": self.id, "state": "begun", **facts, "owner": self._record.owner}

    def new_rows(self) -> list[Step]:
        """See `OpenJournal.new_rows`."""
        with self._lock:
            return self._rows[self._inserted :]

    def insert(self, rows: list[Step], n: int) -> None:
        """See `OpenJournal.insert`."""
        database = self._record.database
        if not self._inserted:
            database.at_end(self._ended)
        if not self._exists:
            self._connection_number = database.connection_number
        for row in rows:
            database.execute(_INSERT, (self.id, *row))
            self._inserted += 1
        self._entry = n

    def _ended(self, committed: bool) -> None:
        with self._lock:
            if committed:
                del self._rows[: self._inserted]
                self._exists = True
                self._written = self._entry
            self._inserted, self._begins = 0, False

    def _add(self, data: str) -> None:
        before = self._last
        self._last = (
            Step(before.seq + 1, data, chained(before.hash, data)) if before else Step(0, data, chained(START, data))
        )
        self._rows.append(self._last)

    def _demand_open(self) -> None:
        if self._record.journals.get(self.id) is not self:
            raise Failure("io_error", f"the journal of run {self.id} is closed")

    def _demand_connection(self) -> None:
        if self._connection_number != self._record.database.connection_number:
            raise Failure(
                "io_error",
                f"this process has lost the run {self.id} with its connection to the record",
                hint=f"see `albert runs show {self.id}`; if no other process goes on with it, resume it",
            )


class StoredRun(NamedTuple):
    """A run as it is stored: its row in `runs`, the header, the entries, and all rows of the journal."""

    created: str
    owner: str
    cancelled: int
    header: dict[str, Any]
    entries: list[dict[str, Any]]
    rows: list[Step]


def read(database: Database, run: str) -> StoredRun:
    """Read a run. Each row is verified against the row before, and the last one against the table `runs`.

    Raises:
        Failure: `not_found`; `damaged`, naming the first row that differs; `io_error`.
    """
    stored_rows = database.rows(_READ, (run,))
    if not stored_rows:
        raise not_found(run)
    created, owner, cancelled, *last = stored_rows[0][:5]
    rows = [Step(*row[5:]) for row in stored_rows if row[5] is not None]
    wrong = first_wrong(rows, last)
    if wrong is not None:
        raise damaged(run, wrong[1], wrong[0])
    contents = []
    for row in rows:
        try:
            contents.append(decode(row.data))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise damaged(run, f"row {row.seq} can't be read: {error}", row.seq) from error
    return StoredRun(created, owner, cancelled, contents[0], contents[1:], rows)


def not_found(run: str) -> Failure:
    """The failure of a run that does not exist."""
    return Failure("not_found", f"there is no run {run}", hint="it never started here, or was deleted")


def damaged(run: str, problem: str, row: int) -> Failure:
    """The failure of a journal that is not what was written."""
    return Failure(
        "damaged",
        f"the journal of run {run} is damaged: {problem}",
        hint="the run can't be resumed: check `albert ledger verify`, and run the tool again",
        details={"run": run, "n": row},
    )
