"""Appended entries are read back in order, from every process and thread. An invalid entry leaves no trace in the record."""

from __future__ import annotations

import asyncio
import math
import signal
import tempfile
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import durability
from albert_tools.store.record.entry import MAX_BYTES, MAX_DEPTH, text_of
from albert_tools.store.record.record import Record
from albert_tools.store.record.tables import FIELDS
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report, forked, wait_for
from tests.helpers.effort import examples
from tests.store.record.conftest import Place

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
#: Fields that change tables have values of their own forms.
DATA = st.dictionaries(TEXT.filter(lambda name: name not in FIELDS), VALUES, max_size=4)
#: Which record appends which data, and after how many microseconds. The clock can also go back.
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["one", "two", "three"]), DATA, st.integers(-3, 3)), max_size=25
)


@examples(20)
@given(steps=STEPS)
def test_entries_of_several_records_are_read_back_in_order(steps: list[tuple[int, str, dict[str, Any], int]]) -> None:
    now = [1_700_000_000_000_000_000]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "record"
        records = [Record(folder, lambda: now[0]) for _ in range(3)]
        written = []
        for who, kind, data, passed in steps:
            now[0] += passed * 1000
            written.append((records[who].append(kind, data), kind, data))
        found = list(records[0].entries())
        assert [(e.n, e.kind, e.data) for e in found] == written
        assert [n for n, _, _ in written] == [*range(1, len(steps) + 1)]
        chosen = {kind for _, kind, _, _ in steps[:2]}
        assert list(records[1].entries(kinds=chosen)) == [e for e in found if e.kind in chosen]
        if found:
            at = found[len(found) // 2].at
            assert list(records[2].entries(since=datetime.fromisoformat(at))) == [e for e in found if e.at >= at]
        assert verify(folder).ok
        for record in records:
            record.close()


def test_many_entries_are_read_in_order(place: Place) -> None:
    with Record(place) as record:
        with record.transaction():
            for i in range(2500):
                record.append("step", {"i": i, "run": "r" if i % 2 else "", "call": "s:0.1"})
        assert [e.data["i"] for e in record.entries()] == list(range(2500))
        assert [e.data["i"] for e in record.entries(run="r")] == list(range(1, 2500, 2))
        assert [e.data["i"] for e in record.entries(run="s")] == list(range(0, 2500, 2))


def test_an_entry_is_readable_sorted_compact_json() -> None:
    assert text_of(1, "2023-11-14T22:13:20.123456Z", "decision", '{"a":1}') == (
        '{"n":1,"at":"2023-11-14T22:13:20.123456Z","kind":"decision","data":{"a":1}}'
    )


def test_keys_are_sorted_and_numbers_without_a_json_form_become_null(folder: Path) -> None:
    with Record(folder, nanoseconds=lambda: 1_700_000_000_123_456_789) as record:
        record.append("decision", {"rule": "größer", "b": [math.nan, math.inf, {"z": None, "a": True}], "a": 1.5})
        (row,) = record.database.rows("SELECT at, data FROM entries")
    assert row == ("2023-11-14T22:13:20.123456Z", '{"a":1.5,"b":[null,null,{"a":true,"z":null}],"rule":"größer"}')


def test_only_the_owner_can_read_the_files(folder: Path) -> None:
    with Record(folder) as record:
        record.append("a", {})
        assert record.owner
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
        assert len(list(folder.iterdir())) == 5  # the database, two files of SQLite, the gate, and the processes


def test_reading_creates_no_record(place: Place) -> None:
    record = Record(place)
    assert list(record.entries()) == []
    assert list(record.entries(kinds=[])) == []
    assert record.approvals.all(()) == []
    assert verify(place).ok
    assert not record.database.exists
    record.close()
    assert isinstance(place, str) or not place.exists()


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("", {}, "invalid_arguments"),
        ('a","x":"', {}, "invalid_arguments"),
        ("\ud800", {}, "invalid_arguments"),
        ("a", {"x": object()}, "not_json"),
        ("a", {"x": "\ud800"}, "not_json"),
        ("a", {"x": "y" * MAX_BYTES}, "too_large"),
    ],
)
def test_an_invalid_entry_is_refused_and_leaves_no_trace(
    folder: Path, kind: str, data: dict[str, Any], code: str
) -> None:
    record = Record(folder)
    record.append("before", {})
    with pytest.raises(Failure) as caught:
        record.append(kind, data)
    assert caught.value.code == code
    record.append("after", {})
    assert [(e.n, e.kind) for e in record.entries()] == [(1, "before"), (2, "after")]


