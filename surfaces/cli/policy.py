"""``albert mode`` and ``albert policy``: the capability mode, the rules, and the decision on a call."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.console import Console, safe
from albert_tools.surfaces.cli.person import demand_person, person
from albert_tools.surfaces.cli.run import environ_of

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolDefinition
    from albert_tools.engine.policy.decision import Decision
    from albert_tools.service import ToolService

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def mode(options: argparse.Namespace, console: Console) -> int:
    """Print the mode, or switch it."""
    from albert_tools.engine.policy.modes import Modes
    from albert_tools.store.places import Homes
    from albert_tools.store.record.record import Record

    state = Homes.resolve(environ_of(options)).state
    with Record(state / "record") as ledger:
        modes = Modes(state / "mode.json", ledger=ledger)
        before = modes.state()
        if options.mode is not None:
            demand_person("the mode is switched")
            modes.switch(options.mode.upper(), person(), options.cause)
        now = modes.state()
    if console.json:
        console.document({"ok": True, **now._asdict()})
        return 0
    since = f" since {now.since}" if now.since else ""
    by = f", by {safe(now.by)}" if now.by else ""
    cause = f": {safe(now.cause)}" if now.cause else ""
    old = f" (it was {before.mode})" if before.mode != now.mode else ""
    console.say(f"{now.mode}{old}{since}{by}{cause}")
    return 0


def policy(options: argparse.Namespace, console: Console) -> int:
    """Write, check or explain the rules. `explain` returns 3 if the call would be denied."""
    if options.action == "init":
        return _init(options, console)
    return asyncio.run(_policy(options, console))


def _init(options: argparse.Namespace, console: Console) -> int:
    """Write the first rules. Existing rules are never replaced."""
    from albert_tools.engine.policy.presets import starter
    from albert_tools.store.places import Homes

    demand_person("rules are written")
    file = Homes.resolve(environ_of(options)).config / "governance.yaml"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent) as written:
            written.write(starter(options.preset))
            written.flush()
            # A link appears with its whole content, and only if there is no file.
            os.link(written.name, file)
    except FileExistsError:
        hint = "edit them, or move the file away"
        raise Failure("exists", f"there are rules already: {str(file)!r}", hint=hint) from None
    except OSError as error:
        raise Failure("io_error", f"the rules can't be written to {str(file)!r}: {error.strerror}") from error
    if console.json:
        console.document({"ok": True, "path": str(file), "preset": options.preset})
    else:
        console.say(f"wrote {safe(str(file))}")
        console.note("Edit it, and then run `albert policy check`.")
    return 0


async def _policy(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.service import ToolService

    async with ToolService.open(home=options.home, workspace=options.workspace) as service:
        if options.action == "check":
            return await _check(service, console)
        return await _explain(service, options, console)


async def _check(service: ToolService, console: Console) -> int:
    from albert_tools.checkup import mistakes
    from albert_tools.engine.policy.settings import Governance

    rules = service.context.governance
    if not isinstance(rules, Governance):
        raise rules
    found = await asyncio.to_thread(mistakes, service, rules)
    if console.json:
        console.document({"ok": not found, "findings": found})
    for finding in [] if console.json else found:
        console.say(f"{console.paint('warning', 'yellow')}: {safe(finding['rule'])}: {safe(finding['message'])}")
    if not found and not console.json:
        console.say("the rules have no mistakes")
    return 1 if found else 0


async def decisions_on(
    service: ToolService, definition: ToolDefinition, arguments: Mapping[str, Any]
) -> list[Decision]:
    """What the rules decide about a call in the present mode, one decision for each rule that applies.

    Raises:
        Failure: the workspace or the rules can't be used; `invalid_arguments`.
    """
    context = service.context
    for missing in (context.workspace, context.governance):
        if isinstance(missing, Failure):
            raise missing
    wrong = await service.validate(definition.name, arguments)
    if wrong:
        raise Failure(
            "invalid_arguments",
            f"{definition.name}: " + "; ".join(v["message"] for v in wrong),
            hint=f"call the tool as {definition.signature()}",
            details={"violations": wrong},
        )
    authority = context.authority
    assert authority is not None
    primitive = service.registry.primitive(definition.name)
    given = {p.name: p.default for p in definition.parameters if not p.required} | dict(arguments)
    return authority.judge(definition, primitive, given, context.workspace, authority.modes.mode)


async def _explain(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.policy.decision import strictest
    from albert_tools.surfaces.cli.arguments import read_arguments

    described = await service.describe(options.name)
    arguments = read_arguments(options.arguments, options.args, described.definition)
    decisions = await decisions_on(service, described.definition, arguments)
    authority, rules = service.context.authority, service.context.governance
    assert authority is not None
    assert not isinstance(rules, Failure)
    decision = strictest(decisions)
    policy = authority.policy
    bounds: dict[str, Any] = {
        "mode": authority.modes.mode,
        "category": described.definition.category,
        "risk": described.definition.risk,
        "timeout_seconds": policy.timeout(described.definition),
        "max_file_bytes": policy.max_file_bytes(described.definition),
        "calls_per_hour": dict(policy.rate_limits(described.definition)),
        "beyond_the_workspace": policy.paths.opened(described.definition),
        "revision": rules.revision,
    }
    if console.json:
        console.document(
            {"ok": True, "decision": decision.as_dict(), "stages": [d.as_dict() for d in decisions], **bounds}
        )
    else:
        for d in decisions:
            console.say(f"{_verdict(d, console)}  {safe(d.rule)}  {safe(d.message)}".rstrip())
        console.say(f"decision: {_verdict(decision, console)}")
        for name, value in bounds.items():
            if value not in ({}, []):
                console.note(console.paint(f"  {name}: {_text(value)}", "dim", err=True))
    return 3 if decision.verdict == "deny" else 0


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items())
    return safe(", ".join(value)) if isinstance(value, list) else str(value)


def _verdict(decision: Decision, console: Console) -> str:
    return console.paint(decision.verdict, _COLOURS[decision.verdict])
