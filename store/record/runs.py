"""The runs of a home: their journals, and the processes that execute them.

At most one living process executes a run. The run's row names its owner, from the entry that begins or opens the run until the
entry that ends, suspends or releases it. If the owner is dead, another process can open the run.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import LoadedRun, RunSummary, Swept
from albert_tools.store.record.clock import text_of
from albert_tools.store.record.entry import chained, decode
from albert_tools.store.record.entry import text_of as entry_text
from albert_tools.store.record.gate import START
from albert_tools.store.record.journal import StepJournal, damaged, not_found, read
from albert_tools.store.record.record import Record
from albert_tools.store.record.steps import Step

RUN = re.compile(r"[0-9a-f]{16}\Z")
_PREFIX = re.compile(r"[0-9a-f]{1,16}\Z")
#: The states of runs that have ended.
_OVER = "('done', 'failed', 'cancelled')"
#: How many runs are deleted in one transaction.
_BATCH = 20
#: How many runs are read at once to list them.
_LISTED = 1000

_OLDER = "SELECT id, state, session, began FROM runs WHERE began < ? ORDER BY began DESC LIMIT ?"
_LINKED = (
    "SELECT entry.n, entry.at, entry.kind, entry.data, entry.hash, before.hash FROM entries entry "
    "LEFT JOIN entries before ON before.n = entry.n - 1 WHERE entry.run = ? AND entry.run <> '' ORDER BY entry.n"
)


class Runs:
    """`RunStore` in a `Record`."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._database = record.database

    def create(self, run_id: str, header: Mapping[str, Any]) -> StepJournal:
        """See `RunStore.create`."""
        _check(run_id)
        user = self._database.user
        header = {**header, "user": user} if user else header
        journal = self._record.journals[run_id] = StepJournal(self._record, run_id, header)
        return journal

    def open(self, run_id: str, needs: str = "") -> StepJournal:
        """See `RunStore.open`."""
        _check(run_id)
        record = self._record
        stored_run = read(self._database, run_id)
        self._check_against_entries(run_id, stored_run.rows)
        last = stored_run.rows[-1]
        with self._opening(run_id):
            owner, *written = self._row(run_id, "owner, seq, hash")
            if self._held(run_id, owner) or written != last.name:
                raise Failure(
                    "io_error",
                    f"another process is executing the run {run_id}",
                    hint="wait for its end, or cancel it",
                    retryable=True,
                )
            journal = record.journals[run_id] = StepJournal(record, run_id, stored_run.header, last)
            data = {"needs": needs} if "queue" in stored_run.header else {}
            record.append("run_opened", {"run": run_id, "owner": record.owner, **data})
        return journal

    def load(self, run_id: str) -> LoadedRun:
        """See `RunStore.load`."""
        if not _PREFIX.match(run_id):
            raise Failure("invalid_arguments", f"{run_id[:80]!r} is neither a run's id nor the beginning of one")
        run_id = run_id if RUN.match(run_id) else self._complete(run_id)
        stored_run = read(self._database, run_id)
        held = self._held(run_id, stored_run.owner)
        if stored_run.owner and not held:
            # Its process can have written the end of the run, and ended itself, since the run was read.
            stored_run = read(self._database, run_id)
            held = self._held(run_id, stored_run.owner)
        cancelled = bool(stored_run.cancelled)
        return LoadedRun(run_id, stored_run.created, stored_run.header, stored_run.entries, held, cancelled)

    def list(self, limit: int, of: Callable[[str], bool] = lambda _: True) -> builtins.list[RunSummary]:
        """See `RunStore.list`."""
        runs: builtins.list[RunSummary] = []
        began = 2**62
        while rows := self._database.rows(_OLDER, (began, _LISTED)):
            runs += (RunSummary(run, state, session) for run, state, session, _ in rows if of(session))
            if len(runs) >= limit:
                break
            began = rows[-1][-1]
        return runs[: max(0, limit)]

    def cancel(self, run_id: str) -> None:
        """See `RunStore.cancel`."""
        _check(run_id)
        self._row(run_id, "id")
        self._record.durable(self._record.append("run_cancelled", {"run": run_id}))

    def cancelled(self, run_id: str) -> bool:
        """See `RunStore.cancelled`."""
        _check(run_id)
        row = self._database.row("SELECT cancelled FROM runs WHERE id=?", (run_id,))
        return row is not None and bool(row[0])

    def sweep(self, older_than_seconds: float) -> Swept:
        """See `RunStore.sweep`."""
        if not older_than_seconds >= 0:
            raise Failure("invalid_arguments", f"{older_than_seconds} is not an age in seconds")
        until = text_of(datetime.now(UTC) - timedelta(seconds=older_than_seconds))
        ended = f"SELECT id FROM runs WHERE changed < ? AND owner='' AND state IN {_OVER} ORDER BY began LIMIT {_BATCH}"
        deleted = 0
        while self._database.rows(ended, (until,)):
            with self._database.transaction():
                runs = [run for (run,) in self._database.rows(ended, (until,))]
                self._record.append("runs_swept", {"runs": runs})
            deleted += len(runs)
        left = self._database.rows("SELECT id FROM runs WHERE changed < ? ORDER BY began", (until,))
        return Swept(deleted, [run for (run,) in left])

    @contextmanager
    def _opening(self, run_id: str) -> Iterator[None]:
        """A transaction that opens a journal. If it or a transaction around it is not committed, the journal is not open."""
        journals = self._record.journals
        before = journals.get(run_id)

        def ended(committed: bool) -> None:
            if not committed and before is None:
                journals.pop(run_id, None)

        with self._record.transaction():
            self._database.at_end(ended)
            yield

    def _row(self, run_id: str, columns: str) -> tuple[Any, ...]:
        row = self._database.row(f"SELECT {columns} FROM runs WHERE id=?", (run_id,))
        if row is None:
            raise not_found(run_id)
        return row

    def _complete(self, prefix: str) -> str:
        rows = self._database.rows(
            "SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 6", (prefix, prefix + "g")
        )
        if not rows:
            raise not_found(prefix)
        if len(rows) > 1:
            some = ", ".join(run for (run,) in rows[:5])
            raise Failure("invalid_arguments", f"several runs begin with {prefix!r}", hint=f"for example {some}")
        return str(rows[0][0])

    def _held(self, run_id: str, owner: str) -> bool:
        """Whether a living process executes the run. This process knows its own journals."""
        if run_id in self._record.journals:
            return True
        return bool(owner) and not self._record.is_own(owner) and self._record.alive(owner)

    def _check_against_entries(self, run_id: str, rows: builtins.list[Step]) -> None:
        """Check that the run's entries are chained, and that the last one that names a row names the last row.

        Retention may have deleted the entries of a run. Then only the row in `runs` vouches for the steps.

        Raises:
            Failure: `damaged`.
        """
        names = {str(row.name): row.seq for row in rows}
        last: int | None = rows[-1].seq
        for n, at, kind, data, digest, before in self._database.rows(_LINKED, (run_id,)):
            before = START.hash if n == 1 else before
            if before is not None and digest != chained(before, entry_text(n, at, kind, data)):
                raise damaged(run_id, f"its entry {n} was changed", n)
            # Most entries name no row, and decoding takes longer than searching.
            if '"steps":[' in data and "steps" in (content := decode(data)):
                last = names.get(str(content["steps"]))
                if last is None:
                    raise damaged(run_id, f"the row that entry {n} names was changed", n)
        if last != rows[-1].seq:
            raise damaged(run_id, f"no entry names row {rows[-1].seq}", rows[-1].seq)


def _check(run_id: str) -> None:
    if not RUN.match(run_id):
        raise Failure("invalid_arguments", f"{run_id[:80]!r} is not a run's id", hint="an id is sixteen hex digits")
