"""The cost of the workspace: reading a file, compared with a plain `open`, and searching 10,000 files."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from albert_tools.builtins.files.search_text import search_text
from albert_tools.engine.policy.tool_paths import ToolPaths
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.workspace import Workspace

#: Reads in a block.
BLOCK = 500
#: Folders, files in each folder, lines of a file.
FOLDERS, FILES, LINES = 100, 100, 40

Sides = dict[str, Callable[[], Any]]


class _Context:
    """The context of a call that is not recorded."""

    def __init__(self, workspace: Any) -> None:
        self.workspace = workspace

    def effect(self, kind: str, **facts: Any) -> None:
        """Ignore the effect."""


def table(rounds: int) -> list[str]:
    """The lines of both tables."""
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-files-"))).resolve()
        word = _fill(top)
        workspace = stack.enter_context(Workspace(top, [top.parent / "state"], [top.parent / "secret"]))
        judged = workspace.judged_by(CallJudge(ToolPaths("bench", (), str(top)), "bench", 1 << 24))
        return [*_reads(top, workspace, judged, rounds), "", *_searches(judged, word, rounds)]


def _fill(top: Path) -> str:
    """Fill a folder. Returns a text that occurs in few of its lines."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=6)) for _ in range(3000)]
    for n in range(FOLDERS):
        (top / f"d{n}").mkdir()
        for m in range(FILES):
            lines = (" ".join(chance.choices(words, k=8)) for _ in range(LINES))
            (top / f"d{n}" / f"f{m}.txt").write_text("\n".join(lines))
    return words[0]


def _reads(top: Path, workspace: Workspace, judged: Workspace, rounds: int) -> list[str]:
    name = "d1/f1.txt"

    def bare() -> None:
        with open(top / name, "rb") as file:
            file.read()

    sides: Sides = {
        "`open` and `read`": bare,
        "in the workspace": lambda: workspace.read(name, 1 << 20),
        "in the workspace, judged": lambda: judged.read(name, 1 << 20),
    }
    times = _measured(sides, rounds, BLOCK)
    bare_time = times["`open` and `read`"]
    lines = ["| reading a file of 2 KB | µs | of a bare read |", "|---|---:|---:|"]
    return [*lines, *(f"| {name} | {t * 1e6:.1f} | {t / bare_time:.1f} |" for name, t in times.items())]


def _searches(judged: Workspace, word: str, rounds: int) -> list[str]:
    def search(pattern: str) -> Callable[[], Any]:
        return lambda: search_text.function(_Context(judged), pattern, limit=1000)

    sides: Sides = {
        "`search_text`, a pattern": search(f"{word[:-1]}[a-z] .*{word[:2]}"),
        "`search_text`, plain text": search(word),
    }
    times = _measured(sides, max(3, rounds // 3), 1)
    lines = [f"| searching {FOLDERS * FILES:,} files | ms |", "|---|---:|"]
    return [*lines, *(f"| {name} | {t * 1e3:.0f} |" for name, t in times.items())]


def _measured(sides: Sides, rounds: int, block: int) -> dict[str, float]:
    """The median of each side's times, in seconds. The sides take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            started = time.perf_counter()
            for _ in range(block):
                call()
            times[name].append((time.perf_counter() - started) / block)
    return {name: statistics.median(taken) for name, taken in times.items()}
