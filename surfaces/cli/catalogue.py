"""``list``, ``search``, ``show`` and ``remove``: what tools there are."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from datetime import UTC, datetime

from albert_tools.engine.execute.service import Description, Listed
from albert_tools.engine.model.definition import spell
from albert_tools.surfaces.cli.console import Console, safe
from albert_tools.surfaces.cli.folding import flowing, unstyled
from albert_tools.surfaces.cli.hints import DIGITS


def list_tools(options: argparse.Namespace, console: Console) -> int:
    """Every tool: primitives, then saved ones."""

    async def work() -> list[Listed]:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            return await service.list()

    return _table(asyncio.run(work()), console, "no tools are saved yet: `albert define FILE` saves one")


def search(options: argparse.Namespace, console: Console) -> int:
    """Tools that speak of a text."""

    async def work() -> list[Listed]:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            return await service.search(" ".join(options.text))

    return _table(asyncio.run(work()), console, "nothing found")


def _table(found: list[Listed], console: Console, empty: str) -> int:
    if console.json:
        console.document({"ok": True, "tools": [dataclasses.asdict(t) for t in found]})
        return 0
    groups: dict[str, list[Listed]] = {}
    for tool in found:
        groups.setdefault("saved tools" if tool.kind == "composite" else f"primitives: {tool.category}", []).append(
            tool
        )
    width = max((len(t.name) for t in found), default=0)
    # Where names take half of a terminal, what is said of them stands below them.
    below = console.out_width is not None and width + 4 >= console.out_width // 2
    for heading, tools in groups.items():
        console.say(console.paint(safe(heading), "bold"))
        for t in tools:
            state = ""
            if t.problem:
                state = "  " + console.paint(f"damaged: {safe(t.problem)}", "red")
            elif t.outdated:
                state = "  " + console.paint(f"outdated: {safe(t.outdated)}", "yellow")
            elif t.changed:
                state = "  " + console.paint(f"calls an older {', '.join(map(safe, t.changed))}", "yellow")
            text = f"{safe(t.description)}{state}".strip()
            if below:
                console.say(f"  {console.paint(safe(t.name), 'cyan')}")
                console.say(f"    {text}", 4)
            else:
                console.say(f"  {console.paint(safe(t.name).ljust(width), 'cyan')}  {text}", width + 4)
    if not any(t.kind == "composite" for t in found):
        console.note(empty)
    return 0


def show(options: argparse.Namespace, console: Console) -> int:
    """One tool, with its source."""

    async def work() -> Description:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            return await service.describe(options.name, options.version)

    found = asyncio.run(work())
    if console.json:
        console.document({"ok": True, **found.as_dict()})
        return 0
    d = found.definition
    console.say(console.paint(safe(d.name), "cyan", "bold") + f"  {d.kind}")
    console.say()
    console.say(safe(flowing(d.description) if console.out_width is not None else d.description))
    console.say()
    for p in d.parameters:
        default = "" if p.required else f" = {json.dumps(p.default, ensure_ascii=False)}"
        console.say(f"  {console.paint(safe(p.name), 'bold')}: {safe(spell(p.schema) + default)}", 6)
        if p.description:
            console.say(f"      {safe(p.description)}", 6)
    console.say(f"  {console.paint('gives', 'bold')} {safe(spell(d.result))}", 6)
    console.say()
    console.say(f"effects  {', '.join(d.effects) or 'none'}")
    if found.gated:
        console.say("allowed  only when the owner's governance.yaml names it", 9)
    for callee in found.calls:
        state = ""
        if callee in found.changed:
            newest = found.newest[callee.name]
            state = console.paint(
                f"  an older one; {f'now {newest[:DIGITS]}' if newest else 'since removed'}", "yellow"
            )
        kind = console.paint(f"{callee.kind} {callee.version[:DIGITS]}", "dim")
        console.say(f"calls    {safe(callee.name)}  {kind}{state}", 9)
    if d.kind == "composite":
        current = next((v.version for v in found.versions if v.current), None)
        fits = console.out_width is None or console.out_width >= len(d.version) + 9
        older = "" if current == d.version else "  removed" if current is None else "  not the newest"
        console.say(f"depth    {d.depth}")
        console.say(f"version  {d.version if fits else d.version[:DIGITS]}{console.paint(older, 'yellow')}", 9)
        console.say(f"saved    {_when(found.created)}")
        if found.total > 1 or current is None:
            _history(found, console)
    if found.outdated:
        console.say(console.paint(f"outdated: {safe(found.outdated)}", "yellow"), 2)
    replaced = [safe(c.name) for c in found.changed if found.newest[c.name]]
    if replaced:
        console.say()
        told = (
            f"it calls an older {', '.join(replaced)}: define {safe(d.name)} again from its source to call the newest"
        )
        console.say(console.paint(told, "yellow"), 2)
    if found.source:
        console.say()
        _source(found.source, console)
    return 0


def _history(found: Description, console: Console) -> None:
    """The versions, newest first."""
    console.say()
    console.say(console.paint("versions, newest first", "bold"))
    for v in found.versions:
        now = "  " + console.paint("current", "green") if v.current else ""
        console.say(f"  {v.version[:DIGITS]}  {_when(v.created)}{now}", DIGITS + 4)
    if found.total > len(found.versions):
        console.say(f"  … and {found.total - len(found.versions):,} more")


def _when(created: str) -> str:
    """An ISO 8601 time as a person writes it; whatever else stands there, made safe."""
    try:
        return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return safe(created)


def _source(source: str, console: Console) -> None:
    """The text; on a terminal with its lines numbered."""
    lines = _highlighted(safe(source.rstrip("\n")), console).split("\n")
    if console.out_width is None:
        console.say("\n".join(lines))
        return
    pad = len(str(len(lines)))
    for i, line in enumerate(lines, 1):
        bare = unstyled(line)
        indent = len(bare) - len(bare.lstrip(" "))
        number = console.paint(str(i).rjust(pad), "dim")
        console.say(f"{number}  {line}" if bare.strip() else number, pad + 2 + indent + 4)


def _highlighted(text: str, console: Console) -> str:
    if not console.out_colour:
        return text
    from pygments import highlight
    from pygments.formatters.terminal import TerminalFormatter
    from pygments.lexers.python import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), TerminalFormatter()).rstrip("\n")


def remove(options: argparse.Namespace, console: Console) -> int:
    """Take a saved tool off the list."""

    async def work() -> str:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            versions, _ = service.store.history(options.name, 1)
            await service.remove(options.name)
            return versions[0].version if versions else ""

    version = asyncio.run(work())
    if console.json:
        console.document({"ok": True, "removed": options.name, "version": version})
    else:
        console.say(f"removed {safe(options.name)}; its versions are kept, and tools that call it go on")
        console.say(f"  `albert show {safe(options.name)} --version {version[:DIGITS]}` shows the last one", 2)
    return 0
