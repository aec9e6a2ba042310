"""How often: sliding windows of an hour over what has been called.

A window is named by the rule that bounds it (``tool:write_file``, ``category:network``) and counted per session; calls without one
count together. The calls are entries of the log, so a restart forgets none and every process counts the same.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.records import Entry

#: Seconds that a call counts.
WINDOW_SECONDS = 3600.0


class WindowsFold:
    """When what was called, within the last hour: kind ``use``."""

    name = "windows"
    version = 1
    kinds = frozenset({"use"})

    def __init__(self) -> None:
        self.times: dict[str, deque[float]] = {}

    def apply(self, entry: Entry) -> None:
        """Take an entry in."""
        windows = entry.data.get("windows")
        if not windows:
            return
        at = datetime.fromisoformat(entry.at).timestamp()
        whose = entry.data.get("windows_of", entry.data.get("session"))
        for window in windows:
            times = self.times.setdefault(_key(window, whose), deque())
            times.append(at)
            while times and times[0] <= at - WINDOW_SECONDS:
                times.popleft()

    def dump(self) -> Json:
        """The state as JSON."""
        return {key: list(times) for key, times in self.times.items() if times}

    def load(self, state: Json) -> None:
        """Be in this state."""
        self.times = {key: deque(times) for key, times in state.items()}


def _key(window: str, session: str | None) -> str:
    return f"{session or ''} {window}"


class Windows:
    """What may still be called within this hour."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._fold = WindowsFold()
        self._following = ledger.follow(self._fold)

    def demand(self, limits: Sequence[tuple[str, int]], session: str | None, tool: str) -> None:
        """Whether one more call is within all `limits`, each a window and its calls per hour.

        Raises:
            Failure: `rate_limited`, with `retry_after_ms`: when the window that is full longest has room again.
        """
        self._following.look()
        now = self._clock()
        for window, most in limits:
            times = self._fold.times.get(_key(window, session), deque())
            # A clock that was set back would otherwise keep calls of the future in the window for ever.
            within = [t for t in times if now - WINDOW_SECONDS < t <= now + 60]
            if len(within) >= most:
                wait = max(0.0, sorted(within)[len(within) - most] + WINDOW_SECONDS - now) if most else WINDOW_SECONDS
                raise Failure(
                    "rate_limited",
                    f"{tool} may be called {most:,} times an hour, and has been",
                    hint=f"call it again in {_spoken(wait)}",
                    retryable=True,
                    retry_after_ms=math.ceil(wait * 1000),
                    rule=f"rate_limit.{window}",
                    tool=tool,
                    details={"window": window, "per_hour": most},
                )


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
