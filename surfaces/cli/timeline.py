"""Draws a run as a timeline: its steps in the order in which they began, with bars for their durations, and its waits.

The time axis leaves out waits (for a person, or for somebody to resume the run) and describes them in words. Otherwise a wait of
one night would leave no space for the run itself. In a pipe, a step is a line of text without a bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.grammar.wrap import cells, cut, first_cells
from albert_tools.store.places import without_password
from albert_tools.surfaces.text.console import Console, json_text, one_line
from albert_tools.surfaces.text.effect_line import effect_line
from albert_tools.surfaces.text.run_times import RunTimes, Wait
from albert_tools.surfaces.text.times import lasting, moment

if TYPE_CHECKING:
    from albert_tools.engine.runs.runs import RunView

#: State of a run → its colour.
STATE_COLOURS = {
    "done": "green",
    "failed": "red",
    "cancelled": "red",
    "damaged": "red",
    "suspended": "yellow",
    "interrupted": "yellow",
    "queued": "cyan",
    "running": "cyan",
}
#: State of a step → its mark and colour.
_MARKS = {"ended": ("✓", "green"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}
#: Cells of the column of durations; cells of the narrowest bar; width of a terminal that is too narrow for bars.
_DURATION, _BAR, _NARROW = 10, 8, 56
#: Characters of the result that are shown.
_RESULT = 2000
#: Cells of a step's number that are shown; characters of one argument that are shown.
_STEP, _ARGUMENT = 12, 40


class Timeline:
    """Draws `run` at the time `now`, in seconds since 1970."""

    def __init__(self, run: RunView, console: Console, now: float) -> None:
        self.run = run
        self.console = console
        self.width = console.out_width
        self.times = RunTimes(run, now)

    def draw(self) -> None:
        """Print the timeline."""
        self._head()
        rows = self.times.rows()
        if rows:
            self.console.say()
        for row in rows:
            if isinstance(row, Wait):
                self._wait(row)
            else:
                self._step(row)
        if self.run.error is not None and self.run.state not in ("suspended", "cancelled"):
            self.console.say()
            error = self.run.error
            code = self.console.paint(f"error[{one_line(str(error.get('code')))}]", "red")
            self.console.say(f"{code}: {one_line(str(error.get('message')))}", 2)
        if self.run.result.get("output") is not None:
            self._result(self.run.result["output"])
        if self.run.problem:
            self.console.say(self.console.paint(one_line(self.run.problem), "red"), 2)

    def _head(self) -> None:
        run, console = self.run, self.console
        state = console.paint(run.state, STATE_COLOURS.get(run.state, "dim"), "bold")
        console.say(
            f"{console.paint(run.id, 'cyan')}  {state}  {call_text(run.tool, run.header.get('arguments'), _ARGUMENT)}",
            4,
        )
        waited = self.times.waited(self.times.end)
        rest = f", and waited {lasting(waited)}" if waited >= 0.05 else ""
        took = "" if run.state == "running" else f", took {lasting(self.times.active(self.times.end))}{rest}"
        user = f", by {one_line(str(run.header['user']))}" if "user" in run.header else ""
        session = f", session {one_line(run.session)}" if run.session else ""
        queue = f", queue {one_line(str(run.header['queue']))}" if "queue" in run.header else ""
        worker = f", worker {one_line(run.worker)}" if run.worker else ""
        console.say(console.paint(f"began {moment(self.times.begin)}{took}{user}{session}{queue}{worker}", "dim"), 2)
        if run.repository is not None:
            place = f"in {one_line(without_password(run.repository))} at {one_line(str(run.commit))}"
            console.say(console.paint(place, "dim"), 2)

    def _result(self, output: Any) -> None:
        text = output if isinstance(output, str) else json_text(output)
        self.console.say()
        self.console.say("result:")
        self.console.value(redacted_text(text, _RESULT))
        if len(text) > _RESULT:
            note = f"the first {_RESULT:,} of {len(text):,} characters; --json prints all"
            self.console.say(self.console.paint(note, "dim"))

    def _step(self, step: Mapping[str, Any]) -> None:
        console, state = self.console, str(step["state"])
        mark, colour = _MARKS.get(state, ("·", "dim"))
        name = one_line(str(step["step"]))
        name = name if len(name) <= _STEP else "…" + name[1 - _STEP :]
        made = call_text(str(step.get("tool")), step.get("arguments"), _ARGUMENT)
        began, at = step.get("began"), step.get("at")
        took = ""
        if isinstance(began, int | float) and isinstance(at, int | float) and state != "unknown":
            took = lasting(self.times.active(at) - self.times.active(began))
        label = name.rjust(self._labels())
        below = self._below(step, state)
        if self.width is None:
            words = [f"{label}  {mark} {state.ljust(7)}  {made}", *below, *([took] if took else [])]
            console.say("  ".join(words))
            return
        head = f"  {label} {console.paint(mark, colour)} "
        taken = 2 + len(label) + 3
        if self.width < _NARROW:
            # Leave one cell free, because a terminal may start a new line when the last cell is filled.
            console.say(head + cut(made, self.width - taken))
        else:
            bar = max(_BAR, (self.width - taken) // 3)
            room = self.width - taken - bar - _DURATION - 3
            text = made if cells(made) <= room else first_cells(made, room - 1) + "…"
            text += " " * (room - cells(text))
            drawn = self._bar(began, at, bar, colour)
            console.write(f"{head}{text} {drawn} {console.paint(took.rjust(_DURATION), 'dim')}".rstrip() + "\n")
        for line in below:
            console.say(console.paint(" " * taken + line, colour if state != "ended" else "dim"), taken + 2)

    def _labels(self) -> int:
        return min(max((len(str(s["step"])) for s in self.run.steps), default=1), _STEP)

    def _below(self, step: Mapping[str, Any], state: str) -> list[str]:
        """Lines about a call: its effects, or its error."""
        lines = [effect_line(str(e.get("kind")), e) for e in step.get("effects") or () if isinstance(e, Mapping)]
        lines = [line for line in lines if line]
        error = step.get("error")
        if isinstance(error, Mapping):
            lines.append(f"{one_line(str(error.get('code')))}: {one_line(brief(str(error.get('message')), 300))}")
        if state == "unknown":
            lines.append("running" if self.run.state == "running" else "begun; whether it was done is not known")
        return lines

    def _wait(self, wait: Wait) -> None:
        approval = f" for the answer to {one_line(wait.approval)}" if wait.approval else ""
        if wait.interrupted:
            how = "interrupted" if wait.until is None else f"interrupted, for {lasting(wait.until - wait.since)}"
        elif wait.until is None:
            how = f"waiting since {moment(wait.since)}{approval}"
        else:
            how = f"waited {lasting(wait.until - wait.since)}{approval}"
        lead = "" if self.width is None else "  "
        pad = " " * self._labels()
        between = "  " if self.width is None else " "
        self.console.say(self.console.paint(f"{lead}{pad}{between}‖ {how}", "yellow"), len(lead + pad + between) + 2)

    def _bar(self, began: Any, at: Any, width: int, colour: str) -> str:
        """A call's bar on the time axis."""
        if not isinstance(at, int | float):
            return " " * width
        last = min(width - 1, int(self.times.active(at) / self.times.span * width))
        if not isinstance(began, int | float):
            return " " * last + self.console.paint("·", colour) + " " * (width - last - 1)
        first = min(last, int(self.times.active(began) / self.times.span * width))
        filled = self.console.paint("█" * (last - first + 1), colour)
        return " " * first + filled + " " * (width - last - 1)
