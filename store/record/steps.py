"""The rows of a journal: the steps of one run, each chained to the step before.

A row's hash is BLAKE3 over the hash of the row before (32 zero bytes for the first) and the row's JSON. Row 0 is the header. Steps
contain complete values, from which a run can be resumed. The values in entries are redacted, so steps have a table of their own. An
entry names the number and the hash of the last row that was written with it, so the chain of entries vouches for the steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from albert_tools.store.record.entry import chained

#: The hash before the first row.
START = bytes(32)


class Step(NamedTuple):
    """A row of a journal: its number, its JSON and its hash."""

    seq: int
    data: str
    hash: bytes

    @property
    def name(self) -> list[Any]:
        """How an entry names the row."""
        return [self.seq, self.hash.hex()]


def first_wrong(rows: Iterable[Step], last: list[Any]) -> tuple[int, str] | None:
    """The number of the first row that was changed or is missing, and what is wrong. `last` is the `Step.name` of the last row."""
    before, expected = START, 0
    for seq, data, digest in rows:
        if seq != expected:
            return expected, f"row {expected} is missing"
        if not isinstance(data, str) or digest != chained(before, data):
            return seq, f"row {seq} was changed"
        before, expected = digest, seq + 1
    if [expected - 1, before.hex()] != last:
        return (
            expected,
            f"it ends with row {expected - 1}, and row {last[0]} was written with another content or is missing",
        )
    return None
