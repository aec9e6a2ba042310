"""The types that the stores of the record exchange with their readers.

They are named tuples because they must be fast to create: each append and each row that is read creates an `Entry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """An entry of the ledger. `at` is ISO 8601 in UTC with microseconds; `n` counts from 1."""

    at: str
    n: int
    kind: str
    data: dict[str, Any]


class RunSummary(NamedTuple):
    """A run in a list. `created` is ISO 8601. `last` is the run's last entry, not verified. `problem` says why the run can't be
    read.

    `held` says whether a living process executes the run. `cancelled` says whether cancellation was requested.
    """

    id: str
    created: str = ""
    header: Mapping[str, Any] = {}
    last: dict[str, Any] | None = None
    held: bool = False
    cancelled: bool = False
    size_bytes: int = 0
    problem: str | None = None


class LoadedRun(NamedTuple):
    """A run's verified journal. `torn` says whether a crash left an incomplete entry at its end. This entry is ignored."""

    id: str
    created: str
    header: dict[str, Any]
    entries: list[dict[str, Any]]
    held: bool
    cancelled: bool
    torn: bool


class Line(NamedTuple):
    """A line of a value: the offset of its first byte in the value, and its text without the newline."""

    offset: int
    text: str


class Matches(NamedTuple):
    """The matching lines of a value. If the limit stopped the search, also the offset to continue from; otherwise None."""

    lines: list[Line]
    next_offset: int | None
