"""Queues: how fast workers finish runs that mostly wait, what 10,000 waiting runs cost a worker, and batches of many items.

A run that mostly waits makes ten calls of 20 ms. A worker has room for four runs. The server of the database runs on this machine,
as in `fleet`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from albert_tools import ToolService
from albert_tools.engine.call.context import Queued
from albert_tools.engine.runs.lifecycle import needed
from tests.helpers.postgres import server

WORKERS = (1, 2, 4)
RUNS = 48
WAITING = 10_000
SLEEPS = '''def sleeps() -> int:
    """Wait ten times."""
    for _ in range(10):
        tools.sleep(seconds=0.02)
    return 10
'''
RULES = {"allow": ["sleep", "read_file"]}


def table(rounds: int, items: int) -> list[str]:
    """The lines of the tables. `items` is the size of the batch."""
    with tempfile.TemporaryDirectory(prefix="albert-queues-") as folder:
        homes = {"a folder (SQLite)": str(Path(folder) / "home"), "PostgreSQL": server().url()}
        lines = [f"| {RUNS} runs that mostly wait, in | {' | '.join(f'{n} workers' for n in WORKERS)} |"]
        lines.append("|---|" + "---:|" * len(WORKERS))
        for place, home in homes.items():
            cells = [
                f"{statistics.median(asyncio.run(_finish(home, folder, n)) for _ in range(rounds)):.1f} s"
                for n in WORKERS
            ]
            lines.append(f"| {place} | {' | '.join(cells)} |")
        lines += [
            "",
            f"| {WAITING:,} runs that wait for a person | one look for a run that is ready | memory of a worker |",
        ]
        lines.append("|---|---:|---:|")
        for place, home in homes.items():
            look, memory = asyncio.run(_waiting(home, folder))
            lines.append(f"| {place} | {look * 1000:.1f} ms | {memory / 2**20:.0f} MiB |")
        seconds = asyncio.run(_batch(str(Path(folder) / "batch"), folder, items))
        lines += [
            "",
            f"A batch of {items:,} reads by one worker: {seconds:.0f} s, {items / seconds:,.0f} items a second.",
        ]
        return lines


def _service(home: str, folder: str) -> ToolService:
    workspace = Path(folder) / "work"
    (workspace / ".albert").mkdir(parents=True, exist_ok=True)
    return ToolService.open(home=home, workspace=workspace, governance=RULES)


def _worker(home: str, folder: str) -> subprocess.Popen[bytes]:
    rules = Path(folder) / "rules.json"
    rules.write_text(json.dumps(RULES))
    code = (
        "import asyncio, json, sys; from albert_tools import ToolService; from albert_tools.surfaces.worker.worker import Worker\n"
        "async def main():\n"
        "    async with ToolService.open(home=sys.argv[1], workspace=sys.argv[2], governance=json.load(open(sys.argv[3]))) as s:\n"
        "        await Worker({str(s.workspace.root): s}, sys.argv[4], ['default'], 4, lambda *_: None).work(asyncio.Event())\n"
        "asyncio.run(main())"
    )
    words = [sys.executable, "-c", code, home, str(Path(folder) / "work"), str(rules), os.urandom(4).hex()]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL)


async def _finish(home: str, folder: str, workers: int) -> float:
    """Seconds until some workers, which have started, have finished the runs."""
    async with _service(home, folder) as service:
        await service.define(SLEEPS)
        processes = [_worker(home, folder) for _ in range(workers)]
        try:
            while sum(worker.is_alive for worker in service.queue.workers()) < workers:
                await asyncio.sleep(0.1)
            began = time.monotonic()
            runs = [await service.enqueue("sleeps") for _ in range(RUNS)]
            while service.queue.all():
                await asyncio.sleep(0.05)
            seconds = time.monotonic() - began
            assert all(service.runs.show(run).state == "done" for run in runs)
            return seconds
        finally:
            for process in processes:
                process.send_signal(signal.SIGKILL)
                process.wait()


async def _waiting(home: str, folder: str) -> tuple[float, int]:
    """Seconds of one look, and the bytes of the process, beside many runs that wait for a person."""
    async with _service(home, folder) as service:
        root = str(service.workspace.root)
        ledger = service.ledger
        for first in range(0, WAITING, 500):
            with ledger.transaction():
                for number in range(first, first + 500):
                    run = f"{number:016x}"
                    header = {"run": run, "state": "begun", "owner": ""}
                    ledger.append("run", header)
                    ledger.append("queued", {"run": run, "queue": "default", "priority": 100, "workspace": root})
                    ledger.append("asked", {"approval": f"q{number}", "action": run, "run": run, "step": "0"})
                    waits = {"run": run, "state": "suspended", "approval": f"q{number}", "queue": "default"}
                    ledger.append("run", waits)
        looks = []
        for _ in range(20):
            began = time.perf_counter()
            assert ledger.queue.ready(["default"], [root], [needed()]) is None
            looks.append(time.perf_counter() - began)
        memory = psutil.Process().memory_info().rss
        with ledger.transaction():
            for number in range(WAITING):
                ledger.append("run", {"run": f"{number:016x}", "state": "cancelled", "queue": "default"})
        return statistics.median(looks), memory


async def _batch(home: str, folder: str, items: int) -> float:
    """Seconds in which one worker reads a small file for each item."""
    async with _service(home, folder) as service:
        (Path(folder) / "work" / "a.txt").write_text("a")
        definition = (await service.describe("read_file")).definition
        arguments = {p.name: p.default for p in definition.parameters} | {"path": "a.txt"}
        batch = await service.batches.add(
            definition, (arguments for _ in range(items)), items, Queued("default", 100), 500
        )
        began = time.monotonic()
        process = _worker(home, folder)
        try:
            while service.queue.all():
                await asyncio.sleep(0.2)
            seconds = time.monotonic() - began
            assert sum("value" in result for result in service.batches.results(batch)) == items
            return seconds
        finally:
            process.kill()
            process.wait()
