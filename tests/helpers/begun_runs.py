"""Runs that have begun, as the lifecycle of a request begins them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.store.record.journal import StepJournal
from albert_tools.store.record.runs import Runs


def begun(runs: Runs, run: str, header: Mapping[str, Any]) -> StepJournal:
    """The journal of a new run, which its first entry makes exist."""
    journal = runs.create(run, header)
    try:
        runs._record.append("run", journal.beginning() or {})
    except BaseException:
        journal.close()
        raise
    return journal
