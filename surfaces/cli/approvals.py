"""``albert approvals``: the questions that wait for a person, and the answers that apply.

The text of a question was written by an agent, and its reader may allow the call. Therefore no text can start a new line, invisible
characters are escaped, and the caller's words are marked. If the record does not contain the whole action, the question says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.surfaces.cli.paging import note_page, page_of
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import command_line, goes_on
from albert_tools.surfaces.text.times import about, moment
from albert_tools.surfaces.text.usage_error import Usage
from albert_tools.surfaces.text.whole_arguments import whole_arguments

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.service import ToolService

_COLOURS = {"open": "yellow", "yes": "green", "standing": "green", "no": "red", "expired": "dim", "revoked": "dim"}
#: The wording for states whose names are not clear enough.
_STATES = {"yes": "allowed, not used yet", "standing": "allowed", "no": "denied, not used yet"}


def approvals(options: argparse.Namespace, console: Console) -> int:
    """List, show, answer or revoke."""
    return asyncio.run(_approvals(options, console))


async def _approvals(options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        match options.action:
            case "list":
                return _list(service, options, console)
            case "show":
                return await _show(service, options, console)
            case "revoke":
                return _revoke(service, options, console)
        code, waiting = await _answer(service, options, console)
    if waiting is None:
        return code
    from albert_tools.surfaces.cli.resume import resume

    return await resume(waiting, options, console)


def _list(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.authority.approvals import State

    approvals = service.approvals.queue(get_args(State)) if options.all else service.approvals.queue()
    if (mine := token()) is not None:
        own = {each.id for each in service.list_sessions(session=mine)}
        approvals = [a for a in approvals if a.session in own]
    total, waits = len(approvals), any(a.state == "open" for a in approvals)
    listed, pages = page_of(approvals, options.page)
    if console.json:
        document = {"approvals": [a.as_dict() for a in listed], "page": options.page, "pages": pages, "total": total}
        console.document({"ok": True, **document})
        return 0
    now, sessions = time.time(), _sessions(service)
    for a in listed:
        state = console.paint(_state(a), _COLOURS.get(a.state, "dim"))
        # The answer applies to every call of the saved tool, so the arguments of the first call would mislead.
        what = f"{one_line(a.tool)}(…)" if a.state == "standing" and a.trail else call_text(a.tool, a.arguments)
        console.say(f"{console.paint(a.id, 'cyan')}  {state}  {what}", 4)
        by = f"by {one_line(' in '.join(reversed(a.callers)))}, " if a.callers else ""
        left = f", {about(a.expires - now)} left to answer" if a.state == "open" else ""
        where = f" in {one_line(a.workspace)}" if a.workspace else ""
        session = f" in the session {one_line(a.session)}{_client(sessions.get(a.session))}" if a.session else ""
        console.say(console.paint(f"    {by}asked {about(now - a.asked)} ago{session}{where}{left}", "dim"), 4)
        if a.reason:
            console.say(
                console.paint(f"    the caller's words: {one_line(brief(json.dumps(a.reason), 200))}", "dim"), 4
            )
    words = ["approvals", "list", *(["--all"] if options.all else [])]
    note_page(console, options.page, pages, total, command_line(options.home, *words))
    if not waits:
        console.note("no question waits for an answer")
    else:
        console.note(f"`{command_line(options.home, 'approvals', 'show')} ID` shows one in full")
    return 0


def _sessions(service: ToolService) -> dict[str, Session]:
    return {session.id: session for session in service.sessions.all()}


def _client(session: Session | None) -> str:
    """What follows the id of a session: the name of its client, and whether it has ended."""
    from albert_tools.engine.model.visible_text import escape_invisible

    if session is None:
        return ""
    name = one_line(escape_invisible(json.dumps(brief(session.client, 60), ensure_ascii=False)))
    return f" of {name}{' (ended)' if session.ended else ''}"


def _state(a: Approval) -> str:
    if a.state == "standing":
        if a.choice == "always":
            return "always allowed"
        return "allowed for its session" if a.session else "allowed for the rest of its run"
    return _STATES.get(a.state, a.state)


async def _show(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    approval = await _demand_question(service, options.id)
    whole = whole_arguments(service, approval)
    if console.json:
        console.document({"ok": True, **approval.as_dict(), "whole_arguments": whole})
        return 0
    _question(service, approval, whole, await _lasting_rule(service, approval, whole), console)
    if approval.state == "open":
        console.say()
        _choices(approval, console)
        console.say(
            f"answer with `{command_line(options.home, 'approvals', 'answer', approval.id)} {'|'.join(approval.choices)}`",
            2,
        )
    return 0


async def _demand_question(service: ToolService, approval: str) -> Approval:
    """The question with this id. In a session, one of somebody else needs the right to read the record, also to find out whether
    there is one: it has the arguments of a call."""
    if (mine := token()) is not None:
        own = {session.id for session in service.list_sessions(session=mine)}
        with suppress(Failure):
            question = service.approvals.get(approval)
            if question.session in own:
                return question
        await service.records((), session=mine)
    return service.approvals.get(approval)


async def _lasting_rule(service: ToolService, approval: Approval, whole: Mapping[str, Any] | None) -> list[str]:
    """Lines that say how the owner allows a command in every call. Empty if the question is not about such a command."""
    from albert_tools.engine.policy.decision import SessionFacts
    from albert_tools.surfaces.cli.decisions import decisions_on
    from albert_tools.surfaces.text.approval_prompt import lasting_rule

    if whole is None or approval.rule != "shipped.unknown_command":
        return []
    asking = _sessions(service).get(approval.session)
    session = SessionFacts(folder=asking.cwd) if asking is not None else None
    try:
        definition, authority = (await service.describe(approval.tool)).definition, service.ruling().authority
        decisions = await decisions_on(service, authority, definition, whole, authority.modes.mode, session)
    except Failure:
        return []
    return next(filter(None, map(lasting_rule, decisions)), [])


def _question(
    service: ToolService, approval: Approval, whole: Mapping[str, Any] | None, lasting: list[str], console: Console
) -> None:
    by = f", called by {one_line(' in '.join(reversed(approval.callers)))}" if approval.callers else ""
    console.say(console.paint(f"May {one_line(approval.tool)} be called{by}?", "bold"), 2)
    from albert_tools.surfaces.text.approval_prompt import claim, shown_arguments

    arguments: Any = whole if whole is not None else approval.arguments
    if not isinstance(arguments, Mapping):
        arguments = {"arguments": arguments}
    # Print these lines unwrapped: wrapping would show a line break that the text does not have.
    for text in shown_arguments(approval.tool, arguments, whole=True):
        console.write(f"{text}\n")
    if whole is None:
        note = "  (from the record, which has no secrets, and only the beginning and the hash of long values)"
        console.say(console.paint(note, "red"), 2)
    if approval.reason:
        console.say(f"  {claim(approval.reason)}", 2)
    why = console.paint(f"  {one_line(approval.message)}", "yellow", "bold")
    console.say(f"{why} {console.paint(f'({one_line(approval.rule)})', 'dim')}", 2)
    for text in lasting:
        console.write(f"{text}\n")
    other = "since then the rules, or what the call would change, are different"
    facts = {
        "state": _state(approval) + (f", by {one_line(approval.by)}" if approval.by else ""),
        "risk": one_line(approval.risk) or "?",
        "asked": f"{moment(approval.asked)}, open until {moment(approval.expires)}",
        "folder": one_line(approval.workspace or ""),
        "session": approval.session
        and f"{one_line(approval.session)}{_client(_sessions(service).get(approval.session))}",
        "run": approval.run and one_line(approval.run) + (f", step {one_line(approval.step)}" if approval.step else ""),
        "instead": approval.instead_of and f"of {one_line(approval.instead_of)}: {other}",
        "used": approval.used_by and f"by the call {one_line(approval.used_by)}",
    }
    console.say()
    for name, value in facts.items():
        if value:
            console.say(f"{name.ljust(8)} {value}", 9)


def _choices(approval: Approval, console: Console) -> None:
    from albert_tools.surfaces.text.approval_prompt import meaning

    for choice in approval.choices:
        console.say(
            f"  {choice.ljust(8)} {meaning(choice, approval.tool, approval.callers, bool(approval.session))}", 11
        )


async def _answer(service: ToolService, options: argparse.Namespace, console: Console) -> tuple[int, str | None]:
    """Answer a question. Returns the exit code, and the run that is then to be resumed."""
    from albert_tools.surfaces.text.approval_prompt import confirmed, meaning
    from albert_tools.surfaces.text.person import demand_person, person

    demand_person("a question is answered")
    approval = service.approvals.get(options.id)
    if options.choice not in approval.choices:
        why = "; a call made by hand can't be allowed for ever" if options.choice == "always" else ""
        raise Usage(
            f"{options.choice} is no answer to {approval.id}{why}", f"answer with {', '.join(approval.choices)}"
        )
    if not console.json:
        whole = whole_arguments(service, approval)
        _question(service, approval, whole, await _lasting_rule(service, approval, whole), console)
        console.say()
        console.flush()
    asks = console.interactive and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if approval.state == "open" and asks and not options.yes and not console.json:
        what = meaning(options.choice, approval.tool, approval.callers, bool(approval.session))
        if not confirmed(f"Answer {options.choice}: {what}?"):
            console.note("not answered; the question is still open")
            return 1, None
    # A worker can go on with the run as soon as the answer is there.
    waits = _run_waits(service, approval)
    answered = service.approvals.answer(approval.id, options.choice, person())
    resumed = answered.run if options.resume and waits and _run_waits(service, answered) else None
    if console.json:
        if resumed is None:
            console.document({"ok": True, **answered.as_dict()})
        return 0, resumed
    outcome = "denied" if options.choice == "no" else f"allowed ({options.choice})"
    console.say(f"{console.paint('✓', 'green')} {one_line(answered.tool)} is {outcome}, by {one_line(answered.by)}")
    if resumed is None:
        console.say(f"  {_what_follows(service, answered, waits, options)}", 2)
    return 0, resumed


def _what_follows(service: ToolService, answered: Approval, waits: bool, options: argparse.Namespace) -> str:
    """Who uses the answer, as a phrase. `waits` says whether a run waits for it."""
    resume = f"`{command_line(options.home, 'runs', 'resume', answered.run)}`"
    if waits and (queue := service.runs.show(answered.run).header.get("queue")) is not None:
        return goes_on(answered.run, options.home, str(queue))
    session = _sessions(service).get(answered.session)
    if session is None:
        left = "no suspended run waits for this answer; a call that is still waiting gets it by itself"
        return f"{resume} continues the run that waits for it" if waits else left
    if not session.ended:
        return "the agent makes the call again" + (f", or {resume} continues it if the agent has left" if waits else "")
    if waits:
        return f"the session that asked has ended: only {resume} still makes this call"
    if answered.choice == "always":
        return "the session that asked has ended; the answer applies to other sessions"
    return "the session that asked has ended: nothing can use this answer, and another session asks again"


def _run_waits(service: ToolService, approval: Approval) -> bool:
    """Whether a run waits for the answer and can be resumed: its session may have expired, but must not be revoked."""
    try:
        if not approval.run or service.runs.show(approval.run).state not in ("suspended", "interrupted"):
            return False
        if approval.session:
            service.sessions.line_of_run(approval.session, None, approval.run)
    except Failure as failure:
        return failure.rule == "session.expired"
    return True


def _revoke(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.text.person import demand_person

    demand_person("an answer is revoked")
    before = service.approvals.get(options.id)
    revoked = service.approvals.revoke(options.id)
    if console.json:
        console.document({"ok": True, **revoked.as_dict()})
        return 0
    what = {"open": "the question", "standing": "the lasting answer", "yes": "the unused answer"}
    console.say(f"revoked {what.get(before.state, 'the answer')} {revoked.id} about {one_line(revoked.tool)}")
    return 0
