"""The time that confining a command takes: `bash -c :` by `subprocess`, and under each confinement of this machine. Medians.

The last line is a call of the tool `bash`, which includes the rules, the ledger and the classification of the command.

The second table is what a command of a session waits for besides, as long as the session has seen nothing private: whether the
command can see a private file. The least that this can cost is to list the folders.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from albert_tools import ToolService
from albert_tools.engine.policy.flow_rules import SHIPPED_PRIVATE_PATHS
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.sandbox.command.confinement import PATH, found
from albert_tools.engine.sandbox.command.launchers import Launchers
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.run_command import run
from albert_tools.engine.sandbox.command.task import Command
from albert_tools.engine.sandbox.command.view import View
from albert_tools.engine.workspace.private_files import private_file

_WORDS = ["bash", "--noprofile", "--norc", "-c", ":"]


def table(rounds: int) -> list[str]:
    """The table, as lines of Markdown."""
    times = asyncio.run(_measured(rounds * 5))
    plain = times["plain"]
    lines = ["| `bash -c :` | ms | over plain, ms |", "|---|---:|---:|"]
    for name, seconds in times.items():
        lines.append(f"| {name} | {seconds * 1e3:.1f} | {(seconds - plain) * 1e3:.1f} |")
    return [*lines, "", *_private(rounds * 5)]


def _private(rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="albert-private-") as place:
        for number in range(1000):
            folder = Path(place) / f"part{number // 20}"
            folder.mkdir(exist_ok=True)
            (folder / f"module_{number}.py").touch()
        patterns = PathPatterns([(p, p) for p in SHIPPED_PRIVATE_PATHS], place, os.path.expanduser("~"))
        sides: dict[str, Callable[[], object]] = {
            "listing their folders": lambda: list(os.walk(place)),
            "looking for a private one": lambda: private_file((), [place], patterns, lambda _: True),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                begin = time.perf_counter()
                side()
                times[name].append(time.perf_counter() - begin)
    lines = ["| 1,000 files in 50 folders | ms |", "|---|---:|"]
    return [*lines, *(f"| {name} | {statistics.median(each) * 1e3:.2f} |" for name, each in times.items())]


async def _measured(rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="albert-confined-") as place:
        work = Path(place).resolve() / "work"
        (work / ".albert").mkdir(parents=True)
        opened, launchers = os.open(work, os.O_RDONLY | os.O_DIRECTORY), Launchers()
        rules = {"allow": ["bash"], "tools": {"bash": {"allowed_in_modes": ["NORMAL"]}}}
        try:
            async with ToolService.open(home=Path(place) / "home", workspace=work, governance=rules) as service:
                sides: dict[str, Callable[[], Awaitable[Any]]] = {"plain": _plain}
                for kind in found().kinds:
                    sides[kind] = _confined(kind, str(work), opened, launchers)
                sides["`bash`, governed"] = _governed(service)
                times: dict[str, list[float]] = {name: [] for name in sides}
                for _ in range(rounds + 1):
                    for name, side in sides.items():
                        begin = time.perf_counter()
                        await side()
                        times[name].append(time.perf_counter() - begin)
                # Ignore the first time of each, because that run fills caches.
                return {name: statistics.median(each[1:]) for name, each in times.items()}
        finally:
            await launchers.aclose()
            os.close(opened)


async def _plain() -> None:
    subprocess.run(_WORDS, env={"PATH": PATH}, stdin=subprocess.DEVNULL, capture_output=True, check=True)


def _confined(kind: str, work: str, opened: int, launchers: Launchers) -> Callable[[], Awaitable[None]]:
    async def side() -> None:
        view = View(work, work)
        command = Command(_WORDS, view, opened, {"PATH": PATH}, 60, wanted=kind, launchers=launchers)
        ended = await run(command, Output(1 << 16))
        assert ended.code == 0

    return side


def _governed(service: ToolService) -> Callable[[], Awaitable[None]]:
    async def side() -> None:
        assert (await service.invoke("bash", {"command": ":"})).value()["exit_code"] == 0

    return side
