"""The log on a full or failing disk, and in a folder that others can use.

There is one clear failure. The log accepts no further entries, and readers read no false entry.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log.log import Log
from tests.helpers.children import Child, Report


def _handle_of(path: Path) -> int:
    """Return the handle that this process uses to write `path`."""
    for name in os.listdir("/proc/self/fd"):
        if os.path.realpath(f"/proc/self/fd/{name}") == str(path):
            return int(name)
    raise AssertionError(f"{path} is not open")


def _break_disk(path: Path, stand_in: str = "/dev/full") -> None:
    """From now on, writes to `path` go to a device that is full and can't be synced."""
    handle = os.open(stand_in, os.O_WRONLY)
    os.dup2(handle, _handle_of(path))
    os.close(handle)


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds the log's handle in /proc")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the full disk is /dev/full")


def append_to_a_full_disk(report: Report, folder: Path, room: int) -> None:
    # A limit on file sizes looks like a full disk, but only to this child. Lines here have about 140 bytes.
    mine = Log(folder)
    mine.append("child", {"i": 0})
    own = max(folder.glob("*.log")).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (own + room, own + room))
    for i in range(1, 5):
        try:
            mine.append("child", {"i": i})
        except Failure as failure:
            report((i, failure.code))
        else:
            report((i, "ok"))


@pytest.mark.parametrize("room", range(1, 200, 11))
def test_a_partly_written_entry_is_not_an_entry(folder: Path, files, room: int) -> None:
    log = Log(folder)
    for i in range(3):
        log.append("step", {"i": i})
    size = files()[0].stat().st_size
    child = Child(append_to_a_full_disk, folder, room)
    said = child.rest()
    assert child.wait() == 0
    written = [0, *(i for i, outcome in said if outcome == "ok")]
    assert len(written) < 5
    # After the first failure the log accepts no entry, so no entry follows the torn line.
    assert said == [(i, "ok" if i in written else "io_error") for i in range(1, 5)]
    assert [e.data["i"] for e in log.entries(kinds={"child"})] == written
    assert log.verify().ok
    log.append("step", {"i": 3})
    assert [e.data["i"] for e in log.entries(kinds={"step"})] == [0, 1, 2, 3]
    assert files()[0].stat().st_size > size


@needs_proc
@needs_full
def test_a_full_disk_is_reported_and_later_appends_fail(folder: Path, files) -> None:
    log = Log(folder)
    mark = log.append("a", {})
    later = log.append("b", {})
    log.durable(mark)
    _break_disk(files()[0])
    with pytest.raises(Failure, match=r"can't append to the log .*: No space left on device") as caught:
        log.append("c", {})
    assert (caught.value.code, caught.value.hint) == ("io_error", "free some disk space and try again")
    for _ in range(2):
        with pytest.raises(Failure, match="accepts no more entries after a failure: can't append"):
            log.append("d", {})
    log.durable(mark)  # entries on the disk stay readable
    log.durable(later)
    log.close()
    assert [e.kind for e in log.entries()] == ["a", "b"]
    again = Log(folder)
    again.durable(again.append("e", {}))
    assert [e.kind for e in again.entries()] == ["a", "b", "e"]


@needs_proc
@needs_full
async def test_a_failed_sync_reaches_every_waiter(folder: Path, files) -> None:
    log = Log(folder)
    await log.adurable(log.append("a", {}))
    marks = [log.append("b", {"i": i}) for i in range(20)]
    _break_disk(files()[0])
    done = await asyncio.gather(*(log.adurable(mark) for mark in marks), return_exceptions=True)
    assert [(type(d), getattr(d, "code", "")) for d in done] == [(Failure, "io_error")] * 20
    with pytest.raises(Failure, match="accepts no more entries after a failure: can't make the log durable"):
        log.append("c", {})
    with pytest.raises(Failure, match="accepts no more entries"):
        log.durable(marks[0])
    with pytest.raises(Failure, match="accepts no more entries"):
        await log.adurable(marks[0])


@needs_proc
@needs_full
def test_after_a_failed_rotation_appends_fail(folder: Path, files) -> None:
    log = Log(folder, rotate_at=500)
    log.append("a", {"x": "y" * 200})
    _break_disk(files()[0])
    with pytest.raises(Failure, match="No space left on device"):
        log.append("b", {"x": "y" * 200})
    with pytest.raises(Failure, match="accepts no more entries"):
        log.append("c", {})
    assert [e.kind for e in log.entries()] == ["a"]
    assert log.verify().ok


def test_a_file_system_that_becomes_full_loses_no_acknowledged_entry(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True).returncode
    ):
        pytest.skip("mounting a small file system needs rights that this process hasn't")
    try:
        log = Log(place / "log")
        taken = 0

        def fill() -> None:
            nonlocal taken
            while True:
                log.durable(log.append("step", {"i": taken, "x": "y" * 300}))
                taken += 1

        with pytest.raises(Failure, match="can't append to the log"):
            fill()
        assert taken > 50
        found = [e.data["i"] for e in Log(place / "log").entries()]
        assert found == list(range(taken))
        assert log.verify().ok
        # When there is room again, a new process can append.
        subprocess.run([mount, "-o", "remount,size=256k", str(place)], check=True)
        again = Log(place / "log")
        again.durable(again.append("after", {}))
        assert [e.kind for e in again.entries(kinds={"after"})] == ["after"]
        log.close()
        again.close()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


# The folder

OPERATIONS: list[Callable[[Log], object]] = [
    lambda log: log.append("a", {}),
    lambda log: list(log.entries()),
    lambda log: log.changes(),
    lambda log: log.verify(),
    lambda log: log.anchor(),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_file_in_place_of_the_folder(folder: Path, operation: Callable[[Log], object]) -> None:
    folder.write_text("hello")
    with pytest.raises(Failure, match="folder") as caught:
        operation(Log(folder))
    assert caught.value.code == "io_error"
    assert caught.value.hint is not None
    assert str(folder) in caught.value.message
    assert folder.read_text() == "hello"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter(folder: Path, operation: Callable[[Log], object], mode: int) -> None:
    Log(folder).append("a", {})
    folder.chmod(mode)
    with pytest.raises(Failure, match=f"is open to others \\(mode 0{mode:o}") as caught:
        operation(Log(folder))
    assert caught.value.code == "io_error"
    assert f"chmod 700 {folder}" in str(caught.value.hint)


def append_as_somebody_else(_: Report, folder: Path) -> None:
    # The folders above belong to the user of the tests alone.
    os.chdir(folder)
    os.chmod(folder, 0o500)
    os.setgid(12345)
    os.setuid(12345)
    with pytest.raises(Failure, match=r"can't begin a segment of the log in .*: Permission denied") as caught:
        Log(Path.cwd()).append("a", {})
    assert caught.value.code == "io_error"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away, and becomes somebody else")
def test_another_users_folder_and_a_read_only_folder_are_refused(folder: Path) -> None:
    Log(folder).append("a", {})
    os.chown(folder, 12345, 12345)
    for operation in OPERATIONS:
        with pytest.raises(Failure, match="belongs to another user"):
            operation(Log(folder))

    for above in folder.parents:
        if above.stat().st_mode & 0o777 == 0o700:
            above.chmod(0o711)
    assert Child(append_as_somebody_else, folder).wait() == 0
