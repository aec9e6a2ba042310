"""`kill -9` at any instant: what was reported saved is there, whole, and nothing else is harmed.

Two children at a time save without pause, to tools of their own and to one they share; after each save has
returned they report it. Each is killed at a random instant, two hundred times in all.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from albert_tools.store import tools
from albert_tools.store.tools import TinyToolStore
from tests.children import Child, Report
from tests.store.versions import make

KILLS = 200
#: Seconds of saving before a child is killed.
LIFE = (0.005, 0.05)
#: Tools of one child; few, so that their files also fill up and archive.
OWN = 3
#: Versions in a tool's file, so few that most saves archive too.
KEEP = 5


def save_without_pause(report: Report, folder: Path, child: int, life: int) -> None:
    tools.KEEP = KEEP
    store = TinyToolStore(folder)
    report("ready")
    i = 0
    while True:
        name = "shared" if i % 4 == 3 else f"own{child}{i % OWN}"
        store.save(make(name, f"{child}.{life}.{i}"))
        report((name, f"{child}.{life}.{i}"))
        i += 1


def test_nothing_reported_is_lost(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tools, "KEEP", KEEP)
    folder = tmp_path / "tools"
    chance = random.Random(9)

    def start(child: int, life: int) -> tuple[Child | None, float, int]:
        process = Child(save_without_pause, folder, child, life)
        assert process.hear() == "ready"
        return process, time.monotonic() + chance.uniform(*LIFE), life

    saved: list[tuple[str, str]] = []
    alive = [start(0, 0), start(1, 0)]
    for killed in range(KILLS):
        child = min((0, 1), key=lambda c: alive[c][1])
        process, deadline, life = alive[child]
        assert process is not None
        time.sleep(max(0.0, deadline - time.monotonic()))
        process.kill()
        mine = process.rest()
        saved += mine
        # Its own tools are written by nobody else: the newest is the last one reported, or the one under way.
        store = TinyToolStore(folder)
        under_way = f"{child}.{life}.{len(mine)}"
        for name, text in {name: text for name, text in mine if name != "shared"}.items():
            assert store.load(name) in (make(name, text), make(name, under_way))
        if killed < KILLS - 2:
            alive[child] = start(child, killed + 1)
        else:
            alive[child] = (None, float("inf"), 0)

    assert len(saved) > KILLS // 4  # they did save, however slow the machine
    store = TinyToolStore(folder, tmp_path / "cache")
    for name, text in saved:
        version = make(name, text)
        assert store.load(name, version.version) == version
    listed = store.list()
    assert {s.name for s in listed} == {name for name, _ in saved}
    assert [s.problem for s in listed] == [None] * len(listed)
    for summary in listed:
        reported = sum(1 for name, _ in saved if name == summary.name)
        assert reported <= summary.versions <= reported + KILLS
        # Whatever was under way when a writer died holds nobody up, and its leftovers are swept.
        store.save(make(summary.name, "after"))
        assert store.load(summary.name) == make(summary.name, "after")
    assert not list(folder.glob("*/.new-*"))
    assert not list(folder.glob("*/*.damaged-*"))
