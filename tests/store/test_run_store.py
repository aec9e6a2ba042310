"""Journals of runs. Appended entries are read back in order, even if processes died in between. Damaged entries are named."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.runs import Runs
from tests.helpers.children import Child, Parent, Report, forked, wait_for

RUN = "0123456789abcdef"
HEADER = {"program": "b3:00", "python": "3.11"}


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


def _file(runs: Runs, run_id: str = RUN) -> Path:
    (path,) = runs.folder.glob(f"*/{run_id}.jsonl")
    return path


def _written(runs: Runs, count: int = 5, run_id: str = RUN) -> None:
    journal = runs.create(run_id, HEADER)
    for i in range(count):
        journal.append({"step": i, "output": {"z": i, "a": "ä"}})
    journal.close()


def test_appended_entries_are_read_back_in_order(runs: Runs) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    entries = [{"z": 1, "a": {"y": -0.0, "b": 2**63 - 1}}, {}, {"n": 1, "kind": "closed"}, {"deep": deep}]
    journal = runs.create(RUN, HEADER)
    for entry in entries:
        journal.append(entry)
    assert journal.entries() == entries
    journal.close()
    again = runs.open(RUN)
    assert (again.header, again.entries(), again.torn) == (HEADER, entries, False)
    # A program can observe the order of a dictionary, so a replay must return the same order.
    assert list(again.entries()[0]) == ["z", "a"]
    again.append({"more": 1})
    again.close()
    loaded = runs.load("0123")
    assert loaded.entries == [*entries, {"more": 1}]
    assert (loaded.id, loaded.header, loaded.held, loaded.torn) == (RUN, HEADER, False, False)
    assert _file(runs).stat().st_mode & 0o777 == 0o600


def test_appending_is_buffered_until_flush_and_large_buffers_are_written(runs: Runs) -> None:
    journal = runs.create(RUN, HEADER)
    journal.append({"i": 0})
    assert runs.load(RUN).entries == []
    journal.flush()
    assert runs.load(RUN).entries == [{"i": 0}]
    for _ in range(3):
        journal.append({"text": "x" * 50_000})
    assert len(runs.load(RUN).entries) == 3


def test_sync_writes_all_entries_and_many_tasks_can_wait(runs: Runs) -> None:
    async def work() -> None:
        journals = [runs.create(f"{i:016x}", HEADER) for i in range(5)]

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


@pytest.mark.parametrize("kept", [1, 10, 64, 65, 66, 90, -1])
def test_a_torn_entry_is_cut_off_and_reported(runs: Runs, kept: int) -> None:
    _written(runs)
    path = _file(runs)
    content = path.read_bytes()
    whole, last = content[:-1].rpartition(b"\n")[0] + b"\n", content[:-1].rpartition(b"\n")[2]
    path.write_bytes(whole + last[:kept])
    assert runs.load(RUN).torn
    journal = runs.open(RUN)
    assert journal.torn
    assert [e["step"] for e in journal.entries()] == [0, 1, 2, 3]
    journal.append({"step": 4})
    journal.close()
    loaded = runs.load(RUN)
    assert [e["step"] for e in loaded.entries] == [0, 1, 2, 3, 4]
    assert not loaded.torn


def test_every_flipped_byte_is_found_and_its_line_is_named(runs: Runs) -> None:
    _written(runs, 3)
    path = _file(runs)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        n = max(n for n in range(len(lines)) if starts[n] <= position)
        for look in (runs.load, runs.open):
            with pytest.raises(Failure) as caught:
                look(RUN)
            assert caught.value.code == "damaged"
            assert (caught.value.details["n"], caught.value.details["offset"]) == (n, starts[n])
    path.write_bytes(content)
    assert len(runs.load(RUN).entries) == 3


@pytest.mark.parametrize("change", ["swap", "drop", "repeat"])
def test_moved_entries_are_damage(runs: Runs, change: str) -> None:
    _written(runs)
    lines = _file(runs).read_bytes().splitlines(keepends=True)
    moved = {
        "swap": [lines[0], lines[2], lines[1], *lines[3:]],
        "drop": [*lines[:2], *lines[3:]],
        "repeat": [*lines[:3], lines[2], *lines[3:]],
    }[change]
    _file(runs).write_bytes(b"".join(moved))
    with pytest.raises(Failure) as caught:
        runs.open(RUN)
    assert caught.value.code == "damaged"


def test_a_journal_under_another_runs_name_is_damage(runs: Runs) -> None:
    _written(runs)
    path = _file(runs)
    path.rename(path.with_name("f" * 16 + ".jsonl"))
    with pytest.raises(Failure, match="another run"):
        runs.load("f" * 16)


def append_without_pause(report: Report, folder: Path) -> None:
    journal = Runs(folder).open(RUN)
    i = len(journal.entries())
    while True:
        journal.append({"i": i, "pad": "x" * (i % 300)})
        if i % 3 == 0:
            journal.flush()
            report(i)
        i += 1


def test_no_flushed_entry_is_lost_by_kill_9(runs: Runs) -> None:
    chance = random.Random(5)
    runs.create(RUN, HEADER).close()
    expected = 0
    parent = Parent(append_without_pause)
    for _ in range(25):
        child = parent.fork(runs.folder)
        first = child.hear()
        time.sleep(chance.uniform(0.0, 0.004))
        child.kill()
        reported = [first, *child.rest()]
        loaded = runs.load(RUN)
        assert not loaded.held
        assert [e["i"] for e in loaded.entries] == list(range(len(loaded.entries)))
        assert len(loaded.entries) > reported[-1] >= expected
        expected = len(loaded.entries)
    assert expected > 25


def hold_on(report: Report, folder: Path) -> None:
    journal = Runs(folder).create(RUN, HEADER)
    report("held")
    time.sleep(600)
    journal.close()


def test_only_one_process_at_a_time_opens_a_journal(runs: Runs) -> None:
    child = Child(hold_on, runs.folder)
    assert child.hear() == "held"
    with pytest.raises(Failure) as caught:
        runs.open(RUN)
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    assert runs.load(RUN).held
    assert [run.held for run in runs.list(5)] == [True]
    assert runs.sweep(0, lambda run: False) == 0
    child.kill()
    with pytest.raises(Failure) as caught:
        runs.create(RUN, HEADER)
    assert caught.value.code == "exists"
    journal = runs.open(RUN)
    with pytest.raises(Failure, match="another process is executing the run"):
        Runs(runs.folder).open(RUN)
    journal.close()
    Runs(runs.folder).open(RUN).close()


def fork_with_a_journal(_: Report, folder: Path) -> None:
    runs = Runs(folder)
    journal = runs.create(RUN, HEADER)
    journal.append({"i": 0})
    go = os.pipe()

    def work() -> None:
        os.close(go[1])
        with pytest.raises(Failure, match="closed"):
            journal.append({"i": 1})
        journal.close()
        assert os.read(go[0], 1)

    pid = forked(work)
    journal.close()
    runs.open(RUN).close()  # although the child lives
    os.write(go[1], b"x")
    assert wait_for(pid) == 0


def test_a_forked_child_can_not_use_its_parents_journal(runs: Runs) -> None:
    assert Child(fork_with_a_journal, runs.folder).wait() == 0
    assert runs.load(RUN).entries == [{"i": 0}]


def append_to_a_full_disk(_: Report, folder: Path, room: int) -> None:
    # A limit on file sizes looks like a full disk, but only to this child.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    runs = Runs(folder)
    journal = runs.create(RUN, HEADER)
    journal.append({"i": 0})
    journal.flush()
    size = _file(runs).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, size + room))
    journal.append({"i": 1, "pad": "x" * 100})
    journal.append({"i": 2})
    for attempt in (journal.flush, lambda: asyncio.run(journal.sync()), lambda: journal.append({"i": 3})):
        with pytest.raises(Failure) as caught:
            attempt()
        assert caught.value.code == "io_error"
        assert str(folder) in caught.value.message
    journal.close()


@pytest.mark.parametrize("room", [1, 50, 64, 65, 100, 150, 190])
def test_on_a_full_disk_the_first_append_fails_and_all_later_ones_too(runs: Runs, room: int) -> None:
    assert Child(append_to_a_full_disk, runs.folder, room).wait() == 0
    journal = runs.open(RUN)
    seen = [e["i"] for e in journal.entries()]
    assert seen == list(range(len(seen)))
    assert 1 <= len(seen) <= 2
    journal.close()


def begin_on_a_full_disk(_: Report, folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    with pytest.raises(Failure) as caught:
        Runs(folder).create(RUN, HEADER)
    assert caught.value.code == "io_error"


def test_on_a_full_disk_no_run_is_created(runs: Runs) -> None:
    assert Child(begin_on_a_full_disk, runs.folder).wait() == 0
    assert runs.list(5) == []


def begin_where_nothing_can_be_written(_: Report, place: Path) -> None:
    if os.geteuid() == 0:
        # Root can write anywhere, so the test becomes another user.
        for parent in place.parents:
            if parent.stat().st_mode & 0o005 == 0 and parent != Path("/"):
                parent.chmod(0o755)
        os.chown(place, 65534, 65534)
        os.setuid(65534)
    with pytest.raises(Failure) as caught:
        Runs(place / "runs").create(RUN, HEADER)
    assert caught.value.code == "io_error"
    assert caught.value.hint


def test_a_read_only_folder_is_reported_clearly(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    place = tmp_path / "theirs"
    place.mkdir(mode=0o700)
    place.chmod(0o500)
    assert Child(begin_where_nothing_can_be_written, place).wait() == 0


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("what", ["runs", "day"])
def test_a_link_in_place_of_a_folder_is_refused(runs: Runs, tmp_path: Path, what: str, dangling: bool) -> None:
    _written(runs)
    moved = tmp_path / "moved"
    folder = runs.folder if what == "runs" else _file(runs).parent
    folder.rename(moved)
    folder.symlink_to(tmp_path / "nowhere" if dangling else moved)
    for attempt in (
        lambda: runs.create("f" * 16, HEADER),
        lambda: runs.list(5),
        lambda: runs.sweep(0, lambda run: False),
    ):
        with pytest.raises(Failure, match="is a link") as caught:
            attempt()
        assert caught.value.code == "io_error"
    assert not (tmp_path / "nowhere").exists()
    assert len(list(moved.rglob("*.jsonl"))) == 1


def test_a_link_in_place_of_a_journal_is_not_followed(runs: Runs, tmp_path: Path) -> None:
    _written(runs)
    path = _file(runs)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    for look in (runs.open, runs.load):
        with pytest.raises(Failure) as caught:
            look(RUN)
        assert caught.value.code == "io_error"


def test_a_folder_open_to_others_is_refused(runs: Runs) -> None:
    _written(runs)
    runs.folder.chmod(0o755)
    with pytest.raises(Failure, match="open to others"):
        runs.load(RUN)


def test_every_process_sees_that_a_run_is_cancelled(runs: Runs) -> None:
    journal = runs.create(RUN, HEADER)
    assert not runs.cancelled(RUN)
    other = Runs(runs.folder)
    other.cancel(RUN)
    other.cancel(RUN)
    assert runs.cancelled(RUN)
    assert other.cancelled(RUN)
    journal.close()
    assert (runs.load(RUN).cancelled, runs.list(1)[0].cancelled) == (True, True)
    runs.open(RUN).close()
    assert runs.cancelled(RUN)
    with pytest.raises(Failure) as caught:
        runs.cancel("f" * 16)
    assert caught.value.code == "not_found"


def test_the_list_is_newest_first_and_names_unreadable_runs(runs: Runs) -> None:
    assert runs.list(5) == []
    for i in range(4):
        _written(runs, i, f"{9 - i:016x}")
    today = _file(runs, f"{9:016x}").parent
    yesterday = runs.folder / "2020-01-31"
    yesterday.mkdir(mode=0o700)
    (today / f"{9:016x}.jsonl").rename(yesterday / f"{9:016x}.jsonl")
    (today / f"{5:016x}.jsonl").touch(mode=0o600)
    (today / "notes.txt").write_text("hello")
    found = runs.list(10)
    assert [run.id for run in found if not run.problem] == [f"{i:016x}" for i in (6, 7, 8, 9)]
    assert [(run.id, run.problem) for run in found if run.problem] == [(f"{5:016x}", "it never started")]
    assert [run.last["step"] if run.last else None for run in found if not run.problem] == [2, 1, 0, None]
    assert len(runs.list(2)) == 2
    with pytest.raises(Failure) as caught:
        runs.open(f"{5:016x}")
    assert caught.value.code == "not_found"


def test_a_unique_beginning_of_an_id_finds_the_run(runs: Runs) -> None:
    _written(runs, 1, "abc0000000000000")
    _written(runs, 2, "abd0000000000000")
    assert len(runs.load("abd").entries) == 2
    for beginning, code in (
        ("ab", "invalid_arguments"),
        ("f", "not_found"),
        ("", "invalid_arguments"),
        ("../x", "invalid_arguments"),
    ):
        with pytest.raises(Failure) as caught:
            runs.load(beginning)
        assert caught.value.code == code


@pytest.mark.parametrize("bad", ["", "../../etc/passwd", "0123456789ABCDEF", "0123456789abcdef0", "0123456789abcdef\n"])
def test_an_invalid_id_is_refused(runs: Runs, bad: str) -> None:
    for attempt in (
        lambda: runs.create(bad, {}),
        lambda: runs.open(bad),
        lambda: runs.cancel(bad),
        lambda: runs.cancelled(bad),
    ):
        with pytest.raises(Failure) as caught:
            attempt()
        assert caught.value.code == "invalid_arguments"
    assert not runs.folder.exists()


def test_sweeping_deletes_old_runs_except_those_to_keep(runs: Runs) -> None:
    for i in range(4):
        _written(runs, 1, f"{i:016x}")
    runs.cancel(f"{0:016x}")
    held = runs.open(f"{3:016x}")
    for i in (0, 1, 3):
        os.utime(_file(runs, f"{i:016x}"), (1, 1))
    assert runs.sweep(3600, lambda run: run == f"{1:016x}") == 1
    assert sorted(run.id for run in runs.list(9)) == [f"{i:016x}" for i in (1, 2, 3)]
    assert not list(runs.folder.glob("*/*.cancel"))
    held.close()
    assert runs.sweep(0, lambda run: False) == 3
    assert os.listdir(runs.folder) == []
    _written(runs)
    assert len(runs.load(RUN).entries) == 5


def test_values_without_a_json_form_are_refused_and_leave_no_trace(runs: Runs) -> None:
    journal = runs.create(RUN, HEADER)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    for entry, code in (
        ({"x": object()}, "not_json"),
        ({"x": deep}, "not_json"),
        ({"x": "y" * (17 << 20)}, "too_large"),
    ):
        with pytest.raises(Failure) as caught:
            journal.append(entry)
        assert caught.value.code == code
    journal.append({"i": 1})
    assert journal.entries() == [{"i": 1}]
