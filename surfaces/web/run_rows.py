"""A run as rows of a page: its steps with bars on the time axis, and its waits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.engine.runs.runs import RunView
from albert_tools.service import ToolService
from albert_tools.surfaces.text.effect_line import effect_line
from albert_tools.surfaces.text.run_times import RunTimes, Wait
from albert_tools.surfaces.text.times import lasting, moment

#: Rows that are shown, and the characters of an argument and of an error.
MAX_ROWS, _ARGUMENT, _ERROR = 500, 80, 300
#: The width of the time axis in units of the drawing, and of the narrowest bar.
AXIS, _NARROWEST = 1000.0, 8.0


def _drawn(run: RunView, now: float) -> dict[str, Any]:
    """The run at the time `now`, in seconds since 1970."""
    times = RunTimes(run, now)
    rows = times.rows()
    waited = times.waited(times.end)
    return {
        "began": moment(times.begin),
        "took": "" if run.state == "running" else lasting(times.active(times.end)),
        "waited": lasting(waited) if waited >= 0.05 else "",
        "rows": [_wait(row) if isinstance(row, Wait) else _step(row, times) for row in rows[:MAX_ROWS]],
        "more": max(0, len(rows) - MAX_ROWS),
    }


def _wait(wait: Wait) -> dict[str, Any]:
    what = "interrupted" if wait.interrupted else "waited" if wait.until else "waits"
    question = f" for the answer to {wait.approval}" if wait.approval else ""
    since = f" since {moment(wait.since)}" if wait.until is None else ""
    took = "" if wait.until is None else lasting(wait.until - wait.since)
    return {"state": "wait", "text": f"{what}{question}{since}", "depth": 0, "below": [], "took": took, "width": 0}


def _step(step: Mapping[str, Any], times: RunTimes) -> dict[str, Any]:
    """The row of a step. It has a bar if it is known when the step began."""
    name, state = str(step["step"]), str(step["state"])
    below = [effect_line(str(e.get("kind")), e) for e in step.get("effects") or () if isinstance(e, Mapping)]
    error = step.get("error")
    if isinstance(error, Mapping):
        below.append(f"{error.get('code')}: {brief(str(error.get('message')), _ERROR)}")
    if state == "unknown":
        below.append("running" if times.run.state == "running" else "begun; whether it was done is not known")
    row = {
        "state": state,
        "text": call_text(str(step.get("tool")), step.get("arguments"), _ARGUMENT),
        "depth": name.count("/"),
        "below": [line for line in below if line],
        "took": "",
        "width": 0,
    }
    began, at = step.get("began"), step.get("at")
    if isinstance(at, int | float):
        first = times.active(began if isinstance(began, int | float) else at)
        row["took"] = lasting(times.active(at) - first) if state != "unknown" else ""
        width = max(_NARROWEST, (times.active(at) - first) / times.span * AXIS)
        begin = min(first / times.span * AXIS, AXIS - width)
        row |= {"begin": round(max(begin, 0), 1), "width": round(width, 1)}
    return row


def run_page(service: ToolService, run: str) -> dict[str, Any]:
    """The values of the page of one run. Raises Failure `not_found`, `damaged`."""
    view = service.runs.show(run)
    return {
        "run": view,
        "saved": view.header.get("kind") == "composite" and "source" not in view.header,
        "made": call_text(view.tool, view.header.get("arguments"), _ARGUMENT),
        "drawn": _drawn(view, time.time()),
    }
