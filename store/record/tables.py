"""Which tables an entry changes.

`append` applies each entry in the transaction that appends it, and `verify` applies all entries again to empty tables. So the same
entries always give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record import (
    approvals,
    queue_table,
    repeats,
    reviews,
    run_tables,
    schedule_table,
    sessions,
    uses,
)
from albert_tools.store.record.apply import Apply, Execute
from albert_tools.store.record.entry import CHECKPOINT


def prune(execute: Execute, entry: Entry) -> None:
    """Apply a checkpoint: delete the rows of deleted entries on which no decision depends any more.

    The checkpoint's own rows lack them too, and `verify` applies the entries after `last` to its rows. So a later entry must not
    depend on a deleted row.
    """
    approvals.prune(execute, entry.data["last"])
    sessions.prune(execute, entry.data["until"])
    repeats.prune(execute, entry.data["until"])


#: What an entry of a kind changes.
APPLY: Mapping[str, Apply] = {
    "review": reviews.decided,
    "definition": reviews.defined,
    "session": sessions.opened,
    "session_ended": sessions.ended,
    "session_times": sessions.timed,
    "clock_set_back": uses.set_back,
    "asked": approvals.asked,
    "answered": approvals.answered,
    "approval_used": approvals.used,
    "approval_revoked": approvals.revoked,
    "repeat": repeats.repeat,
    "run": run_tables.changed,
    "run_opened": run_tables.opened,
    "steps": run_tables.written,
    "run_cancelled": run_tables.cancelled,
    "runs_swept": run_tables.swept,
    "queued": queue_table.queued,
    "taken": queue_table.taken,
    "worker": queue_table.works,
    "worker_ended": queue_table.worked,
    "schedule": schedule_table.added,
    "schedule_begun": schedule_table.begun,
    "schedule_removed": schedule_table.removed,
    CHECKPOINT: prune,
}


#: The data by which an entry of any kind changes a table.
FIELDS = {"used", "saw", "stored", "windows", "failing", "steps"}


def changes_tables(kind: str, data: Mapping[str, Any]) -> bool:
    """Whether an entry changes a table."""
    return kind in APPLY or not FIELDS.isdisjoint(data)


def changes_cached(kind: str, data: Mapping[str, Any]) -> bool:
    """Whether an entry changes an answer of `query_cache`."""
    return kind in ("review", "definition") or "failing" in data


def apply(execute: Execute, entry: Entry) -> None:
    """Change the tables by the entry's kind, and by the charges and steps that an entry of any kind may contain."""
    change, data = APPLY.get(entry.kind), entry.data
    if change is not None:
        change(execute, entry)
    if "used" in data:
        sessions.charged(execute, entry)
    if "saw" in data:
        sessions.saw(execute, entry)
    if "stored" in data:
        sessions.stored(execute, entry)
    if "windows" in data:
        uses.counted(execute, entry)
    if "failing" in data:
        uses.failed(execute, entry)
    if "steps" in data:
        run_tables.named(execute, entry)
