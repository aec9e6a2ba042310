"""``albert push`` and ``albert pull``: copy a tool with its callees from one home into another."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from albert_tools.engine.model.failure import Failure
from albert_tools.store.places import LIBRARY, Homes
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.hints import DIGITS, command_line
from albert_tools.surfaces.text.person import demand_person, person
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.receiving import Received


def push(options: argparse.Namespace, console: Console) -> int:
    """Copy a tool of this home into another one."""
    return _copy(options, console, options.home, _other(options.to, "push NAME --to"), pushed=True)


def pull(options: argparse.Namespace, console: Console) -> int:
    """Copy a tool of another home into this one."""
    return _copy(options, console, _other(options.source, "pull NAME --from"), options.home, pushed=False)


def _other(given: str | None, how: str) -> str:
    home = given or os.environ.get(LIBRARY)
    if not home:
        raise Usage("the other home is missing", f"write `albert {how} HOME`, or set {LIBRARY}")
    # Its owner could lead this process into other folders, such as this home.
    place = Homes.resolve({**os.environ, "ALBERT_HOME": home})
    folders = () if place.url else (place.tools, place.state, place.config, place.cache)
    link = next((folder for folder in folders if folder.is_symlink()), None)
    if link is not None:
        raise Failure(
            "permission_denied",
            f"in the home {place.shown}, {link.name} is a link",
            hint="another home must have its own folders: give the folder to which it leads",
        )
    return home


def _copy(
    options: argparse.Namespace, console: Console, source: str | None, target: str | None, *, pushed: bool
) -> int:
    demand_person("tools are copied")
    options.home = target
    from albert_tools.service import imports_of_home

    # The rules of the other home must not choose what this process imports.
    importable = imports_of_home(source) if pushed else None
    tools, place = asyncio.run(_copied(options, console, source, importable))
    if console.json:
        console.document({"ok": True, "to": place, "tools": [asdict(each) for each in tools]})
        return 0
    for each in tools:
        done = "is there already" if each.outcome == "unchanged" else "copied"
        console.say(f"{console.paint(safe(each.name), 'cyan')}  {each.version[:DIGITS]}  {done}, {each.state}")
    if all(each.outcome == "unchanged" for each in tools):
        console.note(f"nothing was changed: {safe(place)} has this version")
    elif any(each.state == "pending" for each in tools):
        where = "there" if pushed else "here"
        console.note(f"`{command_line(target, 'review')}` shows what waits for a review {where}")
    return 0


async def _copied(
    options: argparse.Namespace, console: Console, source: str | None, importable: tuple[str, ...] | None
) -> tuple[list[Received], str]:
    """Copy the tool into the home of the options. Returns what was copied, and the name of this home. For `importable` see
    `ToolService.open`."""
    from albert_tools.service import other_home

    there = other_home(source)
    async with open_service(options, importable=importable) as service:
        here = service.home.local.shown
        try:
            try:
                wanted = there.wanted(options.name, options.version)
            except Failure as failure:
                hint = f"`{command_line(source, 'tools')}` lists its tools"
                raise failure.copy(message=f"in the home {there.name}: {failure.message}", hint=hint) from None
            return await service.receive(wanted, there, here, person(), report_progress=console.progress), here
        finally:
            console.progress("")
            there.close()
