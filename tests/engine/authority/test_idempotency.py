"""Dedupe keys. One of several calls begins, and the others get its state. A dropped key is free again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from albert_tools.engine.authority.idempotency import KEPT_SECONDS, DedupeKeys, key_of
from albert_tools.store.record.record import Record


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Record]:
    made = Record(tmp_path / "record")
    yield made
    made.close()


def test_one_of_several_calls_begins(log: Record) -> None:
    claims = [DedupeKeys(log) for _ in range(4)] + [DedupeKeys(Record(log.place)) for _ in range(4)]
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda n: claims[n].begin("k", "d", f"run{n}"), range(8)))
    (first,) = [n for n, known in enumerate(told) if known is None]
    assert {known.run for known in told if known is not None} == {f"run{first}"}


def test_finished_and_dropped_keys(log: Record) -> None:
    keys = DedupeKeys(log)
    assert keys.begin("k", "d", "one") is None
    # Only the run that began the call can finish it.
    keys.finish("k", "another", "dropped")
    keys.finish("k", "another", "kept")
    known = keys.find("k")
    assert known is not None
    assert (known.run, known.state) == ("one", "begun")
    keys.finish("k", "one", "dropped")
    assert keys.find("k") is None
    assert keys.begin("k", "d", "two") is None
    keys.finish("k", "two", "kept")
    known = DedupeKeys(Record(log.place)).begin("k", "d", "three")
    assert known is not None
    assert (known.run, known.state) == ("two", "kept")


def test_a_key_is_remembered_for_a_day(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    log = Record(tmp_path / "record", nanoseconds=lambda: round(now[0] * 1e9))
    keys = DedupeKeys(log, lambda: now[0])
    keys.begin("k", "d", "one")
    keys.begin("under way", "d", "other")
    keys.finish("k", "one", "kept")
    now[0] += KEPT_SECONDS - 1
    assert keys.begin("k", "d", "two") is not None
    now[0] += 1
    # A call that has not ended is not forgotten just because time passes.
    assert keys.begin("under way", "d", "two") is not None
    assert keys.begin("k", "d", "two") is None
    assert keys.begin("under way", "d", "two") is not None
    log.close()


def test_keys_belong_to_a_session() -> None:
    names = {key_of(s, k) for s in (None, "a", "b") for k in ("1", "2", "\ud800")}
    assert len(names) == 9
    assert all(len(name) == 64 for name in names)
