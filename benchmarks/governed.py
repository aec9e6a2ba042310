"""The cost of authorizing and recording a call. A primitive that does nothing runs through the whole pipeline. For comparison, the
same call is made in other libraries.

The other libraries validate arguments and wrap results, but they neither authorize nor record. Blocks of calls alternate between
all libraries.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from albert_tools import ToolService, primitive
from albert_tools.engine.call.manifest_fence import Fence
from albert_tools.engine.model.definition import Program, ToolVersion
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value
from albert_tools.engine.policy.path_patterns import PathPatterns
from benchmarks.by_hand import by_hand

#: Calls in a block.
BLOCK = 300

Call = Callable[[], Awaitable[Any]]


@primitive
async def echo(path: str) -> str:
    """Return the path."""
    return path


def table(rounds: int) -> list[str]:
    """The lines of the tables."""
    return [*asyncio.run(_calls(rounds)), "", *_fence(rounds), "", *_path_rules(rounds)]


async def _calls(rounds: int) -> list[str]:
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-governed-")))
        (place / "work" / ".albert").mkdir(parents=True)
        service = await stack.enter_async_context(
            ToolService.open(home=place / "home", workspace=place / "work", primitives=[echo], governance={})
        )
        token = service.open_session("an agent")[1]
        sides: dict[str, Call] = {
            "the function itself": lambda: echo.function(path="a"),
            "Albert Tools: judged, recorded": lambda: service.invoke("echo", {"path": "a"}),
            "Albert Tools: the same, by an agent in a session": lambda: service.invoke(
                "echo", {"path": "a"}, session=token
            ),
            "the same promises by hand, for this tool": by_hand(echo.function, place / "hand"),
        }
        await _langchain(sides)
        await _fastmcp(sides, stack)
        await _pydantic_ai(sides)
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, call in sides.items():
                started = time.perf_counter()
                for _ in range(BLOCK):
                    await call()
                times[name].append((time.perf_counter() - started) / BLOCK)
    lines = ["| a call | µs |", "|---|---:|"]
    return [*lines, *(f"| {name} | {statistics.median(taken) * 1e6:.1f} |" for name, taken in times.items())]


async def _langchain(sides: dict[str, Call]) -> None:
    try:
        from langchain_core.tools import tool
    except ImportError:
        return

    @tool
    async def echo(path: str) -> str:
        """Return the path."""
        return path

    sides["LangChain: tool.ainvoke"] = lambda: echo.ainvoke({"path": "a"})


async def _fastmcp(sides: dict[str, Call], stack: AsyncExitStack) -> None:
    try:
        from fastmcp import Client, FastMCP
    except ImportError:
        return
    server = FastMCP("echo")

    @server.tool
    async def echo(path: str) -> str:
        """Return the path."""
        return path

    client = await stack.enter_async_context(Client(server))
    sides["FastMCP: call_tool in memory"] = lambda: client.call_tool("echo", {"path": "a"})


async def _pydantic_ai(sides: dict[str, Call]) -> None:
    try:
        from pydantic_ai import FunctionToolset, RunContext
        from pydantic_ai.models.test import TestModel
        from pydantic_ai.usage import RunUsage
    except ImportError:
        return

    async def echo(path: str) -> str:
        """Return the path."""
        return path

    tools = FunctionToolset([echo])
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    tool = (await tools.get_tools(context))["echo"]

    async def call() -> Any:
        arguments = tool.args_validator.validate_python({"path": "a"})
        return await tools.call_tool("echo", arguments, context, tool)

    sides["pydantic-ai: validate, call_tool"] = call


def _fence(rounds: int) -> list[str]:
    """What it costs to compare a call with the manifest of an approved version."""
    known = {"a constant": ("notes.md",), "a parameter": (Hole("parameter", "path"),)}
    known |= {
        "below a folder": (Hole("parameter", "folder"), Hole("below")),
        "part of an output": (Hole("output"), ".md"),
    }
    given = {"path": "notes.md", "folder": "."}
    lines = ["| the fence, for a path that is | µs a call | among 20 calls |", "|---|---:|---:|"]
    for name, template in known.items():
        call = PlannedCall("echo", arguments={"path": Value((template,))}, uses={"path": "read"})
        cells = []
        for count in (1, 20):
            definition = replace(echo.definition, manifest=Manifest(calls=(call,) * count))
            version = ToolVersion(definition, "", Program("t", "t", ""))
            taken = []
            for _ in range(rounds):
                fence = Fence(version, given, 0)
                started = time.perf_counter()
                for _ in range(BLOCK):
                    assert fence.admit(echo.definition, {"path": "notes.md"}, ()) == (None, (call,) * count)
                taken.append((time.perf_counter() - started) / BLOCK)
            cells.append(f"{statistics.median(taken) * 1e6:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _path_rules(rounds: int) -> list[str]:
    lines = ["| rules about paths | µs a path |", "|---:|---:|"]
    for count in (10, 1_000, 10_000):
        kinds = ["src/part{i}/**", "secret{i}", "*.ext{i}", "/opt/data{i}"]
        rules = PathPatterns(((kinds[i % 4].format(i=i), "rule") for i in range(count)), "/home/u/work", "/home/u")
        taken = []
        for number in range(rounds):
            started = time.perf_counter()
            for i in range(BLOCK):
                # Of a path that was asked about before, the answer is remembered.
                rules.match(f"/home/u/work/src/module{number}/file{i}.py")
            taken.append((time.perf_counter() - started) / BLOCK)
        lines.append(f"| {count:,} | {statistics.median(taken) * 1e6:.1f} |")
    return lines
