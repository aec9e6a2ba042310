"""Several processes at one log, and `kill -9` at any instant: nothing that was reported is lost, nothing is misread.

Two children at a time append without pause and report each entry on a pipe once `append`, or every few entries
`durable`, has returned. Each is killed at a random instant, fifty times in all. They are forked from this process, which has
everything imported.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.records import Cursor
from albert_tools.store.log.log import Log
from albert_tools.store.log.segment import alive, open_segment

Child = Callable[[Callable[[], None]], int]
KILLS = 50
#: Seconds of appending before a child is killed.
LIFE = (0.002, 0.06)


def _reports(pipe: int) -> list[int]:
    content = b""
    while chunk := os.read(pipe, 65536):
        content += chunk
    os.close(pipe)
    return [int(line) for line in content.decode().split("\n")[:-1]]


def test_nothing_reported_is_lost_by_kill_9(folder: Path, fork: Child) -> None:
    chance = random.Random(3)

    def start(life: int) -> tuple[int, int, float, int]:
        read, write = os.pipe()

        def work() -> None:
            os.close(read)
            log = Log(folder, rotate_at=20_000)
            os.write(write, b"ready\n")
            i = 0
            while True:
                mark = log.append("step", {"life": life, "i": i, "x": "y" * (i % 50)})
                if i % 5 == 0:
                    log.durable(mark)
                os.write(write, b"%d\n" % i)
                i += 1

        pid = fork(work)
        os.close(write)
        # However long it took to come up: its life is counted from here.
        assert os.read(read, 6) == b"ready\n"
        return pid, read, time.monotonic() + chance.uniform(*LIFE), life

    reader = Log(folder)
    cursor = Cursor()
    followed: dict[int, list[int]] = {}
    reported: dict[int, list[int]] = {}
    alive_now = [start(0), start(1)]
    for killed in range(KILLS):
        which = min((0, 1), key=lambda w: alive_now[w][2])
        pid, pipe, deadline, life = alive_now[which]
        time.sleep(max(0.0, deadline - time.monotonic()))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        reported[life] = _reports(pipe)
        # A reader that follows along, while the other child writes, sees each entry once and in order.
        more, cursor = reader.changes(cursor)
        for entry in more:
            followed.setdefault(entry.data["life"], []).append(entry.data["i"])
        assert followed.get(life, [])[: len(reported[life])] == reported[life]
        alive_now[which] = start(killed + 2) if killed < KILLS - 2 else (0, 0, float("inf"), -1)

    assert sum(map(len, reported.values())) > KILLS  # they did append, however slow the machine
    found: dict[int, list[int]] = {}
    for entry in reader.entries():
        found.setdefault(entry.data["life"], []).append(entry.data["i"])
    for life, mine in reported.items():
        there = found.get(life, [])
        # All that was reported, at most the one under way besides, and each in its place.
        assert there == list(range(len(there)))
        assert len(mine) <= len(there) <= len(mine) + 1
    assert found == {life: there for life, there in followed.items() if there}
    verification = reader.verify()
    assert verification.problems == ()
    assert verification.segments > KILLS // 2


def test_two_processes_write_and_read_at_once(folder: Path, fork: Child) -> None:
    count = 300

    def writer(who: int) -> Callable[[], None]:
        def work() -> None:
            with Log(folder, rotate_at=10_000) as log:
                for i in range(count):
                    mark = log.append("step", {"who": who, "i": i})
                    if i % 10 == 0:
                        log.durable(mark)
                        assert log.verify().ok  # of a log that is being written and rotated by two
                assert sum(1 for e in log.entries() if e.data["who"] == who) == count

        return work

    pids = [fork(writer(who)) for who in range(2)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    found = list(Log(folder).entries())
    for who in range(2):
        assert [e.data["i"] for e in found if e.data["who"] == who] == list(range(count))
    assert Log(folder).verify().ok


def test_a_living_writer_is_told_from_a_dead_one(folder: Path, fork: Child, files: Callable[[], list[Path]]) -> None:
    ready, go = os.pipe(), os.pipe()

    def work() -> None:
        Log(folder).append("a", {})
        os.write(ready[1], b"x")
        os.read(go[0], 1)

    pid = fork(work)
    os.read(ready[0], 1)
    (path,) = files()
    handle = open_segment(folder, path.stem)
    assert alive(handle)
    with path.open("ab") as file:
        file.write(b"0123")
    assert "being written" in Log(folder).verify().notes[0].message
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not alive(handle)
    assert "its writer ended" in Log(folder).verify().notes[0].message
    for end in (handle, *ready, *go):
        os.close(end)


@pytest.mark.parametrize("torn", [False, True])
def test_a_chain_goes_on_being_read_while_its_writer_rotates(folder: Path, torn: bool) -> None:
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
