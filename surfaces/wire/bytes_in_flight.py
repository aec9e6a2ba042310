"""Bounds what all requests together have in memory, and what each client has of it.

The size of a message is known only after it was received. So a reader first reserves the size of the largest message, and gives
the rest back when it knows the size. Readers wait until there is room. A client is a session with those within it: all requests
with their tokens count together.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from albert_tools.engine.model.failure import Failure


class Reserved:
    """A part of the room. `shrink` gives back what is more than `size`."""

    def __init__(self, room: Room, client: str, size: int) -> None:
        self._room = room
        self._client = client
        self.size = size

    def shrink(self, size: int) -> None:
        """Keep at most `size` bytes."""
        if size < self.size:
            self._room.give_back(self._client, self.size - size)
            self.size = size


class Room:
    """Room for `most` bytes, of which one client gets at most `share`."""

    def __init__(self, most: int, share: int) -> None:
        self.left = most
        self._share = share
        self._used = Counter[str]()
        #: How many requests of each client wait.
        self._waiting = Counter[str]()
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, client: str, size: int) -> AsyncIterator[Reserved]:
        """Wait for room for `size` bytes, and use it during the block. Of those who wait, the client that uses least is next."""
        self._waiting[client] += 1
        try:
            while not self._is_next(client, size):
                self._freed.clear()
                await self._freed.wait()
        finally:
            self._waiting = +(self._waiting - Counter((client,)))
            self._freed.set()
        self.left -= size
        self._used[client] += size
        reserved = Reserved(self, client, size)
        try:
            yield reserved
        finally:
            reserved.shrink(0)

    def _is_next(self, client: str, size: int) -> bool:
        used = self._used[client]
        has_room = self.left >= size and used + size <= self._share
        return has_room and all(self._used[other] >= used for other in self._waiting)

    def give_back(self, client: str, size: int) -> None:
        """Let others use `size` bytes of a client."""
        self.left += size
        self._used[client] -= size
        if not self._used[client]:
            del self._used[client]
        self._freed.set()


class Places:
    """Places for `most` requests at a time, of which one client gets at most `share`."""

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, share
        self._used = Counter[str]()

    @contextmanager
    def enter(self, client: str) -> Iterator[None]:
        """Use a place during the block.

        Raises:
            Failure: `rate_limited`: there is none left for this client.
        """
        if self._used[client] >= self._share or self._used.total() >= self._most:
            whose = "this session" if self._used[client] >= self._share else "all sessions"
            message = f"too many requests of {whose} are under way; wait for their answers"
            raise Failure("rate_limited", message, retryable=True, rule="requests")
        self._used[client] += 1
        try:
            yield
        finally:
            self._used[client] -= 1
            if not self._used[client]:
                del self._used[client]
