"""Stages 2 and 3 of the pipeline: whether a call may be made, and its beginning.

Nothing is done here but what is about the call itself: it is charged, an approval is used up, and what was decided is written down,
in one step that two processes can't both take. Whatever goes wrong on the way is a denial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from albert_tools.engine.authority.approval_digest import standing_objects
from albert_tools.engine.authority.approvals import arguments_digest
from albert_tools.engine.authority.authorization import Authority, needs_parsing, parse_ahead
from albert_tools.engine.call.arguments import validated
from albert_tools.engine.call.budget import session_seconds
from albert_tools.engine.call.context import Again, Chain, Judged, Request, Surroundings
from albert_tools.engine.call.errors import unjudged
from albert_tools.engine.call.ledger import reason_of, unkept
from albert_tools.engine.call.lookup import Lookup, Target
from albert_tools.engine.model.definition import Json, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect
from albert_tools.engine.policy.decision import WHOLE_CALL, Decision, strictest
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.runs.journal import Entered, Step
from albert_tools.engine.runs.lifecycle import begin_run
from albert_tools.engine.runs.replay import entered, step_of

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.authority.rate_limit import RateLimits

#: How often a person is asked about one call, where something changes each time while they think.
MAX_QUESTIONS = 3


class Authoriser:
    """Lets calls through, or says why not."""

    def __init__(self, lookup: Lookup, clock: Callable[[], float]) -> None:
        self._lookup = lookup
        self._clock = clock

    async def permit(self, target: Target, given: Any, chain: Chain, known: Step | None, own: list[Effect]) -> Judged:
        """The call, ready to be made; that is on record. `known` is a step that was cut short, whose effects `own` takes.

        Raises:
            Failure: the arguments are invalid, the call is denied, or anything on the way to knowing that went wrong.
            Again: it was made before, under the same key.
        """
        request, definition = chain.request, target.definition
        surroundings, began = request.surroundings, self._clock()
        try:
            arguments = _valid(target, given, surroundings)
            _in_session(definition.name, request, first=not chain.depth)
            if not chain.depth and not surroundings.scratch:
                chain.deadline = min(chain.deadline, self._clock() + session_seconds(request))
                request.arguments = arguments
                if request.invocation.dedupe_key or request.run.repeat is not None:
                    from albert_tools.engine.pipeline.repeat import begin_once

                    await begin_once(request, target, arguments, chain.deadline, self._clock)
            if target.primitive is not None and needs_parsing(target.primitive):
                # Not here: everybody else's calls would wait for it.
                await asyncio.to_thread(parse_ahead, target.primitive, arguments)
            for _ in range(MAX_QUESTIONS + 1):
                chain.approved = None
                surroundings.modes.look()
                mode = surroundings.modes.mode
                judged, decision = self._authorise(target, arguments, chain, mode)
                governance, authority = judged.governance, judged.authority
                if not chain.depth:
                    # The rules can only make it shorter.
                    chain.deadline = min(chain.deadline, began + governance.limits.run_seconds)
                if decision is None or authority is None or request.run.dry:
                    return judged
                if known is not None and target.primitive is not None and target.primitive.settle is not None:
                    await _settle(target.primitive, judged, known, chain, own)
                if known is not None and not _again_is_harmless(target, arguments, chain):
                    decision = strictest([_interrupted(chain, definition.name), decision])
                    chain.asks = (*chain.asks, ("interrupted", chain.call.id))
                chain.decision, chain.mode = decision, mode
                if not chain.depth:
                    request.decision = decision
                if chain.answered:
                    return judged
                before = entered(target, arguments, chain)
                windows = () if before is not None else authority.policy.rate_limits(definition)
                if windows:
                    _rate_limits(surroundings).demand(windows, _line(request), definition.name)
                if request.session is not None and surroundings.sessions is not None and before is None:
                    surroundings.sessions.afford(request.session, definition.name)
                approval = None
                goes_on = before is not None and not target.changes and _allowed(before, mode, request)
                if decision.verdict == "ask" and not goes_on:
                    from albert_tools.engine.pipeline.ask import approved

                    rules = governance.revision
                    approval = await approved(target, arguments, decision, mode, rules, chain, self._clock)
                    if approval is None or not _still(surroundings, mode, governance):
                        continue
                if not surroundings.scratch:
                    begin_run(request, target, arguments, chain)
                await _begin(target, judged, chain, decision, windows, approval)
                return judged
            raise Failure(
                "permission_denied",
                f"what {definition.name} would do changed each time a person was asked about it",
                hint="let whatever else works on these files finish, then call again",
                rule="approval",
                tool=definition.name,
            )
        except (Failure, Again):
            raise
        except Exception as fault:
            raise unjudged(fault) from fault

    def _authorise(
        self, target: Target, arguments: dict[str, Any], chain: Chain, mode: Mode
    ) -> tuple[Judged, Decision | None]:
        name, request = target.definition.name, chain.request
        governance, authority = request.surroundings.ruling()
        if target.version is not None and chain.depth >= MAX_TOOL_DEPTH:
            raise Failure(
                "depth_limit",
                f"saved tools call each other more than {MAX_TOOL_DEPTH} deep",
                hint="call the tools further down directly",
                tool=name,
            )
        decision: Decision | None = None
        if authority is None:
            _demand_harmless(target, chain, governance)
        else:
            decision = _judged(target, arguments, chain, authority, mode)
            if decision.verdict == "deny":
                chain.decision, chain.mode = decision, mode
                if not chain.depth:
                    request.decision = decision
                raise decision.failure(name)
        if target.version is not None and not chain.depth:
            problem = self._lookup.outdated(target.version)
            if problem:
                raise Failure(
                    "outdated",
                    f"{name} is outdated: {problem}",
                    hint="define it again from its source, in an application that has all it calls",
                    tool=name,
                )
        return Judged(arguments, governance, authority), decision


async def _begin(
    target: Target,
    judged: Judged,
    chain: Chain,
    decision: Decision,
    windows: tuple[tuple[str, int], ...],
    approval: Approval | None,
) -> None:
    """The call is charged, its approval used up and its decision recorded, in one step.

    Where the call may change something, that is on the disk before this returns.

    Raises:
        Failure: `rate_limited`, `budget_exceeded`, `permission_denied`: others were quicker; `governance_unavailable`.
    """
    request = chain.request
    surroundings, recorder, definition = request.surroundings, request.recorder, target.definition
    session, run = request.session.id if request.session is not None else None, request.run
    ledger = surroundings.ledger
    arguments, governance, mode = judged.arguments, judged.governance, chain.mode
    before = entered(target, arguments, chain)
    allowed_by = approval.id if approval is not None else None
    counted = ledger is not None and (windows or session or (approval is not None and approval.id))
    with ledger.exclusively() if ledger is not None and counted else nullcontext():
        if counted and ledger is not None:
            if windows:
                _rate_limits(surroundings).demand(windows, _line(request), definition.name)
            if request.session is not None and surroundings.sessions is not None:
                # A person may have taken days to answer: waiting stops the call's clock, not the lease's.
                surroundings.sessions.demand(request.session, definition.name)
                if before is None:
                    surroundings.sessions.afford(request.session, definition.name)
            if approval is not None and surroundings.approvals is not None and approval.id:
                surroundings.approvals.use(approval, chain.call.id)
            if before is None and (windows or session):
                use: dict[str, Json] = {"session": session, "used": {"calls": 1}}
                if windows:
                    use |= _rate_limits(surroundings).use(windows, _line(request))
                try:
                    ledger.append("use", use)
                except Failure as failure:
                    raise unkept(failure) from None
        mark = recorder.decided(
            chain.call,
            definition,
            arguments,
            decision,
            mode,
            rules=governance.revision,
            session=session,
            run=run.id if run.steps is not None and not chain.depth else None,
            approval=allowed_by or (before.approval if before is not None else None),
            reason=reason_of(request.invocation) if not chain.depth else None,
        )
        if run.steps is not None and (before is None or allowed_by) and (target.version or not chain.depth):
            run.steps.enter(chain.step, definition, arguments, mode, allowed_by)
    request.begun = request.begun or not chain.depth
    # A saved tool does nothing by itself; its calls are recorded one by one.
    if not target.changes:
        return
    if run.steps is None:
        await recorder.durable(mark)
    else:
        given, stood = chain.given if chain.depth else arguments, await _before(target, arguments, chain)
        run.steps.begun(step_of(chain), definition, given, stood)
        await asyncio.gather(recorder.durable(mark), run.steps.sync())
    if approval is not None and not _still(surroundings, mode, governance):
        raise Failure(
            "permission_denied",
            f"the rules or the mode have changed since a person was asked about {definition.name}",
            hint="call again; it is judged anew",
            rule="approval",
            tool=definition.name,
        )


def _valid(target: Target, given: Any, surroundings: Surroundings) -> dict[str, Any]:
    try:
        arguments = validated(target.definition, given)
        if target.primitive is not None:
            target.primitive.demand(arguments)
        return arguments
    except Failure as failure:
        if failure.rule == "path_traversal":
            surroundings.modes.violation()
        raise


def _in_session(tool: str, request: Request, first: bool) -> None:
    """The session is alive, and the tool within its lease.

    Raises:
        Failure: `permission_denied`.
    """
    surroundings, token, resumed = request.surroundings, request.invocation.session, request.run.session
    if first and (token is not None or resumed is not None) and not surroundings.scratch:
        if surroundings.sessions is None or isinstance(surroundings.workspace, Failure):
            surroundings.ruling()
            raise Failure("permission_denied", "there are no sessions here", rule="session.unknown", tool=tool)
        root = str(surroundings.workspace.root)
        if resumed is not None:
            request.session = surroundings.sessions.find_for_run(resumed, root, request.run.id)
        else:
            request.session = surroundings.sessions.find(token or "", root)
        if request.session.cwd:
            request.workspace = surroundings.workspace.at(request.session.cwd)
    if request.session is not None and surroundings.sessions is not None:
        surroundings.sessions.demand(request.session, tool)


def _judged(target: Target, arguments: dict[str, Any], chain: Chain, authority: Authority, mode: Mode) -> Decision:
    request = chain.request
    try:
        found = authority.judge(target.definition, target.primitive, arguments, request.workspace, mode)
        decision = strictest(found)
        chain.asks = ()
        if decision.verdict == "ask":
            about = {d: arguments_digest(arguments) if d.subject == WHOLE_CALL else d.subject for d in found}
            chain.asks = tuple(sorted({(d.rule, about[d]) for d in found if d.verdict == "ask"}))
        elif decision.verdict == "deny" and decision.rule == "outside_workspace":
            request.surroundings.modes.violation()
        return decision
    except Failure as failure:
        if failure.rule in ("path_traversal", "outside_workspace"):
            request.surroundings.modes.violation()
        failure.tool = failure.tool or target.definition.name
        raise


async def _before(target: Target, arguments: dict[str, Any], chain: Chain) -> str | None:
    """What stands where the call would change something, for whoever finds out later whether it has."""
    primitive = target.primitive
    if primitive is None or primitive.settle is None or not primitive.paths:
        return None
    authority = chain.request.surroundings.ruling()[1]
    workspace = chain.request.workspace
    if authority is not None:
        workspace = authority.reaching(workspace)
    return await asyncio.to_thread(standing_objects, primitive, arguments, workspace)


async def _settle(primitive: Primitive, judged: Judged, known: Step, chain: Chain, own: list[Effect]) -> None:
    from albert_tools.engine.runs.recovery import settle

    if chain.settled is None:
        chain.settled = await settle(primitive, judged, known, chain, own)
        known.unknown = known.unknown and chain.settled.outcome != "not applied" and not chain.answered


def _again_is_harmless(target: Target, arguments: Mapping[str, Json], chain: Chain) -> bool:
    if chain.settled is not None:
        return chain.settled.outcome == "not applied" or chain.answered
    return target.primitive is None or target.primitive.repeatable(arguments)


def _interrupted(chain: Chain, name: str) -> Decision:
    if chain.settled is not None and chain.settled.outcome == "applied":
        what = "was cut short after it was done, and what it answered is not known; doing it again is doing it twice"
    else:
        what = "was cut short, and whether it was done is not known; doing it may be doing it twice"
    hint = "see what is there before saying yes"
    return Decision("ask", "interrupted", "interrupted", f"{name} (step {step_of(chain)}) {what}", hint)


def _still(surroundings: Surroundings, mode: str, governance: Governance) -> bool:
    """Whether a call would be judged now by what it was judged by."""
    surroundings.modes.look()
    return surroundings.modes.mode == mode and surroundings.ruling()[0].revision == governance.revision


def _rate_limits(surroundings: Surroundings) -> RateLimits:
    if surroundings.rate_limits is None:
        raise Failure(
            "governance_unavailable", "the rules limit how often this is called, and calls can't be counted here"
        )
    return surroundings.rate_limits


def _allowed(begun: Entered, mode: Mode, request: Request) -> bool:
    """Whether a person has allowed what was begun: the journal says so, and the record of the answer does."""
    desk = request.surroundings.approvals
    if not begun.approval or begun.mode != mode or desk is None:
        return False
    try:
        known = desk.get(begun.approval)
    except Failure:
        return False
    return known.id == begun.approval and known.tool == begun.tool and known.state in ("used", "standing")


def _line(request: Request) -> list[str]:
    """The session and those it is within, whose windows a call is counted in."""
    sessions = request.surroundings.sessions
    return [] if request.session is None or sessions is None else sessions.lineage(request.session)


def _demand_harmless(target: Target, chain: Chain, governance: Governance) -> None:
    """In an example only what stays in its scratch workspace is done for real.

    Raises:
        Failure: `permission_denied`.
    """
    name = target.definition.name
    if name in chain.request.surroundings.stubs and chain.depth:
        return
    if name in governance.denied:
        hint = "the owner's governance.yaml says so"
        raise Failure("permission_denied", f"{name} is denied by the rules", hint=hint, rule="deny", tool=name)
    if target.primitive is not None and not _stays_inside(target.primitive):
        raise Failure(
            "permission_denied",
            f"{name} is not done for real in an example",
            hint=f'give the example its answer: stubs={{"{name}": …}}',
            rule="scratch",
            tool=name,
        )


def _stays_inside(primitive: Primitive) -> bool:
    """Whether a call can do nothing outside the workspace it is given, and needs nobody's permission."""
    if primitive.gated:
        return False
    effects = set(primitive.definition.effects)
    return effects <= {"read"} or (primitive.context is not None and effects <= {"read", "write", "delete"})
