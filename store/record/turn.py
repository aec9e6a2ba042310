"""Collects what the tasks of an event loop ask for, and does all of it at once when each task that is ready has had its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")


class Turn(Generic[_T]):
    """`do` gets what the tasks of one event loop have asked for. `after` is called when each of them has gone on once.

    Neither raises an exception.
    """

    def __init__(self, do: Callable[[list[_T]], None], after: Callable[[], None] = lambda: None) -> None:
        self._do, self._after = do, after
        self._waiting = WeakKeyDictionary[asyncio.AbstractEventLoop, list[tuple[_T, asyncio.Future[None]]]]()

    async def join(self, item: _T) -> None:
        """Return when `item` is done. It is done, too, before the task can find out that it was cancelled meanwhile."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        if not waiting:
            loop.call_soon(self._run, loop)
        done = loop.create_future()
        waiting.append((item, done))
        await done

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(loop)
        try:
            self._do([item for item, _ in waiting])
        finally:
            for _, done in waiting:
                if not done.done():
                    done.set_result(None)
            loop.call_soon(self._after)
