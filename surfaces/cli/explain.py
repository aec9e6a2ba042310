"""``albert policy explain``: what each rule says about one call, and what the call would reach.

A saved tool is allowed without effect of its own, so the decisions on the tools that it calls are listed too, and the flows that
ask when it runs. For a command, the files that it would not see are listed.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.surfaces.cli.decisions import decisions_on, describe
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, one_line, safe

if TYPE_CHECKING:
    from albert_tools.engine.authority.authorization import Authority
    from albert_tools.engine.describing import Description
    from albert_tools.engine.model.definition import Callee, Mode, ToolDefinition
    from albert_tools.engine.policy.decision import Decision, SessionFacts
    from albert_tools.engine.workspace.workspace import Workspace
    from albert_tools.service import ToolService

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_ANSWERED = "your approval of the tool answers the question, except about files that others execute and in a session with a folder"
#: The most paths that the text lists.
_MAX_SHOWN = 20


async def explain(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    """Print the decisions. Returns 3 if the call would be denied."""
    from albert_tools.engine.authority.command_views import VIEWS
    from albert_tools.engine.policy.decision import strictest
    from albert_tools.engine.policy.modes import mode_named
    from albert_tools.surfaces.cli.arguments import read_arguments

    described = await describe(service, options.name, session=token())
    arguments = read_arguments(options.arguments, options.args, described.definition)
    flows = service.flow_decisions(described.definition)
    rules = service.ruling()
    governance, authority = rules
    mode = mode_named(options.mode or authority.modes.mode)
    session = _present_session(service, options.name)
    decisions = await decisions_on(service, authority, described.definition, arguments, mode, session)
    decision = strictest(decisions)
    policy = authority.policy
    numbers = policy.numbers(described.definition)
    bounds: dict[str, Any] = {
        "mode": mode,
        "version": described.definition.version if described.definition.kind == "composite" else "",
        "category": described.definition.category,
        "risk": described.definition.risk,
        "timeout_seconds": rules.timeout(described.definition),
        "max_file_bytes": numbers.max_file_bytes,
        "calls_per_hour": dict(numbers.rate_limits),
        "beyond_the_workspace": policy.paths.of(described.definition).opened,
        "revision": governance.revision,
    }
    inner = list(_inner(service, authority, described, mode, session))
    views = await asyncio.to_thread(
        _views, service.workspace, authority, [described.definition, *(d for _, d, _ in inner)]
    )
    if console.json:
        calls = [{"tool": d.name, "through": list(trail), "decision": said.as_dict()} for trail, d, said in inner]
        stages = [d.as_dict() for d in decisions]
        asked = [d.as_dict() for d in flows if d.verdict == "ask"]
        hidden = {"calls": calls, "asking_flows": asked, "commands_see": views}
        console.document({"ok": True, "decision": decision.as_dict(), "stages": stages, **bounds, **hidden})
    else:
        for d in decisions:
            console.say(f"{_verdict(d, console)}  {safe(d.rule)}  {safe(d.message)}".rstrip())
        console.say(f"decision: {_verdict(decision, console)}")
        if inner:
            console.say("it can make these calls, whose arguments are judged too:")
        for trail, callee, said in inner:
            path = " > ".join((*trail, callee.name))
            console.say(f"  {_verdict(said, console)}  {path}  {safe(said.rule)}  {safe(said.message)}".rstrip(), 4)
        for flow in flows:
            if flow.verdict == "ask":
                console.say(f"{_verdict(flow, console)}  {safe(flow.rule)}  {safe(flow.message)}", 4)
        for view in views:
            shown = listed([one_line(path) for path in view["paths"]], _MAX_SHOWN) or "nothing"
            console.say(f"a command of {view['tool']} {VIEWS[view['view']]}: {shown}", 4)
        for name, value in bounds.items():
            if value not in ({}, [], ""):
                console.note(console.paint(f"  {name}: {_text(value)}", "dim", err=True))
    return 3 if decision.verdict == "deny" else 0


def _present_session(service: ToolService, name: str) -> SessionFacts | None:
    """The session of the caller. A tool outside its lease can't be described to it, so the lease decides about actions alone."""
    from albert_tools.engine.policy.decision import SessionFacts

    if (mine := token()) is None:
        return None
    line = service.sessions.line_of(mine, None)
    tools = line[0].lease.tools if name in RESERVED else None
    return SessionFacts(tools, frozenset(service.sessions.seen(line)), line[0].cwd)


def _inner(
    service: ToolService, authority: Authority, described: Description, mode: Mode, session: SessionFacts | None
) -> Iterator[tuple[tuple[str, ...], ToolDefinition, Decision]]:
    """The tools that a saved tool can call, each once: the saved tools in between, its definition, the decision on every call."""
    elsewhere = session is not None and session.folder != ""
    answered = _answered(described) if mode == "NORMAL" and not elsewhere else set()
    pending: list[tuple[tuple[str, ...], Callee]] = [((), callee) for callee in reversed(described.calls)]
    known: set[Callee] = set()
    while pending:
        trail, callee = pending.pop()
        primitive = service.registry.primitive(callee.name) if callee.kind == "primitive" else None
        if callee in known or (primitive is None and callee.kind == "primitive"):
            continue
        known.add(callee)
        if primitive is not None:
            definition = primitive.definition
        else:
            try:
                version = service.store.load(callee.name, callee.version)
            except Failure:
                # A damaged or missing version can't be run either.
                continue
            definition = version.definition
            pending += [((*trail, callee.name), c) for c in reversed(version.calls)]
        gated = primitive is not None and primitive.gated
        said = authority.policy.permits(definition, gated, mode)
        # As the stage `reviewed` does it for a call.
        if said.verdict == "ask" and callee.name in answered:
            said = said._replace(verdict="allow", rule="manifest", message=_ANSWERED)
        yield trail, definition, said


def _answered(described: Description) -> set[str]:
    """The primitives about whose calls nobody is asked, because a person has approved the manifest of the version."""
    from albert_tools.engine.shell.command_holes import is_loose

    manifest, review = described.definition.manifest, described.review
    if manifest is None or review is None or not review.approved:
        return set()
    return {call.tool for call in manifest.calls} - {call.tool for call in manifest.calls if is_loose(call)}


def _views(workspace: Workspace, authority: Authority, definitions: list[ToolDefinition]) -> list[dict[str, Any]]:
    """The views of the commands of each tool: ``{tool, view, paths}``."""
    from albert_tools.engine.authority.command_views import command_views

    return [
        {"tool": definition.name, "view": kind, "paths": paths}
        for definition in definitions
        for kind, paths in command_views(workspace, authority, definition)
    ]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items())
    return safe(", ".join(value)) if isinstance(value, list) else str(value)


def _verdict(decision: Decision, console: Console) -> str:
    return console.paint(decision.verdict, _COLOURS[decision.verdict])
