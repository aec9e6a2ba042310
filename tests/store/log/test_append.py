"""Appended entries are read back in order, from every writer. An invalid entry is refused and leaves no trace in the log."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Cursor, Entry, Mark
from albert_tools.store.log.line import MAX_DEPTH, MAX_ENTRY
from albert_tools.store.log.log import Log
from tests.helpers.children import Child, Report, forked, wait_for

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
DATA = st.dictionaries(TEXT.filter(lambda name: name not in ("n", "at", "kind")), VALUES, max_size=4)
KINDS = st.sampled_from(["request", "decision", "response"]) | TEXT.filter(lambda kind: kind not in ("", "closed"))
#: Which writer appends which data, and after how many microseconds. The clock can also go back.
STEPS = st.lists(st.tuples(st.integers(0, 2), KINDS, DATA, st.integers(-3, 3)), max_size=25)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, rotate_at=st.sampled_from([500, 2000, 1 << 20]), pauses=st.sets(st.integers(0, 25), max_size=4))
def test_entries_of_several_writers_are_read_back_in_order(
    steps: list[tuple[int, str, dict[str, Any], int]], rotate_at: int, pauses: set[int]
) -> None:
    now = [1_700_000_000_000_000_000]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "log"
        writers = [Log(folder, rotate_at, lambda: now[0]) for _ in range(3)]
        reader = Log(folder)
        written: list[list[tuple[Mark, str, dict[str, Any]]]] = [[], [], []]
        followed: list[Entry] = []
        cursor = Cursor()
        for i, (who, kind, data, passed) in enumerate(steps):
            now[0] += passed * 1000
            written[who].append((writers[who].append(kind, data), kind, data))
            if i in pauses:
                more, cursor = reader.changes(cursor)
                followed += more
        found = list(reader.entries())
        assert found == sorted(found, key=lambda e: (e.at, e.segment, e.n))
        # The entries of each writer, in its order and with their marks, and no other entries.
        for entries in written:
            segments = {mark.segment for mark, _, _ in entries}
            mine = [(e.segment, e.n, e.kind, e.data) for e in found if e.segment in segments]
            assert mine == [(mark.segment, mark.n, kind, data) for mark, kind, data in entries]
        assert len(found) == len(steps)
        # A reader that follows the log gets the same entries, each once.
        more, cursor = reader.changes(cursor)
        assert sorted(followed + more, key=lambda e: e[:3]) == found
        assert reader.changes(cursor) == ([], cursor)
        chosen = {kind for _, kind, _, _ in steps[:2]}
        assert list(reader.entries(kinds=chosen)) == [e for e in found if e.kind in chosen]
        if found:
            at = found[len(found) // 2].at
            assert list(reader.entries(since=datetime.fromisoformat(at))) == [e for e in found if e.at >= at]
        for writer in writers:
            writer.close()
        assert reader.verify().ok
        assert list(reader.entries()) == found


def test_a_line_is_a_hash_and_readable_sorted_compact_json(folder: Path, files: Callable[[], list[Path]]) -> None:
    with Log(folder, nanoseconds=lambda: 1_700_000_000_123_456_789) as log:
        log.append("decision", {"rule": "größer", "b": [1, {"z": None, "a": True}], "a": 1.5})
    line = files()[0].read_text("utf-8").splitlines()[1]
    assert line[64:] == (
        ' {"n":1,"at":"2023-11-14T22:13:20.123456Z","kind":"decision",'
        '"a":1.5,"b":[1,{"a":true,"z":null}],"rule":"größer"}'
    )
    assert files()[0].name.startswith(f"20231114T221320.123456Z-{os.getpid()}-")


def test_only_the_owner_can_read_the_files(folder: Path, files: Callable[[], list[Path]]) -> None:
    Log(folder).append("a", {})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert files()[0].stat().st_mode & 0o777 == 0o600


def test_reading_creates_no_file(folder: Path) -> None:
    log = Log(folder)
    assert list(log.entries()) == []
    assert log.changes() == ([], Cursor({}))
    assert log.anchor()["segments"] == {}
    log.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("", {}, "invalid_arguments"),
        ("closed", {}, "invalid_arguments"),
        ("a", {"n": 1}, "invalid_arguments"),
        ("a", {"at": 1}, "invalid_arguments"),
        ("a", {"kind": 1}, "invalid_arguments"),
        ("a", {"x": object()}, "not_json"),
        ("a", {"x": "\ud800"}, "not_json"),
        ("\ud800", {}, "not_json"),
        ("a", {"x": "y" * MAX_ENTRY}, "too_large"),
    ],
)
def test_an_invalid_entry_is_refused_and_leaves_no_trace(
    folder: Path, kind: str, data: dict[str, Any], code: str
) -> None:
    log = Log(folder)
    log.append("before", {})
    with pytest.raises(Failure) as caught:
        log.append(kind, data)
    assert caught.value.code == code
    log.append("after", {})
    assert [(e.n, e.kind) for e in log.entries()] == [(1, "before"), (2, "after")]


def test_the_largest_entry_is_read_back_and_one_byte_more_is_refused(folder: Path) -> None:
    log = Log(folder)
    # Room for the entry's data after its number and time, less the keys around the text.
    most = MAX_ENTRY - 64 - len('"kind":"a","x":""}')
    log.append("a", {"x": "y" * most})
    with pytest.raises(Failure, match="bytes, more than"):
        log.append("a", {"x": "y" * (most + 1)})
    assert [len(e.data["x"]) for e in log.entries()] == [most]
    assert log.verify().ok


def test_nesting_is_limited_to_the_depth_that_every_reader_can_read(folder: Path) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: Any = 1
        for i in range(depth - 1):
            value = [value] if i % 2 else {"a": value}
        return {"x": value}

    log = Log(folder)
    log.append("a", nested(MAX_DEPTH))
    log.append("wide", {"x": [[] for _ in range(5 * MAX_DEPTH)]})
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(Failure) as caught:
            log.append("a", nested(depth))
        assert caught.value.code == "not_json"
    assert [e.data for e in log.entries(kinds={"a"})] == [nested(MAX_DEPTH)]


def test_numbers_without_a_json_form_become_null(folder: Path) -> None:
    log = Log(folder)
    log.append("a", {"x": [math.nan, math.inf, 1.0]})
    assert next(log.entries()).data == {"x": [None, None, 1.0]}


def test_time_never_goes_back_within_a_writer(folder: Path) -> None:
    times = iter([5_000_000_000, 4_000_000_000, 6_000_000_000, 5_500_000_000])
    log = Log(folder, nanoseconds=lambda: next(times))  # this call creates the segment and its name
    for _ in range(3):
        log.append("a", {})
    assert [e.at[17:] for e in log.entries()] == ["05.000000Z", "06.000000Z", "06.000000Z"]


def test_since_accepts_any_time_zone_but_requires_one(folder: Path) -> None:
    log = Log(folder)
    log.append("a", {})
    moment = datetime.fromisoformat(next(log.entries()).at)
    east = timezone(timedelta(hours=5))
    assert len(list(log.entries(since=moment.astimezone(east)))) == 1
    assert list(log.entries(since=moment + timedelta(microseconds=1))) == []
    with pytest.raises(ValueError, match="time zone"):
        next(log.entries(since=datetime.now()))
    assert moment.tzinfo == UTC


def test_threads_share_one_chain(folder: Path) -> None:
    with Log(folder, rotate_at=20_000) as log:

        def work(who: int) -> None:
            for i in range(200):
                mark = log.append("step", {"who": who, "i": i})
                if i % 20 == 0:
                    log.durable(mark)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = list(log.entries())
    assert [[e.data["i"] for e in found if e.data["who"] == who] for who in range(4)] == [list(range(200))] * 4
    assert log.verify().ok


def test_after_closing_a_new_segment_begins(folder: Path, files: Callable[[], list[Path]]) -> None:
    log = Log(folder)
    first = log.append("a", {})
    log.close()
    log.close()
    second = log.append("b", {})
    log.durable(second)
    assert first.segment != second.segment
    assert [e.kind for e in log.entries()] == ["a", "b"]
    assert [p.read_text().count('"closed"') for p in files()] == [1, 0]


def append_before_and_after_a_fork(_: Report, folder: Path) -> None:
    log = Log(folder)
    mark = log.append("parent", {"i": 0})

    def work() -> None:
        with pytest.raises(ValueError, match="not of this log in this process"):
            log.durable(mark)
        log.durable(log.append("child", {}))
        log.close()

    pid = forked(work)
    log.append("parent", {"i": 1})
    assert wait_for(pid) == 0
    log.durable(log.append("parent", {"i": 2}))
    log.close()


def test_a_forked_child_writes_its_own_segment(folder: Path) -> None:
    assert Child(append_before_and_after_a_fork, folder).wait() == 0
    log = Log(folder)
    assert sorted((e.kind, e.data.get("i", 0)) for e in log.entries()) == [
        ("child", 0),
        ("parent", 0),
        ("parent", 1),
        ("parent", 2),
    ]
    assert log.verify().segments == 2
    assert log.verify().ok


def test_an_interrupt_at_any_time_leaves_the_chain_valid(folder: Path) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    # One segment only: an interrupted rotation ends the log. The next test covers that.
    log = Log(folder, rotate_at=1 << 40)
    log.append("step", {"i": -1})
    before = signal.signal(signal.SIGALRM, interrupt)
    returned: list[int] = []
    i = 0

    def append_until_interrupted() -> None:
        nonlocal i
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + (i % 97) * 0.00001)
        while True:
            i += 1
            log.append("step", {"i": i})
            returned.append(i)

    try:
        for _ in range(300):
            with pytest.raises(Interrupted):
                append_until_interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    log.durable(log.append("last", {}))
    found = [e.data["i"] for e in log.entries(kinds={"step"})]
    assert set(returned) <= set(found)
    assert found == sorted(set(found))
    assert log.verify().ok


def test_an_interrupt_while_rotating_ends_the_log_and_leaves_the_chain_valid(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from albert_tools.store.log import writer

    class Interrupted(Exception):
        pass

    def interrupt(_: int) -> None:
        raise Interrupted

    log = Log(folder, rotate_at=1)
    log.append("step", {"i": 0})
    with monkeypatch.context() as patch:
        patch.setattr(writer, "_sync", interrupt)
        with pytest.raises(Interrupted):
            log.append("step", {"i": 1})
    with pytest.raises(Failure, match="it was interrupted"):
        log.append("step", {"i": 2})
    log.close()
    following = Log(folder)
    following.append("step", {"i": 3})
    assert [e.data["i"] for e in following.entries()] == [0, 3]
    assert following.verify().ok


# Durability is shared


def _count_syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the real syncs. Each one is slowed a little, so that other waiters can join it."""
    from albert_tools.store.log import writer

    syncs: list[int] = []
    real = writer._sync

    def sync(handle: int) -> None:
        syncs.append(handle)
        time.sleep(0.02)
        real(handle)

    monkeypatch.setattr(writer, "_sync", sync)
    return syncs


