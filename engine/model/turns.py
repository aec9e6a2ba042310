"""Shares of what only a few requests can use at once, so that no client takes all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from weakref import WeakValueDictionary

#: Seconds for which a block may hold the event loop before the others come first.
_LONG = 0.002
#: The client for which something is executed; None for the owner.
CLIENT: ContextVar[str | None] = ContextVar("albert_client", default=None)


class Turns:
    """Lets `share` requests of one client go on at a time, and `most` of all clients. Further ones wait, in order.

    The owner has no share, and without `most` no bound.
    """

    def __init__(self, share: int, most: int | None = None) -> None:
        self._share = share
        self._common = asyncio.Semaphore(most) if most is not None else None
        #: The turns of each client that has or waits for one.
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    def of(self, client: str | None) -> Turn:
        """A turn of a client, see `ServiceContext.client_of`; None for the owner."""
        own = self._turns.setdefault(client, asyncio.Semaphore(self._share)) if client is not None else None
        return Turn(own, self._common)


class Turn:
    """The turn of a request: inside of the block, it goes on."""

    __slots__ = ("_common", "_own")

    def __init__(self, own: asyncio.Semaphore | None, common: asyncio.Semaphore | None) -> None:
        self._own = own
        self._common = common

    async def acquire(self) -> None:
        """Wait for the turn."""
        if self._own is not None:
            await self._own.acquire()
        try:
            if self._common is not None:
                await self._common.acquire()
        except BaseException:
            if self._own is not None:
                self._own.release()
            raise

    def release(self) -> None:
        """End the turn."""
        for semaphore in (self._common, self._own):
            if semaphore is not None:
                semaphore.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class LongBlocks:
    """Blocks without an await that can take long. Of each client, one is executed at a time. After a long one, the others have the
    event loop for as long."""

    def __init__(self) -> None:
        # `Turns` takes more steps, and each call of a session needs this.
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def of(self, client: str | None) -> AbstractAsyncContextManager[None]:
        """The block of a client. One of the owner (None) is executed at once."""
        return nullcontext() if client is None else self._block(client)

    @asynccontextmanager
    async def _block(self, client: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(client, asyncio.Lock()):
            began = time.monotonic()
            try:
                yield
            finally:
                if (spent := time.monotonic() - began) > _LONG:
                    await asyncio.sleep(spent)
