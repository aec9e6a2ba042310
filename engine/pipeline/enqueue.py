"""The last stage of a request for a queue: the run is recorded, and a worker executes it. All stages run again then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from urllib.parse import unquote

from msgspec.structs import replace

from albert_tools.engine.call.context import DEFAULT_PRIORITY, Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.pipeline.allowance import demand_allowance
from albert_tools.engine.policy.settings import QueueRules


async def enqueue(call: Call, run: Run) -> Call:
    """End the request.

    Raises:
        Failure: `suspended`: the run waits in its queue. `invalid_arguments`: the rules have no such queue; `permission_denied` if
            they don't list the repository. Those of `allowance` and of `Queued.find_commit`.
    """
    queued, known = run.options.queued, call.rules.governance.queues
    assert queued is not None
    demand_allowance(call, run)
    demand_queue(known, queued.queue)
    if run.session.id is not None and queued.priority < DEFAULT_PRIORITY:
        problem = f"the runs of a session don't go before others: their priority is {DEFAULT_PRIORITY} or more"
        raise Failure("permission_denied", problem, rule="session.priority")
    if queued.repository is not None:
        if run.session.id is not None:
            problem = "a session works in its own workspace, not in a checkout"
            raise Failure("permission_denied", problem, rule="session.workspace")
        demand_repository(known, queued.queue, queued.repository)
    if queued.find_commit is not None:
        queued = replace(queued, commit=await asyncio.to_thread(queued.find_commit))
        run.options = replace(run.options, queued=queued)
    raise Failure(
        "suspended",
        f"the run {run.id} waits in the queue {queued.queue}",
        hint="`albert worker` executes it, and `albert runs` shows it",
        details={"run": run.id, "queue": queued.queue},
    )


def demand_queue(rules: Mapping[str, QueueRules], queue: str) -> None:
    """Require that the rules have a queue. Raises Failure `invalid_arguments`."""
    if queue not in rules:
        raise Failure(
            "invalid_arguments",
            f"the rules have no queue {queue[:80]!r}{did_you_mean(queue, rules)}",
            hint=f"the queues are {', '.join(sorted(rules))}; the owner adds one with `queues: {{NAME: {{}}}}`",
        )


def demand_repository(rules: Mapping[str, QueueRules], queue: str, repository: str) -> None:
    """Require that the present rules of a queue list a repository. Raises Failure `permission_denied`."""
    patterns = rules[queue].repositories if queue in rules else ()
    if not any(_matches(repository, pattern) for pattern in patterns):
        raise Failure(
            "permission_denied",
            f"the rules of the queue {queue} don't list the repository {repository[:200]!r}",
            hint=f"the owner adds it with `queues: {{{queue}: {{repositories: [URL]}}}}`",
            rule="queues.repositories",
        )


def _matches(repository: str, pattern: str) -> bool:
    if not pattern.endswith("*"):
        return repository == pattern
    # A server or git may resolve these, and then it is another repository.
    is_plain = repository.isprintable() and not {"..", "."} & {*re.split(r"[/\\]", unquote(repository))}
    return is_plain and repository.startswith(pattern[:-1])
