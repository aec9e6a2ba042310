"""Which tables an entry changes.

`append` applies each entry in the transaction that appends it, and `verify` applies all entries again to empty tables. So the same
entries always give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.entry import CHECKPOINT

#: Executes one SQL statement.
Execute = Callable[[str, Sequence[Any]], Any]
Apply = Callable[[Execute, Entry], None]


def prune(execute: Execute, entry: Entry) -> None:
    """Delete the rows that the entries up to `n` gave and that no decision depends on any more."""
    execute("DELETE FROM approvals WHERE state IN ('used', 'revoked') AND changed <= ?", (entry.data["n"],))


#: What an entry of a kind changes. An entry of another kind changes nothing.
APPLY: Mapping[str, Apply] = {CHECKPOINT: prune}
