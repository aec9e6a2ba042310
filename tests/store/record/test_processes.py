"""Several processes use one record, and are stopped or killed with `kill -9` at random times. No reported entry is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import gate
from albert_tools.store.record.record import Record
from albert_tools.store.record.sqlite import FILE
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Fork, Parent, Report
from tests.store.record.conftest import Place

#: Seconds that a child appends before it is killed.
LIFE = (0.002, 0.06)


def append_without_pause(report: Report, place: Place, life: int) -> None:
    record = Record(place)
    if isinstance(place, str):
        with record.transaction():
            pass  # To connect to a server takes longer than most lives.
    report("ready")
    i = 0
    while True:
        with record.transaction():
            record.append("use", {"session": None, "used": {}, "windows": ["w"], "sessions": [], "clock": float(i)})
            n = record.append("step", {"life": life, "i": i, "x": "y" * (i % 50)})
        if i % 5 == 0:
            record.durable(n)
        report(i)
        i += 1


@pytest.mark.parametrize("kills", [10, pytest.param(80, marks=pytest.mark.slow)])
def test_no_reported_entry_is_lost_by_kill_9(place: Place, kills: int) -> None:
    chance = random.Random(3)
    parent = Parent(append_without_pause)

    def start(life: int) -> tuple[Fork | None, float, int]:
        child = parent.fork(place, life)
        # The child's time starts here, however long it took to start.
        assert child.hear() == "ready"
        return child, time.monotonic() + chance.uniform(*LIFE), life

    reader = Record(place)
    reported: dict[int, list[int]] = {}
    alive_now = [start(0), start(1)]
    for killed in range(kills):
        which = min((0, 1), key=lambda w: alive_now[w][1])
        child, deadline, life = alive_now[which]
        assert child is not None
        time.sleep(max(0.0, deadline - time.monotonic()))
        child.kill()
        reported[life] = child.rest()
        if killed % 10 == 0:
            assert verify(place).problems == ()  # while the other child writes
        alive_now[which] = start(killed + 2) if killed < kills - 2 else (None, float("inf"), -1)

    assert sum(map(len, reported.values())) > kills  # Both appended, even on a slow machine.
    found: dict[int, list[int]] = {}
    for entry in reader.entries({"step"}):
        found.setdefault(entry.data["life"], []).append(entry.data["i"])
    for life, mine in reported.items():
        there = found.get(life, [])
        # The record contains all reported entries in their places, and at most one more: the entry that the kill interrupted.
        assert there == list(range(len(there)))
        assert len(mine) <= len(there) <= len(mine) + 1
    assert verify(place).problems == ()
    reader.close()


def write_and_read(_: Report, place: Place, who: int, count: int) -> None:
    with Record(place) as record:
        for i in range(count):
            n = record.append("step", {"who": who, "i": i})
            if i % 20 == 0:
                record.durable(n)
                assert verify(place).ok  # of a record that two processes write
        assert sum(1 for e in record.entries() if e.data["who"] == who) == count


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_processes_create_write_and_read_a_record_at_once(place: Place, count: int) -> None:
    children = [Child(write_and_read, place, who, count) for who in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    found = list(Record(place).entries())
    for who in range(3):
        assert [e.data["i"] for e in found if e.data["who"] == who] == list(range(count))
    assert verify(place).ok


def stay_inside(report: Report, folder: Path) -> None:
    record = Record(folder)
    with record.transaction():
        record.append("a", {})
        report("inside")
        time.sleep(600)


def test_a_process_that_stays_inside_is_not_waited_for_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "PATIENCE", 0.05)
    child = Child(stay_inside, folder)
    assert child.hear() == "inside"
    os.kill(child.pid, signal.SIGSTOP)
    record = Record(folder)
    with pytest.raises(Failure, match="another process has kept the record locked") as caught:
        record.append("b", {})
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    child.kill()
    record.append("b", {})
    assert [e.kind for e in record.entries()] == ["b"]
    assert verify(folder).ok


def open_and_close(_: Report, place: Place) -> None:
    with Record(place) as record:
        record.append("other", {})


def test_two_records_of_one_process_do_not_disturb_each_other(folder: Path) -> None:
    """If a process closes any descriptor of a file, it loses its locks on it. Another process then deletes the write-ahead log."""
    first = Record(folder)
    first.append("a", {})
    second = Record(folder)
    second.append("b", {})
    assert verify(folder).ok
    assert Child(open_and_close, folder).wait() == 0
    assert (folder / f"{FILE}-wal").exists()
    second.close()
    first.append("c", {})
    first.close()
    assert [e.kind for e in Record(folder).entries()] == ["a", "b", "other", "c"]
