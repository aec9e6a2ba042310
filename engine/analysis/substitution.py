"""A saved tool's manifest at one call: its parameters replaced by the arguments, its calls by the calls recorded here."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.state import Analysis, Substitution
from albert_tools.engine.analysis.values import (
    KEYS,
    NEVER,
    REST,
    AbstractValue,
    Origins,
    comparisons,
    constant,
    made_with,
    picks,
    sizes_of,
)
from albert_tools.engine.model.manifest import Hole, Origin, PlannedCall, Value
from albert_tools.engine.model.manifest import Part as StoredPart

_STEP = re.compile(r"\[(\d+|\*)\]|\.([^.\[~]+)|~")


def origins_of(a: Analysis, origins: Iterable[Origin], substitution: Substitution) -> tuple[Origins, Origins]:
    """What origins of the saved tool are here: data and control."""
    data: set[Origin] = set()
    control: set[Origin] = set()
    for origin in origins:
        kind, _, name = origin.partition(":")
        if kind == "call":
            data.add(substitution.calls[int(name)].origin)
        else:
            ours, decided = a.heap.deep(substitution.arguments.get(name, NEVER))
            data |= ours
            control |= decided
    return frozenset(data), frozenset(control)


def decided_by(a: Analysis, planned: PlannedCall, substitution: Substitution) -> Origins:
    """What decides here whether and how often a call of the saved tool is made."""
    found: set[Origin] = set()
    for origin in planned.control:
        data, control = origins_of(a, [origin], substitution)
        kind, _, name = origin.partition(":")
        counted = origin in planned.counted and (
            kind == "call" or a.heap.is_counted(substitution.arguments.get(name, NEVER))
        )
        found |= (sizes_of(data) if counted else data) | control
    return comparisons(planned.compared).union(picks(planned.picked), found)


def instantiate(a: Analysis, value: Value, substitution: Substitution, site: Hashable) -> AbstractValue:
    """A value of the manifest, in the state of this analysis. `site` names the place of its containers."""
    data, control = origins_of(a, value.data, substitution)
    more_data, more_control = origins_of(a, value.control, substitution)
    control |= more_data | more_control
    data |= made_with(value.made)
    alternatives: set[templates.Alternative] = set()
    for stored in value.alternatives:
        if isinstance(stored, tuple):
            alternatives |= _alternatives(a, stored, substitution)
        else:
            alternatives |= templates.constant(stored)
    found = AbstractValue(templates.union(frozenset(alternatives)), data, control)
    if value.open:
        found = found | _open(a, data, control, site)
    if value.items is not None:
        made = a.heap.make((site, "list"), outside=True)
        if value.places is None:
            a.heap.put((site, "list"), REST, instantiate(a, value.items, substitution, (site, "[]")))
        for i, place in enumerate(value.places or ()):
            a.heap.put((site, "list"), i, instantiate(a, place, substitution, (site, i)))
        _size(a, (site, "list"), value, substitution)
        found = found | made
    if value.fields is not None or value.rest is not None:
        made = a.heap.make((site, "dict"), "dict", outside=True)
        for name, inner in (value.fields or {}).items():
            a.heap.put((site, "dict"), name, instantiate(a, inner, substitution, (site, name)))
        if value.rest is not None:
            a.heap.put((site, "dict"), REST, instantiate(a, value.rest, substitution, (site, "*")))
            a.heap.put((site, "dict"), KEYS, AbstractValue(templates.ANYTHING, data, control))
        _size(a, (site, "dict"), value, substitution)
        found = found | made
    return found


def _size(a: Analysis, site: Hashable, value: Value, substitution: Substitution) -> None:
    if value.size is None:
        a.sized(site, "unknown")
    else:
        a.sized(site, "bound", value.size, substitution.key)


def _open(a: Analysis, data: Origins, control: Origins, site: Hashable) -> AbstractValue:
    made = a.heap.make((site, "open"), "open", outside=True)
    whole = AbstractValue(templates.ANYTHING, data, control, made.sites)
    a.heap.put((site, "open"), REST, whole)
    a.sized((site, "open"), "unknown")
    return whole


def _alternatives(
    a: Analysis, stored: tuple[StoredPart, ...], substitution: Substitution
) -> set[templates.Alternative]:
    """All templates that a template of the manifest stands for here."""
    if len(stored) == 1 and isinstance(stored[0], Hole):
        # A value of which nothing is known has its origins itself.
        return {(templates.ANY,)} if stored[0].kind == "any" else set(_of_hole(a, stored[0], substitution))
    found: frozenset[templates.Alternative] = frozenset({()})
    for part in stored:
        options = frozenset({(part,)}) if isinstance(part, str) else _of_hole(a, part, substitution)
        found = templates.concatenated(found, options or templates.ANYTHING)
    return set(found)


def _of_hole(a: Analysis, hole: Hole, substitution: Substitution) -> templates.Alternatives:
    match hole.kind:
        case "parameter":
            value = at_path(a, substitution.arguments.get(hole.name, NEVER), hole.path)
            return value.alternatives or templates.ANYTHING
        case "output":
            return frozenset({(Hole("output", call=substitution.calls[hole.call].index, path=hole.path),)})
        case "part":
            return templates.pieces(frozenset(_alternatives(a, hole.of, substitution)))
        case "path":
            return templates.union(frozenset(map(templates.in_normal_form, _alternatives(a, hole.of, substitution))))
        case "quoted":
            inner = _alternatives(a, hole.of, substitution)
            return frozenset((Hole("quoted", of=templates.stored(t)),) for t in inner)
        case kind if hole.value is not None:
            number = _kept(a, substitution, hole, instantiate(a, hole.value, substitution, (substitution.key, hole)))
            return frozenset(
                (Hole(kind, call=number, of=templates.stored(t)),) for t in _alternatives(a, hole.of, substitution)
            )
        case "any" if hole.data:
            value = AbstractValue(templates.ANYTHING, *origins_of(a, hole.data, substitution))
            return frozenset({(Hole("any", call=_kept(a, substitution, hole, value)),)})
    return frozenset({(Hole(hole.kind),)})


def _kept(a: Analysis, substitution: Substitution, hole: Hole, value: AbstractValue) -> int:
    """The number of a value that a hole of the manifest has here."""
    key = (substitution.key, hole)
    a.grow(a.lengths, key, value)
    return a.encoded_value(key)


def at_path(a: Analysis, value: AbstractValue, path: str) -> AbstractValue:
    """What is at a place inside a value: ``.rows[*].name``."""
    for step in _STEP.finditer(path):
        index, name = step.groups()
        if step[0] == "~":
            data, control = a.heap.deep(value)
            return AbstractValue(templates.ANYTHING, data, control)
        if index == "*" or name == "*":
            value = a.heap.values(value)
        else:
            value = a.heap.item(value, constant(int(index) if index is not None else name))
    return value


def default_value(a: Analysis, site: Hashable, default: Any) -> AbstractValue:
    """The value of a default."""
    if isinstance(default, list | dict):
        kind = "list" if isinstance(default, list) else "dict"
        made = a.heap.make((site, kind), kind)
        for key, item in enumerate(default) if isinstance(default, list) else default.items():
            a.heap.put((site, kind), key, default_value(a, (site, key), item))
        a.sized((site, kind), "number", len(default))
        return made
    return constant(default)
