"""The fence around a run of an approved version: its calls are those of its manifest, and not more often.

The number of calls is compared with their bound if the arguments of the run decide it. Several planned calls can allow the same
call. It is counted with one of them, and if that makes room for a later call, it is counted with another one instead (a matching,
by augmenting paths). So a call is one too many exactly if no assignment of all calls to planned calls respects the bounds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import reduce
from typing import Any

from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Bound, PlannedCall, Symbol
from albert_tools.engine.model.manifest_match import Spell, inside, length, normal, outside, values_at


class Fence:
    """The fence around one run of an approved version.

    Attributes:
        version: The version.
        depth: The depth of its call.
    """

    def __init__(self, version: ToolVersion, arguments: Mapping[str, Any], depth: int, spell: Spell = normal) -> None:
        self.version = version
        self.depth = depth
        self._planned = version.manifest.calls
        self._arguments = arguments
        self._written = spell
        #: How many calls are counted with a planned call, by the planned calls that allow them.
        self._made: dict[int, Counter[frozenset[int]]] = defaultdict(Counter)
        self._bounds: dict[int, int | None] = {}

    def admit(
        self, tool: ToolDefinition, arguments: Any, callers: tuple[str, ...]
    ) -> tuple[str | None, tuple[PlannedCall, ...]]:
        """Count a call of a primitive.

        Args:
            tool: The primitive.
            arguments: The arguments that the program has given.
            callers: The saved tools between the approved version and the call, outermost first.

        Returns:
            Why the call is outside of the manifest, or None; and the planned calls that allow it.
        """
        given = arguments if isinstance(arguments, dict) else {}
        named = [i for i, one in enumerate(self._planned) if one.tool == tool.name and one.via == callers]
        allowing = frozenset(i for i in named if inside(self._planned[i], given, self._arguments, self._spell))
        if allowing:
            return self._too_often(tool.name, allowing), tuple(self._planned[i] for i in sorted(allowing))
        return outside([self._planned[i] for i in named], tool.name, given, self._arguments, self._spell), ()

    def _spell(self, path: str) -> str:
        try:
            return self._written(path)
        except Failure:
            return normal(path)

    def _too_often(self, tool: str, allowing: frozenset[int]) -> str | None:
        """Count a call with a planned call that allows it. Returns why it is one too many, or None."""
        # The planned calls that can get room, each with the one that a call would be moved from, and what allows that call.
        reached: dict[int, tuple[int, frozenset[int]] | None] = dict.fromkeys(sorted(allowing))
        queue = [*reached]
        for one in queue:
            most = self._most(one)
            if most is None or self._made[one].total() < most:
                while (move := reached[one]) is not None:
                    before, other = move
                    self._made[one][other] += 1
                    self._made[before][other] -= 1
                    one = before
                self._made[one][allowing] += 1
                return None
            for other in (o for o, count in self._made[one].items() if count):
                for new in sorted(other - reached.keys()):
                    reached[new] = one, other
                    queue.append(new)
        together = sum(self._most(one) or 0 for one in reached)
        return f"it calls {tool} at most {'once' if together == 1 else f'{together:,} times'}"

    def _most(self, planned: int) -> int | None:
        if planned not in self._bounds:
            self._bounds[planned] = bound_of(self._planned[planned].bound, self._arguments)
        return self._bounds[planned]


def bound_of(bound: Bound, arguments: Mapping[str, Any]) -> int | None:
    """The value of a bound for the arguments of a run; None if it depends on anything else."""
    if bound is None:
        return None
    total = 0
    for term in bound:
        factors = [_number(symbol, arguments) for symbol in term.of]
        known = [f for f in factors if f is not None]
        # Whatever the other factors are: zero times anything is zero.
        if len(known) < len(factors) and 0 not in known:
            return None
        total += term.times * reduce(lambda a, b: a * b, known, 1) if len(known) == len(factors) else 0
    return total


def _number(symbol: Symbol, arguments: Mapping[str, Any]) -> int | None:
    kind, _, name = symbol.origin.partition(":")
    if kind != "parameter":
        return None
    values = values_at(arguments, name, symbol.path)
    if symbol.kind == "length":
        return max(map(length, values), default=0)
    return max((int(v) for v in values if isinstance(v, int | float)), default=0)
