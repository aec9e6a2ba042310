"""A home with 10,000 saved tools: the time and the size of what an agent asks for.

Each answer is measured in a new service with a warm disk. The first search of a home builds the index, which is not measured. The
first search of a service looks at the time of every file.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from albert_tools import ToolService
from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.store.tools.entry import SETTLING
from benchmarks.keeping import version_named
from benchmarks.spared import tokenizer

TOOLS = 10_000
#: The active tools. The others are found by searching.
ACTIVE = 30
#: The budget of the guide, in tokens.
BUDGET = 2_000


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    return asyncio.run(_measure(rounds))


async def _measure(rounds: int) -> list[str]:
    count = tokenizer() or (lambda text: len(text) // 4)
    lines = [f"| {TOOLS:,} tools | first, ms | later, ms | characters | tokens |", "|---|---:|---:|---:|---:|"]
    with tempfile.TemporaryDirectory(prefix="albert-many-") as name:
        top = Path(name).resolve()
        (top / "project" / ".albert").mkdir(parents=True)
        await _fill(top)
        async with ToolService.open(home=top / "home", workspace=top / "project", governance={}) as service:
            _, token = service.open_session("the benchmark")

            async def call(tool: str, **arguments: Any) -> Any:
                return (await service.invoke(tool, arguments, session=token)).value()

            asked: dict[str, Callable[[], Awaitable[Any]]] = {
                "`search_tools`, words of every tool": lambda: call("search_tools", query="count lines"),
                "`search_tools`, one name": lambda: call("search_tools", query="tool_7777"),
                "`search_tools`, no match": lambda: call("search_tools", query="zebra crossing"),
                "`describe_tool`": lambda: call("describe_tool", name="tool_5000"),
                f"the guide, {BUDGET:,} tokens": lambda: service.guide(tokens=BUDGET, session=token),
                f"the offered list, {ACTIVE} active": lambda: service.tool_specs("openai", session=token),
            }
            for what, ask in asked.items():
                times = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    answer = await ask()
                    times.append((time.perf_counter() - began) * 1000)
                text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
                later = statistics.median(times[1:])
                lines.append(f"| {what} | {times[0]:.1f} | {later:.1f} | {len(text):,} | {count(text):,} |")
    return lines


async def _fill(top: Path) -> None:
    """Save the tools, activate some, and build the index."""
    async with ToolService.open(home=top / "home", workspace=top / "project", governance={}) as service:
        catalog = ToolRegistry(builtin_primitives())
        for i in range(TOOLS):
            service.store.save(version_named(f"tool_{i}", catalog))
        for i in range(ACTIVE):
            await service.approve(f"tool_{i * 100}", by="the benchmark")
        # The index trusts the times of files that are not quite new.
        await asyncio.sleep(2 * SETTLING / 1e9)
        await service.search("count")
