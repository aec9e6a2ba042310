"""What keeping records costs: an append beside a bare write and SQLite, and durability beside a bare sync.

All sides write to the same folder's disk, a block of each in turn, because machines and disks are noisy.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from albert_tools.store.log.log import Log

#: What a decision's entry is like.
DATA = {
    "request": "0123456789abcdef",
    "tool": "read_file",
    "arguments": {"path": "notes/today.txt", "offset": 0},
    "decision": "allow",
    "rule": "allow-read-workspace",
}
#: Appends in a block.
BLOCK = 2000
WAITERS = 50

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def table(rounds: int) -> list[str]:
    """The lines of both tables."""
    with tempfile.TemporaryDirectory(prefix="albert-records-") as place:
        return [*_appends(Path(place), rounds), "", *_durable(Path(place), rounds)]


def _appends(place: Path, rounds: int) -> list[str]:
    text = msgspec.json.encode({"n": 1, "at": "2026-01-31T08:00:00.000001Z", "kind": "decision", **DATA})
    line = b"0" * 64 + b" " + text + b"\n"
    handle = os.open(place / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = Log(place / "log")
    tables = {}
    for name in ("one by one", "in one transaction"):
        tables[name] = sqlite3.connect(place / f"{name}.db", isolation_level=None)
        tables[name].execute("PRAGMA journal_mode=WAL")
        tables[name].execute("PRAGMA synchronous=NORMAL")
        tables[name].execute("CREATE TABLE log (n INTEGER PRIMARY KEY, at TEXT, kind TEXT, data TEXT)")

    def insert(name: str) -> None:
        at = "2026-01-31T08:00:00.000001Z"
        values = (at, "decision", msgspec.json.encode(DATA).decode())
        tables[name].execute("INSERT INTO log (at, kind, data) VALUES (?, ?, ?)", values)

    def within() -> float:
        tables["in one transaction"].execute("BEGIN")
        spent = _each(lambda: insert("in one transaction"))
        tables["in one transaction"].execute("COMMIT")
        return spent

    sides: dict[str, Callable[[], float]] = {
        "a bare `os.write` of such a line": lambda: _each(lambda: os.write(handle, line)),
        "`Log.append`": lambda: _each(lambda: log.append("decision", DATA)),
        "SQLite insert (WAL), a transaction each": lambda: _each(lambda: insert("one by one")),
        "SQLite insert (WAL), all in one transaction": within,
    }
    lines = ["| keeping an entry, not yet durable | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in _medians(sides, rounds).items()]
    count = sum(1 for _ in log.entries())
    for name, work in (("reading it back, proved", log.entries), ("verifying it", lambda: [log.verify()])):
        start = time.perf_counter()
        for _ in work():
            pass
        lines.append(f"| {name} | {(time.perf_counter() - start) / count * 1e6:.1f} |")
    _, cursor = log.changes()
    lines.append(f"| asking for changes when there are none (one segment) | {_each(lambda: log.changes(cursor)):.1f} |")
    log.close()
    os.close(handle)
    for connection in tables.values():
        connection.close()
    return lines


def _durable(place: Path, rounds: int) -> list[str]:
    log = Log(place / "durable")
    handle = os.open(place / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    line = b"0" * 300 + b"\n"
    few = 20

    def bare() -> float:
        def work() -> None:
            os.write(handle, line)
            _sync(handle)

        return _each(work, few)

    async def one() -> None:
        for _ in range(few):
            await log.adurable(log.append("decision", DATA))

    async def many() -> None:
        async def work() -> None:
            for _ in range(few):
                await log.adurable(log.append("decision", DATA))

        await asyncio.gather(*(work() for _ in range(WAITERS)))

    def timed(work: Callable[[], Awaitable[None]], count: int) -> float:
        async def run() -> float:
            start = time.perf_counter()
            await work()
            return (time.perf_counter() - start) / count * 1e6

        return asyncio.run(run())

    sides: dict[str, Callable[[], float]] = {
        "a bare `os.write` and `fdatasync`": bare,
        "`append` and `durable`": lambda: _each(lambda: log.durable(log.append("decision", DATA)), few),
        "`append` and `await adurable`": lambda: timed(one, few),
        f"`append` and `await adurable`, {WAITERS} at once: per entry": lambda: timed(many, few * WAITERS),
    }
    lines = ["| keeping an entry durably | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.0f} |" for name, value in _medians(sides, rounds).items()]
    log.close()
    os.close(handle)
    return lines


def _each(work: Callable[[], object], count: int = BLOCK) -> float:
    """Microseconds of one `work`."""
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count * 1e6


def _medians(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Each side's median, the sides taking turns."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return {name: statistics.median(values) for name, values in found.items()}
