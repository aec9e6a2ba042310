"""Rate limits: calls per hour, in sliding windows.

A window has the name of its rule (``tool:write_file``, ``category:network``). Each session has its own count, which includes the
calls of its nested sessions. All calls without a session have one common count. The counts are computed from the ledger, so they
survive a restart and are equal in every process.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.record_types import Entry

#: Seconds for which a call is counted.
WINDOW_SECONDS = 3600.0


class RateLimitFold:
    """The times of the calls within the last hour, by window and session. Computed from entries of kind ``use``."""

    name = "windows"
    version = 1
    kinds = frozenset({"use"})

    def __init__(self) -> None:
        self.times: dict[str, deque[float]] = {}

    def apply(self, entry: Entry) -> None:
        """Apply an entry."""
        windows = entry.data.get("windows")
        if not windows:
            return
        # The time of an entry never decreases. If the clock was set back, that time would be wrong for a while, so it isn't used.
        at = entry.data["clock"]
        for window in windows:
            for session in entry.data.get("sessions") or [None]:
                times = self.times.setdefault(_key(window, session), deque())
                times.append(at)
                while times and times[0] <= at - WINDOW_SECONDS:
                    times.popleft()

    def dump(self) -> Json:
        """The state as JSON."""
        return {key: list(times) for key, times in self.times.items() if times}

    def load(self, state: Json) -> None:
        """Replace the state by one from `dump`."""
        self.times = {key: deque(times) for key, times in state.items()}


def _key(window: str, session: str | None) -> str:
    return f"{session or ''} {window}"


class RateLimits:
    """Checks and counts the calls of a home within the last hour."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._fold = RateLimitFold()
        self._following = ledger.follow(self._fold)

    def demand(self, limits: Sequence[tuple[str, int]], sessions: Sequence[str], tool: str) -> None:
        """Refuse a call that would exceed one of `limits`.

        Args:
            limits: The windows, each with its calls per hour.
            sessions: The session of the call and its parents; empty for a call without a session.
            tool: The tool, for the message.

        Raises:
            Failure: `rate_limited`. `retry_after_ms` is the time until all windows have room again; None for a limit of 0.
        """
        self._following.look()
        now = self._clock()
        longest: tuple[float, str, int] | None = None
        for window, most in limits:
            for session in sessions or (None,):
                wait = self._wait(_key(window, session), most, now)
                if wait is not None and (longest is None or wait > longest[0]):
                    longest = wait, window, most
        if longest is not None:
            raise _exceeded(tool, *longest)

    def use(self, limits: Sequence[tuple[str, int]], sessions: Sequence[str]) -> dict[str, Json]:
        """The data of a ledger entry that counts a call. Append the entry inside `Ledger.transaction`, after `demand`."""
        return {"windows": [window for window, _ in limits], "sessions": list(sessions), "clock": self._clock()}

    def _wait(self, key: str, most: int, now: float) -> float | None:
        """Seconds until a window has room; None if it has room now."""
        if not most:
            return math.inf
        times = self._fold.times.get(key)
        if not times:
            return None
        if max(times) > now:
            # The clock was set back. Without a correction, calls with a future time would be counted too long. Count them from
            # now on.
            times = self._fold.times[key] = deque(min(t, now) for t in times)
        within = sorted(t for t in times if t > now - WINDOW_SECONDS)
        return None if len(within) < most else max(0.0, within[len(within) - most] + WINDOW_SECONDS - now)


def _exceeded(tool: str, wait: float, window: str, most: int) -> Failure:
    ever = wait < math.inf
    kind, _, name = window.partition(":")
    message = f"{tool} may be called {most:,} times an hour, and has been"
    if kind == "category":
        message = f"tools of the category {name} may be called {most:,} times an hour together, and have been"
    return Failure(
        "rate_limited",
        message if ever else f"{tool} may not be called at all",
        hint=f"call it again in {_spoken(wait)}" if ever else "the rules allow no call of it in an hour",
        retryable=ever,
        retry_after_ms=math.ceil(wait * 1000) if ever else None,
        rule=f"rate_limit.{window}",
        tool=tool,
        details={"window": window, "per_hour": most},
    )


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
