"""``albert mode`` and ``albert policy``: the capability mode, the rules, and the decision on a call."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import FolderFile, HomeFile
from albert_tools.store.contents.stored_contents import ref_of
from albert_tools.surfaces.cli.service_options import home_of, in_service
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.person import demand_person, person

if TYPE_CHECKING:
    from albert_tools.service import ToolService
    from albert_tools.store.home import Home


def mode(options: argparse.Namespace, console: Console) -> int:
    """Print the mode, or switch it."""
    home = home_of(options)
    with home.record:
        modes = home.modes()
        before = modes.state()
        if options.mode is not None:
            demand_person("the mode is switched")
            modes.switch(options.mode.upper(), home.record.database.user or person(), options.cause)
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
    """Write, show, check, test or explain the rules. `explain` returns 3 if the call would be denied."""
    # The rules, and how they decide on the owner's calls, name tools outside of a session's lease. `explain` keeps to the lease.
    if options.action != "explain":
        demand_person("rules are written, shown and tested")
    if options.action == "init":
        return _init(options, console)
    if options.action == "show":
        return _show(options, console)
    work = {"check": _check, "explain": _explain, "import": _import, "test": _test, "try": _try}[options.action]
    return in_service(options, lambda service: work(service, options, console))


def _init(options: argparse.Namespace, console: Console) -> int:
    """Write the first rules. Existing rules are never replaced."""
    from albert_tools.engine.policy.presets import starter

    home = home_of(options)
    file = _file(home)
    with file.locked():
        if file.stamp() is not None or os.path.lexists(str(file)):  # A broken link counts.
            hint = (
                "edit them, or move the file away"
                if isinstance(file, FolderFile)
                else "`albert policy show` prints them"
            )
            raise Failure("exists", f"there are rules already: {str(file)!r}", hint=hint)
        content = starter(options.preset).encode()
        _record(home, file, content)
        file.write(content)
    if console.json:
        console.document({"ok": True, "path": str(file), "preset": options.preset})
    else:
        console.say(f"wrote {safe(str(file))}")
        console.note(
            "Edit it, and then run `albert policy check`."
            if isinstance(file, FolderFile)
            else "To change it: `albert policy show > rules.yaml`, edit, `albert policy import rules.yaml`."
        )
    return 0


def _file(home: Home) -> HomeFile:
    """The file with the owner's rules."""
    return FolderFile(home.rules) if isinstance(home.rules, Path) else home.rules


def _show(options: argparse.Namespace, console: Console) -> int:
    """Print the owner's rules as they were written."""
    file = _file(home_of(options))
    content = file.read()
    if content is None:
        raise Failure(
            "not_found", f"there are no rules yet: {str(file)!r}", hint="`albert policy init` writes the first ones"
        )
    text = content.decode("utf-8", "replace")
    if console.json:
        console.document({"ok": True, "path": str(file), "rules": text})
    else:
        console.untrusted(text, sys.stdout)
    return 0


def _record(home: Home, file: HomeFile, content: bytes, revision: str = "") -> None:
    """Record who replaces the owner's rules by which content. `albert doctor` compares it with the rules in a database."""
    data = {"revision": revision, "files": [str(file)], "by": person(), "content": ref_of(content)}
    home.record.durable(home.record.append("rules_imported", data))


async def _import(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    """Replace the owner's rules by a file without mistakes, and record it."""
    from albert_tools.surfaces.cli.decisions import demand_rules

    rules = demand_rules(service, Path(options.file))
    content, file = Path(options.file).read_bytes(), _file(service.home)
    _record(service.home, file, content, rules.revision)
    file.write(content)
    if console.json:
        console.document({"ok": True, "path": str(file), "revision": rules.revision})
    else:
        console.say(f"the rules of {safe(options.file)} are in force: {safe(str(file))}")
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
    findings = await asyncio.to_thread(mistakes, service, rules)
    if console.json:
        console.document({"ok": not findings, "findings": findings})
    for finding in [] if console.json else findings:
        console.say(f"{console.paint('warning', 'yellow')}: {safe(finding['rule'])}: {safe(finding['message'])}")
    if not findings and not console.json:
        console.say("the rules have no mistakes")
    return 1 if findings else 0