def test_the_largest_entry_is_read_back_and_one_byte_more_is_refused(place: Place) -> None:
    record = Record(place)
    most = MAX_BYTES - len('{"x":""}')
    record.append("a", {"x": "y" * most})
    with pytest.raises(Failure, match="bytes, more than"):
        record.append("a", {"x": "y" * (most + 1)})
    assert [len(e.data["x"]) for e in record.entries()] == [most]


def test_nesting_is_limited_to_the_depth_that_every_reader_can_read(folder: Path) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: Any = 1
        for i in range(depth - 1):
            value = [value] if i % 2 else {"a": value}
        return {"x": value}

    record = Record(folder)
    record.append("a", nested(MAX_DEPTH))
    record.append("wide", {"x": [[] for _ in range(5 * MAX_DEPTH)]})
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(Failure) as caught:
            record.append("a", nested(depth))
        assert caught.value.code == "not_json"
    assert [e.data for e in record.entries(kinds={"a"})] == [nested(MAX_DEPTH)]


def test_time_never_goes_back_within_a_process(folder: Path) -> None:
    times = iter([5_000_000_000, 4_000_000_000, 6_000_000_000, 5_500_000_000])
    record = Record(folder, nanoseconds=lambda: next(times))
    for _ in range(4):
        record.append("a", {})
    assert [e.at[17:] for e in record.entries()] == ["05.000000Z", "05.000000Z", "06.000000Z", "06.000000Z"]


def test_since_accepts_any_time_zone_but_requires_one(place: Place) -> None:
    record = Record(place)
    record.append("a", {})
    moment = datetime.fromisoformat(next(record.entries()).at)
    assert moment.tzinfo == UTC
    assert len(list(record.entries(since=moment.astimezone(timezone(timedelta(hours=5)))))) == 1
    assert list(record.entries(since=moment + timedelta(microseconds=1))) == []
    with pytest.raises(ValueError, match="time zone"):
        next(record.entries(since=datetime.now()))


# Transactions


def test_a_transaction_is_recorded_as_a_whole_or_not_at_all(place: Place) -> None:
    record, other = Record(place), Record(place)
    with record.transaction():
        assert record.append("a", {}) == 1
        with record.transaction():
            assert record.append("a", {}) == 2
    for data in ({"x": object()}, {"x": "y" * MAX_BYTES}):

        def fail(data: dict[str, Any] = data) -> None:
            with record.transaction():
                record.append("b", {})
                record.append("b", data)

        with pytest.raises(Failure):
            fail()
    assert other.append("c", {}) == 3
    assert [e.kind for e in record.entries()] == ["a", "a", "c"]
    assert verify(place).ok


@pytest.mark.parametrize("error", [Failure("not_found", "it is not there"), KeyError("action"), KeyboardInterrupt()])
def test_a_failed_block_fails_the_transaction_even_if_its_caller_ignores_it(place: Place, error: BaseException) -> None:
    record = Record(place)

    def ignores_the_error() -> None:
        with record.transaction():
            record.append("a", {})
            with suppress(type(error)), record.transaction():
                record.append("b", {})
                raise error

    with pytest.raises(Failure):
        ignores_the_error()
    assert list(record.entries()) == []
    assert record.append("c", {}) == 1
    assert verify(place).ok


def test_an_entry_that_can_not_be_applied_fails_the_transaction(place: Place) -> None:
    record = Record(place)
    with pytest.raises(Failure), record.transaction(), suppress(KeyError):
        record.append("asked", {"approval": "without the rest"})
    assert list(record.entries()) == []
    assert verify(place).ok


def test_a_failed_statement_fails_the_transaction_even_if_its_caller_ignores_it(place: Place) -> None:
    record = Record(place)

    def ignore() -> None:
        with record.transaction():
            record.append("a", {})
            with suppress(Failure):
                record.database.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(Failure, match="nowhere"):
        ignore()
    assert list(record.entries()) == []


def test_threads_share_one_chain(place: Place) -> None:
    with Record(place) as record:

        def work(who: int) -> None:
            for i in range(200):
                n = record.append("step", {"who": who, "i": i})
                if i % 20 == 0:
                    record.durable(n)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = list(record.entries())
        assert [[e.data["i"] for e in found if e.data["who"] == who] for who in range(4)] == [list(range(200))] * 4
    assert verify(place).ok


def test_a_closed_record_opens_again(place: Place) -> None:
    record = Record(place)
    record.append("a", {})
    record.close()
    record.close()
    record.durable(record.append("b", {}))
    assert [e.kind for e in record.entries()] == ["a", "b"]


