"""The cost of an observer for each call: creating the two notifications, and passing them to the observer.

No real call is made, and nothing is sent. Events go to /dev/null, and spans go to a processor that exports nothing.
"""

from __future__ import annotations

import statistics
import time

from albert_tools.engine.model.telemetry import Ended, Observer, Span, Started, new_span
from albert_tools.telemetry import Counters, OpenTelemetryObserver, StructlogObserver

#: Calls in a block.
BLOCK = 500


class Idle:
    """Does nothing. It measures the time for creating the notifications."""

    def started(self, span: Span, call: Started) -> None:
        """Do nothing."""

    def ended(self, span: Span, call: Ended) -> None:
        """Do nothing."""


def table(rounds: int) -> list[str]:
    """The lines of the table."""
    events = StructlogObserver(path="/dev/null")
    sides: dict[str, Observer | None] = {
        "a span's ids": None,
        "the notices, without an observer": Idle(),
        "`Counters`": Counters(),
        "`StructlogObserver`": events,
    }
    try:
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    except ImportError:
        pass
    else:
        provider = TracerProvider()
        provider.add_span_processor(SpanProcessor())
        sides["`OpenTelemetryObserver`"] = OpenTelemetryObserver(provider)
        sides["the same, with arguments"] = OpenTelemetryObserver(provider, arguments=True)
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, observer in sides.items():
            started = time.perf_counter()
            for _ in range(BLOCK):
                _call(observer)
            taken[name].append((time.perf_counter() - started) / BLOCK)
    events.close()
    lines = ["| observing a call | µs |", "|---|---:|"]
    return [*lines, *(f"| {name} | {statistics.median(times) * 1e6:.1f} |" for name, times in taken.items())]


def _call(observer: Observer | None) -> None:
    span = new_span()
    if observer is None:
        return
    call = Started(
        "read_file",
        "0123456789abcdef",
        {"path": "notes.md"},
        version="d5579c46dfcc7f18207013e65b44e4cb4e2c2298f4ac457ba8f82743f31e930b",
        kind="primitive",
        description="Read a text file of the workspace.",
        verdict="allow",
        rule="defaults.read_only",
        mode="NORMAL",
    )
    observer.started(span, call)
    observer.ended(span, Ended(call, "completed", 0.001))
