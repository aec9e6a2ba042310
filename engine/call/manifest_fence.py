"""The fence around a run of an approved version: its calls are those of its manifest, and not more often.

The number of calls is compared with their bound if the arguments of the run decide it. Several planned calls can allow the same
call, so calls are counted by the set of planned calls that allow them. The calls that only a set of planned calls allows must not
be more than the bounds of this set together.
"""

from __future__ import annotations

from collections import Counter
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
        manifest = version.definition.manifest
        self.version = version
        self.depth = depth
        self._planned = manifest.calls if manifest is not None else ()
        self._arguments = arguments
        self._written = spell
        self._made: Counter[frozenset[int]] = Counter()
        #: The bounds of sets of planned calls together.
        self._bounds: dict[frozenset[int], int | None] = {}

    def admit(
        self, tool: ToolDefinition, arguments: Any, callers: tuple[str, ...]
    ) -> tuple[str | None, tuple[PlannedCall, ...]]:
        """Count a call of a primitive.

        Args:
            tool: The primitive.
            arguments: The arguments that the program has given.
            callers: The saved tools between the approved version and the call, outermost first.

        Returns:
            Why the call is outside of the manifest, or None; and the planned calls that allow it. There are none if only the
            effects of a callee are known.
        """
        given = arguments if isinstance(arguments, dict) else {}
        named = [i for i, one in enumerate(self._planned) if one.tool == tool.name and one.via == callers]
        allowing = frozenset(i for i in named if inside(self._planned[i], given, self._arguments, self._spell))
        if allowing:
            self._made[allowing] += 1
            return self._too_often(tool.name, allowing, frozenset(named)), tuple(
                self._planned[i] for i in sorted(allowing)
            )
        # The manifest of a callee that was saved without one is its effects.
        if any(p.tool in callers and set(tool.effects) <= set(p.effects) for p in self._planned):
            return None, ()
        return outside([self._planned[i] for i in named], tool.name, given, self._arguments, self._spell), ()

    def _spell(self, path: str) -> str:
        try:
            return self._written(path)
        except Failure:
            return normal(path)

    def _too_often(self, tool: str, allowing: frozenset[int], named: frozenset[int]) -> str | None:
        """Why a call that was just counted is one too many. `named` are all planned calls of its tool by its caller."""
        for allowed in {allowing, named, *(s for s in self._made if allowing < s)}:
            most = self._most(allowed)
            if most is not None and sum(n for made, n in self._made.items() if made <= allowed) > most:
                return f"it calls {tool} at most {'once' if most == 1 else f'{most:,} times'}"
        return None

    def _most(self, allowed: frozenset[int]) -> int | None:
        if allowed not in self._bounds:
            bounds = [bound_of(self._planned[i].bound, self._arguments) for i in allowed]
            self._bounds[allowed] = None if None in bounds else sum(b for b in bounds if b is not None)
        return self._bounds[allowed]


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
