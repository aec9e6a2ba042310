"""The names that `case` patterns bind."""

from __future__ import annotations

from albert_tools.engine.analysis.containers import copy_of, new_list, only_site
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import AbstractValue, Origins
from albert_tools.grammar import tree


def bind_pattern(a: Analysis, pattern: tree.Pattern, value: AbstractValue, control: Origins) -> None:
    """Bind the names of a pattern that is compared with a value."""
    match pattern:
        case tree.MatchSequence():
            item = a.heap.items(value._replace(alternatives=frozenset()))
            for part in pattern.patterns:
                if isinstance(part, tree.MatchStar) and part.name:
                    # The list is new.
                    rest = new_list(a, part, "star", item)
                    a.sized(only_site(rest), "length", a.remember(part, value))
                    a.assign(part.name, rest.under(control | value.origins))
                else:
                    bind_pattern(a, part, item, control)
        case tree.MatchMapping():
            for key, part in zip(pattern.keys, pattern.patterns, strict=True):
                bind_pattern(a, part, a.heap.item(value, a.evaluate(key, control)), control)
            if pattern.rest:
                a.assign(pattern.rest, copy_of(a, pattern, value, "rest").under(control))
        case tree.MatchAs():
            if pattern.pattern is not None:
                bind_pattern(a, pattern.pattern, value, control)
            if pattern.name:
                a.assign(pattern.name, value.under(control))
        case tree.MatchOr():
            for part in pattern.patterns:
                bind_pattern(a, part, value, control)
