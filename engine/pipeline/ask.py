"""Ask a person for approval. Question and answer are entries of the ledger.

If the application can ask a person who may answer, it asks during the call. Otherwise the call waits for an answer from another
process, at most `ServiceContext.patience` seconds. The clocks of the run are stopped meanwhile. Then the run is suspended; it can
be resumed after the answer. After any answer all stages run again, because the rules, the mode or the file may have changed in the
meantime.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from albert_tools.engine.authority.approval_digest import Action, action_of, arguments_digest
from albert_tools.engine.authority.approvals import Approval, Approvals, Scope
from albert_tools.engine.authority.authorization import (
    CHOICES,
    Answer,
    Choice,
    Question,
    nobody_to_ask,
    refused_by_person,
)
from albert_tools.engine.authority.command_views import VIEWS, command_views
from albert_tools.engine.authority.sessions import MAX_CWD
from albert_tools.engine.call.context import Call, JudgeAgain, Run
from albert_tools.engine.call.ledger import reason_of, write
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, listed
from albert_tools.engine.model.redaction import recorded, redacted_text
from albert_tools.engine.model.visible_text import one_line
from albert_tools.engine.pipeline.invoke_primitive import preview_of
from albert_tools.engine.pipeline.notify import Notifier, about_question
from albert_tools.engine.policy.command_rules import PARSED
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, export

#: Seconds between two checks for an answer from another process.
_POLL_SECONDS = 0.1
#: The name of the person who answered, if the application gives no name; and the longest recorded name, in characters.
UNNAMED = "the application, asked in the call"
MAX_BY = 256
#: The most paths of a command's view that a question lists, and the most characters of each.
_MAX_PATHS, _MAX_PATH = 8, 60
#: A path that is shown without quotes.
_PLAIN_PATH = re.compile(r"[\w./\\*@+-]+")


async def find_approval(call: Call, run: Run) -> Call:
    """Find the approval of a call that the rules ask about. If there is none yet, ask a person.

    Raises:
        JudgeAgain: A person has just answered.
        Failure: `permission_denied` if nobody can be asked or the answer is no; `suspended` if the run waits for the answer.
    """
    approvals = run.service.record.approvals
    # A lasting answer doesn't cover an interrupted step, because the question concerns this one step.
    scope = None if call.decision.rationale == "interrupted" else _scope(call, run)
    lasting = approvals.standing(scope) if scope is not None else None
    if lasting is not None:
        # By hand, a lasting answer covers these arguments, unless the rules ask about parts of them.
        by_hand = () if call.trail or all(subject for _, subject in call.asks) else ("arguments",)
        _demand_same(lasting, call, "tool", "version", "callers", "trail", *by_hand)
        return replace(call, approval=lasting)
    shown = await preview_of(call, run)
    action, objects = await _action(call, run, shown)
    current = approvals.about(action)
    if current is not None:
        _demand_same(current, call, "tool", "version", "callers", "trail", "arguments")
    can_ask = run.service.ask is not None and approvals.may_answer
    if current is None and not can_ask and run.service.patience is None:
        raise nobody_to_ask(call.decision, call.name)
    message = ""  # Only a person who is asked now reads it.
    if current is None or (can_ask and current.state == "open"):
        start = f"paths start in {_shown_path(run.workspace.start, MAX_CWD)}" if run.workspace.start else ""
        parts = [call.decision.message, start, shown, *await asyncio.to_thread(_reach, call, run)]
        message = "; ".join(filter(None, parts))
    if current is None:
        write(run)
        # An action belongs to no run that can be resumed later, so its question expires with the session.
        until = run.session.expires if run.options.action is not None else math.inf
        current = approvals.ask(_facts(call, run, action, message), scope, until)
        _write_question(call, run, current)
        command = call.rules.governance.notify
        if command and not can_ask:
            _notify_owner(command, current, call, run)
    elif current.state == "yes":
        return replace(call, approval=current, approved=objects)
    elif current.state == "no":
        with run.service.ledger.transaction():
            approvals.use(current, call.id)
        raise refused_by_person(call.decision, call.name)
    if can_ask:
        await _ask(call, run, current, approvals, message)
        raise JudgeAgain
    if await _answered_elsewhere(current, run, approvals):
        raise JudgeAgain
    reason = "; the question is new, because the rules or the files have changed" if current.instead_of else ""
    raise Failure(
        "suspended",
        f"{call.decision.message}; the run waits for the answer{reason}",
        hint=f"a person answers with `albert approvals answer {current.id} once`; then the run {run.id} can be resumed",
        rule=call.decision.rule,
        tool=call.name,
        details={
            "approval": current.id,
            "run": run.id,
            "expires": current.expires,
            **({"queue": run.options.resumed.queue} if run.options.resumed.queue else {}),
            **({} if approvals.may_answer else {"needs_role": "reviewer"}),
        },
    )


def _notify_owner(command: Sequence[str], question: Approval, call: Call, run: Run) -> None:
    """Have the owner's command run about a new question."""
    line = run.service.record.sessions.line(question.session) if question.session else []
    notice = about_question(question, line, call.target.definition.with_defaults({}))
    run.service.resource_pool.get(Notifier).add(notice, command, run.service.root, run.service.ledger)


