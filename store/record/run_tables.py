"""What entries change in the tables `runs` and `steps`.

An entry of the kind ``run`` begins a run or states how it ended. ``run_opened`` names the process that continues it. ``steps`` only
names rows or releases the run. ``run_cancelled`` requests its end. ``runs_swept`` deletes old runs. An entry of any kind that
belongs to a run may name the last row of `steps` that was written together with the entry: ``"steps": [seq, hash]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record import queue_table
from albert_tools.store.record.apply import Execute


def run_of(data: Mapping[str, Any]) -> str:
    """The run to which an entry belongs: its ``run``, or that of its ``call`` (``RUN`` or ``RUN:STEP``); "" if there is none."""
    run = data.get("run") or str(data.get("call") or "").partition(":")[0]
    return run if isinstance(run, str) else ""


def indexed_run(data: Mapping[str, Any]) -> str:
    """The content of the column ``run``: `run_of`, or "" for a direct call of a primitive that is not a run.

    The entries of such a call are never searched by run, so they need no place in the index.
    """
    is_in_run = "run" in data or "steps" in data or ":" in str(data.get("call"))
    return run_of(data) if is_in_run else ""


def named(execute: Execute, entry: Entry) -> None:
    """Set the last row of the run that the entry belongs to."""
    seq, digest = entry.data["steps"]
    changes = (seq, digest, entry.at, run_of(entry.data))
    execute("UPDATE runs SET seq=?, hash=?, changed=? WHERE id=?", changes)


def changed(execute: Execute, entry: Entry) -> None:
    """Apply ``run``."""
    run, state = entry.data["run"], entry.data["state"]
    if state == "begun":
        owner, session = entry.data["owner"], entry.data.get("session", "")
        row = (run, entry.n, entry.at, entry.at, owner, state, 0, 0, "", session)
        execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    else:
        execute("UPDATE runs SET state=?, owner='', changed=? WHERE id=?", (state, entry.at, run))
        if "queue" in entry.data:
            queue_table.changed(execute, entry)


def opened(execute: Execute, entry: Entry) -> None:
    """Apply ``run_opened``."""
    values = (entry.data["owner"], entry.at, entry.data["run"])
    execute("UPDATE runs SET owner=?, changed=? WHERE id=?", values)
    if "needs" in entry.data:
        queue_table.opened(execute, entry)


def written(execute: Execute, entry: Entry) -> None:
    """Apply ``steps``."""
    if entry.data.get("released"):
        execute("UPDATE runs SET owner='', changed=? WHERE id=?", (entry.at, entry.data["run"]))
        queue_table.released(execute, entry)


def cancelled(execute: Execute, entry: Entry) -> None:
    """Apply ``run_cancelled``."""
    execute("UPDATE runs SET cancelled=1 WHERE id=?", (entry.data["run"],))


def swept(execute: Execute, entry: Entry) -> None:
    """Apply ``runs_swept``."""
    for run in entry.data["runs"]:
        execute("DELETE FROM runs WHERE id=?", (run,))
        execute("DELETE FROM steps WHERE run=?", (run,))
