"""The cost of defining, saving and loading a tool, for different sizes of the source and of the store.

The time of `define` should not depend on the number of tools.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from albert_tools import ToolService
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.compile.program import compile_version
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.manifest import Manifest
from albert_tools.grammar.parse import parse
from albert_tools.store.tools.tool_store import TinyToolStore
from albert_tools.testing import registry

BODY = '''def {name}(paths: list[str]) -> dict:
    """Count lines.

    Args:
        paths: The files.
    """
    found = {{}}
    for path in paths:
        text = tools.read_file(path=path)
        found[path] = len([line for line in text.splitlines() if line.strip()])
{more}    return found
'''
MORE = "    found[str({i})] = sum(len(name) * {i} for name in found if name.startswith('a'))\n"
_STORE_HEAD = "| tools in the store | save, ms | load, ms | first list, ms | list after a save, ms | search, ms |"


def table(sizes: list[int], rounds: int) -> list[str]:
    """The lines of the three tables."""
    catalog = registry()
    lines = ["| lines of source | parse, ms | check, ms | compile, ms |", "|---:|---:|---:|---:|"]
    for count in (10, 40, 160, 640, 1440):  # the last one has almost the most bytes that are allowed
        source = BODY.format(name="t", more="".join(MORE.format(i=i) for i in range(max(0, count - 10))))
        checked = check_or_raise(source, catalog)
        parsed = _median(partial(parse, source), rounds)
        check = _median(partial(check_or_raise, source, catalog), rounds)
        compiled = _median(partial(compile_version, checked, ""), rounds)
        lines.append(f"| {count} | {parsed * 1000:.1f} | {check * 1000:.1f} | {compiled * 1000:.1f} |")
    lines += ["", _STORE_HEAD, "|---:|---:|---:|---:|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        store = TinyToolStore(Path(folder) / "tools", Path(folder) / "cache")
        saved = 0
        for size in sizes:
            while saved < size:
                store.save(version_named(f"tool_{saved}", catalog))
                saved += 1
            more = [version_named(f"extra_{size}_{i}", catalog) for i in range(rounds)]
            save = [_timed(partial(store.save, version)) for version in more]
            fresh = TinyToolStore(Path(folder) / "tools", Path(folder) / "cache")
            step = max(1, size // rounds)
            load = [_timed(partial(fresh.load, f"tool_{i}")) for i in range(0, size, step)]
            # The first list builds the index. The second one reads what was saved in the last two seconds.
            first = _timed(fresh.list)
            store.save(version_named(f"late_{size}", catalog))
            second = _timed(fresh.list)
            search = _median(partial(fresh.search, "count lines"), min(rounds, 5))
            cells = (statistics.median(save), statistics.median(load), first, second, search)
            lines.append(f"| {size:,} | " + " | ".join(f"{c * 1000:.2f}" for c in cells) + " |")
    return [*lines, "", *asyncio.run(_growth([20, *sizes[1:]], rounds))]


async def _growth(sizes: list[int], rounds: int) -> list[str]:
    """The lines of the table of `define`, for homes with different numbers of tools. In each round every home has its turn."""
    catalog = registry()
    new: dict[int, list[float]] = {size: [] for size in sizes}
    replaced: dict[int, list[float]] = {size: [] for size in sizes}
    async with AsyncExitStack() as stack:
        services = {}
        for size in sizes:
            top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-keeping-"))).resolve()
            (top / "project").mkdir()
            opened = ToolService.open(home=top / "home", workspace=top / "project", governance={})
            services[size] = await stack.enter_async_context(opened)
            for i in range(size):
                services[size].store.save(version_named(f"tool_{i}", catalog))
        for i in range(-1, rounds):  # the first round starts the processes and builds the indexes
            for size, service in services.items():
                for times, more in ((new, ""), (replaced, MORE.format(i=i))):
                    started = time.perf_counter()
                    await service.define(BODY.format(name=f"new_{i + 1}", more=more))
                    times[size] += [time.perf_counter() - started] if i >= 0 else []
    lines = [
        "| tools in the home | `define`, ms | to the first | a new version, ms | to the first |",
        "|---:|---:|---:|---:|---:|",
    ]
    for size in sizes:
        found = [(statistics.median(t[size]), statistics.median(t[sizes[0]])) for t in (new, replaced)]
        lines.append(f"| {size:,} | " + " | ".join(f"{t * 1000:.1f} | {t / first:.2f}" for t, first in found) + " |")
    return lines


_MADE: dict[str, ToolVersion] = {}


def version_named(name: str, catalog: ToolRegistry) -> ToolVersion:
    """A version of the tool under another name. The tool is compiled only once."""
    from msgspec.structs import replace

    if not _MADE:
        _MADE[""] = compile_version(
            check_or_raise(BODY.format(name="t", more=""), catalog), "2025-01-01T00:00:00+00:00"
        )
    first = _MADE[""]
    definition = replace(first.definition, name=name, manifest=Manifest(first.definition.effects))
    program = replace(
        first.program, name=name, entry=name, lowered=first.program.lowered.replace("def t(", f"def {name}(")
    )
    return replace(
        first, definition=definition, program=program, source=first.source.replace("def t(", f"def {name}(")
    ).named()


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median(work: Callable[[], Any], rounds: int) -> float:
    return statistics.median(_timed(work) for _ in range(rounds))
