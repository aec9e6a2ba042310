"""Readers return the written entries and no others, even if the log changes while they read."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Cursor, Place
from albert_tools.store.log.log import Log
from albert_tools.store.log.trouble import Problem


def test_an_incomplete_line_is_not_read(folder: Path, one: Path) -> None:
    content = one.read_bytes()
    log = Log(folder)
    cursor = Cursor()
    seen: list[int] = []
    whole = 0
    for size in range(0, len(content) + 1, 7):
        one.write_bytes(content[:size])
        more, cursor = log.changes(cursor)
        seen += [e.n for e in more]
        whole = max(content[:size].count(b"\n") - 1, 0)
        assert seen == list(range(1, min(whole, 6) + 1))
        assert [e.n for e in log.entries()] == seen
    one.write_bytes(content)
    assert log.changes(cursor)[0] == []
    assert seen == [1, 2, 3, 4, 5, 6]


def test_a_cursor_can_be_stored_as_json(folder: Path) -> None:
    log = Log(folder)
    log.append("a", {})
    _, cursor = log.changes()
    kept = json.loads(json.dumps(cursor.places))
    log.append("b", {})
    more, _ = Log(folder).changes(Cursor({name: Place(*place) for name, place in kept.items()}))
    assert [e.kind for e in more] == ["b"]


def test_changes_of_some_kinds_skip_the_others(folder: Path) -> None:
    log = Log(folder)
    for kind in "abab":
        log.append(kind, {})
    some, cursor = log.changes(kinds={"a"})
    assert [e.n for e in some] == [1, 3]
    assert log.changes(cursor) == ([], cursor)


def test_damage_stops_a_reader_and_is_named(folder: Path, one: Path) -> None:
    content = one.read_bytes()
    one.write_bytes(content.replace(b'"i":3', b'"i":7'))
    log = Log(folder)
    where = f"segment {one.stem}, entry 4, byte {content.index(content.splitlines()[4])}"
    for read in (lambda: list(log.entries()), lambda: log.changes()):
        with pytest.raises(Failure, match=f"the log is damaged: {where}") as caught:
            read()
        assert caught.value.code == "damaged"
        assert caught.value.details["n"] == 4


def test_damage_can_be_reported_and_other_segments_are_read(folder: Path, one: Path) -> None:
    with Log(folder) as log:
        log.append("other", {})
    one.write_bytes(one.read_bytes().replace(b'"i":3', b'"i":7'))
    told: list[Problem] = []
    assert [e.n for e in Log(folder).entries(on_damage=told.append)] == [1, 2, 3, 1]
    assert [(p.segment, p.n, p.kind) for p in told] == [(one.stem, 4, "changed")]


def test_a_shortened_or_removed_segment_is_reported(folder: Path, one: Path) -> None:
    log = Log(folder)
    _, cursor = log.changes()
    content = one.read_bytes()
    one.write_bytes(content[:-200])
    with pytest.raises(Failure, match="shorter than it was") as caught:
        log.changes(cursor)
    assert caught.value.code == "damaged"
    one.unlink()
    with pytest.raises(Failure, match="the segment is gone") as caught:
        log.changes(cursor)
    assert caught.value.code == "damaged"


def test_a_pipe_or_a_link_in_place_of_a_segment_does_not_block_a_reader(folder: Path, one: Path) -> None:
    one.unlink()
    os.mkfifo(one)
    with pytest.raises(Failure, match="can't read the log's segment"):
        list(Log(folder).entries())
    one.unlink()
    one.symlink_to("/etc/hostname")
    with pytest.raises(Failure, match="can't read the log's segment"):
        list(Log(folder).entries())


def test_since_skips_segments_that_ended_before(folder: Path, one: Path) -> None:
    # A query for the last hour does not read an old segment, so damage in it does not stop the query.
    one.write_bytes(one.read_bytes().replace(b'"i":3', b'"i":7'))
    log = Log(folder)
    log.append("new", {"x": "y" * 20_000})
    *_, last = log.entries(on_damage=lambda _: None)
    assert [e.kind for e in log.entries(since=datetime.fromisoformat(last.at))] == ["new"]


def test_reading_uses_little_memory_and_few_files(folder: Path, files: Callable[[], list[Path]]) -> None:
    with Log(folder, rotate_at=100_000) as log:
        for i in range(4000):
            log.append("step", {"i": i, "x": "y" * 1000})
    assert len(files()) > 40
    open_files = []
    tracemalloc.start()
    try:
        for i, entry in enumerate(Log(folder).entries()):
            assert entry.data["i"] == i
            if i % 500 == 0 and os.path.isdir("/proc/self/fd"):
                names = (os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd"))
                open_files.append(sum(1 for name in names if name.startswith(str(folder))))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000  # of four million
    assert max(open_files, default=0) <= 2
