"""Notices of calls, as the pipeline sends them to observers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from albert_tools.engine.model.telemetry import Ended, Observer, Span, Started, new_span

#: A secret that no observer may reveal.
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz012345"


def started(tool: str = "read_file", **facts: Any) -> Started:
    """The start of an allowed call of a primitive."""
    known: dict[str, Any] = {
        "call_id": "c1",
        "arguments": {"path": "notes.md"},
        "version": "v1",
        "kind": "primitive",
        "description": "Read a file.",
        "run_id": "r1",
        "verdict": "allow",
        "rule": "defaults.read",
        "mode": "NORMAL",
    }
    return Started(tool, **known | facts)


def refused(tool: str = "bash", **facts: Any) -> Ended:
    """The end of a denied call."""
    known: dict[str, Any] = {
        "code": "permission_denied",
        "category": "permission",
        "rule": "user.deny",
        "message": "no",
    }
    return Ended(started(tool, verdict=None, rule=None), "blocked", 0.001, **known | facts)


def nested(observer: Observer, trace: str | None = None) -> tuple[Span, Span, Span]:
    """Notices of three nested calls. The innermost call times out, and so all three fail."""
    outer = new_span(None, trace)
    middle = new_span(outer)
    inner = new_span(middle)
    calls = [
        (outer, started("report", call_id="c1", kind="composite")),
        (middle, started("fetch_all", call_id="c1.0", kind="composite", depth=1, callers=("report",))),
        (inner, started("http_request", call_id="c1.0.0", depth=2, callers=("report", "fetch_all"))),
    ]
    for span, call in calls:
        observer.started(span, call)
    for span, call in reversed(calls):
        observer.ended(span, Ended(call, "failed", 0.25, "timeout", "timeout", "no answer within 1 s", retried=1))
    return outer, middle, inner


ROOT = str(Path(__file__).parents[2])


def start(code: str, **environ: str) -> subprocess.Popen[str]:
    """Start Python with this code."""
    env = {**os.environ, "PYTHONPATH": ROOT, **environ}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def printed(code: str) -> str:
    """Return the output of the code. The code must write nothing to standard error."""
    out, err = start(code).communicate()
    assert err == ""
    return out
