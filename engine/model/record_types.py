"""The types that the stores of the record exchange with their readers.

They are named tuples because they must be fast to create: each append and each row that is read creates an `Entry`.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """An entry of the ledger. `at` is ISO 8601 in UTC with microseconds; `n` counts from 1."""

    at: str
    n: int
    kind: str
    data: dict[str, Any]


class RunSummary(NamedTuple):
    """A run in a list. Its `state` is that of its last entry ``run``; if its process has died, it is still ``begun``."""

    id: str
    state: str


class LoadedRun(NamedTuple):
    """A run's verified journal. `created` is ISO 8601.

    `held` says whether a living process executes the run. `cancelled` says whether cancellation was requested.
    """

    id: str
    created: str
    header: dict[str, Any]
    entries: list[dict[str, Any]]
    held: bool
    cancelled: bool


class Swept(NamedTuple):
    """How many old runs were deleted, and the ids of those that were not because they have not ended."""

    deleted: int
    unfinished: list[str]


class Line(NamedTuple):
    """A line of a value: the offset of its first byte in the value, and its text without the newline."""

    offset: int
    text: str


class Matches(NamedTuple):
    """The matching lines of a value. If the limit stopped the search, also the offset to continue from; otherwise None."""

    lines: list[Line]
    next_offset: int | None
