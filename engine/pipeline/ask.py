"""Ask a person for approval. Question and answer are entries of the ledger, and the call continues after the answer.

If the application can ask a person, it asks during the call. All clocks of the request are stopped meanwhile. Otherwise the call
waits for an answer from another process, at most `ServiceContext.patience` seconds. Then its run is suspended; it can be resumed
after the answer. After any answer the call is authorized again from the start, because the rules, the mode or the file may have
changed in the meantime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from albert_tools.engine.authority.approval_digest import action_of
from albert_tools.engine.authority.approvals import Approval, Approvals, Scope, arguments_digest
from albert_tools.engine.authority.authorization import (
    CHOICES,
    Answer,
    Choice,
    Question,
    nobody_to_ask,
    refused_by_person,
)
from albert_tools.engine.call.context import Call, Request
from albert_tools.engine.call.ledger import reason_of
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import recorded, redacted_text
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, export

#: Seconds between two checks for an answer from another process.
_POLL_SECONDS = 0.1
#: The name of the person who answered, if the application gives no name; and the longest recorded name, in characters.
UNNAMED = "the application, asked in the call"
MAX_BY = 256


async def approved(
    target: Target,
    arguments: dict[str, Any],
    decision: Decision,
    mode: str,
    rules: str,
    call: Call,
    clock: Callable[[], float],
) -> Approval | None:
    """Find the approval for a call. If there is none yet, ask a person.

    Args:
        target: The tool.
        arguments: The valid arguments.
        decision: The decision to ask. It was made in `mode` by the rules of revision `rules`.
        mode: The mode of the decision.
        rules: The revision of the rules that made the decision.
        call: The call.
        clock: A monotonic clock, in seconds.

    Returns:
        The approval, which is used up when the call begins; None if a person has just answered. The call must then be authorized
        again.

    Raises:
        Failure: `permission_denied` if nobody can be asked or the answer is no; `suspended` if the run waits for the answer.
    """
    request = call.request
    name, approvals = target.definition.name, request.context.approvals
    if approvals is None:
        # Without a ledger, nothing is recorded, so only an answer during the call counts.
        if request.context.ask is None:
            raise nobody_to_ask(decision, name)
        if _choice(await _ask_application(_question(target, arguments, decision, call), call, clock))[0] == "no":
            raise refused_by_person(decision, name)
        return Approval("", "", name, "", None, decision.rule, "", 0, 0)
    # A lasting answer doesn't cover an interrupted step, because the question concerns this one step.
    interrupted = decision.rationale == "interrupted"
    scope = None if interrupted else _scope(target, arguments, mode, call)
    lasting = approvals.standing(scope) if scope is not None else None
    if lasting is not None:
        return lasting
    # A call from outside keeps its identity when it is repeated. A call by a program is identified by its run and its step.
    caller = request.origin or "owner"
    place = f"{caller} {request.run.id}:{call.step}" if call.depth else caller
    if interrupted and request.run.journal is not None:
        # An unused yes to the first attempt must not authorize the second attempt.
        begun = request.run.journal.times_begun(call.step or "0")
        place = f"{caller} {request.run.id}:{call.step} begun {begun} times"
    authority = request.context.ruling()[1]
    workspace = request.workspace if authority is None else authority.reaching(request.workspace)
    action, objects = await asyncio.to_thread(
        action_of,
        target.definition,
        target.primitive,
        arguments,
        call.trail,
        place,
        workspace,
        (mode, rules, decision.rule),
    )
    approval = approvals.about(action)
    if approval is not None and approval.state == "yes":
        call.approved = objects
        return approval
    if approval is not None and approval.state == "no":
        _use_up(approvals, approval, call)
        raise refused_by_person(decision, name)
    if approval is None:
        if request.context.ask is None and (request.context.patience is None or request.context.scratch):
            raise nobody_to_ask(decision, name)
        approval = approvals.ask(_facts(target, arguments, decision, action, call), scope)
        _write_question(approval, arguments, call)
    if request.context.ask is not None:
        question = _question(target, arguments, decision, call, approval)
        try:
            answer = await _ask_application(question, call, clock, approvals)
        except BaseException:
            # The call was cancelled, so nobody waits for the answer.
            with suppress(Failure):
                approvals.revoke(approval.id)
            raise
        if answer is None:
            return None
        choice, by = _choice(answer)
        if not _record_answer(approvals, approval, choice, by) and choice == "no":
            # Another answer was recorded first. A no during the call still denies the call.
            if approvals.get(approval.id).state == "yes":
                with suppress(Failure):
                    approvals.revoke(approval.id)
            raise refused_by_person(decision, name)
        return None
    if await _answered_elsewhere(approvals, approval, call, clock):
        return None
    reason = "; the question is new, because the rules or the files have changed" if approval.instead_of else ""
    raise Failure(
        "suspended",
        f"{decision.message}; the run waits for the answer{reason}",
        hint=f"a person answers with `albert approvals answer {approval.id} once`; then the run {request.run.id} can be resumed",
        rule=decision.rule,
        tool=name,
        details={"approval": approval.id, "run": request.run.id, "expires": approval.expires},
    )


def _scope(target: Target, arguments: dict[str, Any], mode: str, call: Call) -> Scope:
    """The calls to which a lasting answer would apply."""
    definition, digest = target.definition, "" if call.trail else arguments_digest(arguments)
    return Scope(definition.name, definition.version, call.request.principal, mode, call.trail, digest, call.asks)


def _write_question(approval: Approval, arguments: dict[str, Any], call: Call) -> None:
    """Write the question to the journal with its complete arguments. The ledger contains shortened arguments."""
    journal = call.request.run.journal
    if journal is not None:
        with suppress(Failure):
            journal.ask(call.step or "0", approval.id, arguments)


def _question(
    target: Target, arguments: dict[str, Any], decision: Decision, call: Call, approval: Approval | None = None
) -> Question:
    # The application gets a copy, so it can't change the arguments of the call.
    shown = export(arguments, MAX_ANSWER)
    reason = reason_of(call.request.invocation)
    if approval is None:
        return Question(target.definition, shown, decision, call.callers, reason)
    return Question(target.definition, shown, decision, call.callers, reason, approval.id, approval.choices)


def _facts(target: Target, arguments: dict[str, Any], decision: Decision, action: str, call: Call) -> dict[str, Any]:
    d, request = target.definition, call.request
    return {
        "action": action,
        "tool": d.name,
        "version": d.version,
        "arguments": recorded(arguments, d.by_hash),
        "rule_id": decision.rule,
        "message": decision.message,
        "reason": reason_of(call.request.invocation),
        "risk": d.risk,
        "callers": list(call.callers),
        "trail": list(call.trail),
        "session": request.origin or "",
        "run": request.run.id,
        "step": call.step,
        "workspace": str(request.workspace.root),
    }


async def _ask_application(
    question: Question, call: Call, clock: Callable[[], float], approvals: Approvals | None = None
) -> Answer | Any:
    """The person's answer; None if another process has answered in the meantime. All clocks of the request are stopped."""
    request = call.request
    assert request.context.ask is not None
    with _stopped_clocks(request, clock):
        async with request.asking:
            if approvals is not None and approvals.get(question.id).state != "open":
                return None
            asked = asyncio.ensure_future(request.context.ask(question))
            try:
                while not (await asyncio.wait({asked}, timeout=_POLL_SECONDS if approvals is not None else None))[0]:
                    approval = approvals.get(question.id) if approvals is not None else None
                    if approval is not None and approval.state != "open":
                        asked.cancel(_why_closed(approval))
                        await asyncio.wait({asked})
                        # An answer that arrives at the same moment still counts.
                        return None if asked.cancelled() else asked.result()
            except asyncio.CancelledError:
                asked.cancel()
                await asyncio.wait({asked})
                raise
            if asked.cancelled():
                raise RuntimeError("the application cancelled the question")
            return asked.result()


