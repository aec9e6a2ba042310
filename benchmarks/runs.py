"""The cost of a run, a call and a start, compared with a plain round trip to a process, and with Monty."""

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
from typing import Any

from albert_tools.engine.model.definition import Program
from albert_tools.engine.sandbox.worker.pool import Sandbox

ONE = Program("t", "t", "def t(n):\n    return 1 + n\n", (), (1, 2))
CALLS = Program(
    "t", "t", "def t(n):\n    for i in range(n):\n        __call('x', {'path': 'a'})\n    return n\n", (), (1, 2, 3, 4)
)
#: The modules of others that `albert run` imports itself.
IMPORTS = (
    "argparse, asyncio, blake3, hmac, ipaddress, msgspec, resource, secrets, shutil, sqlite3, subprocess, textwrap"
)
#: A server that forks a process for each run of `1 + n`, and the next one ahead. This is the least that single use can cost.
FORK_SERVER = """
import os, socket, sys
channel = socket.socket(fileno=int(sys.argv[1]))
while True:
    child = os.fork()
    if not child:
        request = channel.recv(100)
        if request:
            channel.send(str(eval("1 + n", {"n": int(request)})).encode())
        os._exit(not request)
    if os.waitpid(child, 0)[1]:
        break
"""
#: Seconds between measurements. In practice, tools are seldom called in a tight loop.
GAP = 0.005


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    found = asyncio.run(_measure(rounds))
    bare = statistics.median(found["bare socket round trip, 1 KiB"])
    lines = ["| | median, µs | in bare round trips |", "|---|---:|---:|"]
    for name, times in found.items():
        median = statistics.median(times)
        lines.append(f"| {name} | {median * 1e6:.0f} | {median / bare:.1f} |")
    lines += ["", f"Runs one after the other: {asyncio.run(_throughput(rounds)):.0f} a second."]
    return [*lines, "", *_cold(max(5, rounds // 10))]


async def _measure(rounds: int) -> dict[str, list[float]]:
    ours, theirs = socket.socketpair()
    echo = os.fork()
    if not echo:
        ours.close()
        while data := theirs.recv(65536):
            theirs.sendall(data)
        os._exit(0)
    theirs.close()
    forked, served = socket.socketpair()
    server = subprocess.Popen([sys.executable, "-c", FORK_SERVER, str(served.fileno())], pass_fds=[served.fileno()])
    served.close()
    sandbox = Sandbox()
    await sandbox.start()

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        return "answer"

    found: dict[str, list[float]] = {
        "bare socket round trip, 1 KiB": [],
        "a bare fork server: run of `1 + n`": [],
        "warm run of `1 + n`": [],
        "one tool call from inside": [],
    }
    monty = _monty()
    if monty:
        found |= {"Monty: warm run of `1 + n`": [], "Monty: one call of a host function": []}
    for _ in range(rounds):
        await asyncio.sleep(GAP)
        started = time.perf_counter()
        ours.sendall(b"x" * 1024)
        ours.recv(65536)
        found["bare socket round trip, 1 KiB"].append(time.perf_counter() - started)
        await asyncio.sleep(GAP)
        started = time.perf_counter()
        forked.sendall(b"1")
        forked.recv(100)
        found["a bare fork server: run of `1 + n`"].append(time.perf_counter() - started)
        await asyncio.sleep(GAP)
        started = time.perf_counter()
        await sandbox.run(ONE, {"n": 1}, call=call)
        found["warm run of `1 + n`"].append(time.perf_counter() - started)
        await asyncio.sleep(GAP)
        started = time.perf_counter()
        await sandbox.run(CALLS, {"n": 50}, call=call)
        found["one tool call from inside"].append((time.perf_counter() - started) / 50)
        if monty:
            await asyncio.sleep(GAP)
            found["Monty: warm run of `1 + n`"].append(monty("1 + n", 1))
            await asyncio.sleep(GAP)
            found["Monty: one call of a host function"].append(monty("for i in range(50):\n    x('a')\n", 1) / 50)
    await sandbox.close()
    ours.close()
    os.waitpid(echo, 0)
    forked.close()
    server.wait()
    return found


def _monty() -> Any:
    try:
        import pydantic_monty
    except ImportError:
        return None
    pool = pydantic_monty.Monty().__enter__()
    session: Any = None
    left = 0

    def run(code: str, n: int) -> float:
        nonlocal session, left
        if not left:
            # A session allows a thousand calls. The time for a new session is not measured.
            session = pool.checkout().__enter__()
            session.feed_run("1 + n", inputs={"n": 1})
            left = 18
        left -= 1
        started = time.perf_counter()
        session.feed_run(code, inputs={"n": n}, external_lookup={"x": lambda path: "answer"})
        return time.perf_counter() - started

    return run


async def _throughput(rounds: int) -> float:
    sandbox = Sandbox(idle=4)
    await sandbox.start()

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        return None

    started = time.perf_counter()
    for _ in range(rounds * 2):
        await sandbox.run(ONE, {"n": 1}, call=call)
    seconds = time.perf_counter() - started
    await sandbox.close()
    return rounds * 2 / seconds


def _cold(rounds: int) -> list[str]:
    """The time of commands that are started from a shell."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "work"
        (workspace / ".albert").mkdir(parents=True)
        source = workspace / "one.tool"
        source.write_text('def one(n: int) -> int:\n    """Add one."""\n    return n + 1\n')
        environment = {**os.environ, "ALBERT_HOME": str(Path(folder) / "home")}
        albert = [sys.executable, "-m", "albert_tools.surfaces.cli"]
        subprocess.run(
            [*albert, "define", str(source)], cwd=workspace, env=environment, check=True, capture_output=True
        )
        commands = {
            "`python -c pass`": [sys.executable, "-c", "pass"],
            "`python -c` with the imports of others": [sys.executable, "-c", f"import {IMPORTS}"],
            "`albert run one n=1`": [*albert, "run", "one", "n=1"],
            "`albert tools`": [*albert, "tools"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, cwd=workspace, env=environment, check=True, capture_output=True)
                times[name].append(time.perf_counter() - started)
    lines = ["| from the shell | median, ms |", "|---|---:|"]
    return lines + [f"| {name} | {statistics.median(found) * 1000:.0f} |" for name, found in times.items()]
