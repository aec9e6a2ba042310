"""Asking a person: the question is a record, the answer too, and the call goes on once it is there.

Whoever is at hand is asked in the call, and the clocks stand still meanwhile. Where nobody is, the call waits for as long as it was
told to for an answer from elsewhere; then its run is suspended, and goes on when the answer has come. After any answer the call is
judged again from the top: the rules, the mode, the file that it would overwrite may have changed while the person thought.
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
from albert_tools.engine.call.context import Chain, Request
from albert_tools.engine.call.ledger import reason_of
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import recorded, redacted_text
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, export

#: Seconds between two looks for an answer from elsewhere.
_PAUSE = 0.1
#: Who has answered, where the application doesn't say; and characters of a name that are kept.
UNNAMED = "the application, asked in the call"
MAX_BY = 256


async def approved(
    target: Target,
    arguments: dict[str, Any],
    decision: Decision,
    mode: str,
    rules: str,
    chain: Chain,
    clock: Callable[[], float],
) -> Approval | None:
    """The answer that lets the call be made, to be used up as it begins; None when it is to be judged again.

    `mode` and `rules` (the revision) are what `decision` was made by.

    Raises:
        Failure: `permission_denied`: there is nobody, or the answer is no; `suspended`.
    """
    request = chain.request
    name, desk = target.definition.name, request.surroundings.approvals
    if desk is None:
        # No records, so no runs either: all that counts is what is said here and now.
        if request.surroundings.ask is None:
            raise nobody_to_ask(decision, name)
        if _choice(await _asked(_question(target, arguments, decision, chain), chain, clock))[0] == "no":
            raise refused_by_person(decision, name)
        return Approval("", "", name, "", None, decision.rule, "", 0, 0)
    scope = Scope(
        name,
        target.definition.version,
        request.principal,
        mode,
        chain.trail,
        "" if chain.trail else arguments_digest(arguments),
        chain.asks,
    )
    # Whether to do again what may have been done is a question about this very step.
    interrupted = decision.rationale == "interrupted"
    lasting = None if interrupted else scope
    standing = desk.standing(lasting) if lasting is not None else None
    if standing is not None:
        return standing
    # A call made by hand is the same call whenever it is made; one of a program is that step of that run.
    whose = request.origin or "owner"
    place = f"{whose} {request.run.id}:{chain.step}" if chain.depth else whose
    if lasting is None and request.run.steps is not None:
        # Another question than whether it may be done: a yes to that one, perhaps unused, says nothing about this one.
        place = f"{whose} {request.run.id}:{chain.step} begun {request.run.steps.begins(chain.step or '0')} times"
    authority = request.surroundings.ruling()[1]
    workspace = request.workspace if authority is None else authority.reaching(request.workspace)
    judged = (mode, rules, decision.rule)
    action, objects = await asyncio.to_thread(
        action_of, target.definition, target.primitive, arguments, chain.trail, place, workspace, judged
    )
    known = desk.about(action)
    if known is not None and known.state == "yes":
        chain.approved = objects
        return known
    if known is not None and known.state == "no":
        _use(desk, known, chain)
        raise refused_by_person(decision, name)
    if known is None:
        if request.surroundings.ask is None and (request.surroundings.patience is None or request.surroundings.scratch):
            raise nobody_to_ask(decision, name)
        known = desk.ask(_facts(target, arguments, decision, action, chain), lasting)
        _kept_whole(known, arguments, chain)
    if request.surroundings.ask is not None:
        question = _question(target, arguments, decision, chain, known)
        try:
            answer = await _asked(question, chain, clock, desk)
        except BaseException:
            # Called off: nobody waits for the answer any more.
            with suppress(Failure):
                desk.revoke(known.id)
            raise
        if answer is None:
            return None
        choice, by = _choice(answer)
        if not _answer(desk, known, choice, by) and choice == "no":
            # Somebody else was first. But whoever says no is not overruled here: what they were asked about isn't done.
            if desk.get(known.id).state == "yes":
                with suppress(Failure):
                    desk.revoke(known.id)
            raise refused_by_person(decision, name)
        return None
    if await _answered_elsewhere(desk, known, chain, clock):
        return None
    anew = "; it is asked anew, as the rules or what it would change have changed since" if known.instead_of else ""
    raise Failure(
        "suspended",
        f"{decision.message}; the run waits for the answer{anew}",
        hint=f"a person answers with `albert approvals answer {known.id} once`; then the run {request.run.id} can be resumed",
        rule=decision.rule,
        tool=name,
        details={"approval": known.id, "run": request.run.id, "expires": known.expires},
    )


def _kept_whole(known: Approval, arguments: dict[str, Any], chain: Chain) -> None:
    """What the record of the question shortens stands whole in the run's journal, for whoever answers elsewhere."""
    steps = chain.request.run.steps
    if steps is not None:
        with suppress(Failure):
            steps.asked(chain.step or "0", known.id, arguments)


