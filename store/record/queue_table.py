"""The table `queued`: the runs of queues that have not ended, for the workers that execute them.

The stage of a run is ``ready`` (it has not begun, or its question was answered), ``taken`` (a process executes it, or has died),
``waits`` (for the answer to the question `waits`), or ``later`` (it was denied for a temporary reason, or was put back). `needs` is
the interpreter in which it has begun; "" before. `tries` counts how often it was taken since its last suspension. `session` is the
outermost session of the run, which all sessions within it share.

A look for the next run seeks the first ready one of each session, because thousands may be ready or wait for people.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from albert_tools.engine.model.record_types import MAX_TRIES, Entry, QueuedRun, Worker
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.clock import text_of
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import decode, encode
from albert_tools.store.record.sessions import line

#: Seconds after which a run of the stage ``later`` can be taken.
RETRY_SECONDS = 30.0

_QUEUE = """
INSERT INTO queued(run, queue, priority, n, workspace, needs, stage, waits, tries, session)
VALUES (?, ?, ?, ?, ?, '', 'ready', '', 0, ?)
"""
_QUEUED = "UPDATE runs SET state = 'queued', owner = '', changed = ? WHERE id = ?"
_TAKEN = "UPDATE runs SET state = 'begun', owner = ?, changed = ? WHERE id = ?"
_TAKE = "UPDATE queued SET stage = 'taken', waits = '', tries = tries + 1 WHERE run = ?"
_OPEN = "UPDATE queued SET stage = 'taken', needs = ? WHERE run = ?"
_STOP = "UPDATE queued SET stage = ?, waits = ?, n = ?, tries = 0 WHERE run = ?"
_ANSWER = "UPDATE queued SET stage = 'ready' WHERE waits = ? AND waits <> '' AND stage = 'waits'"
_RELEASE = "UPDATE queued SET stage = 'later', n = ?, tries = tries - 1 WHERE run = ? AND stage = 'taken' AND tries > 0"
_FIELDS = "queued.run, queue, priority, workspace, needs, waits, tries, runs.owner, runs.changed, stage, runs.state"
_JOINED = "FROM queued JOIN runs ON runs.id = queued.run"
#: The first run of each session that is ready, and all that can be taken again. `waiting` seeks one session after the other in the
#: index.
_READY = f"""
SELECT run, session, priority, n FROM queued WHERE run IN (
  WITH RECURSIVE waiting(id) AS (
    SELECT min(session) FROM queued WHERE stage = 'ready'
    UNION ALL
    SELECT (SELECT min(session) FROM queued WHERE stage = 'ready' AND session > id) FROM waiting WHERE id IS NOT NULL)
  SELECT (SELECT run FROM queued WHERE stage = 'ready' AND session = id AND {{mine}} ORDER BY priority, n LIMIT 1) FROM waiting
  UNION ALL
  SELECT run {_JOINED}
  WHERE (stage = 'later' AND runs.changed < ? OR stage = 'taken' AND runs.owner IN ({{dead}})) AND {{mine}})
