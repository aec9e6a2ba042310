"""The clock of entries: UTC to the microsecond. It never goes back within a process.

If the system's clock is set back, entries get the last time until the clock has caught up. The text without the microseconds is
formatted once a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """The times of entries, as ISO 8601 text. Not thread-safe: call it inside a transaction."""

    def __init__(self, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self._nanoseconds = nanoseconds
        self._last = 0
        self._second = -1_000_000  # in microseconds
        self._text = ""

    def now(self) -> str:
        """The present time, or the last returned time if that is later."""
        micro = max(self._nanoseconds() // 1000, self._last)
        part = micro - self._second
        if not 0 <= part < 1_000_000:
            part = micro % 1_000_000
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micro // 1_000_000))
            # One statement sets both, because a signal's handler may raise an exception between two.
            self._second, self._text = micro - part, text
        self._last = micro
        return f"{self._text}.{part:06d}Z"


def text_of(moment: datetime) -> str:
    """A moment as entries write it.

    Raises:
        ValueError: The moment has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone can't be compared with the times of entries")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
