"""``albert run``: one saved tool or primitive, once.

The path that must be short: the zygote starts as the first thing, beside all imports, and neither the parser nor anything of
pydantic's size is loaded.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from albert_tools.surfaces.cli.console import Console, safe
from albert_tools.surfaces.cli.exits import exit_of
from albert_tools.surfaces.cli.hints import told

if TYPE_CHECKING:
    from albert_tools.engine.model.failure import Failure

#: Seconds after which somebody at a terminal is told that it is still going on.
PATIENCE = 1.0


def run(options: argparse.Namespace, console: Console) -> int:
    """Run it; 0, or what `exit_of` says."""
    from albert_tools.store.homes import Homes
    from albert_tools.store.names import Place

    spawned = None
    homes = Homes.resolve(environ_of(options))
    if options.name.isidentifier() and Place.of(homes.tools, options.name).entry.is_file():
        from albert_tools.engine.sandbox.spawn import spawn_zygote

        spawned = spawn_zygote()
    # Only now, while the zygote is coming up: these imports are the larger half of the time.
    import asyncio

    return asyncio.run(_run(options, console, spawned))


def environ_of(options: argparse.Namespace) -> dict[str, str]:
    """The environment with ``--home`` in it."""
    import os

    environ = dict(os.environ)
    if options.home is not None:
        environ["ALBERT_HOME"] = options.home
    return environ


async def _run(options: argparse.Namespace, console: Console, spawned: Any) -> int:
    import asyncio

    from albert_tools.service import ToolService
    from albert_tools.surfaces.cli.arguments import read_arguments
    from albert_tools.surfaces.cli.asking import asker

    ask = asker(console) if console.interactive and sys.stdin.isatty() else None
    async with ToolService.open(home=options.home, workspace=options.workspace, ask=ask) as service:
        if spawned is not None:
            await service.prepare(options.name, spawned, options.version)
        definition = (await service.describe(options.name, options.version)).definition
        arguments = read_arguments(options.arguments, options.args, definition)
        called: list[str] = []
        watching = asyncio.create_task(_watch(options.name, called, console)) if console.interactive else None
        result = await service.invoke(
            options.name,
            arguments,
            version=options.version,
            log=None if console.json or console.quiet else lambda tool, text: _print(text, console),
            watch=called.append if watching is not None else None,
        )
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    if console.json:
        console.document(result.as_dict())
    else:
        for effect in result.effects:
            line = _told(effect.kind, effect.facts)
            if line:
                console.note(console.paint(line, "dim", err=True))
        if result.error is None:
            console.value(result.output)
    if result.error is None:
        return 0
    if not console.json:
        console.failure(told(result.error.as_dict()))
        _details(result.error, console)
    if result.error.code == "invalid_arguments" and result.error.tool == options.name:
        # Refused before it began: the command line was wrong, not the tool.
        return 2
    return exit_of(result.error)


def _print(text: str, console: Console) -> None:
    console.progress("")
    console.untrusted(text, sys.stderr)


def _told(kind: str, facts: dict[str, Any]) -> str:
    """What was done, for what changes something."""
    if kind == "write":
        return f"wrote {safe(str(facts.get('path')))}, {facts.get('size_bytes'):,} bytes"
    if kind == "execute":
        return f"ran {safe(str(facts.get('command')))!r}, exit code {facts.get('exit_code')}"
    if kind == "network":
        return f"asked {safe(str(facts.get('url', '')))}"
    return "" if kind == "read" else kind


def _details(error: Failure, console: Console) -> None:
    partial = error.details.get("output")
    if isinstance(partial, str) and partial:
        console.note("until then it had printed:")
        console.untrusted(partial if partial.endswith("\n") else partial + "\n", sys.stderr)


async def _watch(name: str, called: list[str], console: Console) -> None:
    """A line that says that it is still running, and for how long."""
    import asyncio

    started = time.monotonic()
    try:
        await asyncio.sleep(PATIENCE)
        while True:
            passed = time.monotonic() - started
            last = f" · {safe(called[-1])}" if called else ""
            del called[:-1]
            console.progress(f"running {safe(name)} · {passed:.0f} s{last}")
            await asyncio.sleep(0.5)
    finally:
        if time.monotonic() - started > PATIENCE:
            console.progress("")
