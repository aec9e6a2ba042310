"""A dozen compute programs in every engine, as ratios to CPython.

Medians of rounds; in each round every engine runs once, in turn.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tools.engine.model.limits import RunLimits
from benchmarks.sides import PEERS, Albert, CPython, Side, plain

#: An engine that takes more seconds than this for one run is measured once.
PATIENCE = 2.0


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    sides: list[Side] = [CPython(), Albert(RunLimits(own_seconds=120, cpu_seconds=120))]
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
    reasons: list[str] = []
    for path in sorted((Path(__file__).parent / "programs").glob("*.tool")):
        lines.append(f"| {path.stem} | " + " | ".join(_row(sides, path, rounds, reasons)) + " |")
    for side in sides:
        side.close()
    if reasons:
        lines += ["", *(f"- {reason}" for reason in reasons)]
    if missing:
        lines.append(f"\nNot installed: {', '.join(missing)} (`pip install -e '.[benchmarks]'`).")
    return lines


def _row(sides: list[Side], path: Path, rounds: int, reasons: list[str]) -> list[str]:
    size = int(re.search(r"n: int = (\d+)", path.read_text())[1])  # type: ignore[index]
    runs: dict[Side, Callable[..., Any]] = {}
    times: dict[str, list[float]] = {s.name: [] for s in sides}
    said: dict[str, str] = {}
    wanted = ""
    for side in sides:
        try:
            runs[side] = side.prepare(_text(side, path), "t")
        except Exception as error:
            said[side.name] = "refused"
            reasons.append(f"{path.stem}, {side.name}: refused: {_first(error)}")
    for _ in range(rounds):
        for side, run in list(runs.items()):
            name = side.name
            if times[name] and times[name][-1] > PATIENCE:
                continue
            try:
                started = time.perf_counter()
                result = run(size)
                times[name].append(time.perf_counter() - started)
            except Exception as error:
                said[name] = "failed"
                reasons.append(f"{path.stem}, {name}: failed: {_first(error)}")
                del runs[side]
                continue
            side.rest()
            text = json.dumps(result, default=str)
            wanted = wanted or text
            if text != wanted and name not in said:
                said[name] = "wrong"
                reasons.append(f"{path.stem}, {name}: wrong: {text[:60]} where CPython gives {wanted[:60]}")
    base = statistics.median(times["CPython"])
    found = [f"{base * 1000:.1f}"]
    for side in sides[1:]:
        ratio = statistics.median(times[side.name]) / base if times[side.name] else 0.0
        found.append(said.get(side.name) or f"{ratio:.2f}")
    return found


def _text(side: Side, path: Path) -> str:
    """The program for an engine: its translation, if there is one."""
    translated = path.with_suffix(side.suffix)
    text = (translated if translated.exists() else path).read_text()
    return plain(text) if side.is_plain else text


def _first(error: Exception) -> str:
    """The first line of an error's message."""
    said = [line.strip() for line in str(error).splitlines() if "rror" in line or len(str(error)) < 120]
    return (said or [type(error).__name__])[0][:160]
