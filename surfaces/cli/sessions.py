"""``albert session``: opens, lists and revokes sessions.

The token is printed once, when the session is opened; only its hash is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import time
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.record_types import STORED
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.surfaces.cli.paging import note_page, page_of
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import command_line
from albert_tools.surfaces.text.times import about, moment
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.service import ToolService


def session(options: argparse.Namespace, console: Console) -> int:
    """Open, list or revoke."""
    return asyncio.run({"new": _new, "list": _list, "revoke": _revoke}[options.action](options, console))


async def _new(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.session_runs import DAY
    from albert_tools.surfaces.text.person import demand_person, person

    within = options.within
    if within is None:
        demand_person("a session that is not within another is opened", "add --within to open one within this session")
    if within == "":
        within = os.environ.get("ALBERT_SESSION")
        if not within:
            raise Usage("--within: ALBERT_SESSION is not set", "set it, or give the token")
    check_session_options(options)
    async with open_service(options) as service:
        try:
            # By default, a session within another session ends with that session.
            opened, token = open_session(service, options, person(), None if within else DAY, within)
        except Failure as failure:
            if within and (failure.rule or "").startswith("session."):
                given_by = "ALBERT_SESSION" if options.within == "" else "TOKEN"
                failure.message = f"--within: {failure.message} (given by {given_by})"
            raise
        named = _named_tools(options) or []
        every = [t.name for t in await service.list(hidden=True)] + sorted(RESERVED) if named else []
        known = [*filter(service.coverage(within or None), every)]
    if console.json:
        console.document({"ok": True, "token": token, "session": opened.as_dict()})
        return 0
    console.write(token + "\n")
    for name in named:
        if name not in known:
            missing = f"there is no tool {one_line(name)!r} (yet){did_you_mean(name, known)}"
            console.note(f"{console.paint('warning', 'yellow', err=True)}: {missing}")
    expires = opened.lease.expires
    until = "for ever" if expires == math.inf else f"until {moment(expires)}"
    console.note(f"session {opened.id} for {one_line(opened.client)}, {until}: {_may(opened)}")
    console.note("The token is not shown again. Pass it on as ALBERT_SESSION: other users can see command lines.", 2)
    return 0


def check_session_options(options: argparse.Namespace) -> None:
    """Refuse options of a new session that contradict each other. Raises Usage."""
    if options.tools is not None and not _named_tools(options):
        raise Usage(
            "--tools names no tool", "write --tools read_file,write_file, or leave it out for all that the rules allow"
        )
    if options.tools is not None and options.preset is not None:
        raise Usage("--tools and --preset both name the tools of the session", "give one of them")


def open_session(
    service: ToolService,
    options: argparse.Namespace,
    client: str,
    seconds: float | None,
    within: str | None = None,
) -> tuple[Session, str]:
    """Open the session that the options describe.

    Args:
        service: The service.
        options: The options of ``albert session new``, see `commands`.
        client: The name of the client, if none is given.
        seconds: The lifetime, if none is given.
        within: The token of the session above.

    Raises:
        Failure: As from `ToolService.open_session`.
    """
    from albert_tools.engine.model.session_budget import UNITS, Budget

    budget = Budget(**{unit: getattr(options, unit) for unit in UNITS if getattr(options, unit, None) is not None})
    tools = _named_tools(options)
    if options.preset is not None:
        tools = _preset_tools(service, options.preset, within)
    if options.seconds is not None:
        seconds = options.seconds
    return service.open_session(
        client if options.client is None else options.client,
        cwd=options.cwd,
        tools=tools,
        seconds=None if seconds == math.inf else seconds,
        budget=budget,
        within=within,
    )


def _named_tools(options: argparse.Namespace) -> list[str] | None:
    return None if options.tools is None else [t.strip() for t in options.tools.split(",") if t.strip()]


def _preset_tools(service: ToolService, preset: str, within: str | None) -> list[str] | None:
    """The tools of a preset that a session within the session of the token `within` can get; None for all tools."""
    from albert_tools.engine.policy.presets import tools_of

    registry = service.registry
    tools = tools_of(preset, filter(None, map(registry.get, registry.names())))
    if tools is None or not within:
        return tools
    return [*filter(service.coverage(within), tools)]


def _may(session: Session) -> str:
    """The limits of a session, as a phrase."""
    tools = session.lease.tools
    parts = ["all tools that the rules allow" if tools is None else ", ".join(map(one_line, sorted(tools)))]
    for unit, most in session.lease.budget.as_dict().items():
        used = session.used.get(unit, 0)
        amount = f"{most:,.15g} {unit.replace('_', ' ')}"
        parts.append(f"{used:,.6g} of {amount} used" if used else f"at most {amount}")
    if (stored := session.used.get(STORED, 0)) > 100_000:
        parts.append(f"{stored / MiB:,.1f} MB stored")
    if session.cwd:
        parts.append(f"in {one_line(json.dumps(session.cwd, ensure_ascii=False))}")
    return "; ".join(parts)


async def _list(options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        sessions = service.list_sessions(session=token())
    shown = [s for s in sessions if options.all or not (s.ended or s.grant)]
    if console.json:
        console.document({"ok": True, "sessions": [s.as_dict() for s in shown]})
        return 0
    now = time.time()
    listed, pages = page_of(_in_turn(shown), options.page)
    for one in listed:
        _line(one, now, console)
    words = ["session", "list", *(["--all"] if options.all else [])]
    note_page(console, options.page, pages, len(shown), command_line(options.home, *words))
    if not shown:
        past = f"; --all lists {len(sessions):,} others" if sessions else "; `albert session new` opens one"
        console.note(f"there are no open sessions{past}")
    return 0


def _in_turn(sessions: list[Session]) -> list[Session]:
    """The sessions in an order in which no session hides others by those within it: first the outermost ones, then one within each,
    and so on."""
    from albert_tools.engine.authority.waiting import in_turn

    by_id = {session.id: session for session in sessions}

    def top(session: Session) -> str:
        above = by_id.get(session.parent or "")
        return session.id if above is None else top(above)

    return in_turn(sorted(sessions, key=lambda session: top(session) != session.id), top)


def _line(one: Session, now: float, console: Console) -> None:
    expires = one.lease.expires
    if one.ended:
        when = console.paint("ended", "red")
    else:
        left = "for ever" if expires == math.inf else f"{about(expires - now)} left"
        when = console.paint(left, "green")
    within = f", within {one.parent}" if one.parent and not one.grant else ""
    whose = "kept for resuming " if one.grant else ""
    console.say(f"{console.paint(one.id, 'cyan')}  {whose}{one_line(one.client)}, {when}{within}", 4)
    console.say(f"    {_may(one)}", 4)
    console.say(console.paint(f"    {one_line(one.workspace)}", "dim"), 4)


async def _revoke(options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        sessions_before = {s.id: s for s in service.sessions.all()}
        ended = await service.revoke_session(options.id, session=token())
        already = sessions_before[ended.id].ended
        below = [s for s in service.sessions.all() if s.ended and s.id != ended.id and not sessions_before[s.id].ended]
    if console.json:
        console.document({"ok": True, "session": ended.as_dict()})
        return 0
    also = f", and {len(below):,} within it" if below else ""
    was = " (it had ended already)" if already else ""
    console.say(f"revoked {ended.id} of {one_line(ended.client)}{also}{was}")
    return 0
