"""Sliding windows of rate limits. They are exact, also after restarts and when the clock is set back.

A call counts for its session and for the sessions above it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import ToolService, primitive
from albert_tools.engine.authority.rate_limit import UNCOUNTED, RateLimits
from albert_tools.engine.call import entries
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import WINDOW_SECONDS
from albert_tools.store.record.record import Record

LOOKING = '''
def looking(most: int) -> int:
    """Count the calls that are allowed."""
    done = 0
    for _ in range(most):
        try:
            done += tools.look()
        except ToolError:
            break
    return done
'''
LIMITS = [("tool:write_file", 3)]


class Hour:
    """Rate limits on a log, and a clock for both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_700_000_000.0
        self.logs: list[Record] = []
        self.windows = self.again()

    def again(self) -> RateLimits:
        """The same rate limits in another process."""
        self.logs.append(Record(self.folder, nanoseconds=lambda: round(self.now * 1e9)))
        return RateLimits(self.logs[-1], lambda: self.now)

    def call(
        self, *sessions: str, limits: list[tuple[str, int]] = LIMITS, windows: RateLimits | None = None
    ) -> int | None:
        """Make a call if the limit allows it. Returns the milliseconds to wait otherwise."""
        try:
            (windows or self.windows).demand(limits, sessions, "write_file")
        except Failure as failure:
            if (failure.code, failure.category, failure.retryable) != ("rate_limited", "exhaustion", True):
                raise
            return failure.retry_after_ms
        self.logs[-1].append("use", {"used": {"calls": 1}, **(windows or self.windows).use(limits, sessions)})
        return None


@pytest.fixture
def hour(tmp_path: Path) -> Iterator[Hour]:
    made = Hour(tmp_path / "record")
    yield made
    for log in made.logs:
        log.close()


def test_the_window_slides(hour: Hour) -> None:
    start = hour.now
    for second in (0, 10, 20):
        hour.now = start + second
        assert hour.call() is None
    hour.now = start + 30
    assert hour.call() == 3_570_000
    hour.now = start + WINDOW_SECONDS - 0.001
    assert hour.call() == 1
    hour.now = start + WINDOW_SECONDS
    assert hour.call() is None
    assert hour.call() == 10_000


def test_retry_after_is_long_enough(hour: Hour) -> None:
    for gap in (0.0123, 0.3301, 7.7):
        hour.now += gap
        hour.call()
    wait = hour.call()
    assert wait is not None
    hour.now += wait / 1000
    assert hour.call() is None


def test_a_call_counts_for_its_session_and_for_the_sessions_above_it(hour: Hour) -> None:
    for _ in range(3):
        assert hour.call("a") is None
    assert hour.call("a") is not None
    assert [hour.call("b"), hour.call()] == [None, None]
    # A call of an inner session is also a call of its outer session.
    for _ in range(2):
        assert hour.call("c", "b") is None
    assert [hour.call("b") is None, hour.call("c", "b") is None, hour.call("c") is None] == [False, False, True]


def test_the_longest_of_several_waits(hour: Hour) -> None:
    both = [("tool:write_file", 2), ("category:system_write", 1)]
    assert hour.call(limits=[both[0]]) is None
    hour.now += 100
    assert hour.call(limits=both) is None
    with pytest.raises(Failure) as caught:
        hour.windows.demand(both, (), "write_file")
    assert (caught.value.retry_after_ms, caught.value.rule) == (3_600_000, "rate_limit.category:system_write")


def test_limits_hold_after_a_restart(hour: Hour) -> None:
    for _ in range(3):
        assert hour.call("a") is None
    for _ in range(2):
        assert hour.call("a", windows=hour.again()) == 3_600_000


def test_calls_of_other_processes_count(hour: Hour) -> None:
    first, second = hour.again(), hour.again()
    told = [hour.call(windows=w) is None for w in (first, second, first, second)]
    assert told == [True, True, True, False]


@pytest.mark.parametrize("back", [30, 7200, 10**8])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_set_back_opens_no_window_and_closes_none_for_long(hour: Hour, back: float, restarted: bool) -> None:
    for _ in range(3):
        assert hour.call() is None
    hour.now -= back
    windows = hour.again() if restarted else hour.windows
    assert hour.call(windows=windows) == 3_600_000
    hour.now += WINDOW_SECONDS
    for _ in range(3):
        assert hour.call(windows=windows) is None
    assert hour.call(windows=windows) is not None


