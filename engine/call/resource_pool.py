"""What primitives keep between calls for as long as a service lives: open connections, and the pauses that hosts have asked for.

A primitive names it by what makes it, so whoever asks first makes it, and all others get the same. It ends with the service.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from albert_tools.engine.model.failure import Failure

T = TypeVar("T")


class Kept:
    """The things of one service. For the thread of its loop."""

    def __init__(self) -> None:
        self._things: dict[Callable[[], Any], Any] = {}

    def get(self, make: Callable[[], T]) -> T:
        """What `make` has made, once."""
        if make not in self._things:
            self._things[make] = make()
        found: T = self._things[make]
        return found

    async def close(self) -> None:
        """Close each, the last made first; none keeps another from being closed."""
        while self._things:
            _, thing = self._things.popitem()
            close = getattr(thing, "aclose", None)
            if close is not None:
                with suppress(Failure, OSError, RuntimeError):
                    await close()
