"""Which tables an entry changes.

`append` applies each entry in the transaction that appends it, and `verify` applies all entries again to empty tables. So the same
entries always give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record import approvals, repeats, run_tables, sessions, uses
from albert_tools.store.record.apply import Apply, Execute
from albert_tools.store.record.entry import CHECKPOINT


def _use(execute: Execute, entry: Entry) -> None:
    sessions.charged(execute, entry)
    uses.counted(execute, entry)


def prune(execute: Execute, entry: Entry) -> None:
    """Apply a checkpoint: delete the rows that the deleted entries gave and that no decision depends on any more.

    `verify` also does this at once, in the rows of the checkpoint, and then applies the entries after `last`. So a later entry must
    not depend on a deleted row.
    """
    approvals.prune(execute, entry.data["last"])
    repeats.prune(execute, entry.data["until"])


#: What an entry of a kind changes. An entry of another kind changes nothing.
APPLY: Mapping[str, Apply] = {
    "session": sessions.opened,
    "session_ended": sessions.ended,
    "use": _use,
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
    CHECKPOINT: prune,
}


def apply(execute: Execute, entry: Entry) -> None:
    """Change the tables as this entry says."""
    change = APPLY.get(entry.kind)
    if change is not None:
        change(execute, entry)
    if "steps" in entry.data:
        run_tables.named(execute, entry)
