"""Assignment to names, items, and several targets at once."""

from __future__ import annotations

from albert_tools.engine.analysis.containers import concern, extend, new_list, spread, store
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import AbstractValue, Origins
from albert_tools.grammar import tree


def assign(analysis: Analysis, target: tree.Expr, value: AbstractValue, control: Origins) -> None:
    """Assign a value to a target, if `control` lets it."""
    match target:
        case tree.Name():
            analysis.assign(target.id, value.under(control))
        case tree.Tuple() | tree.List():
            starred = any(isinstance(t, tree.Starred) for t in target.elts)
            for i, part in enumerate(target.elts):
                if isinstance(part, tree.Starred):
                    rest = new_list(analysis, part, "starred", analysis.heap.items(value))
                    analysis.sized(analysis.site(part, "starred"), "length", analysis.remember(part, value))
                    inner = AbstractValue(data=value.data, control=analysis.heap.shape(value), sites=rest.sites)
                    assign(analysis, part.value, inner, control)
                else:
                    assign(analysis, part, spread(analysis, value, i, len(target.elts), starred), control)
        case tree.Subscript():
            container = analysis.evaluate(target.value, control)
            analysis.current = target
            if isinstance(target.slice, tree.Slice):
                bounds = [target.slice.lower, target.slice.upper, target.slice.step]
                decided = analysis.heap.condition(*(analysis.evaluate(b, control) for b in bounds if b is not None))
                inner = value.under(control | decided | analysis.heap.shape(value) | container.origins)
                for site in container.sites:
                    extend(analysis, site, inner, analysis.remember(target, value))
                concern(analysis, container, control | decided)
            else:
                key = analysis.evaluate(target.slice, control)
                store(analysis, container, key, value.under(control))
                if key.sites:  # an object can be a slice
                    decided = control | analysis.heap.condition(key)
                    inner = value.under(decided | analysis.heap.shape(value) | container.origins)
                    for site in container.sites:
                        if analysis.heap.kind(site) == "list":
                            extend(analysis, site, inner, analysis.remember(target, value))
                            concern(analysis, container, decided)


def delete(analysis: Analysis, target: tree.Expr, control: Origins) -> None:
    """``del target``"""
    if isinstance(target, tree.Subscript):
        container = analysis.evaluate(target.value, control)
        bounds: list[tree.Expr | None] = [target.slice]
        if isinstance(target.slice, tree.Slice):
            bounds = [target.slice.lower, target.slice.upper, target.slice.step]
        keys = [analysis.evaluate(b, control) for b in bounds if b is not None]
        concern(analysis, container, control | analysis.heap.condition(*keys))
