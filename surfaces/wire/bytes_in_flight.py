"""Bounds the bytes of all requests that the server has in memory at the same time.

The size of a message is known only after it was received. So a reader first reserves the size of the largest message, and gives the
rest back when it knows the size. Readers wait until there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Reserved:
    """A part of the room. `shrink` gives back what is more than `size`."""

    def __init__(self, room: Room, size: int) -> None:
        self._room = room
        self.size = size

    def shrink(self, size: int) -> None:
        """Keep at most `size` bytes."""
        if size < self.size:
            self._room.give_back(self.size - size)
            self.size = size


class Room:
    """Room for `most` bytes."""

    def __init__(self, most: int) -> None:
        self.left = most
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, size: int) -> AsyncIterator[Reserved]:
        """Wait for room for `size` bytes, and use it during the block."""
        while self.left < size:
            self._freed.clear()
            await self._freed.wait()
        self.left -= size
        reserved = Reserved(self, size)
        try:
            yield reserved
        finally:
            reserved.shrink(0)

    def give_back(self, size: int) -> None:
        """Let others use `size` bytes."""
        self.left += size
        self._freed.set()
