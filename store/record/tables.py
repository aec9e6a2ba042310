"""Which tables an entry changes.

`append` applies each entry in the transaction that appends it, and `verify` applies all entries again to empty tables. So the same
entries always give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record import run_tables

#: Executes one SQL statement.
Execute = Callable[[str, Sequence[Any]], Any]
Apply = Callable[[Execute, Entry], None]

#: What an entry of a kind changes. An entry of another kind changes nothing.
APPLY: Mapping[str, Apply] = {**run_tables.APPLY}


def apply(execute: Execute, entry: Entry) -> None:
    """Change the tables as this entry says."""
    change = APPLY.get(entry.kind)
    if change is not None:
        change(execute, entry)
    if "steps" in entry.data:
        run_tables.apply_steps(execute, entry)
