"""Objects that primitives share between calls while the service is open, such as connection pools.

A primitive passes the function that creates the object. The first call creates the object, and later calls get the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from albert_tools.engine.model.failure import Failure

T = TypeVar("T")


class ResourcePool:
    """The shared objects of one service. Not thread-safe: use it in the thread of the service's event loop."""

    def __init__(self) -> None:
        self._objects: dict[Callable[[], Any], Any] = {}

    def get(self, make: Callable[[], T]) -> T:
        """The object that `make` creates. `make` is called only once."""
        if make not in self._objects:
            self._objects[make] = make()
        resource: T = self._objects[make]
        return resource

    async def close(self) -> None:
        """Close all objects that have an `aclose`, the newest first. If one object fails to close, the others are still closed."""
        while self._objects:
            _, resource = self._objects.popitem()
            close = getattr(resource, "aclose", None)
            if close is not None:
                with suppress(Failure, OSError, RuntimeError):
                    await close()
