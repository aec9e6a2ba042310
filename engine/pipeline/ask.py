"""Asking a person: the question and the answer are entries of the ledger, and the call continues when there is an answer.

If the application can ask, it is asked within the call, while all clocks of the request are stopped. Otherwise the call waits for
as long as `ServiceContext.patience` says for an answer from another process; then its run is suspended, and can be resumed after
the answer. After any answer the call is judged again from the start: the rules, the mode or the file may have changed meanwhile.
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
#: Who answered, if the application doesn't say; and the longest name that is recorded, in characters.
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
    """The approval for a call, asking a person if there is none yet.

    Args:
        target: The tool.
        arguments: The valid arguments.
        decision: The decision to ask, made in `mode` by the rules of revision `rules`.
        mode: See `decision`.
        rules: See `decision`.
        call: The call.
        clock: Seconds from any point.

    Returns:
        The approval, which is used up as the call begins; None if a person has just answered, so the call is to be judged again.

    Raises:
        Failure: `permission_denied`: nobody can be asked, or the answer is no; `suspended`: the run waits for the answer.
    """
    request = call.request
    name, approvals = target.definition.name, request.context.approvals
    if approvals is None:
        # Nothing is recorded here, so only an answer within the call counts.
        if request.context.ask is None:
            raise nobody_to_ask(decision, name)
        if _choice(await _ask_application(_question(target, arguments, decision, call), call, clock))[0] == "no":
            raise refused_by_person(decision, name)
        return Approval("", "", name, "", None, decision.rule, "", 0, 0)
    scope = Scope(
        name,
        target.definition.version,
        request.principal,
        mode,
        call.trail,
        "" if call.trail else arguments_digest(arguments),
        call.asks,
    )
    # A lasting answer doesn't cover an interrupted step: the question is about this very step.
    interrupted = decision.rationale == "interrupted"
    lasting = None if interrupted else scope
    standing = approvals.standing(lasting) if lasting is not None else None
    if standing is not None:
        return standing
    # A call from outside is the same call whenever it is made. A call of a program is one step of one run.
    whose = request.origin or "owner"
    place = f"{whose} {request.run.id}:{call.step}" if call.depth else whose
    if lasting is None and request.run.journal is not None:
        # An unused yes to the first attempt must not answer for the second.
        begun = request.run.journal.times_begun(call.step or "0")
        place = f"{whose} {request.run.id}:{call.step} begun {begun} times"
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
    known = approvals.about(action)
    if known is not None and known.state == "yes":
        call.approved = objects
        return known
    if known is not None and known.state == "no":
        _use_up(approvals, known, call)
        raise refused_by_person(decision, name)
    if known is None:
        if request.context.ask is None and (request.context.patience is None or request.context.scratch):
            raise nobody_to_ask(decision, name)
        known = approvals.ask(_facts(target, arguments, decision, action, call), lasting)
        _write_question(known, arguments, call)
    if request.context.ask is not None:
        question = _question(target, arguments, decision, call, known)
        try:
            answer = await _ask_application(question, call, clock, approvals)
        except BaseException:
            # The call was cancelled, so nobody waits for the answer.
            with suppress(Failure):
                approvals.revoke(known.id)
            raise
        if answer is None:
            return None
        choice, by = _choice(answer)
        if not _record_answer(approvals, known, choice, by) and choice == "no":
            # Another answer came first. A no within the call still denies it.
            if approvals.get(known.id).state == "yes":
                with suppress(Failure):
                    approvals.revoke(known.id)
            raise refused_by_person(decision, name)
        return None
    if await _answered_elsewhere(approvals, known, call, clock):
        return None
    reason = "; the question is new, because the rules or the files have changed" if known.instead_of else ""
    raise Failure(
        "suspended",
        f"{decision.message}; the run waits for the answer{reason}",
        hint=f"a person answers with `albert approvals answer {known.id} once`; then the run {request.run.id} can be resumed",
        rule=decision.rule,
        tool=name,
        details={"approval": known.id, "run": request.run.id, "expires": known.expires},
    )


def _write_question(known: Approval, arguments: dict[str, Any], call: Call) -> None:
    """Write the question to the journal with its whole arguments, which the ledger shortens."""
    journal = call.request.run.journal
    if journal is not None:
        with suppress(Failure):
            journal.ask(call.step or "0", known.id, arguments)


def _question(
    target: Target, arguments: dict[str, Any], decision: Decision, call: Call, known: Approval | None = None
) -> Question:
    # A copy, so that the application can't change the arguments of the call.
    shown = export(arguments, MAX_ANSWER)
    reason = reason_of(call.request.invocation)
    if known is None:
        return Question(target.definition, shown, decision, call.callers, reason)
    return Question(target.definition, shown, decision, call.callers, reason, known.id, known.choices)


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
    """The person's answer; None if another process has answered meanwhile. All clocks of the request are stopped."""
    request = call.request
    assert request.context.ask is not None
    with _stopped_clocks(request, clock):
        async with request.asking:
            if approvals is not None and approvals.get(question.id).state != "open":
                return None
            asked = asyncio.ensure_future(request.context.ask(question))
            try:
                while not (await asyncio.wait({asked}, timeout=_POLL_SECONDS if approvals is not None else None))[0]:
                    known = approvals.get(question.id) if approvals is not None else None
                    if known is not None and known.state != "open":
                        asked.cancel(_why_closed(known))
                        await asyncio.wait({asked})
                        # An answer given at the same moment is still taken.
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
    """Stop all clocks of a request. Several of its calls can ask at once; the clocks run again after the last answer."""
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
    """The choice and who made it. Anything but a known choice is a no."""
    by = UNNAMED
    if isinstance(answer, Answer):
        if isinstance(answer.by, str) and answer.by:
            by = redacted_text(answer.by, MAX_BY)
        answer = answer.choice
    if answer is True:
        return "once", by
    return answer if isinstance(answer, str) and answer in CHOICES else "no", by


def _why_closed(known: Approval) -> str:
    """Why the question is closed, for the application that is asking it."""
    by = f", by {known.by}" if known.by else ""
    return f"answered elsewhere: {known.choice}{by}" if known.choice else f"the question is {known.state}"


def _record_answer(approvals: Approvals, known: Approval, choice: Choice, by: str) -> bool:
    """Record an answer; False if there is another answer, or the question was revoked or has expired."""
    try:
        approvals.answer(known.id, choice if choice in known.choices else "once", by)
    except Failure as failure:
        if failure.code not in ("exists", "timeout"):
            raise
        return False
    return True


async def _answered_elsewhere(approvals: Approvals, known: Approval, call: Call, clock: Callable[[], float]) -> bool:
    """Wait for an answer from another process; False if there is none in time."""
    request = call.request
    began, patience = clock(), request.context.patience or 0.0
    if not patience:
        return False
    with _stopped_clocks(request, clock):
        while clock() - began < patience:
            await asyncio.sleep(_POLL_SECONDS)
            if approvals.get(known.id).state != "open":
                return True
    return False


def _use_up(approvals: Approvals, known: Approval, call: Call) -> None:
    ledger = call.request.context.ledger
    assert ledger is not None
    with ledger.exclusively():
        approvals.use(known, call.id)
