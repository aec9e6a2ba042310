"""``albert mode`` and ``albert policy``: the capability mode, the rules, and the decision on a call."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.service_options import homes_of, in_service
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.person import demand_person, person

if TYPE_CHECKING:
    from albert_tools.service import ToolService


def mode(options: argparse.Namespace, console: Console) -> int:
    """Print the mode, or switch it."""
    from albert_tools.engine.policy.modes import Modes
    from albert_tools.store.record.record import Record

    state = homes_of(options).state
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
    """Write, check, test or explain the rules. `explain` returns 3 if the call would be denied."""
    if options.action == "init":
        return _init(options, console)
    work = {"check": _check, "explain": _explain, "test": _test, "try": _try}[options.action]
    return in_service(options, lambda service: work(service, options, console))


def _init(options: argparse.Namespace, console: Console) -> int:
    """Write the first rules. Existing rules are never replaced."""
    from albert_tools.engine.policy.presets import starter

    demand_person("rules are written")
    file = homes_of(options).config / "governance.yaml"
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


async def _explain(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.cli.explain import explain

    return await explain(service, options, console)


async def _test(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.cli.expected_decisions import test

    return await test(service, options, console)


async def _try(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.cli.try_rules import try_rules

    return await try_rules(service, options, console)


async def _check(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.checkup import mistakes
    from albert_tools.engine.policy.settings import Governance

    rules = service.governance
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
