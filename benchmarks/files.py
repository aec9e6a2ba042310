"""What containment costs: a read in the workspace beside a bare `open`, and a search through 10,000 files beside ripgrep's own."""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from albert_tools.builtins.files import line_search
from albert_tools.builtins.files.search_text import search_text
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.workspace import Workspace

#: Reads in a block.
BLOCK = 500
#: Folders, files in each, lines of a file.
FOLDERS, FILES, LINES = 100, 100, 40


class _Context:
    """What a primitive is told."""

    def __init__(self, workspace: Any) -> None:
        self.workspace = workspace

    def effect(self, kind: str, **facts: Any) -> None:
        """Nobody asks for these."""


def table(rounds: int) -> list[str]:
    """The lines of both tables."""
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-files-"))).resolve()
        word = _filled(top)
        workspace = stack.enter_context(Workspace(top, [top.parent / "state"], [top.parent / "secret"]))
        guarded = workspace.judged_by(CallJudge(lambda path, use: None, "bench", 1 << 24))
        return [*_reads(top, workspace, guarded, rounds), "", *_searches(top, guarded, word, rounds)]


def _filled(top: Path) -> str:
    """Fill a folder; a text that few of its lines hold."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=6)) for _ in range(3000)]
    for n in range(FOLDERS):
        (top / f"d{n}").mkdir()
        for m in range(FILES):
            lines = (" ".join(chance.choices(words, k=8)) for _ in range(LINES))
            (top / f"d{n}" / f"f{m}.txt").write_text("\n".join(lines))
    return words[0]


def _reads(top: Path, workspace: Workspace, guarded: Workspace, rounds: int) -> list[str]:
    name = "d1/f1.txt"

    def bare() -> None:
        with open(top / name, "rb") as file:
            file.read()

    sides: dict[str, Callable[[], Any]] = {
        "`open` and `read`": bare,
        "contained": lambda: workspace.read(name, 1 << 20),
        "contained and judged": lambda: guarded.read(name, 1 << 20),
    }
    times = _measured(sides, rounds, BLOCK)
    bare_time = times["`open` and `read`"]
    lines = ["| reading a file of 2 KB | µs | of a bare read |", "|---|---:|---:|"]
    return [*lines, *(f"| {name} | {t * 1e6:.1f} | {t / bare_time:.1f} |" for name, t in times.items())]


def _searches(top: Path, guarded: Workspace, word: str, rounds: int) -> list[str]:
    pattern = f"{word[:-1]}[a-z] .*{word[:2]}"
    ripgrep = line_search.find_ripgrep(str(top))
    find = line_search.find_ripgrep

    def searched(text: str, program: str | None) -> Callable[[], Any]:
        def run() -> None:
            line_search.find_ripgrep = lambda workspace: program
            try:
                search_text.function(_Context(guarded), text, limit=1000)
            finally:
                line_search.find_ripgrep = find

        return run

    sides: dict[str, Callable[[], Any]] = {
        "`search_text`, RE2": searched(pattern, None),
        "`search_text`, plain text": searched(word, None),
    }
    if ripgrep is not None:
        command = [ripgrep, "--no-config", "--hidden", "--no-ignore", "-n", pattern, str(top)]
        bare: dict[str, Callable[[], Any]] = {
            "ripgrep itself": lambda: subprocess.run(command, capture_output=True, check=False)
        }
        sides = {**bare, "`search_text`, ripgrep": searched(pattern, ripgrep), **sides}
    times = _measured(sides, max(3, rounds // 3), 1)
    lines = [f"| searching {FOLDERS * FILES:,} files | ms |", "|---|---:|"]
    return [*lines, *(f"| {name} | {t * 1e3:.0f} |" for name, t in times.items())]


def _measured(sides: dict[str, Callable[[], Any]], rounds: int, block: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            started = time.perf_counter()
            for _ in range(block):
                call()
            times[name].append((time.perf_counter() - started) / block)
    return {name: statistics.median(taken) for name, taken in times.items()}
