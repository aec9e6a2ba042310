"""Shares of what only a few requests can use at once, so that no client takes all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from weakref import WeakValueDictionary

#: The client for which something is executed, see `acting_for`; None for the owner.
CLIENT: ContextVar[str | None] = ContextVar("albert_client", default=None)


@contextmanager
def acting_for(client: str | None) -> Iterator[None]:
    """Make the calls within for a client; if it is None, for the client around them."""
    before = CLIENT.set(client or CLIENT.get())
    try:
        yield
    finally:
        CLIENT.reset(before)


class Turns:
    """Lets `share` requests of one client go on at a time. Further ones wait, in order. The owner has no bound."""

    def __init__(self, share: int) -> None:
        self._share = share
        #: The turns of each client that has or waits for one.
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    def of(self, client: str | None) -> AbstractAsyncContextManager[None]:
        """A turn of a client, see `ServiceContext.client_of`; None for the owner."""
        if client is None:
            return nullcontext()
        return self._turns.setdefault(client, asyncio.Semaphore(self._share))
