"""Decided and recorded calls a second, by one, two and four processes that share a home: in a folder, and in PostgreSQL.

The primitives do nothing. A call that may change something waits for the disk before it begins. The server of the database runs on
the same machine (Debian's; another one by ``ALBERT_BENCHMARK_URL``), so its processes need processor time, too.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from albert_tools import ToolService, primitive

PROCESSES = (1, 2, 4)
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
    with tempfile.TemporaryDirectory(prefix="albert-fleet-") as folder:
        homes = {"a folder (SQLite)": str(Path(folder) / "home"), "PostgreSQL": _url()}
        rows = [(place, tool) for place, home in homes.items() if home for tool in CALLS]
        rates: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for _ in range(rounds):
            for count in PROCESSES:
                for place, tool in rows:
                    rates[place, tool, count].append(_rate(homes[place], folder, tool, count))
        lines = [f"| calls a second, by | {' | '.join(f'{n} processes' for n in PROCESSES)} | messages a call |"]
        lines.append("|---|" + "---:|" * (len(PROCESSES) + 1))
        for place, tool in rows:
            found = " | ".join(f"{statistics.median(rates[place, tool, count]):,.0f}" for count in PROCESSES)
            messages = f"{_messages(homes[place], folder, tool):.1f}" if place == "PostgreSQL" else "–"
            lines.append(f"| {place}: a call that {CALLS[tool]} | {found} | {messages} |")
    return lines


def _url() -> str:
    """The URL of a new home; empty if there is no server."""
    if url := os.environ.get("ALBERT_BENCHMARK_URL"):
        return url
    with suppress(ImportError, AssertionError):
        from tests.helpers.postgres import server

        return server().url()
    return ""


def _service(home: str, folder: str) -> ToolService:
    workspace = Path(folder) / "work"
    (workspace / ".albert").mkdir(parents=True, exist_ok=True)
    return ToolService.open(home=home, workspace=workspace, primitives=[look, change], governance={})


def _rate(home: str, folder: str, tool: str, count: int) -> float:
    """Calls a second by this many processes."""
    command = [sys.executable, "-m", "benchmarks.fleet", home, folder, tool]
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


async def _work(home: str, folder: str, tool: str) -> None:
    """One process: warm up, wait for the start, and print the calls a second."""
    async with _service(home, folder) as service:
        _, token = service.open_session("the benchmark")
        for _ in range(10):
            (await service.invoke(tool, {"path": "a"}, session=token)).value()
        print("ready", flush=True)
        sys.stdin.readline()
        began, calls = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < SECONDS:
            (await service.invoke(tool, {"path": "a"}, session=token)).value()
            calls += 1
        print(calls / passed)


def _messages(home: str, folder: str, tool: str) -> float:
    """The messages to the server in one call, which wait for its answer."""
    import psycopg

    real, messages = psycopg.Connection.execute, []

    def execute(self: Any, *arguments: Any, **options: Any) -> Any:
        messages.append(arguments)
        return real(self, *arguments, **options)

    async def count() -> float:
        async with _service(home, folder) as service:
            _, token = service.open_session("the benchmark")
            for turn in range(2 * COUNTED):
                if turn == COUNTED:
                    messages.clear()
                (await service.invoke(tool, {"path": "a"}, session=token)).value()
        return len(messages) / COUNTED

    psycopg.Connection.execute = execute  # type: ignore[method-assign]
    try:
        return asyncio.run(count())
    finally:
        psycopg.Connection.execute = real  # type: ignore[method-assign]


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