"""
_WORKER = """
INSERT INTO workers(name, owner, at, data) VALUES (?, ?, ?, ?)
ON CONFLICT(name) DO UPDATE SET owner = excluded.owner, at = excluded.at, data = excluded.data
"""


def queued(execute: Execute, entry: Entry) -> None:
    """Apply ``queued``: a run, which has just begun, waits for a worker."""
    data = entry.data
    (session,) = execute("SELECT session FROM runs WHERE id = ?", (data["run"],)).fetchone()
    outermost = [session, *line(execute, session)][-1]
    execute(_QUEUE, (data["run"], data["queue"], data["priority"], entry.n, data["workspace"], outermost))
    execute(_QUEUED, (entry.at, data["run"]))


def taken(execute: Execute, entry: Entry) -> None:
    """Apply ``taken``: a worker executes the run."""
    data = entry.data
    execute(_TAKEN, (data["owner"], entry.at, data["run"]))
    execute(_TAKE, (data["run"],))


def opened(execute: Execute, entry: Entry) -> None:
    """Apply the ``needs`` of an entry ``run_opened``: the run has begun in this interpreter."""
    execute(_OPEN, (entry.data["needs"], entry.data["run"]))


def changed(execute: Execute, entry: Entry) -> None:
    """Apply the ``queue`` of an entry ``run``: the run was suspended, or it has ended."""
    run, state, question = entry.data["run"], entry.data["state"], entry.data.get("approval", "")
    if state == "suspended" and question:
        row = execute("SELECT state FROM approvals WHERE id = ?", (question,)).fetchone()
        # The answer may have been quicker.
        execute(_STOP, ("waits" if row is not None and row[0] == "open" else "ready", question, entry.n, run))
    elif state in ("suspended", "interrupted"):
        # It goes behind others of its priority, so runs that are denied again and again don't hold them up.
        execute(_STOP, ("later" if state == "suspended" else "ready", "", entry.n, run))
    else:
        execute("DELETE FROM queued WHERE run = ?", (run,))


def answered(execute: Execute, question: str) -> None:
    """Apply that a question was answered or revoked: the run that waits for it can go on."""
    execute(_ANSWER, (question,))


def released(execute: Execute, entry: Entry) -> None:
    """Apply that a process has put a run back."""
    execute(_RELEASE, (entry.n, entry.data["run"]))


def works(execute: Execute, entry: Entry) -> None:
    """Apply ``worker``: a worker has started."""
    data = entry.data
    execute(_WORKER, (data["name"], data["owner"], entry.at, encode(data, "a worker")))


def worked(execute: Execute, entry: Entry) -> None:
    """Apply ``worker_ended``."""
    execute("DELETE FROM workers WHERE name = ? AND owner = ?", (entry.data["name"], entry.data["owner"]))


class QueueTable:
    """The queries of `engine.model.protocols.QueueTable`. `alive` says whether the process of an owner still runs."""

    def __init__(self, database: Database, alive: Callable[[str], bool]) -> None:
        self._database = database
        self._alive = alive
        #: When each outermost session was last served here.
        self._served: dict[str, int] = {}
        self._turn = 0

    def ready(self, queues: Collection[str], workspaces: Collection[str], needs: Collection[str]) -> str | None:
        """See the protocol."""
        if not queues or not workspaces:
            return None
        dead = self._dead()
        before = text_of(datetime.now(UTC) - timedelta(seconds=RETRY_SECONDS))
        place = "CASE WHEN substr(workspace, 1, 4) = 'git+' THEN 'git+' ELSE workspace END"
        mine = (
            f"queue IN ({_marks(queues)}) AND {place} IN ({_marks(workspaces)}) AND needs IN ('', {_marks(needs)}) "
            "AND tries < ?"
        )
        values = (*queues, *workspaces, *needs, MAX_TRIES)
        rows = self._database.rows(_READY.format(mine=mine, dead=_marks(dead)), (*values, before, *dead, *values))
        # By turns, so that nobody waits for another session's long queue.
        return min(rows, key=lambda row: (row[2], self._served.get(row[1], 0), row[3]))[0] if rows else None

    def serve(self, run: str) -> None:
        """See the protocol."""
        (session,) = self._database.row("SELECT session FROM queued WHERE run = ?", (run,)) or ("",)
        self._turn += 1
        self._served[session] = self._turn

    def running(self, queue: str) -> int:
        """See the protocol."""
        dead = self._dead()
        row = self._database.row(
            f"SELECT count(*) {_JOINED} WHERE stage = 'taken' AND queue = ? AND runs.owner NOT IN ({_marks(dead)})",
            (queue, *dead),
        )
        return int(row[0]) if row is not None else 0

    def queue_of(self, run: str) -> str | None:
        """See the protocol."""
        row = self._database.row("SELECT queue FROM queued WHERE run = ?", (run,))
        return None if row is None else str(row[0])

    def taken_by(self, owner: str) -> list[str]:
        """See the protocol."""
        rows = self._database.rows(f"SELECT run {_JOINED} WHERE stage = 'taken' AND runs.owner = ?", (owner,))
        return [str(run) for (run,) in rows]

    def all(self) -> list[QueuedRun]:
        """See the protocol."""
        dead = set(self._dead())
        rows = self._database.rows(f"SELECT {_FIELDS} {_JOINED} ORDER BY priority, queued.n")
        return [_row(row, dead) for row in rows]

    def workers(self) -> list[Worker]:
        """See the protocol."""
        rows = self._database.rows("SELECT name, owner, at, data FROM workers ORDER BY name")
        return [Worker(name, owner, at, self._alive(owner), decode(data)) for name, owner, at, data in rows]

    def failed(self, limit: int, among: int) -> list[str]:
        """See the protocol."""
        newest = "SELECT id, state, changed FROM runs ORDER BY began DESC LIMIT ?"
        was_queued = "SELECT 1 FROM entries WHERE entries.run = newest.id AND entries.run <> '' AND kind = 'queued'"
        rows = self._database.rows(
            f"SELECT id FROM ({newest}) AS newest WHERE state = 'failed' AND EXISTS ({was_queued}) "
            "ORDER BY changed DESC LIMIT ?",
            (among, limit),
        )
        return [run for (run,) in rows]

    def _dead(self) -> list[str]:
        """The owners of queued runs whose processes have died."""
        rows = self._database.rows(f"SELECT DISTINCT runs.owner {_JOINED} WHERE stage = 'taken' AND runs.owner <> ''")
        return [owner for (owner,) in rows if not self._alive(owner)]


def _marks(values: Collection[str]) -> str:
    # PostgreSQL has no empty list, and nothing is `NOT IN (NULL)`.
    return ", ".join("?" * len(values)) or "'-'"


def _row(row: tuple[Any, ...], dead: Collection[str]) -> QueuedRun:
    run, queue, priority, workspace, needs, waits, tries, owner, changed, stage, state = row
    if owner:
        state = "interrupted" if owner in dead else "running"
    elif state == "suspended":
        state = "answered" if stage == "ready" else "suspended"
    elif state != "queued":
        state = "interrupted"
    return QueuedRun(run, queue, priority, workspace, needs, waits, tries, state, owner, changed)
