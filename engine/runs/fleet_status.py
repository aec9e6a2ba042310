"""The state of the queues: runs, workers, open questions, and the runs that no worker can go on with, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from albert_tools.engine.authority.approvals import Approvals
from albert_tools.engine.call.context import CHECKOUT
from albert_tools.engine.model.record_types import MAX_TRIES, QueuedRun, Worker
from albert_tools.engine.runs.run_queue import RunQueue

#: The states of runs that a worker should go on with.
_READY = ("queued", "answered", "interrupted")


class FleetStatus(NamedTuple):
    """`runs` have not ended. `queues` has their number by state, for each queue that has runs or a living worker. `stuck` has
    the runs that no worker can go on with, each with the reason. `questions` is the number of all open questions."""

    runs: list[QueuedRun]
    queues: dict[str, Counter[str]]
    workers: list[Worker]
    stuck: list[tuple[QueuedRun, str]]
    questions: int


def read_status(queue: RunQueue, approvals: Approvals) -> FleetStatus:
    """The present state. Raises Failure `io_error`."""
    workers, runs, stuck = queue.workers(), queue.all(), list[tuple[QueuedRun, str]]()
    alive = [worker for worker in workers if worker.is_alive]
    queues = {name: Counter[str]() for worker in alive for name in worker.data["queues"]}
    for run in runs:
        queues.setdefault(run.queue, Counter())[run.state] += 1
        if run.state in _READY and (why := _why_not(run, alive)):
            stuck.append((run, why))
    return FleetStatus(runs, queues, workers, stuck, len(approvals.all(("open",))))


def _why_not(run: QueuedRun, workers: Collection[Worker]) -> str:
    """Why no worker can go on with a run; "" if one can."""
    if run.tries >= MAX_TRIES:
        return f"{MAX_TRIES} workers have died of it; `albert runs resume {run.run}` tries again, `runs cancel` ends it"
    candidates = [worker for worker in workers if run.queue in worker.data["queues"]]
    if not candidates:
        return f"no worker of the queue {run.queue} runs"
    if not run.workspace.startswith(CHECKOUT):
        candidates = [worker for worker in candidates if run.workspace in worker.data["workspaces"]]
        if not candidates:
            return f"no worker of the queue {run.queue} works in {run.workspace}"
    if run.needs and not any(run.needs in (each.data["needs"], _with_checkout(each)) for each in candidates):
        return (
            f"it has begun in {run.needs}, and no worker of the queue {run.queue} has it; start one, or cancel the run"
        )
    return ""


def _with_checkout(worker: Worker) -> str:
    return f"{worker.data['needs']}, the checkout on {worker.data['host']}"
