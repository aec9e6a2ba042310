"""The manifest of a solved analysis."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.call_bounds import Bounds
from albert_tools.engine.analysis.containers import is_plain_list
from albert_tools.engine.analysis.polynomials import Polynomial, as_bound, plus
from albert_tools.engine.analysis.state import Analysis, Recorded, TooMuch
from albert_tools.engine.analysis.steps import Steps
from albert_tools.engine.analysis.substitution import default_value
from albert_tools.engine.analysis.values import (
    KEYS,
    NEVER,
    NO_ORIGINS,
    REST,
    AbstractValue,
    Origins,
    Site,
    join,
    marks_of,
    sizes_of,
)
from albert_tools.engine.model.json_values import problem_in
from albert_tools.engine.model.manifest import (
    ANY_NAME,
    ENCODED,
    Alternative,
    Bound,
    Comparison,
    Hole,
    Manifest,
    Origin,
    Part,
    PlannedCall,
    Symbol,
    Term,
    Value,
    constants_shown,
)
from albert_tools.grammar import tree

#: The most calls of a manifest. Of more, those of the same primitive are one.
MAX_CALLS = 100
#: The deepest value inside an argument or a result that is told apart, and the most of them in one.
_MAX_DEPTH, _MAX_VALUES = 5, 60
#: The most items of a list whose places are told apart.
_MAX_PLACES = 10


def manifest_of(analysis: Analysis) -> Manifest:
    """All that was found."""
    return _Export(analysis).manifest()


class _Export:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._bounds = Bounds(analysis)
        self._steps = Steps(analysis)
        calls = sorted(analysis.calls.values(), key=lambda c: (c.line, c.index))
        groups: dict[object, list[Recorded]] = {}
        for call in calls:
            name = call.planned.tool if call.planned is not None else call.tool.name
            uses = call.planned.uses if call.planned is not None else call.tool.declared.uses
            if len(calls) > MAX_CALLS and "tool" in uses.values():
                # Of calls that are one, nobody knows which a batch makes.
                raise TooMuch(call.line)
            groups.setdefault(name if len(calls) > MAX_CALLS else call.index, []).append(call)
        self._groups = list(groups.values())
        self._number = {call.index: i for i, group in enumerate(self._groups) for call in group}
        self._left = 0
        #: The holes whose values are being exported: a value inside itself is not told apart.
        self._inside: list[Hole] = []

    def manifest(self) -> Manifest:
        analysis = self._analysis
        return Manifest(
            analysis.checked.definition.effects,
            tuple(map(self._call, self._groups)),
            self._value(analysis.results[analysis.entry]),
            self._origins(analysis.printed),
            self._origins(analysis.raised),
        )

    def _call(self, group: list[Recorded]) -> PlannedCall:
        first = group[0]
        plan = first.planned
        arguments: dict[str, AbstractValue] = {}
        bound: Polynomial = {}
        control: Origins = NO_ORIGINS
        names = dict.fromkeys(name for call in group for name in call.arguments)
        for call in group:
            for name in names:
                arguments[name] = arguments.get(name, NEVER) | self._argument(call, name)
            bound = plus(bound, self._bounds.of_call(call))
            # Whether an earlier call succeeded says nothing about the outside.
            control |= call.control - {call.origin, *sizes_of([call.origin])}
        declared = first.tool.declared
        return PlannedCall(
            plan.tool if plan is not None else first.tool.name,
            plan.effects if plan is not None else first.tool.effects,
            first.line,
            first.via if len(group) == 1 else (),
            {name: self._value(value) for name, value in arguments.items()},
            dict(plan.uses if plan is not None else declared.uses),
            plan.source if plan is not None else declared.source,
            self._origins(control),
            self._bound(bound),
            self._steps.of_calls(group),
            self._named(marks_of(control).counted),
            *self._decisions(control, arguments.values()),
            plan.has_times if plan is not None else declared.has_times,
        )

    def _argument(self, call: Recorded, name: str) -> AbstractValue:
        given = call.arguments.get(name, call.arguments.get(ANY_NAME))
        if given is None:
            # Another call of the same primitive gives it.
            parameter = call.tool.parameter(name) if call.planned is None else None
            known = parameter is not None and not parameter.required
            given = default_value(self._analysis, name, parameter.default) if parameter and known else NEVER
        return given

    # Numbers of calls: manifests name them in the order of the source

    def _origins(self, origins: Origins) -> tuple[Origin, ...]:
        return self._named(marks_of(origins).origins)

    def _decisions(
        self, control: Origins, arguments: Iterable[AbstractValue]
    ) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
        """The comparisons, and the choices of items, that decide whether a call is made, or what it is given."""
        marks = marks_of(control.union(*(origins for each in arguments for origins in self._analysis.heap.deep(each))))
        direct = {c.constant for c in marks.tested if c.by}
        kept = self._constants(c.constant for c in marks.tested)
        compared = (c for c in marks.tested if c.constant in kept and (c.by or c.constant not in direct))
        # `sorted(names)[3:]` says all that `sorted(names)` says.
        picked = (p for p in marks.picked if not any(p != other and p in other for other in marks.picked))
        return tuple(sorted(compared, key=repr)), tuple(sorted(picked))

    def _constants(self, constants: Iterable[str | int | float]) -> tuple[str | int | float, ...]:
        """Constants that can be stored. Texts that schemas list, and numbers that a program counts to, say nothing."""
        written = {n.value for n in self._analysis.facts.every(tree.Constant)}
        constants = [c for c in constants if isinstance(c, str) or abs(c) in written]
        kept: list[str | int | float] = []
        for one in sorted(constants, key=lambda c: (-len(str(c)), repr(c))):
            if (
                one not in self._analysis.listed
                and problem_in(one) is None
                and not any(str(one) in str(k) for k in kept)
            ):
                kept.append(one)
        return tuple(sorted(kept, key=repr))

    def _named(self, origins: Origins) -> tuple[Origin, ...]:
        return tuple(sorted({self._origin(o) for o in origins}))

    def _origin(self, origin: Origin) -> Origin:
        kind, _, name = origin.partition(":")
        return f"call:{self._number[int(name)]}" if kind == "call" else origin

    def _bound(self, polynomial: Polynomial) -> Bound:
        bound = as_bound(polynomial)
        if bound is None:
            return None
        return tuple(Term(t.times, tuple(Symbol(s.kind, self._origin(s.origin), s.path) for s in t.of)) for t in bound)

    def _alternative(self, alternative: templates.Alternative, data: tuple[Origin, ...]) -> Alternative:
        if isinstance(alternative, templates.Constant):
            return alternative.value
        return tuple(self._part(p, data) for p in alternative)

    def _part(self, part: templates.Part, data: tuple[Origin, ...]) -> Part:
        if isinstance(part, str):
            return part
        if isinstance(part, templates.Count):
            return templates.NUMBER
        if part.kind == "output":
            return Hole("output", call=self._number[part.call], path=part.path)
        if part.kind == "any" and part.call >= 0:
            return Hole("any", data=self._origins(self._analysis.heap.deep(self._analysis.content_of(part))[0]))
        if part.kind in ("any", "bytes"):
            return Hole("any", data=data)
        if part.kind in ENCODED:
            return self._encoded(part, data)
        if part.of:
            inner = tuple(self._part(p, data) for p in part.of)
            # A piece of a text that can't leave the program may leave it.
            return Hole(part.kind, of=inner) if all(map(_can_leave, inner)) else Hole("any", data=data)
        return part

    def _encoded(self, hole: Hole, data: tuple[Origin, ...]) -> Hole:
        if hole in self._inside or self._left <= 0:
            return Hole("any", data=data)
        self._inside.append(hole)
        value = self._inner(self._analysis.content_of(hole), frozenset())
        self._inside.pop()
        return Hole(hole.kind, of=tuple(self._part(p, data) for p in hole.of), value=value)

    # Values

    def _value(self, value: AbstractValue) -> Value:
        self._left = _MAX_VALUES
        exported = self._inner(value, frozenset())
        made = marks_of(self._analysis.heap.deep(value)[0]).made
        shown = "\0".join(map(str, constants_shown(exported)))
        hidden = self._constants(c for c in made if str(c).rstrip("/") not in shown)
        return replace(exported, made=hidden) if hidden else exported

    def _inner(self, value: AbstractValue, above: frozenset[Site]) -> Value:
        analysis = self._analysis
        self._left -= 1
        data, control = analysis.heap.deep(value)
        origins = self._origins(data), self._origins(control)
        possible = sorted(value.alternatives, key=repr)
        if self._inside:
            possible = [*map(_stored, possible)]
        else:
            # No call and no result can have another one: it fails before the value leaves the program.
            possible = [t for t in possible if all(map(_can_leave, t))]
        alternatives = tuple(sorted((self._alternative(t, origins[0]) for t in possible), key=repr))
        if not value.sites:
            return Value(alternatives, *origins)
        containers = [analysis.heap.at[s] for s in value.sites]
        too_much = self._left <= 0 or len(above) > _MAX_DEPTH or bool(above & value.sites)
        lists = [c for c in containers if c.kind == "list"]
        dicts = [c for c in containers if c.kind == "dict"]
        is_open = len(lists) + len(dicts) < len(containers)
        if too_much or not (lists or dicts):
            # Unknown parts of a known parameter or output still have names.
            return Value(alternatives, *origins, open=True)
        above = above | value.sites
        items = self._inner(join(v for c in lists for v in c.fields.values()), above) if lists else None
        known = is_plain_list(analysis, value) if items is not None else None
        places = (
            tuple(self._inner(v, above) for v in known) if known is not None and len(known) <= _MAX_PLACES else None
        )
        fields: dict[str, Value] | None = None
        rest = None
        if dicts:
            names = {k for c in dicts for k in c.fields if isinstance(k, str) and _can_leave(k)}
            fields = {
                # Among the other keys of one dictionary can be a known key of another. In a text, the number 1 is the key "1".
                name: self._inner(
                    join(v for c in dicts for k, v in c.fields.items() if k == name or _is_other(k)), above
                )
                for name in sorted(names)
            }
            others = [(k, v) for c in dicts for k, v in c.fields.items() if _is_other(k)]
            if any(k is not REST or v != NEVER for k, v in others):
                rest = self._inner(join(v for _, v in others), above)
        return Value(
            alternatives, *origins, items, places, fields, rest, is_open, self._bound(self._bounds.of_items(value))
        )


def _is_other(key: object) -> bool:
    """Whether a key of a dictionary is none of the known names."""
    return key is not KEYS and not (isinstance(key, str) and _can_leave(key))


def _stored(alternative: templates.Alternative) -> templates.Alternative:
    """An alternative inside of a text, where a number or a character can be that is no JSON."""
    if isinstance(alternative, templates.Constant):
        return alternative if _can_leave(alternative.value) else (templates.NUMBER,)
    return tuple(part if _can_leave(part) else templates.ANY for part in alternative)


def _can_leave(part: templates.Part | float | None) -> bool:
    """Whether a part of a template, or a constant, can leave the program."""
    return isinstance(part, Hole | templates.Count) or problem_in(part) is None
