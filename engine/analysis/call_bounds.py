"""How often a call is made, and how many items a container has: at most.

A container has the items that it was made with, and those that were added: one for each run of a statement that adds. A statement
runs once for each run of its function and of each loop around it. A recursion has no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from albert_tools.engine.analysis.polynomials import ONE, ZERO, Polynomial, largest, number, plus, symbol, times
from albert_tools.engine.analysis.state import Analysis, Instance, Loop, Recorded
from albert_tools.engine.analysis.substitution import at_path
from albert_tools.engine.analysis.templates import Alternative, Constant, Count, scalar_of
from albert_tools.engine.analysis.values import NEVER, AbstractValue, Site
from albert_tools.engine.model.manifest import Bound, Hole, Symbol

#: A text can be split into one piece more than it has characters.
_EXTRA_PIECES = number(1)
#: How many bounds a bound can depend on, one through the other.
_MAX_DEPTH = 50


class Bounds:
    """The bounds of a solved analysis."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._known: dict[Hashable, Polynomial] = {}
        self._depth = 0

    def of_call(self, call: Recorded) -> Polynomial:
        """How often a recorded call is made."""
        own = self._runs(call.instance, call.loops)
        if call.planned is None:
            return own
        return times(own, self._substituted(call.planned.bound, call.place))

    def of_items(self, value: AbstractValue) -> Polynomial:
        """How many items or characters a value has."""
        sites = [self._once(("site", s), partial(self._of_site, s)) for s in value.sites]
        return largest([*sites, *map(self._of_text, value.alternatives)])

    def _once(self, key: Hashable, compute: Callable[[], Polynomial]) -> Polynomial:
        """A bound that is computed once. Where it would depend on itself, or on very many others, there is none."""
        if key not in self._known:
            self._known[key] = None
            if self._depth < _MAX_DEPTH:
                self._depth += 1
                self._known[key] = compute()
                self._depth -= 1
        return self._known[key]

    def _runs(self, instance: Instance, loops: tuple[Loop, ...]) -> Polynomial:
        runs = self._of_instance(instance)
        for loop in loops:
            runs = times(runs, self._once(("loop", loop), partial(self._of_loop, loop)))
        return runs

    def _of_loop(self, loop: Loop) -> Polynomial:
        return self.of_items(self._analysis.iterated[loop])

    def _of_instance(self, instance: Instance) -> Polynomial:
        if instance == self._analysis.entry or not instance[0]:
            return ONE

        def total() -> Polynomial:
            runs = ZERO
            for caller, loops, _ in self._analysis.callers[instance]:
                if caller in self._analysis.live or not caller[0]:
                    runs = plus(runs, self._runs(caller, loops))
            return runs

        return self._once(("instance", instance), total)

    def _of_text(self, t: Alternative) -> Polynomial:
        scalar = scalar_of(t)
        if scalar is not None:
            return number(len(str(scalar[0])))
        assert not isinstance(t, Constant)
        length = ZERO
        for part in t:
            length = plus(length, self._of_part(part))
        return length

    def _of_part(self, part: object) -> Polynomial:
        if isinstance(part, str):
            return number(len(part))
        if isinstance(part, Hole):
            if part.kind == "parameter":
                return symbol(Symbol("length", f"parameter:{part.name}", part.path))
            if part.kind == "output":
                return symbol(Symbol("length", f"call:{part.call}", part.path))
            if part.kind == "part":
                return self._of_text(part.of)
        return None

    def _of_site(self, site: Site) -> Polynomial:
        container = self._analysis.heap.at[site]
        if container.kind == "open" and not container.sizes:
            return None
        count = largest([self._of_size(size) for size in container.sizes])
        for instance, loops, amount, _ in container.growth:
            more = ONE if amount is None else self.of_items(self._analysis.lengths[amount])
            count = plus(count, times(self._runs(instance, loops), more))  # type: ignore[arg-type]
        return count

    def _of_size(self, size: tuple[Any, ...]) -> Polynomial:
        kind, *details = size
        match kind:
            case "number":
                return number(details[0])
            case "symbol":
                return symbol(details[0])
            case "length":
                return self.of_items(self._analysis.lengths[details[0]])
            case "pieces":
                return plus(self.of_items(self._analysis.lengths[details[0]]), _EXTRA_PIECES)
            case "sum":
                count = ZERO
                for key in details:
                    count = plus(count, self.of_items(self._analysis.lengths[key]))
                return count
            case "value":
                return self._of_number(self._analysis.lengths[details[0]])
            case "range":
                return self._of_range([self._analysis.lengths[key] for key in details[0]])
            case "loops":
                count = ONE
                for loop in details[0]:
                    count = times(count, self._once(("loop", loop), partial(self._of_loop, loop)))
                return count
            case "bound":
                return self._substituted(details[0], details[1])
        return None

    def _of_range(self, values: list[AbstractValue]) -> Polynomial:
        """``range(stop)`` and ``range(start, stop, step)``: with a step of at least 1, and a start of at least 0."""
        known = [v.constants() for v in values]
        if len(values) == 3 and (not known[2] or any(type(k) is not int or k < 1 for k in known[2])):
            return self._constant_range(known)
        if len(values) > 1 and (not known[0] or any(type(k) is not int or k < 0 for k in known[0])):
            # `range(a, b)` with an unknown start: the start can be negative.
            return self._constant_range(known)
        return self._of_number(values[0] if len(values) == 1 else values[1])

    def _constant_range(self, known: list[list[object] | None]) -> Polynomial:
        if all(k is not None and len(k) == 1 and type(k[0]) is int for k in known):
            arguments: list[Any] = [k[0] for k in known if k]
            # A step of 0 fails, and a longer range than a machine can count has no bound that says anything.
            with suppress(ValueError, OverflowError):
                return number(len(range(*arguments)))
        return None

    def _of_number(self, value: AbstractValue) -> Polynomial:
        choices: list[Polynomial] = []
        for t in value.alternatives:
            if isinstance(t, Constant):
                choices.append(number(int(t.value)) if isinstance(t.value, int) else None)
                continue
            part = t[0] if len(t) == 1 else None
            if isinstance(part, Count):
                counted = self.of_items(self._analysis.lengths[part.key])
                choices.append(plus(counted, number(part.more)))
            elif isinstance(part, Hole) and part.kind == "parameter" and not part.path:
                choices.append(symbol(Symbol("value", f"parameter:{part.name}")))
            else:
                choices.append(None)
        return None if value.sites else largest(choices)

    def _substituted(self, bound: Bound, place: Hashable) -> Polynomial:
        """A bound of a saved tool's manifest, at one call of it."""
        if bound is None:
            return None
        substitution = self._analysis.substitutions[place]
        total = ZERO
        for term in bound:
            product = number(term.times)
            for s in term.of:
                kind, _, name = s.origin.partition(":")
                if kind == "call":
                    ours: Polynomial = symbol(Symbol(s.kind, substitution.calls[int(name)].origin, s.path))
                else:
                    value = substitution.arguments.get(name, NEVER)
                    if s.kind == "value":
                        ours = self._of_number(value)
                    elif s.path.endswith("~"):
                        ours = self._anywhere(value)
                    else:
                        ours = self.of_items(at_path(self._analysis, value, s.path))
                product = times(product, ours)
            total = plus(total, product)
        return total

    def _anywhere(self, value: AbstractValue) -> Polynomial:
        """The most items of any container inside a value, or characters of any text in it."""
        sites = self._analysis.heap.reach(value)
        inner = [AbstractValue(v.alternatives) for s in sites for v in self._analysis.heap.at[s].fields.values()]
        return largest([self.of_items(v) for v in [value, AbstractValue(sites=frozenset(sites)), *inner]])
