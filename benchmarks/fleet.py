"""Decided and recorded calls a second, by processes that share a home: in a folder, and in PostgreSQL.

The primitives do nothing. A call that may change something waits for the disk before it begins. The server of the database runs on
the same machine (Debian's), so its processes need processor time, too. For a distance, a process between them delays each message.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from albert_tools import ToolService, primitive

#: Processes, and the sessions of each that call at the same time.
CALLERS = ((1, 1), (2, 1), (4, 1), (1, 8), (4, 8))
#: The distance of a server: milliseconds from a message to its answer.
DISTANCE = 3.0
#: How long each process makes calls.
SECONDS = 2.0
#: Calls whose messages to the server are counted.
COUNTED = 50


@primitive(effects=["read"])
async def look(path: str) -> str:
    """Return the path."""
    return path


@primitive(effects=["write"])
async def change(path: str) -> str:
    """Return the path."""
    return path


CALLS = {"look": "only reads", "change": "may change something"}


def table(rounds: int) -> list[str]:
    """The lines of the table. In each round, every cell is measured once, in turn."""
    with tempfile.TemporaryDirectory(prefix="albert-fleet-") as folder, ExitStack() as stack:
        homes = {"a folder (SQLite)": str(Path(folder) / "home")}
        with suppress(ImportError, AssertionError):
            homes |= _servers(stack)
        rows = [(place, tool) for place in homes for tool in CALLS]
        rates: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
        for _ in range(rounds):
            for count in CALLERS:
                for place, tool in rows:
                    rates[place, tool, *count].append(_rate(homes[place], folder, tool, *count))
        lines = [
            f"| calls a second, by processes × sessions | {' | '.join(f'{n} × {m}' for n, m in CALLERS)} | messages a call |"
        ]
        lines.append("|---|" + "---:|" * (len(CALLERS) + 1))
        for place, tool in rows:
            found = " | ".join(f"{statistics.median(rates[place, tool, *count]):,.0f}" for count in CALLERS)
            messages = "–"
            if place.startswith("PostgreSQL"):
                messages = ", ".join(f"{_messages(homes[place], folder, tool, count):.1f}" for count in (1, 8))
            lines.append(f"| {place}: a call that {CALLS[tool]} | {found} | {messages} |")
    return lines


def _servers(stack: ExitStack) -> dict[str, str]:
    """The URLs of new homes, near and at a distance. Raises ImportError, AssertionError if there is no server."""
    from tests.helpers.postgres import server

    near = server().url()
    command = [sys.executable, "-m", "benchmarks.distance", str(server().folder / ".s.PGSQL.5432"), str(DISTANCE)]
    between = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
    stack.callback(between.terminate)
    assert between.stdout is not None
    port = int(between.stdout.readline())
    far = server().url().replace(f"host={server().folder}", f"host=127.0.0.1&port={port}")
    return {"PostgreSQL": near, f"PostgreSQL, {DISTANCE:g} ms away": far}


def _service(home: str, folder: str) -> ToolService:
    workspace = Path(folder) / "work"
    (workspace / ".albert").mkdir(parents=True, exist_ok=True)
    return ToolService.open(home=home, workspace=workspace, primitives=[look, change], governance={})


def _rate(home: str, folder: str, tool: str, count: int, sessions: int) -> float:
    """Calls a second by this many processes, each with this many sessions."""
    command = [sys.executable, "-m", "benchmarks.fleet", home, folder, tool, str(sessions)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    answers = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    for worker in workers:
        answers.append(float(worker.communicate()[0]))
    return sum(answers)


async def _work(home: str, folder: str, tool: str, sessions: str) -> None:
    """One process: warm up, wait for the start, and print the calls a second."""
    async with _service(home, folder) as service:
        tokens = [service.open_session("the benchmark")[1] for _ in range(int(sessions))]
        await asyncio.gather(*(_call(service, tool, token, 10) for token in tokens))
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()

        async def work(token: str) -> int:
            calls = 0
            while time.perf_counter() - began < SECONDS:
                await _call(service, tool, token, 1)
                calls += 1
            return calls

        found = await asyncio.gather(*map(work, tokens))
        print(sum(found) / (time.perf_counter() - began))


async def _call(service: ToolService, tool: str, token: str, times: int) -> None:
    for _ in range(times):
        (await service.invoke(tool, {"path": "a"}, session=token)).value()


def _messages(home: str, folder: str, tool: str, sessions: int) -> float:
    """The messages to the server for one call, which wait for its answer, if this many sessions call at the same time."""
    import psycopg

    real, messages = psycopg.Connection.execute, []

    def execute(self: Any, *arguments: Any, **options: Any) -> Any:
        messages.append(arguments)
        return real(self, *arguments, **options)

    async def count() -> float:
        async with _service(home, folder) as service:
            tokens = [service.open_session("the benchmark")[1] for _ in range(sessions)]
            for _ in range(2):  # What a call reads is known after the first.
                messages.clear()
                await asyncio.gather(*(_call(service, tool, token, COUNTED) for token in tokens))
            counted = len(messages)
        return counted / COUNTED / sessions

    psycopg.Connection.execute = execute  # type: ignore[method-assign]
    try:
        return asyncio.run(count())
    finally:
        psycopg.Connection.execute = real  # type: ignore[method-assign]


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
