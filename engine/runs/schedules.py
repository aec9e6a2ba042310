"""Schedules: begin a run at certain times. A worker queues the run when its time has come.

The id of such a run is a hash of the schedule and the time. So if two workers queue it at once, or one dies right after, there is
one run. Of several times that have passed without a worker, only the last one begins a run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import SHORT_NAME, Schedule
from albert_tools.engine.runs.lifecycle import derived_id
from albert_tools.engine.runs.run_queue import is_temporary

_FIELDS = 'write minute, hour, day, month and weekday: "0 6 * * 1-5" is 6 o\'clock on weekdays'

#: The names that crontab has for some times.
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class Schedules:
    """The schedules of a home."""

    def __init__(self, ledger: Record) -> None:
        self._ledger = ledger

    def add(self, name: str, **facts: Any) -> Schedule | None:
        """Add a schedule. Returns the one with this name that it replaces, if there is one. `facts` are the data of `Schedule`.

        Raises:
            Failure: `invalid_arguments` for a bad name, time or time zone; `not_found` without the extra ``fleet``; `io_error`.
        """
        if not SHORT_NAME.match(name):
            raise _invalid(f"{name[:60]!r} is not a name for a schedule", "use lower-case letters, digits, - and _")
        next_time(facts["cron"], facts["zone"], datetime.now(UTC))
        with self._ledger.transaction():
            before = self._ledger.schedules.get(name)
            n = self._ledger.append("schedule", {"name": name, **facts})
        self._ledger.durable(n)
        return before

    def remove(self, name: str, by: str) -> None:
        """Remove a schedule. Its runs stay. Raises Failure `not_found`, `io_error`."""
        self.get(name)
        self._ledger.durable(self._ledger.append("schedule_removed", {"name": name, "by": by}))

    def get(self, name: str) -> Schedule:
        """One schedule. Raises Failure `not_found`, `io_error`."""
        schedule = self._ledger.schedules.get(name)
        if schedule is None:
            raise Failure("not_found", f"there is no schedule {name[:60]!r}", hint="`albert schedule` lists them")
        return schedule

    def all(self) -> list[Schedule]:
        """All schedules, by name. Raises Failure `io_error`."""
        return self._ledger.schedules.all()

    def due(self, schedule: Schedule, now: datetime) -> datetime | None:
        """The last time of a schedule that has come and begun no run; None if there is none. Raises as `next_time`."""
        cron, zone = schedule.data["cron"], schedule.data["zone"]
        if next_time(cron, zone, datetime.fromisoformat(schedule.last)) > now:
            return None
        return last_time(cron, zone, now)

    async def begin(self, schedule: Schedule, at: datetime, enqueue: Callable[[str], Awaitable[object]]) -> None:
        """Queue the run of a schedule for one of its times. `enqueue` gets its id, and raises Failure `exists` if there is one.

        Raises:
            Failure: As `enqueue`; `io_error`. After a temporary failure the time is still due.
        """
        last = at.astimezone(UTC).isoformat()
        failure = None
        try:
            await enqueue(derived_id(schedule.name, last))
        except Failure as refused:
            if is_temporary(refused):
                raise
            failure = refused
        self._ledger.append("schedule_begun", {"name": schedule.name, "last": last})
        if failure is not None and failure.code != "exists":
            raise failure


def next_time(cron: str, zone: str, after: datetime) -> datetime:
    """The first time of a cron expression after another one, in a time zone.

    A time that a change of the clocks leaves out counts at the end of the gap; one that it repeats counts once.

    Raises:
        Failure: `invalid_arguments`; `not_found` without the extra ``fleet``.
    """
    return _first(cron, zone, after, lambda _: True)


def last_time(cron: str, zone: str, until: datetime) -> datetime:
    """The last time of a cron expression before or at another one. Raises as `next_time`."""
    return _first(cron, zone, until + timedelta(minutes=1), lambda time: time <= until, reverse=True)


def _first(
    cron: str, zone: str, start: datetime, fits: Callable[[datetime], bool], *, reverse: bool = False
) -> datetime:
    """The first time that fits, after `start` or before it."""
    if len(cron.split()) != 5:
        hint = f'write "{_NAMED[cron]}"' if cron in _NAMED else _FIELDS
        raise _invalid(f"{cron[:80]!r} is not a cron expression: it has not five fields", hint)
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as error:
        raise Failure("not_found", f"schedules need cronsim: {error}", hint=install_command("fleet")) from error
    try:
        where = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        near = did_you_mean(zone[:60], available_timezones())
        raise _invalid(f"there is no time zone {zone[:60]!r}{near}", "for example Europe/Berlin, or UTC") from None
    try:
        return next(time for time in CronSim(cron, start.astimezone(where), reverse=reverse) if fits(time))
    except CronSimError as error:
        why = str(error).lower()
        day = cron.split()[2]
        if why == "bad day-of-month" and day.isdecimal() and 1 <= int(day) <= 31:
            why = f"its months have no day {day}"
        raise _invalid(f"{cron[:80]!r} is not a cron expression: {why}", _FIELDS) from None
    except StopIteration:
        raise _invalid(f"the cron expression {cron[:80]!r} never comes", "check its day and month") from None


def _invalid(message: str, hint: str) -> Failure:
    return Failure("invalid_arguments", message, hint=hint)