def _demand_same(approval: Approval, call: Call, *names: str) -> None:
    """Require that the person was shown this call: in a database with roles, other users can write questions, too."""
    facts = _facts_of_call(call)
    if any(canonical(getattr(approval, name)) != canonical(facts[name]) for name in names):
        raise Failure(
            "permission_denied",
            f"the question {approval.id} shows another call than {call.name}, which it is about",
            hint=f"somebody has written it by other means; revoke it (`albert approvals revoke {approval.id}`), and call again",
            rule="approval",
            tool=call.name,
        )


def _scope(call: Call, run: Run) -> Scope:
    """The calls to which a lasting answer would apply."""
    definition, digest = call.target.definition, "" if call.trail else arguments_digest(call.arguments)
    # The program of a batch is the same for all batches of a tool.
    trail = (*call.trail, run.batch) if run.batch and call.trail else call.trail
    return Scope(definition.name, definition.version, run.principal, call.mode, trail, digest, call.asks)


async def _action(call: Call, run: Run, shown: str) -> Action:
    """What the answer covers. A call from outside keeps its identity when it is repeated. A call by a program is identified by its
    run and its step."""
    place = run.session.origin or "owner"
    if call.decision.rationale == "interrupted" and run.journal.id:
        # An unused yes to the first attempt must not authorize the second attempt.
        place = f"{place} {run.id}:{call.step} begun {run.journal.times_begun(call.place)} times"
    elif call.depth:
        place = f"{place} {run.id}:{call.step}"
    return await asyncio.to_thread(
        action_of,
        call.target.definition,
        call.target.primitive,
        call.arguments,
        call.trail,
        place,
        call.rules.authority.reaching(run.workspace),
        (call.mode, call.rules.governance.revision, *map(repr, call.asks), *([shown] if shown else [])),
    )


def _reach(call: Call, run: Run) -> list[str]:
    """What the command of a call can't see, change or reach, so that nobody approves what must fail."""
    primitive, definition = call.target.primitive, call.target.definition
    is_command = primitive is not None and primitive.is_shipped and definition.declared.source == "command"
    # The preview of `git` says more.
    if primitive is None or not is_command or definition.family == "git":
        return []
    views = command_views(run.workspace, call.rules.authority, definition)
    phrases = [
        f"it {VIEWS[kind]}: {listed([_shown_path(path) for path in paths], _MAX_PATHS) or 'nothing'}"
        for kind, paths in views
        if kind != "hidden_if_tracked"
    ]
    if not call.arguments.get("network"):
        phrases.append("it has no network")
    limited = any(kind == "writable" and not {".", ".git/"}.intersection(paths) for kind, paths in views)
    command = (call.arguments.get(name) for name, kind in primitive.judged.items() if kind in PARSED)
    if limited and any(re.search(r"\bgit\b", str(words)) for words in command):
        phrases.append("the tool `git` can commit, and a command can't")
    return phrases


