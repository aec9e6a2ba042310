"""Calls as the pipeline tells of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from albert_tools.engine.model.telemetry import Ended, Observer, Span, Started, new_span

#: A value that no observer may tell, in arguments, names and messages.
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz012345"


def started(tool: str = "read_file", **facts: Any) -> Started:
    """A call of a primitive that was allowed."""
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
    """A call that wasn't made."""
    known: dict[str, Any] = {
        "code": "permission_denied",
        "category": "permission",
        "rule": "user.deny",
        "message": "no",
    }
    return Ended(started(tool, verdict=None, rule=None), "blocked", 0.001, **known | facts)


def nested(observer: Observer, trace: str | None = None) -> tuple[Span, Span, Span]:
    """Three calls, each made by the one before; the innermost times out, and the others fail of it."""
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
    """A Python of its own."""
    env = {**os.environ, "PYTHONPATH": ROOT, **environ}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def printed(code: str) -> str:
    """What it prints; it must end well and say nothing else."""
    out, err = start(code).communicate()
    assert err == ""
    return out
