"""The last stage of a request for a queue: the run is recorded, and a worker executes it. All stages run again then."""

from __future__ import annotations

from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean


async def enqueue(call: Call, run: Run) -> Call:
    """End the request.

    Raises:
        Failure: `suspended`: the run waits in its queue. `invalid_arguments`: the rules have no such queue, or the queue's rules
            don't list the repository; `not_found` if nothing is recorded.
    """
    queued, known = run.queued, call.rules.governance.queues
    assert queued is not None
    if run.service.runs is None:
        raise Failure("not_found", "this service records no runs, so it has no queues")
    if queued.queue not in known:
        raise Failure(
            "invalid_arguments",
            f"the rules have no queue {queued.queue[:80]!r}{did_you_mean(queued.queue, known)}",
            hint=f"the queues are {', '.join(sorted(known))}; the owner adds one with `queues: {{NAME: {{}}}}`",
        )
    repository = queued.repository
    if repository is not None and not any(_matches(repository, each) for each in known[queued.queue].repositories):
        raise Failure(
            "invalid_arguments",
            f"the rules of the queue {queued.queue} don't list the repository {repository[:200]!r}",
            hint=f"the owner adds it with `queues: {{{queued.queue}: {{repositories: [URL]}}}}`",
        )
    if repository is not None and run.session.id is not None:
        raise Failure(
            "permission_denied", "a session works in its own workspace, not in a checkout", rule="session.workspace"
        )
    raise Failure(
        "suspended",
        f"the run {run.id} waits in the queue {queued.queue}",
        hint="`albert worker` executes it, and `albert runs` shows it",
        details={"run": run.id, "queue": queued.queue},
    )


def _matches(repository: str, pattern: str) -> bool:
    return repository.startswith(pattern[:-1]) if pattern.endswith("*") else repository == pattern
