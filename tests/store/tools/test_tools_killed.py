"""`kill -9` at random times: every reported save is complete in the store, and no other version is damaged.

Two children at a time save without pause. Each saves its own tools and one shared tool, renews what it has saved, and then reports
it. Each child is killed at a random time. The save that a kill interrupted is either complete in the store or missing.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.tools import tool_store
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.children import Fork, Parent, Report
from tests.helpers.versions import make

#: Seconds that a child saves before it is killed.
LIFE = (0.005, 0.05)
#: One child in this many lives at least until its first save, even on a slow machine.
SAVES_ONCE = 4
#: The number of tools of one child. It is small, so that their files fill up and move versions to the archive.
OWN = 3
#: The number of versions in a tool's file. It is so small that most saves archive a version.
KEEP = 5


def name_of(child: int, i: int) -> str:
    """The tool of a child's save number `i`."""
    return "shared" if i % 4 == 3 else f"own{child}{i % OWN}"


def save_without_pause(report: Report, folder: Path, child: int, life: int) -> None:
    tool_store.KEEP = KEEP
    store = TinyToolStore(folder)
    report("ready")
    i = 0
    while True:
        name = name_of(child, i)
        version = make(name, f"{child}.{life}.{i}")
        store.save(version)
        store.renew(version)
        report((name, f"{child}.{life}.{i}"))
        i += 1


def is_there(store: TinyToolStore, name: str, text: str) -> bool:
    """Whether the version is in the store. A version in the store must be complete."""
    version = make(name, text)
    try:
        assert store.load(name, version.version) == version
    except Failure as failure:
        if failure.code != "unknown_tool":
            raise
        return False
    return True


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_every_reported_save_survives_kill_9(kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    for killed in range(kills):
        child = min((0, 1), key=lambda c: alive[c][1])
        process, deadline, life, heard = alive[child]
        assert process is not None
        time.sleep(max(0.0, deadline - time.monotonic()))
        process.kill()
        mine = heard + process.rest()
        saved += mine
        # No other process writes the child's own tools. So the newest version is the last reported one, or the one that the
        # kill interrupted.
        store = TinyToolStore(folder)
        interrupted = f"{child}.{life}.{len(mine)}"
        unreported.append((name_of(child, len(mine)), interrupted))
        for name, text in {name: text for name, text in mine if name != "shared"}.items():
            assert store.load(name) in (make(name, text), make(name, interrupted))
        if killed < kills - 2:
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
        # Files that a dead writer left do not block the next save, which removes them.
        store.save(make(summary.name, "after"))
        assert store.load(summary.name) == make(summary.name, "after")
    assert not list(folder.glob("*/.new-*"))
    assert not list(folder.glob("*/*.damaged-*"))
