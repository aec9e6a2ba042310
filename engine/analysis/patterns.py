"""The names that `case` patterns bind."""

from __future__ import annotations

from albert_tools.engine.analysis.containers import copy_of, new_list, only_site
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import AbstractValue, Origins
from albert_tools.grammar import tree


def bind_pattern(analysis: Analysis, pattern: tree.Pattern, value: AbstractValue, control: Origins) -> None:
    """Bind the names of a pattern that is compared with a value."""
    match pattern:
        case tree.MatchSequence():
            item = analysis.heap.items(value._replace(alternatives=frozenset()))
            for part in pattern.patterns:
                if isinstance(part, tree.MatchStar) and part.name:
                    # The list is new.
                    rest = new_list(analysis, part, "star", item)
                    analysis.sized(only_site(rest), "length", analysis.remember(part, value))
                    analysis.assign(part.name, rest.under(control | value.origins))
                else:
                    bind_pattern(analysis, part, item, control)
        case tree.MatchMapping():
            for key, part in zip(pattern.keys, pattern.patterns, strict=True):
                bind_pattern(analysis, part, analysis.heap.item(value, analysis.evaluate(key, control)), control)
            if pattern.rest:
                analysis.assign(pattern.rest, copy_of(analysis, pattern, value, "rest").under(control))
        case tree.MatchAs():
            if pattern.pattern is not None:
                bind_pattern(analysis, pattern.pattern, value, control)
            if pattern.name:
                analysis.assign(pattern.name, value.under(control))
        case tree.MatchOr():
            for part in pattern.patterns:
                bind_pattern(analysis, part, value, control)
