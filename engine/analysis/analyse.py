"""The manifest of a checked program: what it can do, found out without running it.

This is an abstract interpretation. It runs the program on abstract values (`values`), which stand for all values that an expression
can have, until nothing new is found (`state`). `expressions`, `statements` and the tables of functions and methods say what each
part of the language does to them; `call_bounds` says how often; `export` writes the result.
"""

from __future__ import annotations

from functools import partial

from albert_tools.engine.analysis.export import manifest_of
from albert_tools.engine.analysis.expressions import evaluate
from albert_tools.engine.analysis.schema_values import Source, from_schema
from albert_tools.engine.analysis.state import Analysis, TooMuch
from albert_tools.engine.analysis.statements import run
from albert_tools.engine.analysis.substitution import default_value
from albert_tools.engine.check.checker import Checked
from albert_tools.engine.model.manifest import ANY_NAME, Hole, Manifest, PlannedCall, Value
from albert_tools.engine.model.marked_paths import holds_credentials, is_executed


def analyse(checked: Checked) -> Manifest:
    """Find out what a program can do. If that takes too long, everything that its effects allow is possible."""
    analysis = Analysis(checked, evaluate, run)
    assert checked.facts.tool is not None
    for p, named in zip(checked.definition.parameters, checked.facts.tool.params, strict=True):
        hole = partial(_hole, p.name)
        source = Source(("parameter", p.name), hole, frozenset({f"parameter:{p.name}"}), {}, {}, True)
        value = from_schema(analysis, p.schema, source)
        if not p.required:
            default = default_value(analysis, ("default", p.name), p.default)
            # A scalar default is the parameter's value, too; it is shown if it is a file with a meaning. The caller's own default
            # container is known.
            is_marked = isinstance(p.default, str) and (is_executed(p.default) or holds_credentials(p.default))
            value = (
                value | default._replace(data=source.data) if default.sites or p.default is None or is_marked else value
            )
        analysis.parameters[analysis.entry, named.name] = value
    try:
        analysis.solve()
        return manifest_of(analysis)
    except TooMuch as problem:
        return _anything(checked, problem.line)


def _hole(parameter: str, path: str) -> Hole:
    return Hole("parameter", parameter, path=path)


def _anything(checked: Checked, line: int) -> Manifest:
    """The manifest of a program whose callees alone are known."""
    planned_calls: dict[str, PlannedCall] = {}
    for _, name in checked.facts.callees:
        definition = checked.facts.catalog.get(name)
        assert definition is not None
        manifest = definition.manifest
        if manifest is None:
            own = definition.declared
            planned_calls[name] = PlannedCall(
                name, definition.effects, uses=dict(own.uses), source=own.source, has_times=own.has_times
            )
        else:
            planned_calls |= {c.tool: c for c in manifest.calls}
    origins = tuple(f"parameter:{p.name}" for p in checked.definition.parameters)
    origins += tuple(f"call:{i}" for i in range(len(planned_calls)))
    unknown = Value(data=origins, open=True)
    calls = tuple(
        PlannedCall(
            c.tool,
            c.effects,
            arguments=dict.fromkeys([*c.uses, ANY_NAME], unknown),
            uses=c.uses,
            source=c.source,
            control=origins,
            has_times=c.has_times,
        )
        for c in planned_calls.values()
    )
    return Manifest(checked.definition.effects, calls, unknown, origins, origins, given_up=line)