def _question(
    target: Target, arguments: dict[str, Any], decision: Decision, chain: Chain, known: Approval | None = None
) -> Question:
    # A copy: what is done is what was decided and recorded, whatever becomes of the question.
    shown = export(arguments, MAX_ANSWER)
    reason = reason_of(chain.request.invocation)
    if known is None:
        return Question(target.definition, shown, decision, chain.callers, reason)
    return Question(target.definition, shown, decision, chain.callers, reason, known.id, known.choices)


def _facts(target: Target, arguments: dict[str, Any], decision: Decision, action: str, chain: Chain) -> dict[str, Any]:
    d, request = target.definition, chain.request
    return {
        "action": action,
        "tool": d.name,
        "version": d.version,
        "arguments": recorded(arguments, d.by_hash),
        "rule_id": decision.rule,
        "message": decision.message,
        "reason": reason_of(chain.request.invocation),
        "risk": d.risk,
        "callers": list(chain.callers),
        "trail": list(chain.trail),
        "session": request.origin or "",
        "run": request.run.id,
        "step": chain.step,
        "workspace": str(request.workspace.root),
    }


async def _asked(
    question: Question, chain: Chain, clock: Callable[[], float], desk: Approvals | None = None
) -> Answer | Any:
    """What the person says; None when somebody has answered at the `desk` meanwhile. All clocks of the request stand still."""
    request = chain.request
    assert request.surroundings.ask is not None
    with _standing_still(request, clock):
        async with request.asking:
            if desk is not None and desk.get(question.id).state != "open":
                return None
            asked = asyncio.ensure_future(request.surroundings.ask(question))
            try:
                while not (await asyncio.wait({asked}, timeout=_PAUSE if desk is not None else None))[0]:
                    known = desk.get(question.id) if desk is not None else None
                    if known is not None and known.state != "open":
                        asked.cancel(_told(known))
                        await asyncio.wait({asked})
                        # What was said at the same moment is judged with the other answer.
                        return None if asked.cancelled() else asked.result()
            except asyncio.CancelledError:
                asked.cancel()
                await asyncio.wait({asked})
                raise
            if asked.cancelled():
                raise RuntimeError("whoever was asked gave up")
            return asked.result()


@contextmanager
def _standing_still(request: Request, clock: Callable[[], float]) -> Iterator[None]:
    """Stop all clocks of a request, however many of its calls wait at once."""
    request.open += 1
    try:
        if request.open == 1:
            request.since = clock()
            for run in request.runs:
                run.pause()
        yield
    finally:
        request.open -= 1
        if not request.open:
            request.waited += clock() - request.since
            for run in request.runs:
                run.go_on()


def _choice(answer: Any) -> tuple[Choice, str]:
    """What was said, and by whom. Only what is plainly a yes is one."""
    by = UNNAMED
    if isinstance(answer, Answer):
        if isinstance(answer.by, str) and answer.by:
            by = redacted_text(answer.by, MAX_BY)
        answer = answer.choice
    if answer is True:
        return "once", by
    return answer if isinstance(answer, str) and answer in CHOICES else "no", by


def _told(known: Approval) -> str:
    """What whoever is being asked is told of why they need not answer any more."""
    by = f", by {known.by}" if known.by else ""
    return f"answered elsewhere: {known.choice}{by}" if known.choice else f"the question is {known.state}"


def _answer(desk: Approvals, known: Approval, choice: Choice, by: str) -> bool:
    """Write an answer down; False where somebody else was first, or it was taken back or too late: what the record says holds."""
    try:
        desk.answer(known.id, choice if choice in known.choices else "once", by)
    except Failure as failure:
        if failure.code not in ("exists", "timeout"):
            raise
        return False
    return True


async def _answered_elsewhere(desk: Approvals, known: Approval, chain: Chain, clock: Callable[[], float]) -> bool:
    request = chain.request
    began, patience = clock(), request.surroundings.patience or 0.0
    if not patience:
        return False
    with _standing_still(request, clock):
        while clock() - began < patience:
            await asyncio.sleep(_PAUSE)
            if desk.get(known.id).state != "open":
                return True
    return False


def _use(desk: Approvals, known: Approval, chain: Chain) -> None:
    ledger = chain.request.surroundings.ledger
    assert ledger is not None
    with ledger.exclusively():
        desk.use(known, chain.call.id)
