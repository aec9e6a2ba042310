"""Runs and their journals. Appended entries are read back in order, even if processes died. Damaged entries are named."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import durability
from albert_tools.store.record.journal import StepJournal
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.helpers.begun_runs import begun
from tests.helpers.children import Child, Parent, Report, forked, wait_for
from tests.helpers.gate import until
from tests.store.record.conftest import Place, change, on_sqlite

RUN, OTHER = "0123456789abcdef", "f" * 16
HEADER = {"program": "b3:00", "python": "3.11"}


@pytest.fixture
def record(place: Place) -> Iterator[Record]:
    with Record(place) as opened:
        yield opened


@pytest.fixture
def runs(record: Record) -> Runs:
    return Runs(record)


def _written(runs: Runs, count: int = 5, run_id: str = RUN) -> None:
    journal = begun(runs, run_id, HEADER)
    for i in range(count):
        journal.append({"step": i, "output": {"z": i, "a": "ä"}})
    journal.close()


def _steps_of(record: Record) -> list[tuple[int, str, list[Any] | None]]:
    """Number, kind and ``steps`` of each entry."""
    return [(entry.n, entry.kind, entry.data.get("steps")) for entry in record.entries()]


def test_appended_entries_are_read_back_in_order(runs: Runs) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    entries = [{"z": 1, "a": {"y": -0.0, "b": 2**63 - 1}}, {}, {"n": 1, "kind": "closed"}, {"deep": deep}]
    journal = begun(runs, RUN, HEADER)
    for entry in entries:
        journal.append(entry)
    assert journal.entries() == entries
    journal.close()
    again = runs.open(RUN)
    assert (again.header, again.entries()) == (HEADER, entries)
    # A program can observe the order of a dictionary, so a replay must return the same order.
    assert list(again.entries()[0]) == ["z", "a"]
    again.append({"more": 1})
    again.close()
    loaded = runs.load("0123")
    assert loaded.entries == [*entries, {"more": 1}]
    assert (loaded.id, loaded.header, loaded.held) == (RUN, HEADER, False)


def test_appending_is_buffered_until_flush(runs: Runs) -> None:
    journal = begun(runs, RUN, HEADER)
    journal.append({"i": 0})
    assert runs.load(RUN).entries == []
    journal.flush()
    assert runs.load(RUN).entries == [{"i": 0}]


def test_the_next_entry_of_the_run_writes_the_buffer_and_names_its_last_row(record: Record, runs: Runs) -> None:
    journal = begun(runs, RUN, HEADER)
    journal.append({"i": 0})
    journal.append({"i": 1})
    record.append("call", {"call": "f" * 16})
    assert runs.load(RUN).entries == []
    record.append("call", {"call": f"{RUN}:0"})
    assert runs.load(RUN).entries == [{"i": 0}, {"i": 1}]
    journal.flush()
    journal.append({"i": 2})
    record.append("run", {"run": RUN, "state": "done"})
    journal.close()
    written = [(n, kind, steps and steps[0]) for n, kind, steps in _steps_of(record)]
    assert written == [(1, "run", 0), (2, "call", None), (3, "call", 2), (4, "run", 3)]
    assert (runs.load(RUN).held, runs.list(1)[0].state) == (False, "done")
    assert verify(record.place).ok


def test_a_transaction_that_is_not_committed_leaves_the_buffer(record: Record, runs: Runs) -> None:
    journal = begun(runs, RUN, HEADER)
    for i in range(2):
        journal.append({"i": i})
        with suppress(ZeroDivisionError), record.transaction():
            record.append("call", {"call": RUN})
            journal.append({"i": i})
            record.append("call", {"call": RUN})
            assert len(record.database.rows("SELECT seq FROM steps")) == 2 * i + 3
            raise ZeroDivisionError
        assert runs.load(RUN).entries == []
    with record.transaction():
        record.append("call", {"call": RUN})
        journal.append({"i": 2})
        record.append("call", {"call": RUN})
    assert [entry["i"] for entry in runs.load(RUN).entries] == [0, 0, 1, 1, 2]
    assert verify(record.place).ok


def test_sync_writes_all_entries_and_many_tasks_can_wait(runs: Runs) -> None:
    async def work() -> None:
        journals = [begun(runs, f"{i:016x}", HEADER) for i in range(5)]

        async def one(i: int) -> None:
            for n in range(5):
                journals[i].append({"n": n})
                await journals[i].sync()

        await asyncio.gather(*(one(i) for i in range(5)), *(one(i) for i in range(5)))
        for journal in journals:
            journal.close()

    asyncio.run(work())
    for i in range(5):
        assert sorted(e["n"] for e in runs.load(f"{i:016x}").entries) == sorted([*range(5)] * 2)


@on_sqlite
@pytest.mark.parametrize(
    ("statement", "n"),
    [
        ("UPDATE steps SET data = replace(data, '2', '3') WHERE seq = 3", 3),
        ("UPDATE steps SET data = '{}' WHERE seq = 0", 0),
        ("UPDATE steps SET data = x'ff' WHERE seq = 1", 1),
        ("UPDATE steps SET hash = x'00' WHERE seq = 2", 2),
        ("UPDATE steps SET seq = 9 WHERE seq = 2", 2),
        ("UPDATE steps SET data = (SELECT data FROM steps WHERE seq = 2) WHERE seq = 1", 1),
        ("DELETE FROM steps WHERE seq = 2", 2),
        ("DELETE FROM steps WHERE seq = 5", 5),
        ("DELETE FROM steps", 0),
        ("INSERT INTO steps SELECT run, 6, data, hash FROM steps WHERE seq = 5", 6),
        ("UPDATE runs SET hash = ''", 6),
        ("UPDATE runs SET seq = 4, hash = (SELECT lower(hex(hash)) FROM steps WHERE seq = 4)", 6),
    ],
)
def test_changed_rows_are_found_and_the_first_is_named(record: Record, runs: Runs, statement: str, n: int) -> None:
    _written(runs)
    change(record.place, statement)
    for look in (runs.load, runs.open):
        with pytest.raises(Failure) as caught:
            look(RUN)
        assert caught.value.code == "damaged"
        assert caught.value.details["n"] == n
    assert not verify(record.place).ok


@on_sqlite
def test_a_row_that_is_not_text_is_damage(record: Record, runs: Runs) -> None:
    _written(runs)
    change(record.place, "UPDATE steps SET data = CAST(x'ff' AS TEXT) WHERE seq = 1")
    with pytest.raises(Failure) as caught:
        runs.load(RUN)
    assert caught.value.code == "damaged"
    assert not verify(record.place).ok


@on_sqlite
def test_a_shorter_journal_with_a_valid_chain_is_not_opened(record: Record, runs: Runs) -> None:
    _written(runs)
    change(record.place, "DELETE FROM steps WHERE seq = 5")
    change(record.place, "UPDATE runs SET seq = 4, hash = (SELECT lower(hex(hash)) FROM steps WHERE seq = 4)")
    with pytest.raises(Failure, match="the row that entry 2 names was changed") as caught:
        runs.open(RUN)
    assert caught.value.code == "damaged"
    assert not runs.load(RUN).held


def test_a_changed_entry_of_the_run_is_found(record: Record, runs: Runs) -> None:
    _written(runs)
    change(record.place, "UPDATE entries SET data = replace(data, 'true', 'false') WHERE n = 2")
    with pytest.raises(Failure, match="its entry 2 was changed"):
        runs.open(RUN)


def test_the_steps_of_another_run_are_damage(record: Record, runs: Runs) -> None:
    _written(runs)
    _written(runs, 4, OTHER)
    change(record.place, "DELETE FROM steps WHERE run = ?", [OTHER])
    change(record.place, "UPDATE steps SET run = ? WHERE run = ?", [OTHER, RUN])
    for run in (RUN, OTHER):
        with pytest.raises(Failure) as caught:
            runs.load(run)
        assert caught.value.code == "damaged"


def append_without_pause(report: Report, place: Place) -> None:
    journal = Runs(Record(place)).open(RUN)
    i = len(journal.entries())
    while True:
        journal.append({"i": i, "pad": "x" * (i % 300)})
        if i % 3 == 0:
            journal.flush()
            report(i)
        i += 1


def test_no_flushed_entry_is_lost_by_kill_9(record: Record, runs: Runs) -> None:
    chance = random.Random(5)
    begun(runs, RUN, HEADER).close()
    expected = 0
    parent = Parent(append_without_pause)
    for _ in range(25):
        child = parent.fork(record.place)
        first = child.hear()
        time.sleep(chance.uniform(0.0, 0.004))
        child.kill()
        reported = [first, *child.rest()]
        until(lambda: not runs.load(RUN).held)  # A server needs a moment to notice the end.
        loaded = runs.load(RUN)
        assert [e["i"] for e in loaded.entries] == list(range(len(loaded.entries)))
        assert len(loaded.entries) > reported[-1] >= expected
        expected = len(loaded.entries)
    assert expected > 25
    assert verify(record.place).ok


def hold_on(report: Report, place: Place) -> None:
    journal = begun(Runs(Record(place)), RUN, HEADER)
    report("held")
    time.sleep(600)
    journal.close()


def test_only_one_process_at_a_time_opens_a_journal(record: Record, runs: Runs) -> None:
    child = Child(hold_on, record.place)
    assert child.hear() == "held"
    with pytest.raises(Failure) as caught:
        runs.open(RUN)
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    assert runs.load(RUN).held
    child.kill()
    until(lambda: not runs.load(RUN).held)
    with pytest.raises(Failure) as caught:
        begun(runs, RUN, HEADER)
    assert caught.value.code == "io_error"
    journal = runs.open(RUN)
    with Record(record.place) as other:
        for store in (runs, Runs(other)):
            assert store.load(RUN).held
            with pytest.raises(Failure, match="another process is executing the run"):
                store.open(RUN)
        journal.close()
        Runs(other).open(RUN).close()
        assert not runs.load(RUN).held


def open_when_asked(report: Report, place: Place, start: float) -> None:
    with Record(place) as record:
        time.sleep(max(0.0, start - time.time()))
        try:
            Runs(record).open(RUN)
            report("opened")
        except Failure as failure:
            report("refused" if failure.retryable else failure.message)
        time.sleep(600)


def test_the_end_of_a_run_is_seen_if_its_process_ends_while_it_is_read(
    record: Record, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(runs, RUN, HEADER)

    def ends(run: str, owner: str) -> bool:
        if run in record.journals:
            journal.append({"t": "end"})
            journal.close()
        return False

    monkeypatch.setattr(runs, "_held", ends)
    loaded = runs.load(RUN)
    assert loaded.entries[-1] == {"t": "end"}
    assert not loaded.held


def test_of_several_processes_one_takes_over_from_a_dead_one(record: Record, runs: Runs) -> None:
    child = Child(hold_on, record.place)
    child.hear()
    child.kill()
    until(lambda: not runs.load(RUN).held)
    start = time.time() + 0.3
    children = [Child(open_when_asked, record.place, start) for _ in range(4)]
    assert sorted(child.hear() for child in children) == ["opened", "refused", "refused", "refused"]
    for child in children:
        child.kill()
    until(lambda: not runs.load(RUN).held)
    runs.open(RUN).close()


def fork_with_a_journal(_: Report, place: Place) -> None:
    record = Record(place)
    runs = Runs(record)
    journal = begun(runs, RUN, HEADER)
    journal.append({"i": 0})
    go = os.pipe()

    def work() -> None:
        os.close(go[1])
        for attempt in (journal.flush, journal.close, lambda: runs.load(RUN)):
            with pytest.raises(Failure, match="a forked child"):
                attempt()
        assert os.read(go[0], 1)

    pid = forked(work)
    journal.close()
    runs.open(RUN)
    record.close()
    Runs(Record(place)).open(RUN).close()  # although the child lives
    os.write(go[1], b"x")
    assert wait_for(pid) == 0


def test_a_forked_child_can_not_use_its_parents_journal(record: Record, runs: Runs) -> None:
    assert Child(fork_with_a_journal, record.place).wait() == 0
    assert runs.load(RUN).entries == [{"i": 0}]


def append_to_a_full_disk(_: Report, folder: Path, room: int) -> None:
    # A limit on file sizes looks like a full disk, but only to this child.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = begun(Runs(Record(folder)), RUN, HEADER)
    journal.append({"i": 0})
    journal.flush()
    size = (folder / "record.sqlite3-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
    journal.append({"i": 1, "pad": "x" * 10_000})
    journal.append({"i": 2})
    for attempt in (journal.flush, lambda: asyncio.run(journal.sync())):
        with pytest.raises(Failure) as caught:
            attempt()
        assert caught.value.code == "io_error"
        assert str(folder) in caught.value.message
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.append({"i": 3})
    journal.close()


@on_sqlite
@pytest.mark.parametrize("room", [0, 1, 100, 4096, 9000])
def test_on_a_full_disk_the_buffer_remains_and_is_written_later(record: Record, runs: Runs, room: int) -> None:
    assert Child(append_to_a_full_disk, record.place, room).wait() == 0
    assert [e["i"] for e in runs.load(RUN).entries] == [0, 1, 2, 3]
    assert not runs.load(RUN).held
    assert verify(record.place).ok


def begin_on_a_full_disk(_: Report, folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Record(folder) as record:
        record.append("mode", {})
        size = (folder / "record.sqlite3-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with pytest.raises(Failure) as caught:
            begun(Runs(record), RUN, HEADER)
        assert caught.value.code == "io_error"
        with pytest.raises(Failure, match="there is no run"):
            Runs(record).load(RUN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        begun(Runs(record), OTHER, HEADER).close()
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with pytest.raises(Failure) as caught:
            Runs(record).open(OTHER)
        assert caught.value.code == "io_error"
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        Runs(record).open(OTHER).close()


@on_sqlite
def test_on_a_full_disk_no_run_is_created(record: Record, runs: Runs) -> None:
    assert Child(begin_on_a_full_disk, record.place).wait() == 0
    assert [run.id for run in runs.list(5)] == [OTHER]
    begun(runs, RUN, HEADER).close()


def test_every_process_sees_that_a_run_is_cancelled(record: Record, runs: Runs) -> None:
    journal = begun(runs, RUN, HEADER)
    assert not runs.cancelled(RUN)
    with Record(record.place) as opened:
        other = Runs(opened)
        other.cancel(RUN)
        other.cancel(RUN)
        assert runs.cancelled(RUN)
        assert other.cancelled(RUN)
    journal.close()
    assert runs.load(RUN).cancelled
    runs.open(RUN).close()
    assert runs.cancelled(RUN)
    assert not runs.cancelled(OTHER)
    with pytest.raises(Failure) as caught:
        runs.cancel(OTHER)
    assert caught.value.code == "not_found"


def test_the_list_is_newest_first(record: Record, runs: Runs) -> None:
    assert runs.list(5) == []
    assert not record.database.exists
    for i in range(4):
        _written(runs, i, f"{9 - i:016x}")
    record.append("run", {"run": f"{7:016x}", "state": "failed"})
    assert [run.id for run in runs.list(10)] == [f"{i:016x}" for i in (6, 7, 8, 9)]
    assert [run.state for run in runs.list(2)] == ["begun", "failed"]


def test_a_unique_beginning_of_an_id_finds_the_run(runs: Runs) -> None:
    for beginning, code in (("ab", "not_found"), ("", "invalid_arguments"), ("../x", "invalid_arguments")):
        with pytest.raises(Failure) as caught:
            runs.load(beginning)
        assert caught.value.code == code
    _written(runs, 1, "abc0000000000000")
    _written(runs, 2, "abd0000000000000")
    assert len(runs.load("abd").entries) == 2
    for beginning, code in (("ab", "invalid_arguments"), ("f", "not_found")):
        with pytest.raises(Failure) as caught:
            runs.load(beginning)
        assert caught.value.code == code


@pytest.mark.parametrize("bad", ["", "../../etc/passwd", "0123456789ABCDEF", "0123456789abcdef0", "0123456789abcdef\n"])
def test_an_invalid_id_is_refused(record: Record, runs: Runs, bad: str) -> None:
    for attempt in (
        lambda: runs.create(bad, {}),
        lambda: runs.open(bad),
        lambda: runs.cancel(bad),
        lambda: runs.cancelled(bad),
    ):
        with pytest.raises(Failure) as caught:
            attempt()
        assert caught.value.code == "invalid_arguments"
    assert not record.database.exists


def test_sweeping_deletes_old_runs_that_have_ended(record: Record, runs: Runs) -> None:
    assert runs.sweep(0) == (0, [])
    two_hours_ago = time.time_ns() - 2 * 3600 * 10**9
    with Record(record.place, lambda: two_hours_ago) as past:
        for i, state in enumerate(["done", "failed", "suspended", "begun", "cancelled"]):
            journal = begun(Runs(past), f"{i:016x}", HEADER)
            journal.append({"i": i})
            if state != "begun":
                past.append("run", {"run": journal.id, "state": state})
            journal.close()
    held = runs.open(f"{3:016x}")
    record.append("call", {"call": f"{1:016x}:0"})
    journal = runs.open(f"{4:016x}")  # so its last entry is new
    record.append("run", {"run": journal.id, "state": "cancelled"})
    journal.close()
    assert runs.sweep(3600) == (2, [f"{2:016x}"])
    assert sorted(run.id for run in runs.list(9)) == [f"{i:016x}" for i in (2, 3, 4)]
    assert record.database.rows("SELECT DISTINCT run FROM steps ORDER BY run") == [(f"{i:016x}",) for i in (2, 3, 4)]
    held.close()
    time.sleep(0.001)
    assert runs.sweep(0) == (1, [f"{2:016x}", f"{3:016x}"])
    with pytest.raises(Failure):
        runs.sweep(-1)
    assert verify(record.place).ok


def test_values_without_a_json_form_are_refused_and_leave_no_trace(runs: Runs) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    bad = (({"x": object()}, "not_json"), ({"x": deep}, "not_json"), ({"x": "y" * (17 << 20)}, "too_large"))
    for header, code in bad:
        with pytest.raises(Failure) as caught:
            begun(runs, RUN, header)
        assert caught.value.code == code
    journal = begun(runs, RUN, HEADER)
    for entry, code in bad:
        with pytest.raises(Failure) as caught:
            journal.append(entry)
        assert caught.value.code == code
    journal.append({"i": 1})
    assert journal.entries() == [{"i": 1}]


def test_a_closed_journal_takes_no_entries(record: Record, runs: Runs) -> None:
    first, second = (begun(runs, run, HEADER) for run in (RUN, OTHER))
    first.close()
    first.close()
    record.close()

    def refused(journal: StepJournal) -> None:
        with pytest.raises(Failure, match="is closed"):
            journal.append({})

    refused(first)
    refused(second)
    assert runs.open(OTHER).entries() == []


@on_sqlite
def test_a_run_is_cancelled_only_on_the_disk(record: Record, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(runs, RUN, HEADER).close()

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail)
    with pytest.raises(Failure, match="can't sync the record"):
        runs.cancel(RUN)
