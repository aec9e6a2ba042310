"""``list``, ``search``, ``show`` and ``remove``: what tools there are."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json

from albert_tools.engine.execute.service import Description, Listed
from albert_tools.engine.model.definition import spell
from albert_tools.surfaces.cli.console import Console, safe


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
    for heading, tools in groups.items():
        console.say(console.paint(safe(heading), "bold"))
        for t in tools:
            state = ""
            if t.problem:
                state = "  " + console.paint(f"damaged: {safe(t.problem)}", "red")
            elif t.outdated:
                state = "  " + console.paint(f"outdated: {safe(t.outdated)}", "yellow")
            console.say(f"  {console.paint(safe(t.name).ljust(width), 'cyan')}  {safe(t.description)}{state}")
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
    console.say(safe(d.description))
    console.say()
    for p in d.parameters:
        default = "" if p.required else f" = {json.dumps(p.default, ensure_ascii=False)}"
        console.say(f"  {console.paint(safe(p.name), 'bold')}: {safe(spell(p.schema) + default)}")
        if p.description:
            console.say(f"      {safe(p.description)}")
    console.say(f"  {console.paint('gives', 'bold')} {safe(spell(d.result))}")
    console.say()
    console.say(f"effects  {', '.join(d.effects) or 'none'}")
    if found.gated:
        console.say("allowed  only when the owner's governance.yaml names it")
    for callee in found.calls:
        console.say(f"calls    {safe(callee.name)}  {console.paint(f'{callee.kind} {callee.version[:12]}', 'dim')}")
    if d.kind == "composite":
        console.say(f"depth    {d.depth}")
        console.say(f"version  {d.version}")
        console.say(f"saved    {safe(found.created)}")
    if found.outdated:
        console.say(console.paint(f"outdated: {safe(found.outdated)}", "yellow"))
    if found.source:
        console.say()
        console.say(_highlighted(found.source, console))
    return 0


def _highlighted(source: str, console: Console) -> str:
    text = safe(source.rstrip("\n"))
    if not console.out_colour:
        return text
    from pygments import highlight
    from pygments.formatters.terminal import TerminalFormatter
    from pygments.lexers.python import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), TerminalFormatter(linenos=True)).rstrip("\n")


def remove(options: argparse.Namespace, console: Console) -> int:
    """Take a saved tool off the list."""

    async def work() -> None:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            await service.remove(options.name)

    asyncio.run(work())
    if console.json:
        console.document({"ok": True, "removed": options.name})
    else:
        console.say(f"removed {safe(options.name)}; its versions are kept, and tools that call it go on")
    return 0
