"""The cost of a recorded run: a saved tool with its journal, and a thousand runs at once.

A step that only reads is written when it ends. A step that may change something is synced before it begins and after it ends. To
get the cost of a step, the difference between a run of many steps and a run without steps is divided by the number of steps.

Beside the thousand runs, fork servers with the modules of a worker, one for each processor, do nothing but fork a process for each
run of `1 + n`. This is the least that a process for each run can cost.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from albert_tools import ToolService, primitive
from benchmarks.runs import FORK_SERVER

#: Steps of the long runs; simultaneous runs.
STEPS, AT_ONCE = 100, 1000

_SOURCES = {
    "none": 'def none(n: int) -> int:\n    """Nothing."""\n    return n\n',
    "reads": 'def reads(n: int) -> int:\n    """Reads."""\n    for i in range(n):\n        tools.peek()\n    return n\n',
    "writes": 'def writes(n: int) -> int:\n    """Writes."""\n    for i in range(n):\n        tools.poke()\n    return n\n',
    "one": 'def one(n: int) -> int:\n    """Reads once."""\n    tools.peek()\n    return n\n',
}


#: Loads the modules of a worker. Their memory is what a fork copies.
_LOADED = f"""
import gc, sys
sys.path = {sys.path!r}
from albert_tools.engine.model import vocabulary
from albert_tools.engine.sandbox.worker import worker
worker.prepare(sorted(vocabulary.MODULES))
gc.freeze()
"""


@primitive(effects=["read"])
async def peek() -> int:
    """Do nothing, declared as a read."""
    return 1


@primitive(effects=["write"])
async def poke() -> int:
    """Do nothing, declared as a write."""
    return 1


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    return asyncio.run(_measure(rounds))


async def _measure(rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="albert-journaled-") as name:
        place = Path(name)
        (place / "work" / ".albert").mkdir(parents=True)
        async with ToolService.open(
            home=place / "home", workspace=place / "work", primitives=[peek, poke], governance={}
        ) as service:
            for source in _SOURCES.values():
                await service.define(source)

            token = service.open_session("an agent")[1]

            async def timed(tool: str, n: int, session: str | None = None) -> float:
                started = time.perf_counter()
                (await service.invoke(tool, {"n": n}, session=session)).value()
                return time.perf_counter() - started

            await timed("none", 1)
            found: dict[tuple[str, str | None], list[float]] = {
                (tool, session): [] for session in (None, token) for tool in ("none", "reads", "writes")
            }
            order, shuffle = [*found], Random(0).shuffle
            for _ in range(rounds):
                # In a fixed order, what one leaves in the record would be written back during the same other one each time.
                shuffle(order)
                for tool, session in order:
                    found[tool, session].append(await timed(tool, STEPS, session))
            median = {key: statistics.median(times) for key, times in found.items()}
            started = time.perf_counter()
            results = await asyncio.gather(*(service.invoke("one", {"n": i}) for i in range(AT_ONCE)))
            taken = time.perf_counter() - started
            assert [r.value() for r in results] == list(range(AT_ONCE))

    forks = await _forks_a_second()

    def row(name: str, tool: str) -> str:
        cells = []
        for session in (None, token):
            before = median["none", session] if tool != "none" else 0.0
            cells.append(f"{(median[tool, session] - before) / (STEPS if before else 1) * 1e6:.0f} µs")
        return f"| {name} | {' | '.join(cells)} |"

    return [
        "| | by the owner | by an agent in a session |",
        "|---|---:|---:|",
        row("a recorded run without steps", "none"),
        row("a step that reads", "reads"),
        row("a step that may change something, twice on the disk", "writes"),
        "",
        "| | |",
        "|---|---:|",
        f"| {AT_ONCE:,} runs at once, a call each | {taken:.1f} s, {AT_ONCE / taken:.0f} a second |",
        f"| forks alone, with the same modules | {forks:.0f} a second |",
    ]


async def _forks_a_second() -> float:
    processors = os.cpu_count() or 1
    ends, servers = [], []
    for _ in range(processors):
        ours, served = socket.socketpair()
        command = [sys.executable, "-c", _LOADED + FORK_SERVER, str(served.fileno())]
        servers.append(subprocess.Popen(command, pass_fds=[served.fileno()]))
        served.close()
        ends.append(ours)

    def work(end: socket.socket, count: int) -> None:
        for _ in range(count):
            end.sendall(b"1")
            end.recv(100)

    each = AT_ONCE // processors
    await asyncio.gather(*(asyncio.to_thread(work, end, 10) for end in ends))
    started = time.perf_counter()
    await asyncio.gather(*(asyncio.to_thread(work, end, each) for end in ends))
    taken = time.perf_counter() - started
    for end, server in zip(ends, servers, strict=True):
        end.close()
        server.wait()
    return each * processors / taken
