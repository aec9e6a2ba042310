"""Compaction: `Log.fold` replaces old segments with one segment that contains the retained entries.

Every process still reads the retained entries, also after a crash and while other processes use the log.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Cursor, Entry
from albert_tools.store.log import folding
from albert_tools.store.log.fold_records import recorded
from albert_tools.store.log.log import Log
from tests.helpers.children import Child, Parent, Report

SECOND = 10**9
#: All entries are from this time or the minutes after it. Segments from before the second time are compacted.
THEN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
UNTIL = datetime(2026, 1, 2, tzinfo=UTC)


class Clock:
    """A clock for tests. Each reading is a moment later than the one before."""

    def __init__(self, start: int = THEN) -> None:
        self.now = start

    def __call__(self) -> int:
        self.now += 1000
        return self.now


def states(entries: Iterable[Entry]) -> list[tuple[str, str, dict[str, Any]]]:
    """Retain the states and drop all other entries."""
    return [(e.at, e.kind, e.data) for e in entries if e.kind == "state"]


def written(folder: Path, segments: int = 3, clock: Clock | None = None) -> list[dict[str, Any]]:
    """Write finished segments of steps and states. Returns the states."""
    clock = clock or Clock()
    found = []
    for s in range(segments):
        with Log(folder, nanoseconds=clock) as log:
            for i in range(4):
                log.append("step", {"s": s, "i": i})
                log.append("state", {"s": s, "i": i})
                found.append({"s": s, "i": i})
    return found


def new(folder: Path) -> dict[str, Any]:
    with Log(folder) as log:
        log.append("state", {"new": True})
    return {"new": True}


class Fold:
    """Return the data of the states, in order."""

    name, version, kinds = "test", 1, frozenset({"state"})

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def apply(self, entry: Entry) -> None:
        self.seen.append(entry.data)

    def dump(self) -> Any:
        return list(self.seen)

    def load(self, state: Any) -> None:
        self.seen = list(state)


def seen(folder: Path) -> list[Any]:
    return [e.data for e in Log(folder).entries({"state"})]


def test_retained_entries_are_read_and_dropped_ones_are_not(folder: Path, files: Callable[[], list[Path]]) -> None:
    kept = written(folder)
    later = new(folder)
    with Log(folder) as log:
        before = [e for e in log.entries({"state"}) if "new" not in e.data]
        found = log.fold(UNTIL, states)
    assert (found.segments, found.entries, found.kept) == (3, 24, 12)
    assert found.after < found.before
    assert len(files()) == 3  # the compacted segment, the later one, and the one that records the compaction
    with Log(folder) as log:
        assert [e.data for e in log.entries({"state"})] == [*kept, later]
        assert [e.at for e in log.entries({"state"})][:12] == [e.at for e in before]
        assert [e.data for e in log.entries({"step"})] == []
        (said,) = log.entries({"fold"})
        assert (said.data["segments"], said.data["kept"]) == (3, 12)
        result = log.verify()
        assert result.ok
        assert not result.notes
        assert result.folded == 3
        assert "3 segments, begun from 2026-01-01T00:00:00" in result.unseen


def test_new_segments_and_segments_with_a_living_writer_stay(folder: Path, files: Callable[[], list[Path]]) -> None:
    clock = Clock()
    with Log(folder, nanoseconds=clock) as alive, Log(folder, nanoseconds=clock) as newer:
        alive.append("step", {})
        newer.append("step", {})
        clock.now += 40 * 3600 * SECOND
        newer.append("step", {})
        newer.close()
        names = files()
        assert alive.fold(UNTIL, states) == folding.Folded()
        assert files() == names


def test_compacting_again_includes_the_compacted_segment(folder: Path, files: Callable[[], list[Path]]) -> None:
    clock = Clock()
    kept = written(folder, 2, clock)
    with Log(folder, nanoseconds=clock) as log:
        log.fold(UNTIL, states)
    assert Log(folder).fold(UNTIL, states).segments == 2  # the own segment of the first log, and the compacted one
    kept += written(folder, 2, clock)
    with Log(folder) as log:
        assert log.fold(UNTIL, states).segments == 3
        assert log.fold(UNTIL, states) == folding.Folded()
        assert seen(folder) == kept
        assert log.verify().ok
        assert log.verify().folded == 5


def test_a_projection_in_another_process_stays_correct(folder: Path, tmp_path: Path) -> None:
    kept = written(folder)
    cache = tmp_path / "cache"
    with Log(folder, cache=lambda: cache) as log, Log(folder) as other:
        fold = Fold()
        following = log.follow(fold)
        following.look()
        assert fold.seen == kept
        other.fold(UNTIL, states)
        other.append("state", {"new": 1})
        following.look()
        assert fold.seen == [*kept, {"new": 1}]
        log.append("state", {"new": 2})
        following.look()
        assert fold.seen == [*kept, {"new": 1}, {"new": 2}]
    with Log(folder, cache=lambda: cache) as log:
        fresh = Fold()
        log.follow(fresh).look()
        assert fresh.seen == fold.seen


def test_a_reader_with_an_old_cursor_is_told_to_start_again(folder: Path) -> None:
    written(folder)
    with Log(folder) as log:
        _, cursor = log.changes()
        reading = log.entries()
        next(reading)
        log.fold(UNTIL, states)
        for read_on in (lambda: list(reading), lambda: log.changes(cursor)):
            with pytest.raises(Failure) as caught:
                read_on()
            assert (caught.value.code, caught.value.retryable) == ("io_error", True)
        found, _ = log.changes(Cursor())
        assert len(found) == 13


def test_the_log_knows_whether_a_writer_lives_after_compaction(folder: Path) -> None:
    clock = Clock()
    with Log(folder, rotate_at=1000, nanoseconds=clock) as log:
        first, second = (log.append("state", {"text": "x" * 600}).segment for _ in range(2))
        assert first != second
        with Log(folder) as other:
            assert other.fold(UNTIL, states).segments == 1
            assert other.verify().ok
            assert other.alive(first)
    with Log(folder) as other:
        assert not other.alive(first)


# Verification


def test_an_older_anchor_is_still_checked_after_compaction(folder: Path, files: Callable[[], list[Path]]) -> None:
    written(folder)
    with Log(folder) as log:
        anchor = log.anchor()
        log.fold(UNTIL, states)
        assert log.verify(anchor).ok
        name = min(anchor["segments"])
        false = {**anchor, "segments": {**anchor["segments"], name: {**anchor["segments"][name], "hash": "ab" * 32}}}
        assert [p.kind for p in log.verify(false).problems] == ["rewritten"]
        more = {**anchor, "segments": {**anchor["segments"], name: {"n": 100, "hash": "ab" * 32}}}
        assert [p.kind for p in log.verify(more).problems] == ["shortened"]
        # If an anchor covers only part of a compacted segment, only the hash at the segment's end is known.
        less = {**anchor, "segments": {**anchor["segments"], name: {"n": 1, "hash": "ab" * 32}}}
        assert log.verify(less).ok
        after = log.anchor()
    folded = next(f for f in files() if "-0-" in f.name)
    folded.unlink()
    assert "segment_missing" in [p.kind for p in Log(folder).verify(after).problems]


def test_a_segment_is_verified_against_its_compacted_predecessor(folder: Path) -> None:
    clock = Clock()
    with Log(folder, rotate_at=1000, nanoseconds=clock) as log:
        for _ in range(2):
            log.append("state", {"text": "x" * 600})
        clock.now += 40 * 3600 * SECOND
    with Log(folder) as log:
        log.fold(UNTIL, states)
        assert log.verify().ok
    folded = next(f for f in folder.glob("*.log") if "-0-" in f.name)
    records = recorded(folder, folded.stem)
    # This file has the form of a compaction of another segment: its record of the old segments is false, but its own hashes
    # are valid.
    false = {name: record._replace(hash="ab" * 32) for name, record in records.items()}
    folded.unlink()
    folding._write(folded, folded.stem, false, [])
    assert [p.kind for p in Log(folder).verify().problems] == ["unchained"]


def test_a_changed_byte_of_a_compacted_segment_is_found(folder: Path) -> None:
    written(folder, 2)
    with Log(folder) as log:
        log.fold(UNTIL, states)
    folded = next(f for f in folder.glob("*.log") if "-0-" in f.name)
    whole = folded.read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        folded.write_bytes(changed)
        assert not Log(folder).verify().ok, place
    folded.write_bytes(whole)
    assert Log(folder).verify().ok


def test_a_damaged_segment_is_not_compacted(folder: Path, files: Callable[[], list[Path]]) -> None:
    written(folder)
    content = bytearray(files()[1].read_bytes())
    content[200] ^= 1
    files()[1].write_bytes(content)
    names = files()
    with Log(folder) as log, pytest.raises(Failure) as caught:
        log.fold(UNTIL, states)
    assert caught.value.code == "damaged"
    assert files() == names
    assert not [n for n in os.listdir(folder) if n.startswith(".fold-new")]


@pytest.mark.parametrize("kind", ["closed", "folded"])
def test_callers_can_not_append_the_log_s_own_kinds(folder: Path, kind: str) -> None:
    with Log(folder) as log, pytest.raises(Failure):
        log.append(kind, {})


# Crashes and concurrent processes

STEPS = ["open", "fsync", "rename", "unlink"]


def folding_and_killed(report: Report, folder: Path, number: int) -> None:
    """Compact the log, and die before the operation on a file that has this number."""
    done = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def do(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return do

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    folding.fold(folder, "2026-01-02", states)
    report(done)


def test_killed_at_every_step_of_a_compaction(tmp_path: Path) -> None:
    number, over = 0, False
    parent = Parent(folding_and_killed)
    while not over:
        number += 1
        folder = tmp_path / str(number) / "log"
        kept = written(folder, 2)
        later = new(folder)
        over = parent.fork(folder, number).wait() == 0
        # The next process reads each entry once.
        assert seen(folder) == [*kept, later], number
        with Log(folder) as log:
            fold = Fold()
            following = log.follow(fold)
            following.look()
            assert fold.seen == [*kept, later]
            assert log.verify().ok, number
            found = log.fold(UNTIL, states)
            assert found.segments in ((0,) if over else (0, 2))
            following.look()
            assert fold.seen == seen(folder) == [*kept, later], number
            assert not [n for n in os.listdir(folder) if n.startswith((".fold-new", ".folding"))]
            assert log.verify().ok
            assert len(list(folder.glob("*.log"))) <= 3
    assert number > 15


def folding_too(report: Report, folder: Path) -> None:
    report("ready")
    with Log(folder) as log:
        for _ in range(5):
            log.fold(UNTIL, states)


def test_two_processes_compact_while_others_write_and_read(folder: Path) -> None:
    clock = Clock()
    kept = written(folder, 20, clock)
    children = [Child(folding_too, folder) for _ in range(2)]
    with Log(folder) as log:
        fold = Fold()
        following = log.follow(fold)
        for i in range(200):
            log.append("state", {"i": i})
            kept.append({"i": i})
            following.look()
            assert fold.seen == kept
            if i % 20 == 0:
                assert log.verify().ok
        for child in children:
            assert child.wait() == 0
        following.look()
        assert fold.seen == seen(folder) == kept
