"""The time axis of a run: its begin and end, and the waits that the axis leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import Struct

from albert_tools.engine.runs.runs import RunView
from albert_tools.surfaces.text.times import since_1970

#: The states of a run that waits.
_WAITING = ("queued", "suspended")


class Wait(Struct, frozen=True):
    """A time in which the run did nothing: start, end (None if the run still waits), and the question for which it waited."""

    since: float
    until: float | None
    approval: str | None
    interrupted: bool = False


class RunTimes:
    """The times of `run` at the time `now`, in seconds since 1970."""

    def __init__(self, run: RunView, now: float) -> None:
        self.run = run
        steps = [step for step in run.steps if isinstance(step.get("at"), int | float)]
        times = [at for step in steps for at in (step.get("began"), step["at"]) if isinstance(at, int | float)]
        turns = [turn for turn in run.history if isinstance(turn.get("at"), int | float)]
        times += [turn["at"] for turn in turns]
        self.begin = since_1970(run.created) or min(times, default=now)
        self.end = now if run.state == "running" else max(times, default=self.begin)
        self.waits = sorted([*_waits(turns, times, run.state), *self._asked(turns)], key=lambda wait: wait.since)
        self.span = max(self.active(self.end), 1e-6)

    def _asked(self, turns: list[Mapping[str, Any]]) -> list[Wait]:
        """The waits for a person at the terminal. The run was not suspended during these waits."""
        suspended = {turn.get("approval") for turn in turns}
        steps = {str(step["step"]): step for step in self.run.steps}
        waits = []
        for approval, question in self.run.questions.items():
            step = steps.get(str(question.get("step")), {})
            since, until = question.get("at"), step.get("began") or step.get("at")
            if approval in suspended or not isinstance(since, int | float):
                continue
            if not isinstance(until, int | float):
                until = None if self.run.state == "running" else max(since, self.end)
            waits.append(Wait(since, until, approval))
        return waits

    def rows(self) -> list[Wait | Mapping[str, Any]]:
        """The steps and the waits, in the order in which they began."""
        begun: dict[str, float] = {}
        for step in self.run.steps:
            at = step.get("began") or step.get("at")
            name = str(step["step"])
            # A resumed composite begins again, after its first calls. It is still above them.
            while name:
                begun[name] = min(begun.get(name, inf), at if isinstance(at, int | float) else self.begin)
                name = name.rpartition("/")[0]
        timed_rows: list[tuple[float, float, Any]] = [
            (begun[name], name.count("/"), step) for step in self.run.steps for name in [str(step["step"])]
        ]
        timed_rows += [(wait.since, inf, wait) for wait in self.waits]
        return [row for _, _, row in sorted(timed_rows, key=lambda r: r[:2])]

    def active(self, at: float) -> float:
        """Seconds from the start of the run to the time `at`, without the waits."""
        return max(0.0, at - self.begin - self.waited(at))

    def waited(self, at: float) -> float:
        """Seconds of waiting until the time `at`. Simultaneous waits count once."""
        total, upto = 0.0, self.begin
        for wait in self.waits:
            until = min(at, wait.until if wait.until is not None else at)
            total += max(0.0, until - max(upto, wait.since))
            upto = max(upto, until)
        return total


def _waits(turns: list[Mapping[str, Any]], times: list[float], state: str) -> list[Wait]:
    """The times in a queue, and those between a suspension or a crash and the moment when the run was resumed or cancelled."""
    waits: list[Wait] = []
    since: tuple[float, str | None] | None = None
    for turn in turns:
        at = float(turn["at"])
        if turn["state"] == "resumed" or (turn["state"] == "cancelled" and turn.get("by")):
            # If the run was not suspended, its process had died. At its last entry, the process certainly ran.
            last = max((t for t in times if t < at), default=at)
            waits.append(Wait(since[0], at, since[1]) if since else Wait(last, at, None, interrupted=True))
            since = None
        elif turn["state"] in _WAITING:
            since = (at, turn.get("approval"))
    if since is not None and state in _WAITING:
        waits.append(Wait(since[0], None, since[1]))
    if state == "interrupted":
        waits.append(Wait(max(times, default=0.0), None, None, interrupted=True))
    return waits
