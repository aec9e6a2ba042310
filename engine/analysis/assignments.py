"""Assignment to names, items, and several targets at once."""

from __future__ import annotations

from albert_tools.engine.analysis.containers import concern, extend, new_list, spread, store
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import AbstractValue, Origins
from albert_tools.grammar import tree


def assign(a: Analysis, target: tree.Expr, value: AbstractValue, control: Origins) -> None:
    """Assign a value to a target, if `control` lets it."""
    match target:
        case tree.Name():
            a.assign(target.id, value.under(control))
        case tree.Tuple() | tree.List():
            starred = any(isinstance(t, tree.Starred) for t in target.elts)
            for i, part in enumerate(target.elts):
                if isinstance(part, tree.Starred):
                    rest = new_list(a, part, "starred", a.heap.items(value))
                    a.sized(a.site(part, "starred"), "length", a.remember(part, value))
                    inner = AbstractValue(data=value.data, control=a.heap.shape(value), sites=rest.sites)
                    assign(a, part.value, inner, control)
                else:
                    assign(a, part, spread(a, value, i, len(target.elts), starred), control)
        case tree.Subscript():
            box = a.evaluate(target.value, control)
            a.current = target
            if isinstance(target.slice, tree.Slice):
                bounds = [target.slice.lower, target.slice.upper, target.slice.step]
                decided = frozenset[str]().union(
                    *(a.heap.condition(a.evaluate(b, control)) for b in bounds if b is not None)
                )
                inner = value.under(control | decided | a.heap.shape(value) | box.origins)
                for site in box.sites:
                    extend(a, site, inner, a.remember(target, value))
                concern(a, box, control | decided)
            else:
                key = a.evaluate(target.slice, control)
                store(a, box, key, value.under(control))
                if key.sites:  # an object can be a slice
                    decided = control | a.heap.condition(key)
                    inner = value.under(decided | a.heap.shape(value) | box.origins)
                    for site in box.sites:
                        if a.heap.kind(site) == "list":
                            extend(a, site, inner, a.remember(target, value))
                            concern(a, box, decided)


def delete(a: Analysis, target: tree.Expr, control: Origins) -> None:
    """``del target``"""
    if isinstance(target, tree.Subscript):
        box = a.evaluate(target.value, control)
        bounds: list[tree.Expr | None] = [target.slice]
        if isinstance(target.slice, tree.Slice):
            bounds = [target.slice.lower, target.slice.upper, target.slice.step]
        keys = [a.evaluate(b, control) for b in bounds if b is not None]
        concern(a, box, control.union(*(a.heap.condition(k) for k in keys)))
