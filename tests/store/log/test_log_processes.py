"""Several processes write one log, and are killed with `kill -9` at random times. No reported entry is lost or misread.

Two children at a time append without pause. They report each entry when `append` has returned, or every few entries when
`durable` has returned. Each child is killed at a random time, fifty children in all.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.record_types import Cursor
from albert_tools.store.log.log import Log
from albert_tools.store.log.segment import alive, open_segment
from tests.helpers.children import Child, Fork, Parent, Report

KILLS = 50
#: Seconds that a child appends before it is killed.
LIFE = (0.002, 0.06)
#: The number of entries of each of two concurrent writers.
COUNT = 300


def append_without_pause(report: Report, folder: Path, life: int) -> None:
    log = Log(folder, rotate_at=20_000)
    report("ready")
    i = 0
    while True:
        mark = log.append("step", {"life": life, "i": i, "x": "y" * (i % 50)})
        if i % 5 == 0:
            log.durable(mark)
        report(i)
        i += 1


def test_no_reported_entry_is_lost_by_kill_9(folder: Path) -> None:
    chance = random.Random(3)

    parent = Parent(append_without_pause)

    def start(life: int) -> tuple[Fork | None, float, int]:
        child = parent.fork(folder, life)
        # The child's time starts here, however long it took to start.
        assert child.hear() == "ready"
        return child, time.monotonic() + chance.uniform(*LIFE), life

    reader = Log(folder)
    cursor = Cursor()
    followed: dict[int, list[int]] = {}
    reported: dict[int, list[int]] = {}
    alive_now = [start(0), start(1)]
    for killed in range(KILLS):
        which = min((0, 1), key=lambda w: alive_now[w][1])
        child, deadline, life = alive_now[which]
        assert child is not None
        time.sleep(max(0.0, deadline - time.monotonic()))
        child.kill()
        reported[life] = child.rest()
        # A reader follows the log while the other child writes. It sees each entry once and in order.
        more, cursor = reader.changes(cursor)
        for entry in more:
            followed.setdefault(entry.data["life"], []).append(entry.data["i"])
        assert followed.get(life, [])[: len(reported[life])] == reported[life]
        alive_now[which] = start(killed + 2) if killed < KILLS - 2 else (None, float("inf"), -1)

    assert sum(map(len, reported.values())) > KILLS  # Both appended, even on a slow machine.
    found: dict[int, list[int]] = {}
    for entry in reader.entries():
        found.setdefault(entry.data["life"], []).append(entry.data["i"])
    for life, mine in reported.items():
        there = found.get(life, [])
        # The log contains all reported entries in their places, and at most one more: the entry that the kill interrupted.
        assert there == list(range(len(there)))
        assert len(mine) <= len(there) <= len(mine) + 1
    assert found == {life: there for life, there in followed.items() if there}
    verification = reader.verify()
    assert verification.problems == ()
    assert verification.segments > KILLS // 2


def write_and_read(_: Report, folder: Path, who: int) -> None:
    with Log(folder, rotate_at=10_000) as log:
        for i in range(COUNT):
            mark = log.append("step", {"who": who, "i": i})
            if i % 10 == 0:
                log.durable(mark)
                assert log.verify().ok  # of a log that two processes write and rotate
        assert sum(1 for e in log.entries() if e.data["who"] == who) == COUNT


def test_two_processes_write_and_read_at_once(folder: Path) -> None:
    children = [Child(write_and_read, folder, who) for who in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    found = list(Log(folder).entries())
    for who in range(2):
        assert [e.data["i"] for e in found if e.data["who"] == who] == list(range(COUNT))
    assert Log(folder).verify().ok


def append_and_live_on(report: Report, folder: Path) -> None:
    log = Log(folder)
    log.append("a", {})
    report("ready")
    time.sleep(600)


def test_a_living_writer_is_distinguished_from_a_dead_one(folder: Path, files: Callable[[], list[Path]]) -> None:
    child = Child(append_and_live_on, folder)
    assert child.hear() == "ready"
    (path,) = files()
    handle = open_segment(folder, path.stem)
    assert alive(handle)
    with path.open("ab") as file:
        file.write(b"0123")
    assert "being written" in Log(folder).verify().notes[0].message
    child.kill()
    assert not alive(handle)
    assert "its writer ended" in Log(folder).verify().notes[0].message
    os.close(handle)


@pytest.mark.parametrize("torn", [False, True])
def test_a_reader_can_read_a_chain_while_its_writer_rotates(folder: Path, torn: bool) -> None:
    log = Log(folder, rotate_at=400)
    cursor = Cursor()
    seen = []
    for i in range(20):
        log.append("step", {"i": i})
        if torn:
            log.append("other", {})
        more, cursor = log.changes(cursor, kinds={"step"})
        seen += [e.data["i"] for e in more]
        assert log.verify().ok
    assert seen == list(range(20))