@contextmanager
def _stopped_clocks(request: Request, clock: Callable[[], float]) -> Iterator[None]:
    """Stop all clocks of a request. Several of its calls can ask at the same time. The clocks restart after the last answer."""
    request.open_questions += 1
    try:
        if request.open_questions == 1:
            request.open_since = clock()
            for run in request.runs:
                run.pause()
        yield
    finally:
        request.open_questions -= 1
        if not request.open_questions:
            request.waited += clock() - request.open_since
            for run in request.runs:
                run.go_on()


def _choice(answer: Any) -> tuple[Choice, str]:
    """The choice and the name of the person. An invalid answer counts as no."""
    by = UNNAMED
    if isinstance(answer, Answer):
        if isinstance(answer.by, str) and answer.by:
            by = redacted_text(answer.by, MAX_BY)
        answer = answer.choice
    if answer is True:
        return "once", by
    return answer if isinstance(answer, str) and answer in CHOICES else "no", by


def _why_closed(approval: Approval) -> str:
    """The reason why the question is closed, for the application that is asking it."""
    by = f", by {approval.by}" if approval.by else ""
    return f"answered elsewhere: {approval.choice}{by}" if approval.choice else f"the question is {approval.state}"


def _record_answer(approvals: Approvals, approval: Approval, choice: Choice, by: str) -> bool:
    """Record an answer. Returns False if another answer exists, or the question was revoked or has expired."""
    try:
        approvals.answer(approval.id, choice if choice in approval.choices else "once", by)
    except Failure as failure:
        if failure.code not in ("exists", "timeout"):
            raise
        return False
    return True


async def _answered_elsewhere(approvals: Approvals, approval: Approval, call: Call, clock: Callable[[], float]) -> bool:
    """Wait for an answer from another process. Returns whether it arrived in time."""
    request = call.request
    began, patience = clock(), request.context.patience or 0.0
    if not patience:
        return False
    with _stopped_clocks(request, clock):
        while clock() - began < patience:
            await asyncio.sleep(_POLL_SECONDS)
            if approvals.get(approval.id).state != "open":
                return True
    return False


def _use_up(approvals: Approvals, approval: Approval, call: Call) -> None:
    ledger = call.request.context.ledger
    assert ledger is not None
    with ledger.transaction():
        approvals.use(approval, call.id)
