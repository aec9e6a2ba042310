"""The cost of the record. An append is compared with a plain write and with a plain SQLite table, a durable append with a plain
sync. Also measured: decisions that depend on earlier calls, and journals.

All sides write to the same disk, one block of each in turn, because the speed of machines and disks varies.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from albert_tools.engine.authority.rate_limit import RateLimits
from albert_tools.engine.authority.sessions import Session, Sessions
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record.export import exported
from albert_tools.store.record.record import Record
from albert_tools.store.record.retention import trim
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify

#: A typical entry of a decision.
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
#: Calls within the last hour, and the limit.
CALLS = 3000
LIMITS = [("tool:write_file", 1_000_000)]

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def table(rounds: int) -> list[str]:
    """The lines of all tables."""
    with tempfile.TemporaryDirectory(prefix="albert-records-") as place:
        tables = [_appends, _durable, _deciding, _journals]
        return [line for work in tables for line in ["", *work(Path(place), rounds)]][1:]


def _appends(place: Path, rounds: int) -> list[str]:
    text = msgspec.json.encode({"n": 1, "at": "2026-01-31T08:00:00.000001Z", "kind": "decision", **DATA})
    line = b"0" * 64 + b" " + text + b"\n"
    handle = os.open(place / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = Record(place / "record")
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
        "`Record.append`": lambda: _each(lambda: log.append("decision", DATA)),
        "SQLite insert (WAL), a transaction each": lambda: _each(lambda: insert("one by one")),
        "SQLite insert (WAL), all in one transaction": within,
    }
    lines = ["| appending an entry, not yet durable | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in _medians(sides, rounds).items()]
    count = sum(1 for _ in log.entries())
    later = datetime.now(UTC) + timedelta(days=1)
    last: dict[str, Callable[[], object]] = {
        "reading it back": lambda: list(log.entries()),
        "verifying it": lambda: verify(log.place),
        "exporting it": lambda: list(exported(log)),
        "deleting it behind a checkpoint": lambda: trim(log, later),
    }
    for name, work in last.items():
        start = time.perf_counter()
        work()
        lines.append(f"| {name} | {(time.perf_counter() - start) / count * 1e6:.1f} |")
    log.close()
    os.close(handle)
    for connection in tables.values():
        connection.close()
    return lines


def _durable(place: Path, rounds: int) -> list[str]:
    log = Record(place / "durable")
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
    lines = ["| appending an entry durably | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.0f} |" for name, value in _medians(sides, rounds).items()]
    log.close()
    os.close(handle)
    return lines


def _deciding(place: Path, rounds: int) -> list[str]:
    record = Record(place / "decided")
    sessions, limits = Sessions(record), RateLimits(record)
    new, old = (sessions.open(name, "/work", budget=Budget(calls=1_000_000))[0] for name in ("new", "old"))

    def empty() -> None:
        with record.transaction():
            pass

    def decide(session: Session) -> None:
        with record.transaction():
            line = sessions.line(session.id)
            sessions.demand(line, "write_file")
            sessions.afford(line, "write_file")
            limits.demand(LIMITS, [session.id], "write_file")
            use = {"session": session.id, "used": {"calls": 1}, **limits.use(LIMITS, [session.id])}
            record.append("use", use)
            record.append("call", DATA)
        record.append("result", DATA)

    for _ in range(CALLS):
        decide(old)
    few = 50
    sides: dict[str, Callable[[], float]] = {
        "an empty transaction": lambda: _each(empty),
        "finding a session": lambda: _each(lambda: sessions.demand(sessions.line(new.id), "write_file")),
        "a decision and its result, with a session and a rate limit": lambda: _each(lambda: decide(new), few),
        f"the same after {CALLS:,} calls within the hour": lambda: _each(lambda: decide(old), few),
    }
    lines = ["| deciding by earlier calls | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in _medians(sides, rounds).items()]
    record.close()
    return lines


def _journals(place: Path, rounds: int) -> list[str]:
    record = Record(place / "runs")
    runs = Runs(record)
    ids = iter(range(1 << 60))
    few = 20
    journal = runs.create("f" * 16, {})

    def begin() -> None:
        runs.create(f"{next(ids):016x}", {"program": "b3:" + "0" * 64}).close()

    def flushed() -> None:
        journal.append(DATA)
        journal.flush()

    def synced() -> float:
        async def work() -> float:
            start = time.perf_counter()
            for _ in range(few):
                journal.append(DATA)
                await journal.sync()
            return (time.perf_counter() - start) / few * 1e6

        return asyncio.run(work())

    sides: dict[str, Callable[[], float]] = {
        "create and close a run's journal": lambda: _each(begin, few * 5),
        "a step, buffered": lambda: _each(lambda: journal.append(DATA)),
        "a step, flushed": lambda: _each(flushed),
        "a step, `await sync`": synced,
        "check whether the run is cancelled": lambda: _each(lambda: runs.cancelled(journal.id)),
    }
    lines = ["| a run's journal | µs |", "|---|---:|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in _medians(sides, rounds).items()]
    journal.close()
    record.close()
    return lines


def _each(work: Callable[[], object], count: int = BLOCK) -> float:
    """Microseconds for one call of `work`."""
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count * 1e6


def _medians(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each side. The sides take turns."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return {name: statistics.median(values) for name, values in found.items()}
