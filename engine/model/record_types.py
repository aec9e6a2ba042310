"""What the log and those who read it hand each other.

Named tuples, because the log makes one `Mark` per append and one `Entry` per line read, and an append is to
cost microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """An append's receipt: entry `n` of `segment`, the `position`-th line that this process has written."""

    segment: str
    n: int
    position: int


class Entry(NamedTuple):
    """A line of the log. `at` is ISO 8601 in UTC with microseconds; `n` counts from 1 in its segment.

    Sorted as they stand, entries are in the log's order.
    """

    at: str
    segment: str
    n: int
    kind: str
    data: dict[str, Any]


class Place(NamedTuple):
    """How far a segment has been read: to byte `offset`, behind entry `n` with chain `hash`, when it had `size` bytes.

    `n` is -1 before the segment's header, 0 behind it.
    """

    offset: int = 0
    n: int = -1
    hash: str = "0" * 64
    size: int = 0


class Cursor(NamedTuple):
    """How far each segment of the log has been read; the empty one stands before everything. JSON-able as it is."""

    places: Mapping[str, Place] = {}


class RunSummary(NamedTuple):
    """A run in a listing. `created` is ISO 8601; `last` its last entry, unproved; `problem` says why it can't be read.

    `held` tells whether a living process is at it, `cancelled` whether somebody has asked for its end.
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
    """A run's record, proved. `torn` tells that a crash left half an entry at its end, which is no entry."""

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
    """The lines of a value that match, and the offset to go on from when a limit came first; None when all was searched."""

    lines: list[Line]
    next_offset: int | None
