"""The manifest of a checked program."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.model.manifest import Manifest, PlannedCall, Value


def analyse(checked: Checked) -> Manifest:
    """Find out what a program can do."""
    calls: list[PlannedCall] = []
    for node, name in checked.facts.tool_calls:
        definition = checked.facts.catalog.get(name)
        assert definition is not None
        anything = {p.name: Value(open=True) for p in definition.parameters}
        inner = definition.manifest
        if inner is None:
            d = definition.declared
            calls.append(
                PlannedCall(name, definition.effects, node.span.line, (), anything, dict(d.uses), d.source, (), None)
            )
        else:
            calls += [
                replace(
                    c, line=node.span.line, via=(name, *c.via), arguments=dict.fromkeys(c.arguments, Value(open=True))
                )
                for c in inner.calls
            ]
    return Manifest(checked.definition.effects, tuple(calls))
