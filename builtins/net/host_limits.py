"""Manners: not many requests to one host at once, and none before the time it has asked to be left alone for.

A host that answers 429 or 503 with `Retry-After` is believed, up to an hour. A call within that time waits if it is short, and
is refused otherwise, with how long it still is; nothing was sent then, so it can be made again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from albert_tools.engine.model.failure import Failure

#: Requests to one host at a time; what browsers allow themselves, less some.
MAX_AT_ONCE = 4
#: Seconds that a call waits for a pause to be over.
MAX_WAIT = 5.0
#: Seconds of the longest pause that a host can ask for.
MAX_PAUSE = 3600.0
#: Hosts that are remembered.
MAX_HOSTS = 1000

Host = tuple[str, int]


class Courtesy:
    """The manners of one service towards all hosts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[Host, float] = OrderedDict()
        self._turns: dict[Host, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, host: Host, seconds: float) -> AsyncIterator[None]:
        """Be one of the few that call a host; of a call that has `seconds` left.

        Raises:
            Failure: `rate_limited`: the host wants to be left alone for longer.
        """
        semaphore, users = self._turns.get(host, (None, 0))
        semaphore = semaphore or asyncio.Semaphore(MAX_AT_ONCE)
        self._turns[host] = semaphore, users + 1
        try:
            async with semaphore:
                # Whoever had the turn before may have been told to stay away.
                await self._left_alone(host, seconds)
                yield
        finally:
            semaphore, users = self._turns[host]
            if users == 1:
                del self._turns[host]
            else:
                self._turns[host] = semaphore, users - 1

    async def _left_alone(self, host: Host, seconds: float) -> None:
        wait = self._until.get(host, 0.0) - self._clock()
        if wait <= 0:
            self._until.pop(host, None)
            return
        if wait > min(MAX_WAIT, seconds / 2):
            raise Failure(
                "rate_limited",
                f"{host[0]!r} has asked not to be called for another {wait:.0f} s",
                hint="call again after `retry_after_ms`; nothing was sent",
                retryable=True,
                retry_after_ms=int(wait * 1000) + 1,
                rule="retry_after",
            )
        await asyncio.sleep(wait)

    def told(self, host: Host, status: int, retry_after: str | None) -> int | None:
        """Take in what a host has answered; the pause that it asks for in ms, None where it doesn't."""
        if status not in (429, 503) or retry_after is None:
            return None
        seconds = seconds_of(retry_after)
        if seconds is None:
            return None
        seconds = min(seconds, MAX_PAUSE)
        self._until[host] = max(self._until.pop(host, 0.0), self._clock() + seconds)
        while len(self._until) > MAX_HOSTS:
            self._until.popitem(last=False)
        return int(seconds * 1000)


def seconds_of(retry_after: str) -> float | None:
    """The header's value, seconds or a date, in seconds from now; None for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return max(0.0, when - time.time())