@pytest.mark.parametrize("back", [30, 7200, 10**8])
def test_a_clock_set_back_is_corrected_for_later_processes(hour: Hour, back: float) -> None:
    for _ in range(3):
        assert hour.call(windows=hour.again()) is None
    hour.now -= back
    assert hour.call(windows=hour.again()) == 3_600_000
    hour.now += WINDOW_SECONDS
    told = [hour.call(windows=hour.again()) is None for _ in range(4)]
    assert told == [True, True, True, False]


def test_failures_in_a_row_count_after_the_clock_was_set_back(hour: Hour) -> None:
    def fail() -> bool:
        try:
            hour.windows.demand_progress("", "a", 3, "t")
        except Failure:
            return False
        hour.logs[-1].append("result", hour.windows.outcome("", "a", failed=True))
        return True

    assert fail()
    hour.now -= 7200
    assert [fail() for _ in range(5)] == [True, True, True, False, False]


@primitive(effects=["read"])
async def look() -> int:
    """Read nothing."""
    await asyncio.sleep(0.001)
    return 1


@pytest.mark.parametrize("tool", ["look", "search_tools"])
async def test_requests_at_once_do_not_exceed_a_limit(tmp_path: Path, tool: str) -> None:
    """Far from a limit, a request that reads is counted when it has ended; near it, before it begins."""
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    most = UNCOUNTED + 20
    options: dict[str, Any] = {"workspace": tmp_path / "work", "governance": {"loops": {"requests_per_hour": most}}}
    async with (
        ToolService.open(home=tmp_path / "home", primitives=[look], **options) as one,
        ToolService.open(home=tmp_path / "home", primitives=[look], **options) as other,
    ):
        token = one.open_session("an agent")[1]
        results = await asyncio.gather(*(each.invoke(tool, session=token) for each in [one, other] * most))
        counted = one.list_sessions()[0].used["calls"]
    assert [sum(each.ok for each in results), counted] == [most, most]


async def test_calls_of_programs_at_once_do_not_exceed_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only what must be counted before a call is written before its end.
    monkeypatch.setattr(entries, "LATEST", 600)
    most = UNCOUNTED + 20
    rules = {"tools": {"look": {"rate_limit_per_hour": most}}}
    async with (
        ToolService.open(home=tmp_path / "home", primitives=[look], governance=rules) as one,
        ToolService.open(home=tmp_path / "home", primitives=[look], governance=rules) as other,
    ):
        await one.define(LOOKING)
        token = one.open_session("an agent")[1]
        calls = (each.invoke("looking", {"most": most}, session=token) for each in [one, other])
        assert sum(result.value() for result in await asyncio.gather(*calls)) == most


def test_old_calls_are_deleted(hour: Hour) -> None:
    for _ in range(300):
        hour.now += WINDOW_SECONDS / 2
        assert hour.call() is None
    assert len(hour.logs[-1].database.rows("SELECT seq FROM uses")) < 100


def test_a_limit_of_no_calls_at_all(hour: Hour) -> None:
    with pytest.raises(Failure) as caught:
        hour.windows.demand([("tool:t", 0)], (), "t")
    assert (caught.value.retryable, caught.value.retry_after_ms) == (False, None)
    assert caught.value.message == "t may not be called at all"


def test_the_same_failing_request_is_refused_until_another_or_for_a_while(hour: Hour) -> None:
    def ended(request: str, *, failed: bool = True, session: str = "") -> None:
        hour.logs[-1].append("result", hour.windows.outcome(session, request, failed=failed))

    def refused(request: str, session: str = "") -> int | None:
        try:
            hour.again().demand_progress(session, request, 3, "t")
        except Failure as failure:
            if (failure.code, failure.rule, failure.retryable) != ("rate_limited", "loops.identical_failures", True):
                raise
            return failure.retry_after_ms
        return None

    for _ in range(3):
        assert refused("a") is None
        ended("a")
        hour.now += 1
    assert refused("a") == 297_000
    assert (refused("b"), refused("a", "s")) == (None, None)
    hour.now += 298
    assert refused("a") is None
    ended("a")
    ended("a")
    assert refused("a") is not None
    ended("b")
    assert refused("a") is None
    for _ in range(3):
        ended("b")
    ended("c", failed=False)
    assert refused("b") is None
    # No failure is left, so the next success need not be recorded.
    assert hour.windows.demand_progress("", "c", 3, "t") is False