def append_before_and_after_a_fork(_: Report, place: Place) -> None:
    record = Record(place)
    record.append("parent", {"i": 0})

    def work() -> None:
        for use in (lambda: record.append("child", {}), lambda: list(record.entries()), lambda: record.durable(1)):
            with pytest.raises(Failure, match=r"a forked child .* can't use it"):
                use()
        record.close()

    pid = forked(work)
    record.append("parent", {"i": 1})
    assert wait_for(pid) == 0
    record.durable(record.append("parent", {"i": 2}))
    record.close()


def test_a_forked_child_can_not_use_the_record(place: Place) -> None:
    assert Child(append_before_and_after_a_fork, place).wait() == 0
    assert [(e.kind, e.data["i"]) for e in Record(place).entries()] == [("parent", 0), ("parent", 1), ("parent", 2)]
    assert verify(place).ok


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_time_leaves_the_record_usable(place: Place) -> None:
    class Interrupted(BaseException):  # as KeyboardInterrupt is
        pass

    def interrupt(_: int, frame: FrameType | None) -> None:
        # On a busy machine, the next signal can come when the work has already been interrupted.
        while frame is not None:
            if frame.f_code is append_until_interrupted.__code__:
                raise Interrupted
            frame = frame.f_back

    record = Record(place)
    record.append("step", {"i": -1})
    before = signal.signal(signal.SIGALRM, interrupt)
    returned: list[int] = []
    i = 0

    def append_until_interrupted() -> None:
        nonlocal i
        # An exception while an object is deleted is ignored, so the signal is repeated.
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + (i % 97) * 0.00001, 0.05)
        while True:
            i += 1
            record.append("step", {"i": i})
            returned.append(i)

    try:
        for _ in range(300):
            with suppress(Interrupted):
                append_until_interrupted()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    record.durable(record.append("last", {}))
    found = [e.data["i"] for e in record.entries(kinds={"step"})]
    assert set(returned) <= set(found)
    assert found == sorted(set(found))
    assert verify(place).ok


# Durability is shared


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The real syncs. Each is slowed a little, so that other waiters can join it."""
    found: list[int] = []
    real = durability._sync

    def sync(handle: int) -> None:
        found.append(handle)
        time.sleep(0.02)
        real(handle)

    monkeypatch.setattr(durability, "_sync", sync)
    return found


async def test_concurrent_waiters_share_a_sync(folder: Path, syncs: list[int]) -> None:
    record = Record(folder)

    async def work(i: int) -> None:
        for j in range(3):
            await record.adurable(record.append("step", {"i": i, "j": j}))

    await asyncio.gather(*(work(i) for i in range(50)))
    assert 3 <= len(syncs) <= 40  # of 150
    count = len(syncs)
    await record.adurable(1)
    assert len(syncs) == count  # a durable entry needs no further sync
    record.close()


def test_waiting_threads_share_a_sync(folder: Path, syncs: list[int]) -> None:
    record = Record(folder)
    threads = [threading.Thread(target=lambda i=i: record.durable(record.append("step", {"i": i}))) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(syncs) <= 15


def test_an_entry_that_is_committed_during_a_sync_needs_another_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(folder)
    real, during, syncs = durability._sync, list[int](), list[int]()

    def sync(handle: int) -> None:
        real(handle)
        syncs.append(handle)
        if not during:
            during.append(record.append("b", {}))

    monkeypatch.setattr(durability, "_sync", sync)
    record.durable(record.append("a", {}))
    assert len(syncs) == 1
    record.durable(during[0])
    assert len(syncs) == 2
    record.close()


async def test_a_cancelled_waiter_does_not_affect_the_others(folder: Path, syncs: list[int]) -> None:
    record = Record(folder)
    waiters = [asyncio.ensure_future(record.adurable(record.append("step", {"i": i}))) for i in range(5)]
    await asyncio.sleep(0.001)
    waiters[2].cancel()
    done = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(d) for d in done] == [type(None)] * 2 + [asyncio.CancelledError] + [type(None)] * 2
    record.close()


def test_each_event_loop_has_its_own_waiters(place: Place) -> None:
    record = Record(place)

    async def work() -> None:
        await asyncio.gather(*(record.adurable(record.append("step", {})) for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert len(list(record.entries())) == 30
    record.close()


async def test_without_a_thread_an_entry_is_durable_too(
    folder: Path, syncs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(folder)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        await record.adurable(record.append("a", {}))
        assert len(syncs) == 1
    await asyncio.wait_for(record.adurable(record.append("b", {})), 10)
    assert len(syncs) == 2
    record.close()
