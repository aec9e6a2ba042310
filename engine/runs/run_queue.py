"""The queues of runs, and the workers that execute them.

A queue is no list of its own: the record says which runs are ready, and a worker takes one by becoming its owner. The transaction
in which it does so counts the runs of the queue, so limits hold over all workers. If a worker dies, its runs are ready again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from albert_tools.engine.authority.rate_limit import RateLimits
from albert_tools.engine.call.context import CHECKOUT
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import QueuedRun, Worker
from albert_tools.engine.policy.settings import QueueRules
from albert_tools.engine.runs.lifecycle import needed
from albert_tools.engine.runs.runs import MAX_SEARCHED


class RunQueue:
    """The queues of a home. `rules` returns the present rules of each queue; it raises Failure `governance_unavailable`."""

    def __init__(self, ledger: Record, limits: RateLimits, rules: Callable[[], Mapping[str, QueueRules]]) -> None:
        self._ledger = ledger
        self._limits = limits
        self._rules = rules

    def take(
        self, worker: str, queues: Collection[str], workspaces: Collection[str], host: str | None = None
    ) -> str | None:
        """Become the owner of the next run that this worker can execute. Call `RunManager.resume` then, or `release`.

        Args:
            worker: The worker's name.
            queues: Its queues.
            workspaces: Its workspaces, as runs name them.
            host: The name of its machine, if it can make checkouts.

        Returns:
            The id of the run, or None if none is ready or the limits of its queue are reached.

        Raises:
            Failure: `governance_unavailable`, `io_error`, `damaged`.
        """
        ledger, table = self._ledger, self._ledger.queue
        needs = [needed()] if host is None else [needed(), needed(host)]
        places = workspaces if host is None else [*workspaces, CHECKOUT]
        if table.ready(queues, places, needs) is None:
            return None  # The usual case needs no transaction.
        rules = self._rules()
        with ledger.transaction():
            open_queues = [queue for queue in queues if queue in rules and self._has_room(queue, rules[queue])]
            run = table.ready(open_queues, places, needs)
            if run is not None:
                queue = table.queue_of(run) or ""
                used = self._limits.use([(_window(queue), 0)], ()) if rules[queue].per_hour is not None else {}
                ledger.append("taken", {"run": run, "owner": ledger.owner, "worker": worker, **used})
                table.serve(run)
        return run

    def release(self, run: str) -> None:
        """Let another worker take a run that this one has taken and not begun. Raises Failure `io_error`, `damaged`."""
        self._ledger.append("steps", {"run": run, "released": True})

    def release_all_but(self, active: Collection[str]) -> None:
        """Release each run that this process has taken, and that is not among `active`. Raises Failure `io_error`, `damaged`.

        A run stays taken if its end could not be recorded.
        """
        for run in self._ledger.queue.taken_by(self._ledger.owner):
            if run not in active:
                self.release(run)

    def all(self) -> list[QueuedRun]:
        """All runs of queues that have not ended, by priority and age. Raises Failure `io_error`."""
        return self._ledger.queue.all()

    def workers(self) -> list[Worker]:
        """The workers, by name. One that has died is listed until another one starts. Raises Failure `io_error`."""
        return self._ledger.queue.workers()

    def failed(self, limit: int) -> list[str]:
        """The ids of queued runs that have failed, at most `limit` and the last one first, among the newest `MAX_SEARCHED` runs.
        Raises Failure `io_error`."""
        return self._ledger.queue.failed(limit, MAX_SEARCHED)

    def join(self, name: str, facts: Mapping[str, object]) -> None:
        """Record that a worker starts. `facts` are the data of `Worker`.

        Raises:
            Failure: `exists` if a worker with this name runs; `io_error`, `damaged`.
        """
        ledger = self._ledger
        with ledger.transaction():
            for other in self.workers():
                if other.is_alive and other.name == name:
                    raise Failure("exists", f"a worker named {name} runs already", hint="give another --name")
                if not other.is_alive:
                    ledger.append("worker_ended", {"name": other.name, "owner": other.owner})
            ledger.append("worker", {"name": name, "owner": ledger.owner, "needs": needed(), **facts})

    def leave(self, name: str) -> None:
        """Record that a worker ends. Raises Failure `io_error`, `damaged`."""
        self._ledger.append("worker_ended", {"name": name, "owner": self._ledger.owner})

    def _has_room(self, queue: str, rules: QueueRules) -> bool:
        if rules.at_once is not None and self._ledger.queue.running(queue) >= rules.at_once:
            return False
        return rules.per_hour is None or self._limits.has_room(_window(queue), rules.per_hour)


def is_temporary(failure: Failure) -> bool:
    """Whether a run that could not be queued or begun can be later: the home or the rules can't be used now."""
    return failure.retryable or failure.code in ("io_error", "governance_unavailable")


def _window(queue: str) -> str:
    """The bucket that counts the runs of a queue that begin."""
    return f"queue:{queue}"