def _shown_path(path: str, most: int = _MAX_PATH) -> str:
    """A path in a question. A file can have a name that reads like another part of it."""
    shown = brief(one_line(path), most)
    return shown if _PLAIN_PATH.fullmatch(shown) else repr(shown)


def _write_question(call: Call, run: Run, approval: Approval) -> None:
    """Write the question to the journal with its complete arguments. The ledger contains shortened arguments."""
    with suppress(Failure):
        run.journal.ask(call.place, approval.id, call.arguments)


def _facts_of_call(call: Call) -> dict[str, Any]:
    """What a question says about the call itself."""
    definition = call.target.definition
    return {
        "tool": definition.name,
        "version": definition.version,
        "arguments": recorded(call.arguments, definition.by_hash),
        "callers": list(call.callers),
        "trail": list(call.trail),
    }


def _facts(call: Call, run: Run, action: str, message: str) -> dict[str, Any]:
    return {
        **_facts_of_call(call),
        "action": action,
        "rule_id": call.decision.rule,
        "message": message,
        "reason": reason_of(run.invocation),
        "risk": call.target.definition.risk,
        "session": run.session.origin or "",
        "run": run.id,
        "step": call.step,
        "workspace": str(run.workspace.root),
        # The entry of the call, which has the trace of other requests, is written only after an answer.
        **({} if call.parent else {"trace": run.trace}),
    }


async def _ask(call: Call, run: Run, open_approval: Approval, approvals: Approvals, message: str) -> None:
    """Ask through the application, and record the answer.

    Raises:
        Failure: `permission_denied` if the answer is no, even if another answer was recorded first.
    """
    # The application gets a copy, so it can't change the arguments of the call.
    question = Question(
        call.target.definition,
        export(call.arguments, MAX_ANSWER),
        call.decision._replace(message=message),
        call.callers,
        reason_of(run.invocation),
        open_approval.id,
        open_approval.choices,
    )
    try:
        answer = await _ask_application(question, run, approvals)
    except BaseException:
        # The call was cancelled, so nobody waits for the answer.
        with suppress(Failure):
            approvals.revoke(open_approval.id)
        raise
    if answer is None:
        return
    choice, by = _choice(answer)
    if not _record_answer(approvals, open_approval, choice, by) and choice == "no":
        if approvals.get(open_approval.id).state == "yes":
            with suppress(Failure):
                approvals.revoke(open_approval.id)
        raise refused_by_person(call.decision, call.name)


async def _ask_application(question: Question, run: Run, approvals: Approvals) -> Answer | Any:
    """The person's answer; None if another process has answered in the meantime. All clocks of the run are stopped."""
    ask = run.service.ask
    assert ask is not None
    with _stopped_clocks(run):
        async with run.questions.asking:
            if approvals.get(question.id).state != "open":
                return None
            asked = asyncio.ensure_future(ask(question))
            try:
                while not (await asyncio.wait({asked}, timeout=_POLL_SECONDS))[0]:
                    latest = approvals.get(question.id)
                    if latest.state != "open":
                        asked.cancel(_why_closed(latest))
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


async def _answered_elsewhere(open_approval: Approval, run: Run, approvals: Approvals) -> bool:
    """Wait for an answer from another process. Returns whether it arrived in time."""
    began, patience = run.clock(), run.service.patience or 0.0
    with _stopped_clocks(run):
        while run.clock() - began < patience:
            await asyncio.sleep(_POLL_SECONDS)
            if approvals.get(open_approval.id).state != "open":
                return True
    return False


@contextmanager
def _stopped_clocks(run: Run) -> Iterator[None]:
    """Stop all clocks of a run. Several of its calls can ask at the same time. The clocks restart after the last answer."""
    run.questions.open += 1
    try:
        if run.questions.open == 1:
            run.questions.open_since = run.clock()
            for program in run.questions.programs:
                program.pause()
        yield
    finally:
        run.questions.open -= 1
        if not run.questions.open:
            run.questions.waited += run.clock() - run.questions.open_since
            for program in run.questions.programs:
                program.go_on()


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
