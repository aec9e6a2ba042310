"""The exclusive section of the log. A process that reads, decides and appends inside the section loses no entry.

This also holds if another process dies or forks inside the section, or deletes the lock file.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Cursor
from albert_tools.store.log.exclusive import Exclusive
from albert_tools.store.log.log import Log
from tests.helpers.children import Child, Report, forked, wait_for


def _count(log: Log, times: int) -> None:
    """Append the highest number in the log plus one, `times` times."""
    cursor = Cursor()
    highest = 0
    for _ in range(times):
        with log.exclusively():
            more, cursor = log.changes(cursor)
            highest = max([highest, *(entry.data["i"] for entry in more)])
            log.append("count", {"i": highest + 1})


def count_in_threads(_: Report, folder: Path, threads: int, times: int) -> None:
    log = Log(folder)
    all_threads = [threading.Thread(target=_count, args=(log, times)) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


def test_processes_and_threads_that_count_together_lose_no_number(folder: Path) -> None:
    processes, threads, times = 3, 2, 40
    children = [Child(count_in_threads, folder, threads, times) for _ in range(processes)]
    assert [child.wait() for child in children] == [0] * processes
    found = sorted(entry.data["i"] for entry in Log(folder).entries())
    assert found == list(range(1, processes * threads * times + 1))


def test_two_logs_of_one_process_take_turns_as_well(folder: Path) -> None:
    first, second = Log(folder), Log(folder)
    threads = [threading.Thread(target=_count, args=(log, 50)) for log in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.data["i"] for entry in first.entries()) == list(range(1, 101))


def stay_inside(report: Report, folder: Path) -> None:
    with Log(folder).exclusively():
        report("inside")
        time.sleep(600)


def test_a_process_that_is_killed_inside_releases_the_section(folder: Path) -> None:
    child = Child(stay_inside, folder)
    assert child.hear() == "inside"
    with pytest.raises(Failure) as caught:
        Exclusive(folder, patience=0.05).__enter__()
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    child.kill()
    with Log(folder).exclusively():
        pass


def test_a_thread_waits_for_another_thread_until_its_timeout(folder: Path) -> None:
    section = Exclusive(folder, patience=0.05)
    caught: list[Failure] = []

    def late() -> None:
        try:
            with section:
                pass
        except Failure as failure:
            caught.append(failure)

    with section:
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
    assert [failure.retryable for failure in caught] == [True]
    thread = threading.Thread(target=late)
    thread.start()
    thread.join()
    assert len(caught) == 1


def test_entering_twice_raises_at_once_and_the_first_entry_stays_inside(folder: Path) -> None:
    section = Exclusive(folder, patience=60)
    with section:
        with pytest.raises(RuntimeError, match="inside already"), section:
            pass
        assert section.inside
    assert not section.inside


def test_awaiting_inside_the_section_raises_at_once(folder: Path) -> None:
    log = Log(folder)

    async def work() -> None:
        with log.exclusively():
            await asyncio.sleep(0)

    async def both() -> list[BaseException | None]:
        return await asyncio.gather(work(), work(), return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(both())] == [type(None), RuntimeError]


def fork_inside(_: Report, folder: Path) -> None:
    log = Log(folder)
    left, go = os.pipe(), os.pipe()

    def work() -> None:
        os.close(go[1])
        # The `with` statement makes this call when the child runs to its end.
        log.exclusively().__exit__(None, None, None)
        os.write(left[1], b"x")
        assert os.read(go[0], 1)
        with log.exclusively():
            log.append("child", {})

    with log.exclusively():
        pid = forked(work)
        os.close(left[1])
        assert os.read(left[0], 1)
        with pytest.raises(Failure):
            Exclusive(folder, patience=0.05).__enter__()
    # The child still lives, but the section is free.
    with Exclusive(folder, patience=0.05):
        pass
    os.write(go[1], b"x")
    assert wait_for(pid) == 0


def test_a_child_forked_inside_neither_has_the_section_nor_frees_it(folder: Path) -> None:
    assert Child(fork_inside, folder).wait() == 0
    assert [entry.kind for entry in Log(folder).entries()] == ["child"]


def test_deleting_the_lock_file_lets_nobody_in(folder: Path) -> None:
    first, second = Exclusive(folder), Exclusive(folder, patience=0.05)
    with first:
        pass
    (folder / ".lock").unlink()
    with second, pytest.raises(Failure):
        Exclusive(folder, patience=0.05).__enter__()
    with second:
        pass
    with first, pytest.raises(Failure):
        second.__enter__()


def test_a_link_in_place_of_the_lock_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failure) as caught:
        Log(folder).exclusively().__enter__()
    assert caught.value.code == "io_error"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_open_to_others_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with pytest.raises(Failure, match="open to others"):
        Log(folder).exclusively().__enter__()


def test_verify_does_not_report_the_lock_file(folder: Path) -> None:
    with Log(folder) as log:
        _count(log, 2)
        assert log.verify().notes == ()
