"""Limits per host: few requests at the same time, and no request during a pause that the host asked for.

A host asks for a pause with status 429 or 503 and `Retry-After`. A pause lasts at most an hour. A call during the pause waits if
the rest of the pause is short. Otherwise nothing is sent, and the call fails with the number of seconds left.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.turns import CLIENT, Turns

#: Requests to one host at a time, and those of one session among them. Browsers use six.
MAX_AT_ONCE, MAX_OF_SESSION = 4, 2
#: Seconds that a call waits for the end of a pause.
MAX_WAIT = 5.0
#: Seconds of the longest pause.
MAX_PAUSE = 3600.0
#: Hosts whose pauses are remembered.
MAX_HOSTS = 1000

Host = tuple[str, int]


class HostLimits:
    """The limits of one service for all hosts."""

    def __init__(self) -> None:
        self._until: OrderedDict[Host, float] = OrderedDict()
        self._turns = WeakValueDictionary[Host, Turns]()

    @asynccontextmanager
    async def turn(self, host: Host, seconds: float) -> AsyncIterator[None]:
        """Wait until a request to the host may be sent, at most `seconds`.

        Raises:
            Failure: `rate_limited`: the host asked for a longer pause.
        """
        # The turns of a host exist as long as a request has or waits for one.
        turns = self._turns.setdefault(host, Turns(MAX_OF_SESSION, MAX_AT_ONCE))
        async with turns.of(CLIENT.get()):
            # The previous request may have caused a pause.
            await self._wait_for_pause(host, seconds)
            yield

    async def _wait_for_pause(self, host: Host, seconds: float) -> None:
        wait = self._until.get(host, 0.0) - time.monotonic()
        if wait <= 0:
            self._until.pop(host, None)
            return
        if wait > min(MAX_WAIT, seconds / 2):
            raise Failure(
                "rate_limited",
                f"{host[0]!r} has asked for a pause, which lasts another {wait:.0f} s",
                hint="call again after `retry_after_ms`; nothing was sent",
                retryable=True,
                retry_after_ms=int(wait * 1000) + 1,
                rule="retry_after",
            )
        await asyncio.sleep(wait)

    def note(self, host: Host, status: int, retry_after: str | None) -> int | None:
        """Store the pause that a response asks for. Returns its length in ms, or None if there is no pause."""
        if status not in (429, 503) or retry_after is None:
            return None
        seconds = seconds_of(retry_after)
        if seconds is None:
            return None
        seconds = min(seconds, MAX_PAUSE)
        self._until[host] = max(self._until.pop(host, 0.0), time.monotonic() + seconds)
        while len(self._until) > MAX_HOSTS:
            self._until.popitem(last=False)
        return int(seconds * 1000)


def seconds_of(retry_after: str) -> float | None:
    """Convert a header's value, in seconds or as a date, to seconds from now. Returns None if the value is invalid."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return max(0.0, when - time.time())
