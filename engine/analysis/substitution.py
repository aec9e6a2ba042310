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


def origins_of(analysis: Analysis, origins: Iterable[Origin], substitution: Substitution) -> tuple[Origins, Origins]:
    """What origins of the saved tool are here: data and control."""
    data: set[Origin] = set()
    control: set[Origin] = set()
    for origin in origins:
        kind, _, name = origin.partition(":")
        if kind == "call":
            data.add(substitution.calls[int(name)].origin)
        else:
            ours, decided = analysis.heap.deep(substitution.arguments.get(name, NEVER))
            data |= ours
            control |= decided
    return frozenset(data), frozenset(control)


def decided_by(analysis: Analysis, planned: PlannedCall, substitution: Substitution) -> Origins:
    """What decides here whether and how often a call of the saved tool is made."""
    deciding: set[Origin] = set()
    for origin in planned.control:
        data, control = origins_of(analysis, [origin], substitution)
        kind, _, name = origin.partition(":")
        counted = origin in planned.counted and (
            kind == "call" or analysis.heap.is_counted(substitution.arguments.get(name, NEVER))
        )
        deciding |= (sizes_of(data) if counted else data) | control
    return comparisons(planned.compared).union(picks(planned.picked), deciding)


def instantiate(analysis: Analysis, value: Value, substitution: Substitution, site: Hashable) -> AbstractValue:
    """A value of the manifest, in the state of this analysis. `site` names the place of its containers."""
    data, control = origins_of(analysis, value.data, substitution)
    more_data, more_control = origins_of(analysis, value.control, substitution)
    control |= more_data | more_control
    data |= made_with(value.made)
    alternatives: set[templates.Alternative] = set()
    for stored in value.alternatives:
        if isinstance(stored, tuple):
            alternatives |= _alternatives(analysis, stored, substitution)
        else:
            alternatives |= templates.constant(stored)
    result = AbstractValue(templates.union(frozenset(alternatives)), data, control)
    if value.open:
        result = result | _open(analysis, data, control, site)
    if value.items is not None:
        made = analysis.heap.make((site, "list"), outside=True)
        if value.places is None:
            analysis.heap.put((site, "list"), REST, instantiate(analysis, value.items, substitution, (site, "[]")))
        for i, place in enumerate(value.places or ()):
            analysis.heap.put((site, "list"), i, instantiate(analysis, place, substitution, (site, i)))
        _size(analysis, (site, "list"), value, substitution)
        result = result | made
    if value.fields is not None or value.rest is not None:
        made = analysis.heap.make((site, "dict"), "dict", outside=True)
        for name, inner in (value.fields or {}).items():
            analysis.heap.put((site, "dict"), name, instantiate(analysis, inner, substitution, (site, name)))
        if value.rest is not None:
            analysis.heap.put((site, "dict"), REST, instantiate(analysis, value.rest, substitution, (site, "*")))
            analysis.heap.put((site, "dict"), KEYS, AbstractValue(templates.ANYTHING, data, control))
        _size(analysis, (site, "dict"), value, substitution)
        result = result | made
    return result


def _size(analysis: Analysis, site: Hashable, value: Value, substitution: Substitution) -> None:
    if value.size is None:
        analysis.sized(site, "unknown")
    else:
        analysis.sized(site, "bound", value.size, substitution.key)


def _open(analysis: Analysis, data: Origins, control: Origins, site: Hashable) -> AbstractValue:
    made = analysis.heap.make((site, "open"), "open", outside=True)
    whole = AbstractValue(templates.ANYTHING, data, control, made.sites)
    analysis.heap.put((site, "open"), REST, whole)
    analysis.sized((site, "open"), "unknown")
    return whole


def _alternatives(
    analysis: Analysis, stored: tuple[StoredPart, ...], substitution: Substitution
) -> set[templates.Alternative]:
    """All templates that a template of the manifest stands for here."""
    if len(stored) == 1 and isinstance(stored[0], Hole):
        # A value of which nothing is known has its origins itself.
        return {(templates.ANY,)} if stored[0].kind == "any" else set(_of_hole(analysis, stored[0], substitution))
    alternatives: frozenset[templates.Alternative] = frozenset({()})
    for part in stored:
        options = frozenset({(part,)}) if isinstance(part, str) else _of_hole(analysis, part, substitution)
        alternatives = templates.concatenated(alternatives, options or templates.ANYTHING)
    return set(alternatives)


def _of_hole(analysis: Analysis, hole: Hole, substitution: Substitution) -> templates.Alternatives:
    match hole.kind:
        case "parameter":
            value = at_path(analysis, substitution.arguments.get(hole.name, NEVER), hole.path)
            return value.alternatives or templates.ANYTHING
        case "output":
            return frozenset({(Hole("output", call=substitution.calls[hole.call].index, path=hole.path),)})
        case "part":
            return templates.pieces(frozenset(_alternatives(analysis, hole.of, substitution)))
        case "path":
            return templates.union(
                frozenset(map(templates.in_normal_form, _alternatives(analysis, hole.of, substitution)))
            )
        case "quoted":
            inner = _alternatives(analysis, hole.of, substitution)
            return frozenset((Hole("quoted", of=templates.stored(t)),) for t in inner)
        case kind if hole.value is not None:
            number = _kept(
                analysis, substitution, hole, instantiate(analysis, hole.value, substitution, (substitution.key, hole))
            )
            return frozenset(
                (Hole(kind, call=number, of=templates.stored(t)),)
                for t in _alternatives(analysis, hole.of, substitution)
            )
        case "any" if hole.data:
            value = AbstractValue(templates.ANYTHING, *origins_of(analysis, hole.data, substitution))
            return frozenset({(Hole("any", call=_kept(analysis, substitution, hole, value)),)})
    return frozenset({(Hole(hole.kind),)})


def _kept(analysis: Analysis, substitution: Substitution, hole: Hole, value: AbstractValue) -> int:
    """The number of a value that a hole of the manifest has here."""
    key = (substitution.key, hole)
    analysis.grow(analysis.lengths, key, value)
    return analysis.encoded_value(key)


def at_path(analysis: Analysis, value: AbstractValue, path: str) -> AbstractValue:
    """What is at a place inside a value: ``.rows[*].name``."""
    for step in _STEP.finditer(path):
        index, name = step.groups()
        if step[0] == "~":
            data, control = analysis.heap.deep(value)
            return AbstractValue(templates.ANYTHING, data, control)
        if index == "*" or name == "*":
            value = analysis.heap.values(value)
        else:
            value = analysis.heap.item(value, constant(int(index) if index is not None else name))
    return value


def default_value(analysis: Analysis, site: Hashable, default: Any) -> AbstractValue:
    """The value of a default."""
    if isinstance(default, list | dict):
        kind = "list" if isinstance(default, list) else "dict"
        made = analysis.heap.make((site, kind), kind)
        for key, item in enumerate(default) if isinstance(default, list) else default.items():
            analysis.heap.put((site, kind), key, default_value(analysis, (site, key), item))
        analysis.sized((site, kind), "number", len(default))
        return made
    return constant(default)
