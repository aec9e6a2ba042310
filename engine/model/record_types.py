"""The types that the stores of the record and their readers exchange.

Named tuples, because an append makes one `Mark`, each line read makes one `Entry`, and an append must cost microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """The receipt of an append: entry `n` of `segment`, the `position`-th line that this process wrote."""

    segment: str
    n: int
    position: int


class Entry(NamedTuple):
    """A line of the log. `at` is ISO 8601 in UTC with microseconds; `n` counts from 1 in its segment.

    Entries sort in the log's order.
    """

    at: str
    segment: str
    n: int
    kind: str
    data: dict[str, Any]


class Place(NamedTuple):
    """How far a segment was read: to byte `offset`, after entry `n` with chain `hash`, when it had `size` bytes.

    `n` is -1 before the segment's header, 0 after it.
    """

    offset: int = 0
    n: int = -1
    hash: str = "0" * 64
    size: int = 0


class Cursor(NamedTuple):
    """How far each segment of the log was read; the empty cursor is before everything. It can be dumped as JSON."""

    places: Mapping[str, Place] = {}


class RunSummary(NamedTuple):
    """A run in a listing. `created` is ISO 8601; `last` is its last entry, not verified; `problem` says why it can't be read.

    `held` is whether a living process runs it, `cancelled` whether a cancel was requested.
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
    """A run's journal, verified. `torn` is whether a crash left an incomplete entry at its end, which does not count."""

    id: str
    created: str
    header: dict[str, Any]
    entries: list[dict[str, Any]]
    held: bool
    cancelled: bool
    torn: bool


class Line(NamedTuple):
    """A line of a value: its first byte's offset in it, and its text without the newline."""

    offset: int
    text: str


class Matches(NamedTuple):
    """The matching lines of a value, and the offset to continue from if the limit stopped the search; else None."""

    lines: list[Line]
    next_offset: int | None
