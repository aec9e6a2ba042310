"""``albert policy try FILE``: what other rules would decide about the calls in the ledger.

Each recorded call is judged twice, by the rules in force and by the rules in the file. Leases, budgets, rate limits and secrets are
not compared. The ledger has long arguments shortened and secrets replaced; a call whose rules depend on such an argument can't be
judged, and is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import REDACTED
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.policy.decision import SessionFacts, strictest
from albert_tools.surfaces.cli.decisions import authority_of, judged
from albert_tools.surfaces.text.console import Console, one_line

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import Mode, ToolDefinition
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.service import ToolService

#: The newest calls that are judged, and the most changes that the text lists.
MAX_CALLS, MAX_SHOWN = 10_000, 50


class _Made(NamedTuple):
    """A recorded call. `folder` is where its relative paths start, and `arguments` are those that rules apply to, as JSON."""

    tool: str
    version: str
    mode: Mode
    folder: str
    arguments: str


async def try_rules(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    """Print the calls about which the rules in a file would decide differently."""
    changes, judged, unjudged = await asyncio.to_thread(_compare, service, Path(options.file))
    changed = sum(change["calls"] for change in changes)
    if console.json:
        facts = {"calls": judged, "changed": changed, "changes": changes, "unjudged": dict(unjudged)}
        console.document({"ok": True, **facts})
        return 0
    for change in changes[:MAX_SHOWN]:
        after, times = change["after"], f"  ({change['calls']:,} times)" if change["calls"] > 1 else ""
        given = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in change["arguments"].items() if value
        )
        call = f"{change['tool']}({given})"
        why = f"  {after['rule_id']}  {after['message']}".rstrip()
        console.say(one_line(f"{after['verdict']} (now {change['before']['verdict']})  {call}{times}{why}"), 4)
    if len(changes) > MAX_SHOWN:
        console.say(f"… and {len(changes) - MAX_SHOWN:,} more (--json lists all)")
    console.say(f"of {judged:,} recorded calls, {changed:,} would be decided differently")
    for why, count in unjudged.items():
        console.note(f"{count:,} more can't be judged: {why}")
    return 0


def _compare(service: ToolService, file: Path) -> tuple[list[dict[str, Any]], int, Counter[str]]:
    """The changes, the number of judged calls, and the number of calls that can't be judged, by the reason."""
    made, unjudged = _recorded(service)
    changes, judged_calls, authorities = [], 0, (service.ruling().authority, authority_of(service, file))
    for call, count in made.items():
        definition = _tool(service, call.tool, call.version)
        if definition is None:
            unjudged["their tool or its version no longer exists"] += count
            continue
        if call.folder and not _has_folder(service, call.folder):
            unjudged["the folder of their session no longer exists"] += count
            continue
        arguments, session = json.loads(call.arguments), SessionFacts(folder=call.folder) if call.folder else None
        before, after = (
            strictest(judged(service, a, definition, arguments, call.mode, session, is_recorded=True))
            for a in authorities
        )
        if before.verdict != after.verdict:
            facts = {"tool": call.tool, "arguments": arguments, "mode": call.mode, "calls": count}
            changes.append({**facts, "before": before.as_dict(), "after": after.as_dict()})
        judged_calls += count
    return changes, judged_calls, unjudged


def _has_folder(service: ToolService, folder: str) -> bool:
    try:
        service.workspace.at(folder)
    except Failure:
        return False
    return True


def _recorded(service: ToolService) -> tuple[Counter[_Made], Counter[str]]:
    """The newest recorded calls, and those whose arguments are not known."""
    made: Counter[_Made] = Counter()
    unjudged: Counter[str] = Counter()
    calls: dict[str, Mapping[str, Any]] = {}
    folders = {session.id: session.cwd for session in service.sessions.all()}
    for entry in deque(service.ledger.entries({"call", "denied", "asked"}), MAX_CALLS):
        # A call that needs approval has an entry for the question, and another one if it is made or refused.
        question = ":".join(filter(None, (entry.data.get("run"), entry.data.get("step"))))
        calls[entry.data.get("call") or question] = entry.data
    for data in calls.values():
        tool, arguments = str(data.get("tool")), data.get("arguments")
        if tool in RESERVED:
            continue
        primitive = service.registry.primitive(tool)
        known = set() if primitive is None else {*primitive.paths, *_with_methods(primitive), *primitive.judged}
        relevant = (
            {n: v for n, v in sorted(arguments.items()) if n in known} if isinstance(arguments, Mapping) else None
        )
        if relevant is None or any(map(_incomplete, relevant.values())):
            unjudged["the ledger has their arguments shortened or without secrets"] += 1
            continue
        mode: Mode = data.get("mode") or "NORMAL"
        folder = folders.get(str(data.get("session")), "")
        made[_Made(tool, str(data.get("version", "")), mode, folder, json.dumps(relevant))] += 1
    return made, unjudged


def _with_methods(primitive: Primitive) -> Iterator[str]:
    for url, method in primitive.urls.items():
        yield from (url, method) if method else (url,)


def _incomplete(value: Any) -> bool:
    """Whether a recorded value is not the value of the call, see `engine.model.redaction`."""
    if isinstance(value, str):
        return REDACTED in value or (value.startswith("… ") and value.endswith((" more", " values")))
    return isinstance(value, Mapping) or (isinstance(value, list) and any(map(_incomplete, value)))


def _tool(service: ToolService, name: str, version: str) -> ToolDefinition | None:
    primitive = service.registry.primitive(name)
    if primitive is not None:
        return primitive.definition
    try:
        return service.store.load(name, version or None).definition
    except Failure:
        return None
