"""`kill -9` at any instant: every save that was reported is in the store, whole, and nothing else is harmed.

Two children at a time save without pause, to tools of their own and to one they share, and report each save that has
returned. Each is killed at a random instant, two hundred times in all. The save that a kill interrupted is in the store
whole, or not at all.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.tools import tool_store
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.children import Fork, Parent, Report
from tests.helpers.versions import make

KILLS = 200
#: Seconds of saving before a child is killed.
LIFE = (0.005, 0.05)
#: One child in so many lives at least until its first save, however slow the machine.
SAVES_ONCE = 4
#: Tools of one child; few, so that their files fill up and archive.
OWN = 3
#: Versions in a tool's file; so few that most saves archive.
KEEP = 5


def name_of(child: int, i: int) -> str:
    """The tool of a child's `i`-th save."""
    return "shared" if i % 4 == 3 else f"own{child}{i % OWN}"


def save_without_pause(report: Report, folder: Path, child: int, life: int) -> None:
    tool_store.KEEP = KEEP
    store = TinyToolStore(folder)
    report("ready")
    i = 0
    while True:
        name = name_of(child, i)
        store.save(make(name, f"{child}.{life}.{i}"))
        report((name, f"{child}.{life}.{i}"))
        i += 1


def is_there(store: TinyToolStore, name: str, text: str) -> bool:
    """Whether the version is in the store; if so, it must be whole."""
    version = make(name, text)
    try:
        assert store.load(name, version.version) == version
    except Failure as failure:
        if failure.code != "unknown_tool":
            raise
        return False
    return True


def test_every_reported_save_survives_kill_9(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tool_store, "KEEP", KEEP)
    folder = tmp_path / "tools"
    chance = random.Random(9)

    parent = Parent(save_without_pause)

    def start(child: int, life: int) -> tuple[Fork | None, float, int, list[tuple[str, str]]]:
        process = parent.fork(folder, child, life)
        assert process.hear() == "ready"
        heard = [process.hear()] if life % SAVES_ONCE == 0 else []
        return process, time.monotonic() + chance.uniform(*LIFE), life, heard

    saved: list[tuple[str, str]] = []
    unreported: list[tuple[str, str]] = []
    alive = [start(0, 0), start(1, 0)]
    for killed in range(KILLS):
        child = min((0, 1), key=lambda c: alive[c][1])
        process, deadline, life, heard = alive[child]
        assert process is not None
        time.sleep(max(0.0, deadline - time.monotonic()))
        process.kill()
        mine = heard + process.rest()
        saved += mine
        # Nobody else writes its own tools: the newest version is the last one reported, or the one that the kill interrupted.
        store = TinyToolStore(folder)
        interrupted = f"{child}.{life}.{len(mine)}"
        unreported.append((name_of(child, len(mine)), interrupted))
        for name, text in {name: text for name, text in mine if name != "shared"}.items():
            assert store.load(name) in (make(name, text), make(name, interrupted))
        if killed < KILLS - 2:
            alive[child] = start(child, killed + 1)
        else:
            alive[child] = (None, float("inf"), 0, [])

    store = TinyToolStore(folder, tmp_path / "cache")
    assert [each for each in saved if not is_there(store, *each)] == []
    there = saved + [each for each in unreported if is_there(store, *each)]
    listed = store.list()
    assert {s.name for s in listed} == {name for name, _ in there}
    assert [s.problem for s in listed] == [None] * len(listed)
    for summary in listed:
        assert summary.versions == sum(1 for name, _ in there if name == summary.name)
        # The next save is not blocked by what a dead writer left, and removes it.
        store.save(make(summary.name, "after"))
        assert store.load(summary.name) == make(summary.name, "after")
    assert not list(folder.glob("*/.new-*"))
    assert not list(folder.glob("*/*.damaged-*"))
