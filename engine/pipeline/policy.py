"""The stage of the rules: they decide about the tool, its category and the objects of the call. The strictest decision applies."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from albert_tools.engine.authority.approval_digest import arguments_digest
from albert_tools.engine.authority.authorization import Authority, parses_commands
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.lookup import demand_depth
from albert_tools.engine.pipeline.reviewed import without_questions
from albert_tools.engine.pipeline.session import RUN_SOURCE
from albert_tools.engine.policy.decision import WHOLE_CALL, Decision, strictest


async def policy(call: Call, run: Run) -> Call:
    """Add the rules in force and their decision. It allows the call or asks.

    Raises:
        Failure: `permission_denied`, `governance_unavailable`; `outdated` if a callee of the tool has changed; `depth_limit`.
    """
    rules = run.service.ruling()
    all_decisions = without_questions(await _judge(call, run, rules.authority), call, run)
    decision = strictest(all_decisions)
    if decision.verdict == "deny":
        if decision.rule == "outside_workspace":
            run.service.modes.violation()
        raise decision.failure(call.name)
    deadline = call.deadline
    if not call.depth:
        _check_callees(call, run)
        # Otherwise the run would end in the middle.
        demand_depth(call.name, call.target.definition.depth, rules.governance.limits.depth)
        # The rules can only shorten the deadline.
        deadline = min(deadline, run.began + rules.governance.limits.run_seconds)
    asks = _asks(all_decisions, call) if decision.verdict == "ask" else ()
    return replace(call, rules=rules, decision=decision, asks=asks, deadline=deadline)


async def _judge(call: Call, run: Run, authority: Authority) -> list[Decision]:
    definition, primitive = call.target.definition, call.target.primitive
    if run.options.unsaved is not None and not call.depth:
        # A source chooses its own name, so rules for that name do not apply to it.
        definition = replace(definition, name=RUN_SOURCE)
    try:
        if primitive is not None and parses_commands(primitive):
            return await asyncio.to_thread(
                authority.judge, definition, primitive, call.arguments, run.workspace, call.mode
            )
        return authority.judge(definition, primitive, call.arguments, run.workspace, call.mode)
    except Failure as failure:
        if failure.rule in ("path_traversal", "outside_workspace"):
            run.service.modes.violation()
        failure.tool = failure.tool or call.name
        raise


def _asks(decisions: list[Decision], call: Call) -> tuple[tuple[str, str], ...]:
    """The rules that ask, each with its subject."""
    asking = {(d.rule, d.subject) for d in decisions if d.verdict == "ask"}
    # Each variable and each command can be a decision about the whole call, and the arguments can be megabytes.
    digest = arguments_digest(call.arguments) if any(subject == WHOLE_CALL for _, subject in asking) else ""
    return tuple(sorted((rule, digest if subject == WHOLE_CALL else subject) for rule, subject in asking))


def _check_callees(call: Call, run: Run) -> None:
    problem = call.target.version and run.lookup.outdated(call.target.version, run.session.covers)
    if problem:
        raise Failure(
            "outdated",
            f"{call.name} is outdated: {problem}",
            hint="define it again from its source, in an application that has all tools it calls; if these are tools of a server "
            "that is no longer mounted, mount it again",
            tool=call.name,
        )
