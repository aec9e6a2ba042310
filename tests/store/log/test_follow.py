"""A projection follows the log. It applies each entry of every process once and in order, from a snapshot or from the beginning."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Entry
from albert_tools.store.log import line, projection
from albert_tools.store.log.log import Log
from albert_tools.store.log.projection import Projection
from tests.helpers.children import Child, Parent, Report, forked, wait_for

Files = Callable[[], list[Path]]


class Listed:
    """A projection that collects the entries."""

    name = "listed"
    version = 1
    kinds = frozenset({"step"})

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.applied = 0

    def apply(self, entry: Entry) -> None:
        self.applied += 1
        self.seen.append(entry.data["i"])

    def dump(self) -> Any:
        return self.seen

    def load(self, state: Any) -> None:
        self.seen = list(state)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _following(folder: Path, cache: Path | None = None, snapshot_after: int = 1) -> tuple[Listed, Projection]:
    fold = Listed()
    return fold, Projection(folder, fold, None if cache is None else lambda: cache, snapshot_after=snapshot_after)


def test_a_look_applies_entries_of_this_log_and_of_others(folder: Path) -> None:
    fold = Listed()
    log, other = Log(folder), Log(folder)
    following = log.follow(fold)
    following.look()
    assert fold.seen == []
    for i in range(10):
        (log, other)[i % 2].append("step", {"i": i})
        log.append("unseen", {"i": -1})
        following.look()
        assert fold.seen == list(range(i + 1))
    following.look()
    assert fold.applied == 10


def test_one_look_applies_the_entries_of_all_writers_in_order_of_time(folder: Path) -> None:
    now = [1_700_000_000_000_000_000]
    writers = [Log(folder, 600, lambda: now[0]) for _ in range(3)]
    for i in range(60):
        now[0] += 1000
        writers[i * 7 % 3].append("step", {"i": i})
    fold, following = _following(folder)
    following.look()
    assert fold.seen == list(range(60))


def test_a_kind_whose_name_begins_with_another_kind_is_distinct(folder: Path) -> None:
    fold = Listed()
    fold.kinds = frozenset({"k" * 300, 'qu"ote\u00e4'})  # type: ignore[misc]
    with Log(folder) as log:
        for i, kind in enumerate(["k" * 299, "k" * 300, "k" * 301, 'qu"ote\u00e4', "qu"]):
            log.append(kind, {"i": i})
        log.follow(fold).look()
    assert fold.seen == [1, 3]


def look_and_append(_: Report, folder: Path, times: int) -> None:
    fold = Listed()
    log = Log(folder, rotate_at=3000)
    following = log.follow(fold)
    for _ in range(times):
        with log.exclusively():
            following.look()
            # Each number is used once, so no process missed another's number. The entries arrive in the order of the appends.
            assert fold.seen == list(range(len(fold.seen)))
            log.append("step", {"i": len(fold.seen)})


def test_inside_the_section_no_entry_is_missed(folder: Path) -> None:
    processes, times = 3, 60
    children = [Child(look_and_append, folder, times) for _ in range(processes)]
    assert [child.wait() for child in children] == [0] * processes
    assert sorted(e.data["i"] for e in Log(folder).entries()) == list(range(processes * times))


def test_a_segment_created_in_the_same_clock_tick_is_found(folder: Path) -> None:
    fold, following = _following(folder)
    for i in range(30):
        Log(folder).append("step", {"i": i})
        following.look()
        assert len(fold.seen) == i + 1


def append_and_live_on(report: Report, folder: Path, i: int, times: int, rotate_at: int) -> None:
    log = Log(folder, rotate_at)
    began = log.append("step", {"i": i}).segment
    for more in range(1, times):
        log.append("step", {"i": i + more})
    report(began)
    time.sleep(600)


def _open_in(folder: Path) -> int:
    """Return how many files of `folder` this process has open."""
    handles = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(handle).startswith(f"{folder.resolve()}/") for handle in handles)


def test_a_finished_segment_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "TICK", 0.0)
    monkeypatch.setattr(projection, "ALIVE_EVERY", 0.0)
    for i in range(3):
        with Log(folder) as log:
            log.append("step", {"i": i})
    child = Child(append_and_live_on, folder, 3, 1, 1 << 20)
    child.hear()
    fold, following = _following(folder)
    following.look()
    assert fold.seen == [0, 1, 2, 3]
    assert _open_in(folder) == 1  # the segment of the living writer
    child.kill()
    following.look()
    following.look()
    assert _open_in(folder) == 0


def test_an_empty_new_segment_is_not_finished(folder: Path) -> None:
    # A segment looks like this after its writer created the file and before it locks the file.
    folder.mkdir(mode=0o700)
    early = folder / "20260131T080000.000001Z-1-00000000.log"
    early.touch(mode=0o600)
    fold, following = _following(folder)
    following.look()
    text = line.header(early.stem, "2026-01-31T08:00:00.000001Z", 1, None, None)
    digest = line.chain(line.NOTHING, text)
    content = line.line(digest, text)
    text = line.stamped(1, "2026-01-31T08:00:00.000002Z", line.body("step", {"i": 7}))
    early.write_bytes(content + line.line(line.chain(digest, text), text))
    following.look()
    assert fold.seen == [7]


def test_an_incomplete_line_is_not_an_entry(folder: Path, one: Path) -> None:
    content = one.read_bytes()
    cut = content.rindex(b"\n", 0, len(content) - 200) - 20
    one.write_bytes(content[:cut])
    handle = os.open(one, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)  # its writer lives
    fold, following = _following(folder)
    following.look()
    seen = len(fold.seen)
    assert 0 < seen < 6
    one.write_bytes(content)
    following.look()
    assert fold.seen == list(range(6))
    os.close(handle)


@pytest.mark.parametrize("harm", ["flip", "shorten", "remove"])
def test_each_look_reports_damage_and_a_repaired_log_is_read_from_the_beginning(folder: Path, harm: str) -> None:
    log = Log(folder)
    for i in range(3):
        log.append("step", {"i": i})
    fold, following = _following(folder)
    following.look()
    path = next(folder.glob("*.log"))
    content = path.read_bytes()
    log.append("step", {"i": 3})
    whole = path.read_bytes()
    if harm == "flip":
        path.write_bytes(whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:])
    elif harm == "shorten":
        path.write_bytes(content[:-1])
    else:
        path.rename(path.with_suffix(".away"))
    for _ in range(2):
        with pytest.raises(Failure) as caught:
            following.look()
        assert caught.value.code == "damaged"
        assert caught.value.details["segment"] == path.stem
    if harm == "remove":
        path.with_suffix(".away").rename(path)
    else:
        path.write_bytes(whole)
    following.look()
    assert fold.seen == [0, 1, 2, 3]


def test_after_an_exception_the_projection_is_built_again(folder: Path) -> None:
    log = Log(folder)
    fold, following = _following(folder)
    log.append("step", {"i": 1})
    log.append("step", {"j": 1})
    with pytest.raises(KeyError):
        following.look()
    fold.apply = lambda entry: fold.seen.append(entry.data)  # type: ignore[method-assign]
    following.look()
    assert fold.seen == [{"i": 1}, {"j": 1}]


def test_with_a_snapshot_a_new_process_reads_only_later_entries(folder: Path, cache: Path, files: Files) -> None:
    log = Log(folder)
    with Log(folder) as ended:
        ended.append("step", {"i": 0})
    for i in range(1, 50):
        log.append("step", {"i": i})
    _following(folder, cache)[1].look()
    log.append("step", {"i": 50})
    with Log(folder) as another:
        another.append("step", {"i": 51})
    fold, following = _following(folder, cache)
    following.look()
    assert fold.seen == list(range(52))
    assert fold.applied == 2
    assert (cache / "projections").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "open", "link", "version", "kinds", "other log", "regrown"])
def test_a_snapshot_that_does_not_match_the_log_is_ignored(
    folder: Path, cache: Path, tmp_path: Path, harm: str
) -> None:
    log = Log(folder)
    for i in range(20):
        log.append("step", {"i": i})
    _following(folder, cache)[1].look()
    snapshot = cache / "projections" / "listed.json"
    content = snapshot.read_bytes()
    expected: list[Any] = list(range(20))
    fold = Listed()
    if harm == "flip":
        snapshot.write_bytes(content.replace(b",3,", b",4,"))
    elif harm == "cut":
        snapshot.write_bytes(content[:-7])
    elif harm == "empty":
        snapshot.write_bytes(b"")
    elif harm == "open":
        snapshot.parent.chmod(0o755)
    elif harm == "link":
        snapshot.rename(tmp_path / "moved")
        snapshot.symlink_to(tmp_path / "moved")
    elif harm == "version":
        fold.version = 2  # type: ignore[misc]
    elif harm == "kinds":
        fold.kinds = frozenset({"step", "other"})  # type: ignore[misc]
    elif harm == "other log":
        folder = tmp_path / "other"
        Log(folder).append("step", {"i": 99})
        expected = [99]
    elif harm == "regrown":
        # A segment rewritten under the same name. It has the same length but other hashes.
        path = next(folder.glob("*.log"))
        text = path.read_bytes()
        digest, lines = line.NOTHING, []
        for whole in text.replace(b'"i":3', b'"i":4').splitlines():
            digest = line.chain(digest, whole[line.LEAD :])
            lines.append(line.line(digest, whole[line.LEAD :]))
        path.write_bytes(b"".join(lines))
        expected[3] = 4
    Projection(folder, fold, lambda: cache, snapshot_after=1).look()
    assert fold.seen == expected
    assert fold.applied == len(expected)


def test_a_snapshot_that_the_projection_rejects_is_ignored(folder: Path, cache: Path) -> None:
    log = Log(folder)
    log.append("step", {"i": 1})
    _following(folder, cache)[1].look()

    class Picky(Listed):
        def load(self, state: Any) -> None:
            if state:
                self.seen = ["half"]
                raise KeyError("state")
            super().load(state)

    fold = Picky()
    Projection(folder, fold, lambda: cache).look()
    assert fold.seen == [1]


def test_a_projection_works_without_a_writable_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    Log(folder).append("step", {"i": 1})
    fold, following = _following(folder, tmp_path / "cache")
    following.look()
    assert fold.seen == [1]


def test_closing_the_log_writes_a_snapshot_if_enough_is_new(folder: Path, cache: Path) -> None:
    for i in range(2):
        log = Log(folder, cache=lambda: cache)
        fold = Listed()
        following = log.follow(fold)
        log.append("step", {"i": i, "pad": "x" * (projection.SNAPSHOT_AT_END if i else 1)})
        following.look()
        log.close()
        assert (cache / "projections" / "listed.json").exists() == bool(i)
    fold, following = _following(folder, cache)
    following.look()
    assert (fold.seen, fold.applied) == ([0, 1], 0)


def write_snapshots_without_pause(report: Report, folder: Path, cache: Path) -> None:
    log = Log(folder)
    fold, following = _following(folder, cache)
    while True:
        with log.exclusively():
            following.look()
            log.append("step", {"i": len(fold.seen)})
        if len(fold.seen) % 20 == 19:
            report(len(fold.seen))


def test_a_kill_while_writing_snapshots_leaves_a_usable_one(folder: Path, cache: Path) -> None:
    parent = Parent(write_snapshots_without_pause)
    for _ in range(5):
        child = parent.fork(folder, cache)
        child.hear()
        child.kill()
        fold, following = _following(folder, cache)
        following.look()
        assert fold.seen == [e.data["i"] for e in Log(folder).entries()]


def fork_in_the_middle_of_a_look(_: Report, folder: Path) -> None:
    log = Log(folder)
    for i in range(5):
        log.append("step", {"i": i})
    entered, leave = threading.Event(), threading.Event()

    class Slow(Listed):
        def apply(self, entry: Entry) -> None:
            super().apply(entry)
            if entry.data["i"] == 2 and not entered.is_set():
                entered.set()
                leave.wait(30)

    fold = Slow()
    following = log.follow(fold)
    thread = threading.Thread(target=following.look)
    thread.start()
    assert entered.wait(30)

    def work() -> None:
        following.look()
        assert fold.seen == list(range(5))

    # While the look of the other thread is in progress.
    assert wait_for(forked(work), 20) == 0
    leave.set()
    thread.join()
    assert fold.seen == list(range(5))


def test_a_child_forked_during_a_look_reads_the_log_itself(folder: Path) -> None:
    assert Child(fork_in_the_middle_of_a_look, folder).wait() == 0


def test_a_name_that_can_not_be_a_file_name_is_refused(folder: Path) -> None:
    fold = Listed()
    fold.name = "../up"  # type: ignore[misc]
    with pytest.raises(ValueError, match="can't name a snapshot"):
        Log(folder).follow(fold)


def test_a_writer_is_alive_over_rotations_and_dead_after_its_death(folder: Path) -> None:
    log = Log(folder, rotate_at=400)
    first = log.append("step", {"i": 0}).segment
    assert log.alive(first)
    for i in range(10):
        last = log.append("step", {"i": i}).segment
    assert first != last
    assert Log(folder).alive(first)
    log.close()
    assert not log.alive(first)
    assert not log.alive(last)
    child = Child(append_and_live_on, folder, 0, 11, 400)
    theirs = child.hear()
    assert log.alive(theirs)
    child.kill()
    assert not log.alive(theirs)
    assert not log.alive(theirs[:-1] + ("0" if theirs[-1] != "0" else "1"))  # This writer never existed.
    with pytest.raises(Failure) as caught:
        log.alive("../../etc/passwd")
    assert caught.value.code == "invalid_arguments"
