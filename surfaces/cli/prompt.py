"""``albert prompt``: the guide for a model that is to write tools.

Its text is `guide.md`, which the tests check and run; the catalogue is added from the registry, primitives in full and saved
tools by their first line. The same registry gives the same text, so that it can be cached.
"""

from __future__ import annotations

import argparse
import asyncio
from importlib.resources import files

from albert_tools.engine.execute.service import Listed
from albert_tools.surfaces.cli.console import Console, safe

#: Saved tools that are named; a model finds the others by searching.
MAX_SAVED = 30


def prompt(options: argparse.Namespace, console: Console) -> int:
    """Print it."""

    async def work() -> str:
        from albert_tools.service import ToolService

        async with ToolService.open(home=options.home, workspace=options.workspace) as service:
            primitives = []
            for name in service.registry.names():
                primitive = service.registry.primitive(name)
                if primitive is not None:
                    text = primitive.definition.description.split("\n\n")
                    answer = " ".join(
                        (text[1] if len(text) > 1 and text[1].startswith(("Returns", "Each")) else "").split()
                    )
                    off = " Off unless the owner allows it." if primitive.gated else ""
                    first = " ".join(text[0].split())
                    primitives.append(
                        f"- `{primitive.definition.signature()}`: {first}{' ' + answer if answer else ''}{off}"
                    )
            saved = [t for t in await service.list() if t.kind == "composite" and not t.problem and not t.outdated]
            return guide(primitives, saved)

    text = asyncio.run(work())
    if console.json:
        console.document({"ok": True, "prompt": text})
    else:
        console.write(text)
    return 0


def guide(primitives: list[str], saved: list[Listed]) -> str:
    """The whole text."""
    lines = [(files("albert_tools.surfaces.cli") / "guide.md").read_text(encoding="utf-8").rstrip("\n"), ""]
    lines.append("Paths are relative to the workspace; `..` is refused.")
    lines += ["", *primitives]
    if saved:
        lines += ["", "Saved:", "", *(f"- `{t.signature}`: {safe(t.description)}" for t in saved[:MAX_SAVED])]
        if len(saved) > MAX_SAVED:
            lines.append(f"- and {len(saved) - MAX_SAVED} more")
    return "\n".join(lines) + "\n"
