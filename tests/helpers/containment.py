"""Compares what a run did with the manifest of its tool: calls, templates, bounds, result, and flows by perturbation.

Each function returns what is wrong as a sentence, or None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from albert_tools.engine.model.manifest import Bound, Manifest, Origin, PlannedCall, Symbol, Value, values_in
from albert_tools.engine.model.manifest_match import inside, length, values_at
from albert_tools.engine.model.overlaps import is_before
from tests.helpers.recorded_run import Made, Place, Recorded


class Plan:
    """The planned calls of a manifest by their place."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._joined = len({c.tool for c in manifest.calls}) == len(manifest.calls) and all(
            not c.via for c in manifest.calls
        )
        self._at: dict[Place, list[int]] = defaultdict(list)
        self._of: dict[str, list[int]] = defaultdict(list)
        for i, call in enumerate(manifest.calls):
            self._at[Place(call.line, call.via, call.tool)].append(i)
            self._of[call.tool].append(i)

    def at(self, place: Place) -> list[int]:
        """The numbers of the planned calls at a place."""
        return self._at[place] or (self._of[place.tool] if self._joined else [])


def outside(manifest: Manifest, run: Recorded, given: Mapping[str, Any]) -> str | None:
    """What a run did that its manifest does not allow."""
    plan = Plan(manifest)
    for made in run.calls:
        numbers = plan.at(made.place)
        planned = [manifest.calls[i] for i in numbers]
        if not planned:
            return f"no planned call for {made.place}"
        if not set(planned[0].effects) <= set(manifest.effects):
            return f"{made.place} has effects that the manifest does not have"
        if not any(inside(one, made.arguments, given) for one in planned):
            return f"{made.place} with {made.arguments}: no planned call allows this"
    wrong = _too_often(plan, run, given) or _too_early(plan, run)
    if wrong is None and not run.failed:
        result = PlannedCall("result", arguments={"result": manifest.result})
        if not inside(result, {"result": run.outcome}, given):
            return f"the result {run.outcome!r} is none of the manifest"
    return wrong


def _too_often(plan: Plan, run: Recorded, given: Mapping[str, Any]) -> str | None:
    answers: dict[int, list[Any]] = defaultdict(list)
    for made in run.calls:
        for i in plan.at(made.place):
            answers[i].append(made.answer)
    for place, count in Counter(made.place for made in run.calls).items():
        bounds = [_most(plan.manifest.calls[i].bound, given, answers) for i in plan.at(place)]
        if None not in bounds and count > sum(filter(None, bounds)):
            return f"{place} is called {count} times, at most {bounds} are planned"
    return None


def _too_early(plan: Plan, run: Recorded) -> str | None:
    """A call that was made after another one, although each plan for the two says that it is certainly made before."""
    made = list(dict.fromkeys(made.place for made in run.calls))
    first = {place: next(i for i, m in enumerate(run.calls) if m.place == place) for place in made}
    last = {m.place: i for i, m in enumerate(run.calls)}
    steps = {place: [plan.manifest.calls[i].step for i in plan.at(place)] for place in made}
    for one in made:
        for other in made:
            if last[one] > first[other] and all(is_before(a, b) for a in steps[one] for b in steps[other]):
                return f"{one} is made after {other}, although its step is before"
    return None


def _most(bound: Bound, given: Mapping[str, Any], answers: Mapping[int, list[Any]]) -> int | None:
    if bound is None:
        return None
    total = 0
    for term in bound:
        product = term.times
        for symbol in term.of:
            product *= _number(symbol, given, answers)
        total += product
    return total


def _number(symbol: Symbol, given: Mapping[str, Any], answers: Mapping[int, list[Any]]) -> int:
    """The largest value of a symbol: a call can be made several times, and a place can occur several times."""
    kind, _, name = symbol.origin.partition(":")
    found = []
    for value in [given[name]] if kind == "parameter" else answers.get(int(name), []):
        found += values_at({"": value}, "", symbol.path)
    if symbol.kind == "value":
        return max([0, *(v for v in found if isinstance(v, int))])
    return max([0, *map(length, found)])


# Flows


def unexplained(manifest: Manifest, source: Origin, before: Recorded, after: Recorded) -> str | None:
    """What differs between two runs that differ in one source, if the manifest does not say that it depends on the source."""
    plan = Plan(manifest)
    reaches = _Reach(manifest, source)
    stopped = before.failed or after.failed
    for place in dict.fromkeys(made.place for made in [*before.calls, *after.calls]):
        numbers = plan.at(place)
        planned = [manifest.calls[i] for i in numbers]
        ours, theirs = ([m for m in run.calls if m.place == place] for run in (before, after))
        if set(planned[0].effects) <= {"read"}:
            continue  # what decides whether something is read is not recorded
        # A call's own earlier answers are not listed among what decides whether it is made again.
        decided = any(reaches.any([*p.control, f"call:{i}"]) for i, p in zip(numbers, planned, strict=True))
        wrong = _different(ours, theirs, planned, reaches, stopped, decided)
        if wrong is not None:
            return f"{wrong} of {place} depends on {source}"
    if not stopped and before.outcome != after.outcome and not reaches.value(manifest.result):
        return f"the result depends on {source}"
    if not stopped and before.log != after.log and not reaches.any(manifest.printed):
        return f"what is printed depends on {source}"
    return None


def _different(
    ours: Sequence[Made],
    theirs: Sequence[Made],
    planned: Sequence[PlannedCall],
    reaches: _Reach,
    stopped: bool,
    decided: bool,
) -> str | None:
    if decided:
        return None
    if len(ours) != len(theirs) and not stopped:
        return "the number of calls"
    for one, two in zip(ours, theirs, strict=False):
        for name in one.arguments.keys() | two.arguments.keys():
            same = repr(one.arguments.get(name)) == repr(two.arguments.get(name))
            if not same and not any(reaches.value(p.arguments[name]) for p in planned if name in p.arguments):
                return f"the argument {name}"
    return None


class _Reach:
    """Whether a source can reach something: directly, or through the calls whose arguments it can change."""

    def __init__(self, manifest: Manifest, source: Origin) -> None:
        self._reached = {source}
        before = 0
        while before < len(self._reached):
            before = len(self._reached)
            for i, call in enumerate(manifest.calls):
                if self.any(call.control) or any(self.value(v) for v in call.arguments.values()):
                    self._reached.add(f"call:{i}")

    def any(self, origins: Iterable[Origin]) -> bool:
        return not self._reached.isdisjoint(origins)

    def value(self, value: Value) -> bool:
        return any(self.any(v.data) or self.any(v.control) for v in values_in(value))
