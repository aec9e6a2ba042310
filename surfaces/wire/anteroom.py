"""Places for requests that have shown no session's token yet.

Everybody who reaches the port can send such requests. So there are few places, each for a short time. If others wait, who has had a
place for `chance` seconds has to leave, so nobody keeps others out by sending slowly or by staying.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from albert_tools.engine.model.failure import Failure

#: The most requests that wait for a place.
MAX_WAITING = 64


class Anteroom:
    """`most` places, each for `seconds`."""

    def __init__(self, most: int, seconds: float, chance: float) -> None:
        self._most, self._seconds, self._chance = most, seconds, chance
        #: When each request must leave, and since when it is there; the oldest is first.
        self._there: dict[asyncio.Timeout, float] = {}
        self._left = asyncio.Event()
        self._waiting = 0

    @asynccontextmanager
    async def stay(self) -> AsyncIterator[None]:
        """Wait for a place, and have it during the block.

        Raises:
            TimeoutError: The block has taken too long.
            Failure: `rate_limited`: too many others wait.
        """
        await self._wait()
        async with asyncio.timeout(self._seconds) as limit:
            self._there[limit] = asyncio.get_running_loop().time()
            try:
                yield
            finally:
                del self._there[limit]
                self._left.set()

    async def _wait(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise Failure("rate_limited", "too many requests without a session's token are under way", retryable=True)
        self._waiting += 1
        try:
            while len(self._there) >= self._most:
                oldest, since = next(iter(self._there.items()))
                when = oldest.when()
                if when is not None and when > since + self._chance:
                    # A time in the past ends it as soon as possible.
                    oldest.reschedule(since + self._chance)
                self._left.clear()
                await self._left.wait()
        finally:
            self._waiting -= 1
