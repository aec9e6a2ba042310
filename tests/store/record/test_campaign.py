"""Eight processes make calls through the service and are killed with `kill -9` at random instants.

No acknowledged call is lost, no effect lacks its decision, the record verifies, and no process waits for long.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.store.record.gate import PATIENCE
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
from tests.helpers.children import Fork, Parent, Report

PROCESSES = 8
CALLS = 1000
#: Seconds that a process makes calls before it is killed.
LIFE = (0.01, 1.0)


def call_without_pause(report: Report, home: Path, work: Path, life: int) -> None:
    with SyncToolService.open(home=home, workspace=work) as service:
        report("ready")
        i = 0
        while True:
            began = time.monotonic()
            error = service.invoke("write_file", {"path": f"{life}-{i}", "content": "x"}).error
            report((i, "" if error is None else error.message, time.monotonic() - began))
            i += 1


@pytest.mark.slow
def test_no_acknowledged_call_is_lost_by_kill_9(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".albert").mkdir(parents=True)
    chance = random.Random(11)
    parent = Parent(call_without_pause)
    lives = 0

    def start() -> tuple[Fork, float, int]:
        nonlocal lives
        child = parent.fork(home, work, lives)
        assert child.hear() == "ready"
        lives += 1
        return child, time.monotonic() + chance.uniform(*LIFE), lives - 1

    running = [start() for _ in range(PROCESSES)]
    acknowledged: set[str] = set()
    longest = 0.0
    while len(acknowledged) < CALLS:
        which = min(range(PROCESSES), key=lambda i: running[i][1])
        child, deadline, life = running[which]
        time.sleep(max(0.0, deadline - time.monotonic()))
        child.kill()
        for i, error, seconds in child.rest():
            assert error == ""
            acknowledged.add(f"{life}-{i}")
            longest = max(longest, seconds)
        running[which] = start()
    for child, _, _ in running:
        child.kill()

    folder = home / "state" / "record"
    assert verify(folder).problems == ()
    with Record(folder) as record:
        calls = {e.data["call"]: e.data["arguments"]["path"] for e in record.entries({"call"})}
        ended = {calls[e.data["call"]] for e in record.entries({"result"})}
        count = sum(1 for _ in record.entries())
    assert acknowledged <= ended
    # The decision is on the disk before the effect.
    assert {path.name for path in work.iterdir() if path.name[0] != "."} <= set(calls.values())
    assert longest < PATIENCE
    print(
        f"\n{lives} kills, {len(acknowledged):,} acknowledged calls, {count:,} entries, longest call {longest * 1000:.0f} ms"
    )
