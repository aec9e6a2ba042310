"""A home with 10,000 saved tools: the time and the size of what an agent asks for, and of the pages of the review.

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

import httpx

from albert_tools import ToolService
from albert_tools.store.tools.entry import SETTLING
from albert_tools.surfaces.web.access import Access
from albert_tools.surfaces.web.app import Pages
from albert_tools.testing import registry
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
            review = await _review(service)
            asked["the queue of the review, a page"] = lambda: review("/")
            asked["the review's list of tools, a page"] = lambda: review("/tools?after=tool_5")
            asked["the page of a version"] = lambda: review("/tools/tool_5000")
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


async def _review(service: ToolService) -> Callable[[str], Awaitable[str]]:
    """A function that renders a page of the review."""
    access = Access("http://127.0.0.1:1")
    browser = httpx.AsyncClient(transport=httpx.ASGITransport(Pages(service, access, "the benchmark").application()))
    await browser.get(access.link)

    async def page(path: str) -> str:
        answer = await browser.get(access.origin + access.folder + path)
        return answer.raise_for_status().text

    return page


async def _fill(top: Path) -> None:
    """Save the tools, activate some, and build the index."""
    async with ToolService.open(home=top / "home", workspace=top / "project", governance={}) as service:
        catalog = registry()
        for i in range(TOOLS):
            service.store.save(version_named(f"tool_{i}", catalog))
        for i in range(ACTIVE):
            await service.approve(f"tool_{i * 100}", by="the benchmark")
        # The index trusts the times of files that are not quite new.
        await asyncio.sleep(2 * SETTLING / 1e9)
        await service.search("count")
