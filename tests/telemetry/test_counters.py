"""Counters, and several observers as one."""

from __future__ import annotations

import json
import threading

import pytest

from albert_tools.engine.model.telemetry import Ended, Span, Started, new_span
from albert_tools.telemetry import Counters, several
from albert_tools.telemetry.counters import MAX_NAMES
from tests.helpers.traced_calls import nested, refused, started


class Broken:
    """An observer whose every method raises an exception."""

    def started(self, span: Span, call: Started) -> None:
        raise OSError("the disk is full")

    def ended(self, span: Span, call: Ended) -> None:
        raise OSError("the disk is full")


def test_counts() -> None:
    counters = Counters()
    nested(counters)
    for ended in (
        refused("bash"),
        Ended(started("read_file"), "completed", 0.5, effects=2),
        refused("bash", code="unknown_tool", category="validation", rule=None),
    ):
        span = new_span()
        counters.started(span, ended.started)
        counters.ended(span, ended)
    counters.started(new_span(), started())
    found = counters.snapshot()
    assert found.pop("seconds") == pytest.approx(0.75 + 0.5 + 0.002)
    tools = found.pop("tools")
    assert found == {
        "calls": 7,
        "open": 1,
        "completed": 1,
        "failed": 3,
        "blocked": 2,
        "retried": 3,
        "effects": 2,
        "failures_by_category": {"timeout": 3, "permission": 1, "validation": 1},
        "failures_by_code": {"timeout": 3, "permission_denied": 1, "unknown_tool": 1},
        "blocked_by_rule": {"user.deny": 1, "(unknown)": 1},
        "running_on": {},
    }
    assert list(tools) == ["http_request", "fetch_all", "report", "bash", "read_file"]
    assert tools["bash"] == {"completed": 0, "failed": 0, "blocked": 2, "seconds": 0.002}
    assert json.loads(json.dumps(tools)) == tools


def test_a_snapshot_does_not_change_later() -> None:
    counters = Counters()
    nested(counters)
    before = counters.snapshot()
    copy = json.loads(json.dumps(before))
    nested(counters)
    assert before == copy


def test_made_up_names_do_not_grow_the_tables() -> None:
    counters = Counters()
    for i in range(MAX_NAMES + 50):
        ended = refused(f"made_up_{i}", rule=f"rule{i}")
        counters.ended(new_span(), ended._replace(started=ended.started._replace(kind=None)))
        counters.ended(new_span(), Ended(started(f"real_{i}"), "completed", 0.0))
    found = counters.snapshot()
    assert found["tools"]["(unknown)"]["blocked"] == MAX_NAMES + 50
    assert len(found["tools"]) == MAX_NAMES + 1
    assert len(found["blocked_by_rule"]) == MAX_NAMES + 1
    assert found["blocked_by_rule"]["(others)"] == 50


def test_counts_of_several_threads_add_up() -> None:
    counters = Counters()
    threads = [threading.Thread(target=lambda: [nested(counters) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = counters.snapshot()
    assert (found["calls"], found["failed"], found["open"]) == (6_000, 6_000, 0)


def test_an_observer_that_raises_does_not_stop_the_others() -> None:
    first, last = Counters(), Counters()
    nested(several(first, Broken(), several(Broken(), last)))
    assert first.snapshot() == last.snapshot()
    assert last.snapshot()["failed"] == 3
