"""A dozen compute programs on every side, as ratios to CPython: medians of rounds in which each side runs once, in turn."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.sides import PEERS, Albert, CPython, Side

#: A side that takes longer than this for one run is measured once.
PATIENCE = 2.0


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    sides: list[Side] = [CPython(), Albert()]
    missing = []
    for peer in PEERS:
        try:
            sides.append(peer())
        except ImportError:
            missing.append(peer.name)
    lines = [
        "| program | CPython, ms | " + " | ".join(s.name for s in sides[1:]) + " |",
        "|---|---:" + "|---:" * len(sides[1:]) + "|",
    ]
    for path in sorted((Path(__file__).parent / "programs").glob("*.tool")):
        source = path.read_text()
        size = int(re.search(r"n: int = (\d+)", source)[1])  # type: ignore[index]
        lines.append(f"| {path.stem} | " + " | ".join(_row(sides, source, size, rounds)) + " |")
    for side in sides:
        side.close()
    if missing:
        lines.append(f"\nNot installed: {', '.join(missing)} (`pip install -e '.[benchmarks]'`).")
    return lines


def _row(sides: list[Side], source: str, size: int, rounds: int) -> list[str]:
    runs: dict[str, Callable[[int], tuple[float, Any]]] = {}
    times: dict[str, list[float]] = {s.name: [] for s in sides}
    said: dict[str, str] = {}
    wanted = ""
    for side in sides:
        try:
            runs[side.name] = side.prepare(source)
        except Exception:
            said[side.name] = "refused"
    for _ in range(rounds):
        for name, run in list(runs.items()):
            if times[name] and times[name][-1] > PATIENCE:
                continue
            try:
                seconds, result = run(size)
            except Exception:
                said[name] = "refused"
                del runs[name]
                continue
            times[name].append(seconds)
            text = json.dumps(result, default=str)
            wanted = wanted or text
            if text != wanted:
                said[name] = "wrong"
    base = statistics.median(times["CPython"])
    found = [f"{base * 1000:.1f}"]
    for side in sides[1:]:
        ratio = statistics.median(times[side.name]) / base if times[side.name] else 0.0
        found.append(said.get(side.name) or f"{ratio:.2f}")
    return found
