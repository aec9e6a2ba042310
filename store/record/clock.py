"""The log's clock: UTC to the microsecond, never going back.

Readers merge segments by time, so within one writer time must not fall, whatever is done to the system's clock; when
it is set back, entries bear the last time until it is caught up with. Most entries of a second share all but their
microseconds, so that part is formatted once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """Gives times as ISO 8601 text. Not thread-safe; the writer's lock covers it."""

    def __init__(self, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self._nanoseconds = nanoseconds
        self._last = 0
        self._second = -1_000_000  # in microseconds
        self._text = ""

    def now(self) -> str:
        """The time, or the last one given if that is later."""
        return self._at_least(self._nanoseconds() // 1000, self._last)

    def later(self) -> str:
        """The time, and later than any given before: a segment's, so that its entries sort behind those before it."""
        return self._at_least(self._nanoseconds() // 1000, self._last + 1)

    def _at_least(self, micro: int, earliest: int) -> str:
        if micro < earliest:
            micro = earliest
        part = micro - self._second
        if not 0 <= part < 1_000_000:
            part = micro % 1_000_000
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micro // 1_000_000))
            # Both at once: a signal's handler may raise wherever something is called.
            self._second, self._text = micro - part, text
        self._last = micro
        return f"{self._text}.{part:06d}Z"


def text_of(moment: datetime) -> str:
    """A moment as entries write it.

    Raises:
        ValueError: when it doesn't say its time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone can't be compared with those of the log")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
