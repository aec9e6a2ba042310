"""The record on a full, read-only or failing disk, and a database that others delete, replace or damage.

There is one clear failure. Nothing is acknowledged that is not recorded.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import durability, gate
from albert_tools.store.record.record import Record
from albert_tools.store.record.schema import VERSION
from albert_tools.store.record.sqlite import FILE
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report

MOUNT = shutil.which("mount")
needs_root = pytest.mark.skipif(os.geteuid() != 0 or MOUNT is None, reason="mounts a small file system")


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Callable[[str], None]]:
    """Mount a small file system at `place`. The function remounts it with other options."""
    place.mkdir()
    assert MOUNT is not None
    if subprocess.run(
        [MOUNT, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True
    ).returncode:
        pytest.skip("mounting a file system needs rights that this process hasn't")
    try:
        place.chmod(0o700)
        yield lambda options: subprocess.run([MOUNT, "-o", f"remount,{options}", str(place)], check=True) and None
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


# Full and read-only disks


@needs_root
def test_a_full_disk_loses_no_acknowledged_entry(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "600k") as remount:
        folder = tmp_path / "small" / "record"
        record = Record(folder)
        taken = 0

        def fill() -> None:
            nonlocal taken
            while True:
                record.durable(record.append("step", {"i": taken, "x": "y" * 300}))
                taken += 1

        for _ in range(2):
            with pytest.raises(Failure, match="can't use the record") as caught:
                fill()
            assert caught.value.code == "io_error"
            assert caught.value.hint == "free some disk space and try again"
        assert taken > 50
        assert [e.data["i"] for e in record.entries()] == list(range(taken))
        assert verify(folder).ok
        remount("size=2m")
        # When there is room again, the same process goes on.
        record.durable(record.append("step", {"i": taken}))
        assert [e.data["i"] for e in Record(folder).entries()] == list(range(taken + 1))
        assert verify(folder).ok
        record.close()


@needs_root
def test_a_read_only_disk_can_be_read_and_verified(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "2m") as remount:
        folder = tmp_path / "small" / "record"
        with Record(folder) as record:
            record.append("a", {})
        remount("ro")
        with pytest.raises(Failure, match="Read-only file system") as caught:
            Record(folder).append("b", {})
        assert (caught.value.code, caught.value.retryable) == ("io_error", False)
        assert "ALBERT_HOME" in str(caught.value.hint)
        assert verify(folder).ok
        assert verify(folder).entries == 1


def append_as_somebody_else(_: Report, folder: Path) -> None:
    os.chdir(folder)
    os.setgid(12345)
    os.setuid(12345)
    with pytest.raises(Failure, match="Permission denied") as caught:
        Record(Path.cwd()).append("a", {})
    assert caught.value.code == "io_error"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away, and becomes somebody else")
def test_a_read_only_folder_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o500)
    os.chown(folder, 12345, 12345)
    for above in folder.parents:
        if above.stat().st_mode & 0o777 == 0o700:
            above.chmod(0o711)
    assert Child(append_as_somebody_else, folder).wait() == 0


# A failing sync


def test_a_failed_sync_is_final(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(folder)
    record.durable(record.append("a", {}))
    later = record.append("b", {})

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    with monkeypatch.context() as patch:
        patch.setattr(durability, "_sync", fail)
        with pytest.raises(Failure, match=r"can't sync the record at .*: Input/output error") as caught:
            record.durable(later)
        assert caught.value.code == "io_error"
    # A second sync could succeed without having written the pages.
    for use in (lambda: record.durable(later), lambda: record.append("c", {})):
        with pytest.raises(Failure, match="can't sync the record"):
            use()
    assert [e.kind for e in Record(folder).entries()] == ["a", "b"]


async def test_a_failed_sync_reaches_every_waiter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(folder)
    last = [record.append("b", {"i": i}) for i in range(20)]

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail)
    done = await asyncio.gather(*(record.adurable(n) for n in last), return_exceptions=True)
    assert [(type(d), getattr(d, "code", "")) for d in done] == [(Failure, "io_error")] * 20
    record.close()


# A database that others delete, replace or damage


@pytest.mark.parametrize("replacement", ["deleted", "another file", "a copy"])
def test_a_deleted_or_replaced_database_gets_no_entry(folder: Path, replacement: str) -> None:
    record = Record(folder)
    record.append("a", {})
    path = folder / FILE
    content = path.read_bytes()
    path.unlink()
    if replacement != "deleted":
        path.write_bytes(content if replacement == "a copy" else b"")
    for use in (lambda: record.append("b", {}), lambda: list(record.entries())):
        with pytest.raises(Failure, match="was deleted or replaced while this process used it") as caught:
            use()
        assert (caught.value.code, caught.value.retryable) == ("io_error", False)


@pytest.mark.parametrize("size", [0, 4096, 5000])
def test_a_truncated_database_gets_no_entry(folder: Path, size: int) -> None:
    with Record(folder) as record:
        for i in range(100):
            record.append("step", {"i": i, "x": "y" * 300})
    os.truncate(folder / FILE, size)
    with pytest.raises(Failure) as caught:
        Record(folder).append("b", {})
    assert caught.value.code == "damaged"
    assert not verify(folder).ok


def test_a_database_that_is_truncated_while_it_is_used_gets_no_entry(folder: Path) -> None:
    record = Record(folder)
    for i in range(100):
        record.append("step", {"i": i, "x": "y" * 300})
    record.database.shrink()  # moves the write-ahead log into the file
    record.append("a", {})
    os.truncate(folder / FILE, 4096)
    for _ in range(2):
        with pytest.raises(Failure, match="was truncated") as caught:
            record.append("b", {})
        assert caught.value.code == "damaged"
    assert not verify(folder).ok


def test_another_record_with_as_many_entries_gets_no_entry(folder: Path, tmp_path: Path) -> None:
    for place in (folder, tmp_path / "other"):
        with Record(place) as record:
            for i in range(3):
                record.append("step", {"i": i, "of": place.name})
    shutil.copy(tmp_path / "other" / FILE, folder / FILE)
    with pytest.raises(Failure, match="entry 3 was written: it was cut off or replaced") as caught:
        Record(folder).append("b", {})
    assert caught.value.code == "damaged"


def append_and_die(report: Report, folder: Path, count: int) -> None:
    record = Record(folder)
    for i in range(count):
        record.append("step", {"i": i})
    report("ready")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("place", [-5000, -100])
def test_a_damaged_end_of_the_write_ahead_log_is_noticed(folder: Path, place: int) -> None:
    child = Child(append_and_die, folder, 50)
    assert child.hear() == "ready"
    child.wait()
    log = folder / f"{FILE}-wal"
    content = bytearray(log.read_bytes())
    content[place] ^= 1
    log.write_bytes(content)
    assert "the end was cut off" in verify(folder).problems[0]
    with pytest.raises(Failure, match="and entry 50 was written: it was cut off or replaced") as caught:
        Record(folder).append("b", {})
    assert caught.value.code == "damaged"


@pytest.mark.parametrize("version", [1, VERSION - 1, VERSION + 1])
def test_another_version_of_the_format_is_refused_and_nothing_changes(folder: Path, version: int) -> None:
    Record(folder).append("a", {})
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(
        Failure, match=f"has format {version}, and this version of Albert Tools reads {VERSION}"
    ) as caught:
        Record(folder).append("b", {})
    assert caught.value.code == "damaged"
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    assert [e.kind for e in Record(folder).entries()] == ["a"]
    assert verify(folder).problems == ()


# The folder

OPERATIONS: list[Callable[[Path], object]] = [
    lambda folder: Record(folder).append("a", {}),
    lambda folder: list(Record(folder).entries()),
    lambda folder: verify(folder),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_file_in_place_of_the_folder(folder: Path, operation: Callable[[Path], object]) -> None:
    folder.write_text("hello")
    with pytest.raises(Failure, match="folder") as caught:
        operation(folder)
    assert caught.value.code == "io_error"
    assert str(folder) in caught.value.message
    assert folder.read_text() == "hello"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter(folder: Path, operation: Callable[[Path], object], mode: int) -> None:
    Record(folder).append("a", {})
    folder.chmod(mode)
    with pytest.raises(Failure, match=f"is open to others \\(mode 0{mode:o}") as caught:
        operation(folder)
    assert caught.value.code == "io_error"
    assert f"chmod 700 {folder}" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_another_users_folder_is_refused(folder: Path, operation: Callable[[Path], object]) -> None:
    Record(folder).append("a", {})
    os.chown(folder, 12345, 12345)
    with pytest.raises(Failure, match="belongs to another user"):
        operation(folder)


def test_a_query_ends_at_the_deadline(folder: Path) -> None:
    with Record(folder) as record:
        record.append("mode", {"mode": "ALERT", "by": "x"})
    with Record(folder) as record:
        record.database.deadline = 0.0
        assert record.reviews.all() == []
        long = (
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3000000) SELECT count(*) FROM r"
        )
        with pytest.raises(Failure, match="interrupted"):
            record.database.rows(long)


def test_a_link_in_place_of_the_database_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failure, match="is not a regular file"):
        Record(folder).append("a", {})
    assert not (tmp_path / "elsewhere").exists()


# A service without a record


def test_a_call_is_denied_while_the_record_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "PATIENCE", 0.05)
    work = tmp_path / "work"
    (work / ".albert").mkdir(parents=True)
    path = tmp_path / "home" / "state" / "record" / FILE
    with SyncToolService.open(home=tmp_path / "home", workspace=work) as service:
        assert service.invoke("write_file", {"path": "a", "content": "b"}).ok
        other = gate.Gate(path.parent / "gate")
        other.enter()
        stopped = service.invoke("write_file", {"path": "c", "content": "d"}).error
        other.close()
        assert stopped is not None
        assert (stopped.code, stopped.hint) == (
            "governance_unavailable",
            "end the stopped process that uses this home, then try again",
        )
        assert service.invoke("write_file", {"path": "e", "content": "f"}).ok
        path.rename(path.with_name("away"))
        gone = service.invoke("write_file", {"path": "c", "content": "d"}).error
        assert gone is not None
        assert gone.code == "governance_unavailable"
        assert "was deleted or replaced while this process used it" in gone.message
        assert "put the file back" in str(gone.hint)
        path.with_name("away").rename(path)
        assert service.invoke("write_file", {"path": "g", "content": "h"}).ok
    assert sorted(p.name for p in work.iterdir()) == [".albert", "a", "e", "g"]
    assert verify(path.parent).ok
