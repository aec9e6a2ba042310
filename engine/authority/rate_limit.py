"""Rate limits: calls per hour, in sliding windows.

A window has the name of its rule (``tool:write_file``, ``category:network``, ``all``). Each session has its own count, which
includes the calls of its nested sessions. All calls without a session have one common count. The ledger counts the calls, so the
counts survive a restart and are equal in every process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from albert_tools.engine.model.definition import Json, digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import FAILING, WINDOW_SECONDS
from albert_tools.engine.policy.number_rules import ALL

#: The window of all requests of a session.
SESSION = "session"
#: The most requests of a session that all processes together answer at the same time. Each process answers at most 16.
UNCOUNTED = 256
#: The seconds within which failures of the same request count. An agent in a loop is faster than one that waits for something.
LOOP_SECONDS = 300.0


class RateLimits:
    """Checks and counts the calls of a home within the last hour."""

    def __init__(self, ledger: Record, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    def demand(self, limits: Sequence[tuple[str, int]], sessions: Sequence[str], tool: str) -> None:
        """Refuse a call that would exceed one of `limits`.

        Args:
            limits: The windows, each with its calls per hour.
            sessions: The session of the call and its parents; empty for a call without a session.
            tool: The tool, for the message.

        Raises:
            Failure: `rate_limited`. `retry_after_ms` is the time until all windows have room again; None for a limit of 0.
                `io_error`, `damaged`.
        """
        longest, exceeded = 0.0, None
        for window, most in limits:
            for session in sessions or ("",):
                wait = self._wait(session, window, most)
                if wait > longest:
                    longest, exceeded = wait, (window, most)
        if exceeded is not None:
            raise _exceeded(tool, longest, *exceeded)

    def is_nearly_used(self, limits: Sequence[tuple[str, int]], sessions: Sequence[str]) -> bool:
        """Whether requests that have begun and are not counted yet could exceed one of `limits`. Arguments as for `demand`.

        Raises:
            Failure: `io_error`, `damaged`.
        """
        return any(self._wait(each, name, most - UNCOUNTED) for name, most in limits for each in sessions or ("",))

    def has_room(self, window: str, most: int) -> bool:
        """Whether one more use of a window, of no session, is within the limit now. Raises Failure `io_error`, `damaged`."""
        return self._wait("", window, most) <= 0

    def use(self, limits: Sequence[tuple[str, int]], sessions: Sequence[str]) -> dict[str, Json]:
        """The data of a ledger entry that counts a call. Append the entry inside `Ledger.transaction`, after `demand`."""
        return {"windows": [window for window, _ in limits], "sessions": list(sessions), "clock": self._clock()}

    def demand_progress(self, session: str, request: Json, most: int, tool: str) -> bool:
        """Refuse a request that has just failed `most` times in a row. Returns whether any request is counted as failing.

        Args:
            session: The session; empty for a request without a session.
            request: The tool, its version and the arguments.
            most: The most failures of the same request within `LOOP_SECONDS`.
            tool: The tool, for the message.

        Raises:
            Failure: `rate_limited`; `io_error`, `damaged`.
        """
        failing = self._ledger.uses.failing(session)
        if failing is None or failing != digest(request):
            return failing is not None
        times, now = self._ledger.uses.times(session, f"{FAILING}{failing}", most), self._clock()
        if times is None or times[1] is None or not 0 <= now - times[1] < LOOP_SECONDS:
            return True
        wait = LOOP_SECONDS - (now - times[1])
        raise Failure(
            "rate_limited",
            f"the same call of {tool} has failed {most} times in a row",
            hint=f"correct the cause of the failure, and call something else first; or wait {_spoken(wait)}",
            retryable=True,
            retry_after_ms=math.ceil(wait * 1000),
            rule="loops.identical_failures",
            tool=tool,
        )

    def outcome(self, session: str, request: Json, *, failed: bool) -> dict[str, Json]:
        """The data of the ledger entry about the end of a request, by which failures in a row are counted."""
        return {"failing": [session, digest(request) if failed else None, self._clock()]}

    def _wait(self, session: str, window: str, most: int) -> float:
        """Seconds until a window has room; 0 if it has room now."""
        if most <= 0:
            return math.inf
        times = self._ledger.uses.times(session, window, most)
        if times is None:
            return 0.0
        last, oldest = times
        # The time is read after the uses, so no use by another process is later.
        now = self._clock()
        if last > now:
            # The clock was set back. A use with a future time would count too long, so it counts from now on.
            self._ledger.append("clock_set_back", {"clock": now})
        return 0.0 if oldest is None else max(0.0, min(oldest, now) + WINDOW_SECONDS - now)


def _exceeded(tool: str, wait: float, window: str, most: int) -> Failure:
    ever = wait < math.inf
    kind, _, name = window.partition(":")
    message = f"{tool} may be called {most:,} times an hour, and has been"
    if window == SESSION:
        message = f"a session may make {most:,} requests an hour, and has made them"
    if kind == "category":
        message = f"tools of the category {name} may be called {most:,} times an hour together, and have been"
    if window == ALL:
        message = f"all tools may be called {most:,} times an hour together, in programs too, and have been"
    return Failure(
        "rate_limited",
        message if ever else f"{tool} may not be called at all",
        hint=f"call it again in {_spoken(wait)}" if ever else "the rules allow no call of it in an hour",
        retryable=ever,
        retry_after_ms=math.ceil(wait * 1000) if ever else None,
        rule=f"rate_limit.{window}" if window != SESSION else "loops.requests_per_hour",
        tool=tool,
        details={"window": window, "per_hour": most},
    )


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
