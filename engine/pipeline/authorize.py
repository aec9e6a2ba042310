"""Stages 2 and 3 of the pipeline: validate and authorize a call, and record that it begins.

A call begins in an exclusive section, which only one process can enter at a time. There the call is charged, its approval is used
up, and its decision is recorded. Any fault before the call begins is a denial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from albert_tools.engine.authority.approvals import arguments_digest
from albert_tools.engine.authority.authorization import Authority, needs_parsing, parse_ahead
from albert_tools.engine.call.arguments import validated_arguments
from albert_tools.engine.call.budget import session_seconds
from albert_tools.engine.call.context import Authorized, Call, Repeated, Request, ServiceContext
from albert_tools.engine.call.errors import cannot_authorize
from albert_tools.engine.call.journal import Entered, Step
from albert_tools.engine.call.ledger import not_recorded, reason_of
from albert_tools.engine.call.lookup import Lookup, Target
from albert_tools.engine.model.definition import Json, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect
from albert_tools.engine.policy.decision import WHOLE_CALL, Decision, strictest
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.runs.lifecycle import begin_run
from albert_tools.engine.runs.replay import entered, step_of

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.authority.rate_limit import RateLimits

#: The most questions about one call. A new question is needed if the call's objects change while a person decides.
MAX_QUESTIONS = 3


class Authorizer:
    """Authorizes calls. If a call is not authorized, raises the failure with the reason."""

    def __init__(self, lookup: Lookup, clock: Callable[[], float]) -> None:
        self._lookup = lookup
        self._clock = clock

    async def permit(
        self, target: Target, given: Any, call: Call, step: Step | None, effects: list[Effect]
    ) -> Authorized:
        """Authorize a call and record its decision.

        Args:
            target: The tool.
            given: The arguments as the caller gave them.
            call: The call.
            step: The step of the journal, if the call had begun before it was interrupted.
            effects: A list to which the effects of such an interrupted call are added.

        Returns:
            The authorized call. It must be executed immediately.

        Raises:
            Failure: The arguments are invalid, the call is denied, or a fault prevented the decision.
            Repeated: The call was already made with the same dedupe key.
        """
        request, definition = call.request, target.definition
        context, began = request.context, self._clock()
        try:
            arguments = _valid(target, given, context)
            _check_session(definition.name, request, first=not call.depth)
            if not call.depth and not context.scratch:
                call.deadline = min(call.deadline, self._clock() + session_seconds(request))
                request.arguments = arguments
                if request.invocation.dedupe_key or request.run.repeat is not None:
                    from albert_tools.engine.pipeline.repeat import begin_once

                    await begin_once(request, target, arguments, call.deadline, self._clock)
            if target.primitive is not None and needs_parsing(target.primitive):
                # Parsing can take seconds, so it runs in a thread.
                await asyncio.to_thread(parse_ahead, target.primitive, arguments)
            for _ in range(MAX_QUESTIONS + 1):
                call.approved = None
                context.modes.look()
                mode = context.modes.mode
                authorized, decision = self._authorize(target, arguments, call, mode)
                governance, authority = authorized.governance, authorized.authority
                if not call.depth:
                    # The rules can only shorten the deadline.
                    call.deadline = min(call.deadline, began + governance.limits.run_seconds)
                if decision is None or authority is None or request.run.dry:
                    return authorized
                if step is not None:
                    from albert_tools.engine.runs.recovery import recover

                    problem = await recover(target, authorized, step, call, effects)
                    if problem is not None:
                        hint = "check whether it was done before you say yes"
                        decision = strictest([Decision("ask", "interrupted", "interrupted", problem, hint), decision])
                        call.asks = (*call.asks, ("interrupted", call.id))
                call.decision, call.mode = decision, mode
                if not call.depth:
                    request.decision = decision
                if call.answered:
                    return authorized
                before = entered(target, arguments, call)
                windows = () if before is not None else authority.policy.rate_limits(definition)
                if windows:
                    _rate_limits(context).demand(windows, _session_line(request), definition.name)
                if request.session is not None and context.sessions is not None and before is None:
                    context.sessions.afford(request.session, definition.name)
                approval = None
                approved_before = before is not None and not target.changes and _approved_before(before, mode, request)
                if decision.verdict == "ask" and not approved_before:
                    from albert_tools.engine.pipeline.ask import approved

                    rules = governance.revision
                    approval = await approved(target, arguments, decision, mode, rules, call, self._clock)
                    if approval is None or not _rules_unchanged(context, mode, governance):
                        continue
                if not context.scratch:
                    begin_run(request, target, arguments, call)
                await _begin(target, authorized, call, decision, windows, approval)
                return authorized
            raise Failure(
                "permission_denied",
                f"what {definition.name} would do changed each time a person was asked about it",
                hint="wait until other work on these files has finished, then call again",
                rule="approval",
                tool=definition.name,
            )
        except (Failure, Repeated):
            raise
        except Exception as fault:
            raise cannot_authorize(fault) from fault

    def _authorize(
        self, target: Target, arguments: dict[str, Any], call: Call, mode: Mode
    ) -> tuple[Authorized, Decision | None]:
        name, request = target.definition.name, call.request
        governance, authority = request.context.ruling()
        if target.version is not None and call.depth >= MAX_TOOL_DEPTH:
            raise Failure(
                "depth_limit",
                f"saved tools call each other more than {MAX_TOOL_DEPTH} deep",
                hint="call the tools further down directly",
                tool=name,
            )
        decision: Decision | None = None
        if authority is None:
            _check_example(target, call, governance)
        else:
            decision = _decide(target, arguments, call, authority, mode)
            if decision.verdict == "deny":
                call.decision, call.mode = decision, mode
                if not call.depth:
                    request.decision = decision
                raise decision.failure(name)
        if target.version is not None and not call.depth:
            problem = self._lookup.outdated(target.version)
            if problem:
                raise Failure(
                    "outdated",
                    f"{name} is outdated: {problem}",
                    hint="define it again from its source, in an application that has all it calls",
                    tool=name,
                )
        return Authorized(arguments, governance, authority), decision


async def _begin(
    target: Target,
    authorized: Authorized,
    call: Call,
    decision: Decision,
    windows: tuple[tuple[str, int], ...],
    approval: Approval | None,
) -> None:
    """Charge the call, use up its approval and record its decision, in one exclusive section.

    If the call may change something, all these entries are on the disk before the function returns.

    Raises:
        Failure: `rate_limited`, `budget_exceeded`; `permission_denied` if another call used the approval first;
            `governance_unavailable`.
    """
    request = call.request
    context, recorder, definition = request.context, request.recorder, target.definition
    session, run = request.session.id if request.session is not None else None, request.run
    ledger = context.ledger
    arguments, governance, mode = authorized.arguments, authorized.governance, call.mode
    before = entered(target, arguments, call)
    approval_id = approval.id if approval is not None else None
    counted = ledger is not None and (windows or session or approval_id)
    with ledger.transaction() if ledger is not None and counted else nullcontext():
        if counted and ledger is not None:
            if windows:
                _rate_limits(context).demand(windows, _session_line(request), definition.name)
            if request.session is not None and context.sessions is not None:
                # The lease may have expired while a person decided, because a question only stops the clock of the call.
                context.sessions.demand(request.session, definition.name)
                if before is None:
                    context.sessions.afford(request.session, definition.name)
            if approval is not None and context.approvals is not None and approval.id:
                context.approvals.use(approval, call.id)
            if before is None and (windows or session):
                use: dict[str, Json] = {"session": session, "used": {"calls": 1}}
                if windows:
                    use |= _rate_limits(context).use(windows, _session_line(request))
                try:
                    ledger.append("use", use)
                except Failure as failure:
                    raise not_recorded(failure) from None
        mark = recorder.decided(
            call,
            definition,
            arguments,
            decision,
            mode,
            rules=governance.revision,
            session=session,
            run=run.id if run.journal is not None and not call.depth else None,
            approval=approval_id or (before.approval if before is not None else None),
            reason=reason_of(request.invocation) if not call.depth else None,
        )
        if run.journal is not None and (before is None or approval_id) and (target.version or not call.depth):
            run.journal.enter(call.step, definition, arguments, mode, approval_id)
    if not target.changes:
        return
    if run.journal is None:
        await recorder.durable(mark)
    else:
        from albert_tools.engine.runs.recovery import state_before

        state = await state_before(target, authorized, call)
        run.journal.begin_step(step_of(call), definition, call.given if call.depth else arguments, state)
        await asyncio.gather(recorder.durable(mark), run.journal.sync())
    if approval is not None and not _rules_unchanged(context, mode, governance):
        raise Failure(
            "permission_denied",
            f"the rules or the mode have changed since a person was asked about {definition.name}",
            hint="call again; it is judged by the new rules",
            rule="approval",
            tool=definition.name,
        )


def _valid(target: Target, given: Any, context: ServiceContext) -> dict[str, Any]:
    try:
        arguments = validated_arguments(target.definition, given)
        if target.primitive is not None:
            target.primitive.demand(arguments)
        return arguments
    except Failure as failure:
        if failure.rule == "path_traversal":
            context.modes.violation()
        raise


def _check_session(tool: str, request: Request, first: bool) -> None:
    """Find the session of the first call. Check that it is active and that its lease includes the tool.

    Raises:
        Failure: `permission_denied`.
    """
    context, token, resumed = request.context, request.invocation.session, request.run.session
    if first and (token is not None or resumed is not None) and not context.scratch:
        if context.sessions is None or isinstance(context.workspace, Failure):
            context.ruling()
            raise Failure("permission_denied", "this service has no sessions", rule="session.unknown", tool=tool)
        root = str(context.workspace.root)
        if resumed is not None:
            request.session = context.sessions.find_for_run(resumed, root, request.run.id)
        else:
            request.session = context.sessions.find(token or "", root)
        if request.session.cwd:
            request.workspace = context.workspace.at(request.session.cwd)
    if request.session is not None and context.sessions is not None:
        context.sessions.demand(request.session, tool)


def _decide(target: Target, arguments: dict[str, Any], call: Call, authority: Authority, mode: Mode) -> Decision:
    request = call.request
    try:
        found = authority.judge(target.definition, target.primitive, arguments, request.workspace, mode)
        decision = strictest(found)
        call.asks = ()
        if decision.verdict == "ask":
            about = {d: arguments_digest(arguments) if d.subject == WHOLE_CALL else d.subject for d in found}
            call.asks = tuple(sorted({(d.rule, about[d]) for d in found if d.verdict == "ask"}))
        elif decision.verdict == "deny" and decision.rule == "outside_workspace":
            request.context.modes.violation()
        return decision
    except Failure as failure:
        if failure.rule in ("path_traversal", "outside_workspace"):
            request.context.modes.violation()
        failure.tool = failure.tool or target.definition.name
        raise


def _rules_unchanged(context: ServiceContext, mode: str, governance: Governance) -> bool:
    """Whether the rules and the mode are still those that authorized the call."""
    context.modes.look()
    return context.modes.mode == mode and context.ruling()[0].revision == governance.revision


def _rate_limits(context: ServiceContext) -> RateLimits:
    if context.rate_limits is None:
        raise Failure(
            "governance_unavailable", "the rules limit how often this is called, and this service doesn't count calls"
        )
    return context.rate_limits


def _approved_before(begun: Entered, mode: Mode, request: Request) -> bool:
    """Whether a person has allowed the call that had begun, according to the journal and the record of the answer."""
    approvals = request.context.approvals
    if not begun.approval or begun.mode != mode or approvals is None:
        return False
    try:
        known = approvals.get(begun.approval)
    except Failure:
        return False
    return known.id == begun.approval and known.tool == begun.tool and known.state in ("used", "standing")


def _session_line(request: Request) -> list[str]:
    """The session and its parent sessions. The call counts for all of them."""
    sessions = request.context.sessions
    return [] if request.session is None or sessions is None else sessions.lineage(request.session)


def _check_example(target: Target, call: Call, governance: Governance) -> None:
    """Check that a call of an example has no effect outside its temporary workspace.

    Raises:
        Failure: `permission_denied`.
    """
    name = target.definition.name
    if name in call.request.context.stubs and call.depth:
        return
    if name in governance.denied:
        hint = "the owner's governance.yaml denies it"
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
    """Whether a call can only change its workspace and needs no permission."""
    if primitive.gated:
        return False
    effects = set(primitive.definition.effects)
    return effects <= {"read"} or (primitive.context is not None and effects <= {"read", "write", "delete"})