async def test_concurrent_waiters_share_a_sync(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = _count_syncs(monkeypatch)
    log = Log(folder)

    async def work(i: int) -> None:
        for j in range(3):
            await log.adurable(log.append("step", {"i": i, "j": j}))

    await asyncio.gather(*(work(i) for i in range(50)))
    assert 3 <= len(syncs) <= 40  # of 150
    await log.adurable(log.append("last", {}))
    count = len(syncs)
    await log.adurable(Mark(*log.append("buffered", {})[:2], position=1))
    assert len(syncs) == count  # a durable entry needs no further sync


def test_waiting_threads_share_a_sync(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = _count_syncs(monkeypatch)
    log = Log(folder)
    threads = [threading.Thread(target=lambda i=i: log.durable(log.append("step", {"i": i}))) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(syncs) <= 15


async def test_a_cancelled_waiter_does_not_affect_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _count_syncs(monkeypatch)
    log = Log(folder)
    waiters = [asyncio.ensure_future(log.adurable(log.append("step", {"i": i}))) for i in range(5)]
    await asyncio.sleep(0.001)
    waiters[2].cancel()
    done = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(d) for d in done] == [type(None)] * 2 + [asyncio.CancelledError] + [type(None)] * 2


def test_each_event_loop_has_its_own_waiters(folder: Path) -> None:
    log = Log(folder)

    async def work() -> None:
        await asyncio.gather(*(log.adurable(log.append("step", {})) for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert len(list(log.entries())) == 30


async def test_without_a_thread_an_entry_is_durable_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = _count_syncs(monkeypatch)
    log = Log(folder)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        await log.adurable(log.append("a", {}))
        assert len(syncs) == 1
    await asyncio.wait_for(log.adurable(log.append("b", {})), 10)
    assert len(syncs) == 2


def test_a_mark_of_another_log_is_not_waited_for(folder: Path, tmp_path: Path) -> None:
    mark = Log(tmp_path / "other").append("a", {})
    log = Log(folder)
    log.append("a", {})
    with pytest.raises(ValueError, match="not of this log"):
        log.durable(mark)
