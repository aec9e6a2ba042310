"""Counts the calls in this process, for a health page or a test.

Tool names that don't exist are not counted by name, because callers can invent them. Every table has a maximum size.
"""

from __future__ import annotations

import threading
from typing import Any

from albert_tools.engine.model.telemetry import Ended, Span, Started
from albert_tools.engine.model.threads import running_on

#: The most names in one table. Further names count as `OTHERS`.
MAX_NAMES = 1_000
OTHERS = "(others)"
#: Calls of unknown tools count under this name, and so do missing codes and rules.
UNKNOWN = "(unknown)"


class Counters:
    """Counts every call. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._ended = {"completed": 0, "failed": 0, "blocked": 0}
        self._retried = 0
        self._effects = 0
        self._seconds = 0.0
        self._categories: dict[str, int] = {}
        self._codes: dict[str, int] = {}
        self._rules: dict[str, int] = {}
        self._tools: dict[str, dict[str, Any]] = {}

    def started(self, span: Span, call: Started) -> None:
        """Count the start."""
        with self._lock:
            self._calls += 1

    def ended(self, span: Span, call: Ended) -> None:
        """Count the outcome, and the reason of a failure."""
        of = call.started
        with self._lock:
            self._ended[call.outcome] += 1
            self._retried += call.retried
            self._effects += call.effects
            self._seconds += call.seconds
            if call.outcome != "completed":
                _count(self._categories, call.category or UNKNOWN)
                _count(self._codes, call.code or UNKNOWN)
            if call.outcome == "blocked":
                _count(self._rules, call.rule or of.rule or UNKNOWN)
            named = of.tool if of.kind is not None else UNKNOWN
            if named not in self._tools and len(self._tools) >= MAX_NAMES:
                named = OTHERS
            tool = self._tools.setdefault(named, {"completed": 0, "failed": 0, "blocked": 0, "seconds": 0.0})
            tool[call.outcome] += 1
            tool["seconds"] += call.seconds

    def snapshot(self) -> dict[str, Any]:
        """All counts so far, as JSON: ``{calls, open, completed, failed, blocked, retried, effects, seconds, …}``.

        `failures_by_category` and `failures_by_code` count failed and blocked calls. `blocked_by_rule` counts only blocked calls.
        `tools` contains ``{completed, failed, blocked, seconds}`` by name. Seconds are sums over calls. The seconds of a saved
        tool include the calls inside it. `running_on` counts, by tool, the calls of sync functions that were ended, by their time
        limit for example, while their threads still run.
        """
        with self._lock:
            return {
                "calls": self._calls,
                "open": self._calls - sum(self._ended.values()),
                **self._ended,
                "retried": self._retried,
                "effects": self._effects,
                "seconds": self._seconds,
                "failures_by_category": dict(self._categories),
                "failures_by_code": dict(self._codes),
                "blocked_by_rule": dict(self._rules),
                "running_on": running_on(),
                "tools": {name: dict(tool) for name, tool in self._tools.items()},
            }


def _count(table: dict[str, int], name: str) -> None:
    if name not in table and len(table) >= MAX_NAMES:
        name = OTHERS
    table[name] = table.get(name, 0) + 1
