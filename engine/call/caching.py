"""Answers of tools that only read, kept for as long as a tool says that they hold.

A tool declares it (`@primitive(cache_seconds=…)`); none is cached that doesn't. An answer is found again by the tool, its arguments
and the content of every file that they name: a changed file is another question. It is judged and recorded like any call before it
is looked for, and it counts as one.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from albert_tools.engine.authority.approval_digest import object_at
from albert_tools.engine.model.definition import Json, canonical
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect

#: Answers that are kept; those that were not asked for longest go first.
MAX_ANSWERS = 1000


class Cache:
    """The answers of one service. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Json, tuple[Effect, ...]]] = OrderedDict()

    def find(self, key: bytes) -> tuple[Json, tuple[Effect, ...]] | None:
        """The answer under a key, with the effects it had; None when there is none, or none that still holds."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self._clock() >= found[0]:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found[1], found[2]

    def keep(self, key: bytes, seconds: float, output: Json, effects: tuple[Effect, ...]) -> None:
        """Keep an answer for `seconds`."""
        self._kept[key] = self._clock() + seconds, output, effects
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_ANSWERS:
            self._kept.popitem(last=False)


def key_of(primitive: Primitive, arguments: Mapping[str, Json], workspace: Any) -> bytes:
    """What an answer is found by: the tool, its arguments, where paths begin, and what they name now."""
    objects = [object_at(workspace, path) for path, _ in primitive.paths_in(arguments)]
    d = primitive.definition
    return canonical([d.name, d.version, dict(arguments), str(workspace.absolute(".")), objects])
