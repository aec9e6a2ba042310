"""The types that the stores of the record exchange with their readers.

They are named tuples because they must be fast to create: each append and each row that is read creates an `Entry`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """An entry of the ledger. `at` is ISO 8601 in UTC with microseconds; `n` counts from 1."""

    at: str
    n: int
    kind: str
    data: dict[str, Any]


#: The unit of the bytes that the service stores for a session. `Record.append` charges each entry of a session, with the steps that
#: it writes. The second name is that of the owner's rule that bounds them.
STORED, QUOTA = "bytes_stored", "records.session_mb"
#: Bytes of a block of the disk.
_BLOCK = 4096
#: The most bytes in the search index for each byte of a source or a description (measured: 3.2, for words of four letters that all
#: differ).
INDEX_FACTOR = 4
#: Seconds for which a call counts for rate limits.
WINDOW_SECONDS = 3600.0
#: The names of the buckets that count failures of the same request in a row begin with this. A digest of the request follows.
FAILING = "failing:"
#: The bucket that counts the attempts to leave the workspace, of all sessions together.
ESCAPES = "escapes"


def on_disk(size: int) -> int:
    """The bytes that a file of this size takes: whole blocks."""
    return -(-size // _BLOCK) * _BLOCK


class SessionRow(NamedTuple):
    """A session: when it was opened (ISO 8601), the data of that entry, whether it was ended, and the used amounts by unit."""

    at: str
    data: dict[str, Any]
    ended: bool
    used: dict[str, float]


class ApprovalRow(NamedTuple):
    """A question to a person, as its entry says, and its answer. Texts that don't apply yet are empty."""

    state: str
    choice: str
    by: str
    used_by: str
    data: dict[str, Any]


class ReviewRow(NamedTuple):
    """A decision about a saved version: its new state, who decided when (ISO 8601) and why, and the digest of its manifest."""

    tool: str
    version: str
    state: str
    by: str
    why: str
    at: str
    manifest: str


class DedupeKey(NamedTuple):
    """The state of a dedupe key: the digest of its call, the run with the result, and the owner that makes the call.

    `state` is ``begun`` or ``kept``. `at` is when the call began, in seconds since 1970.
    """

    digest: str
    run: str
    owner: str
    state: str
    at: float


#: How often a queued run is taken since its last suspension. A run that ends its worker each time is not taken again.
MAX_TRIES = 5
#: The form of the names of queues and schedules.
SHORT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
#: The states of the runs of a queue that have not ended.
QUEUED_STATES = ("queued", "running", "suspended", "answered", "interrupted")


class QueuedRun(NamedTuple):
    """A run of a queue that has not ended.

    `state` is one of `QUEUED_STATES`. An interrupted run has lost its process, or this has put it back. `needs` is the interpreter
    in which it has begun. `waits` is the id of its question. `owner` and `needs` are empty before it begins. `changed` is ISO 8601.
    """

    run: str
    queue: str
    priority: int
    workspace: str
    needs: str
    waits: str
    tries: int
    state: str
    owner: str
    changed: str


class Worker(NamedTuple):
    """A worker: its name, its owner in the record, when it started (ISO 8601), whether it still runs, and the data of its entry:
    ``{queues, workspaces, needs, at_once, host, pid}``."""

    name: str
    owner: str
    at: str
    is_alive: bool
    data: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"name": self.name, "alive": self.is_alive, "started": self.at, **self.data}


class Schedule(NamedTuple):
    """A schedule: its name, the last time at which it has begun a run or at which it was made (ISO 8601), and the data of its
    entry: ``{cron, zone, queue, priority, tool, version, arguments, workspace, by}``."""

    name: str
    last: str
    data: dict[str, Any]


class RunSummary(NamedTuple):
    """A run in a list. Its `state` is that of its last entry ``run``; if its process has died, it is still ``begun``. `session` is
    the id of the session that began it, or empty."""

    id: str
    state: str
    session: str


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
