"""Schedules: when they are due, and that each of their times begins one run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.runs.schedules import Schedules, last_time, next_time
from albert_tools.store.record.record import Record

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "after", "times"),
    [
        ("0 6 * * 1-5", "UTC", NOON, ["2026-03-30T06:00:00+00:00", "2026-03-31T06:00:00+00:00"]),
        # The clocks go from two to three on this night, so half past two does not exist.
        ("30 2 * * *", "Europe/Berlin", NOON, ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        # They go from three to two, so half past two comes twice.
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2026, 10, 24, 12, tzinfo=UTC),
            ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
    ],
)
def test_the_times_of_a_schedule(cron: str, zone: str, after: datetime, times: list[str]) -> None:
    found = []
    for _ in times:
        after = next_time(cron, zone, after)
        found.append(after.isoformat())
    assert found == times
    assert last_time(cron, zone, after) == after
    assert last_time(cron, zone, after + timedelta(hours=20)) == after


@pytest.fixture
def schedules(tmp_path: Path) -> Iterator[Schedules]:
    with Record(tmp_path / "record") as record:
        made = Schedules(record)
        made.add("s", cron="* * * * *", zone="UTC")
        yield made


async def test_of_several_missed_times_the_last_begins_one_run(schedules: Schedules) -> None:
    now = datetime.now(UTC)
    assert schedules.due(schedules.get("s"), now) is None
    later = now + timedelta(hours=3)
    at = schedules.due(schedules.get("s"), later)
    assert at is not None
    assert timedelta(0) <= later - at < timedelta(minutes=1)
    begun: list[str] = []

    async def enqueue(run: str) -> None:
        if run in begun:
            raise Failure("exists", "there is such a run")
        begun.append(run)

    await schedules.begin(schedules.get("s"), at, enqueue)
    # Another worker, which saw the same.
    await schedules.begin(schedules.get("s"), at, enqueue)
    assert len(begun) == 1
    assert schedules.due(schedules.get("s"), later) is None
    following = schedules.due(schedules.get("s"), later + timedelta(minutes=1))
    assert following is not None
    await schedules.begin(schedules.get("s"), following, enqueue)
    assert len(begun) == 2


@pytest.mark.parametrize(
    ("code", "is_due"), [("governance_unavailable", True), ("io_error", True), ("outdated", False)]
)
async def test_a_time_stays_due_after_a_temporary_failure(schedules: Schedules, code: str, is_due: bool) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    at = schedules.due(schedules.get("s"), later)
    assert at is not None

    async def enqueue(_: str) -> None:
        raise Failure(code, "it can't be queued")

    with pytest.raises(Failure, match="it can't be queued"):
        await schedules.begin(schedules.get("s"), at, enqueue)
    assert (schedules.due(schedules.get("s"), later) is not None) == is_due
