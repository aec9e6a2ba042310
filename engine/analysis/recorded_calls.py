"""Calls of tools. A call of a primitive is recorded; a call of a saved tool becomes the calls of its manifest."""

from __future__ import annotations

from collections.abc import Hashable

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import Arguments
from albert_tools.engine.analysis.containers import anything
from albert_tools.engine.analysis.schema_values import Source, from_schema
from albert_tools.engine.analysis.state import Analysis, Recorded, Substitution
from albert_tools.engine.analysis.substitution import decided_by, default_value, instantiate, origins_of
from albert_tools.engine.analysis.values import NEVER, AbstractValue, Origins, constant
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.manifest import Hole
from albert_tools.engine.model.manifest_match import PATH_USES
from albert_tools.grammar import tree


def call_tool(analysis: Analysis, node: tree.Call, name: str, given: Arguments, control: Origins) -> AbstractValue:
    """The output of a call of a tool."""
    definition = analysis.facts.catalog.get(name)
    assert definition is not None
    arguments = _bound(definition, given)
    if definition.manifest is not None:
        return _saved(analysis, node, definition, arguments, control)
    key = (analysis.frame.instance, id(node))
    call = _recorded(analysis, key, node, definition)
    _add(analysis, call, arguments, control)
    if "tool" in definition.declared.uses.values():
        _of_batch(analysis, node, definition, arguments, control)
    data = frozenset({call.origin})
    facts = _facts(analysis, definition, arguments)
    sizes = _sizes(analysis, node, definition, arguments)
    is_ours = definition.declared.source != "server"
    source = Source(key, lambda path: Hole("output", call=call.index, path=path), data, facts, sizes, False, is_ours)
    return from_schema(analysis, definition.result, source)


def _of_batch(
    analysis: Analysis,
    node: tree.Call,
    definition: ToolDefinition,
    arguments: dict[str, AbstractValue],
    control: Origins,
) -> None:
    """Record the calls of a batch's tool for the items. They are made later, with what the items are now."""
    given = {use: arguments.get(name, NEVER) for name, use in definition.declared.uses.items()}
    items, loop = given.get("items", NEVER), (analysis.frame.instance, id(node))
    analysis.grow(analysis.iterated, loop, items)
    outer, analysis.frame.loops = analysis.frame.loops, (*analysis.frame.loops, loop)
    decided = control | analysis.heap.size(items)
    for name in given["tool"].constants() or ():
        tool = analysis.facts.catalog.get(str(name))
        assert tool is not None
        each = _arguments_in(analysis, loop, tool, analysis.heap.items(items))
        if tool.manifest is not None:
            _saved(analysis, node, tool, each, decided)
        else:
            _add(analysis, _recorded(analysis, (*loop, "items"), node, tool), each, decided)
    analysis.frame.loops = outer


def _arguments_in(
    analysis: Analysis, key: Hashable, tool: ToolDefinition, item: AbstractValue
) -> dict[str, AbstractValue]:
    """The arguments of a call that are the values of a dictionary."""
    arguments = {}
    for p in tool.parameters:
        given = analysis.heap.item(item, constant(p.name))
        if p.required:
            arguments[p.name] = given
        elif given.alternatives or given.sites:
            arguments[p.name] = given | default_value(analysis, (key, p.name), p.default)
    return arguments


def _bound(definition: ToolDefinition, given: Arguments) -> dict[str, AbstractValue]:
    """The arguments by the names of the parameters."""
    arguments = dict(given.named)
    for p, value in zip(definition.parameters, given.positional, strict=False):
        arguments[p.name] = arguments.get(p.name, NEVER) | value
    if given.more is not NEVER:
        for p in definition.parameters:
            arguments[p.name] = arguments.get(p.name, NEVER) | given.more
    return arguments


def _recorded(analysis: Analysis, key: Hashable, node: tree.Node, definition: ToolDefinition) -> Recorded:
    call = analysis.calls.get(key)
    if call is None:
        call = Recorded(len(analysis.calls), definition, node, analysis.frame.instance, analysis.frame.loops)
        analysis.calls[key] = call
    return call


def _add(analysis: Analysis, call: Recorded, arguments: dict[str, AbstractValue], control: Origins) -> None:
    """Add what is known about the arguments of a call, and about what decides whether it is made."""
    for name, value in arguments.items():
        call.arguments[name] = call.arguments.get(name, NEVER) | value
    call.control |= control | analysis.frame.failing


def _facts(
    analysis: Analysis, definition: ToolDefinition, arguments: dict[str, AbstractValue]
) -> dict[str, templates.Alternatives]:
    """What the primitive declares about places of its output."""
    outputs: dict[str, templates.Alternatives] = {}
    for path, fact in definition.declared.outputs.items():
        kind, _, name = fact.rpartition(" ")
        if fact in ("word", "number"):
            outputs[path] = frozenset({(templates.WORD if fact == "word" else templates.NUMBER,)})
        elif kind in ("same as", "below"):
            value = arguments.get(name)
            if value is None:
                parameter = definition.parameter(name)
                value = default_value(
                    analysis, (definition.name, name), parameter.default if parameter is not None else None
                )
            ends = [templates.BELOW] if kind == "below" else []
            texts = [t for t in value.alternatives if not isinstance(t, templates.Constant)]
            if definition.declared.uses.get(name) in PATH_USES:
                texts = [templates.in_normal_form(t, *ends) for t in texts]
            known = frozenset(texts)
            if known and not value.sites:
                outputs[path] = templates.union(known)
    return outputs


def _sizes(
    analysis: Analysis, node: tree.Node, definition: ToolDefinition, arguments: dict[str, AbstractValue]
) -> dict[str, tuple[object, ...]]:
    """What the primitive declares about the sizes of lists in its output: ``at most 100 items``, ``at most limit items``."""
    sizes: dict[str, tuple[object, ...]] = {}
    for path, fact in definition.declared.outputs.items():
        words = fact.split(" ")
        if words[:2] != ["at", "most"]:
            continue
        if words[2].isdecimal():
            # More calls than a run may make say less than "once for each entry".
            if int(words[2]) < RunLimits().calls:
                sizes[path] = ("number", int(words[2]))
        else:
            parameter = definition.parameter(words[2])
            default = default_value(
                analysis, (definition.name, words[2]), parameter.default if parameter is not None else None
            )
            given = arguments.get(words[2], default)
            sizes[path] = ("value", analysis.remember(node, given, f"most {path}"))
    return sizes


def _saved(
    analysis: Analysis,
    node: tree.Call,
    definition: ToolDefinition,
    arguments: dict[str, AbstractValue],
    control: Origins,
) -> AbstractValue:
    manifest = definition.manifest
    assert manifest is not None
    key = (analysis.frame.instance, id(node))
    for p in definition.parameters:
        if p.name not in arguments:
            missing = (
                anything(analysis, node, tag=f"missing {p.name}")
                if p.required
                else default_value(analysis, (key, p.name), p.default)
            )
            arguments[p.name] = missing
    calls = []
    for i, planned in enumerate(manifest.calls):
        call = _recorded(analysis, (key, i), node, definition)
        call.planned, call.via, call.place = planned, (definition.name, *planned.via), key
        calls.append(call)
    substitution = analysis.substitutions[key] = Substitution(key, arguments, tuple(calls))
    for i, (call, planned) in enumerate(zip(calls, manifest.calls, strict=True)):
        inner = {
            name: instantiate(analysis, value, substitution, (key, i, name))
            for name, value in planned.arguments.items()
        }
        _add(analysis, call, inner, control | decided_by(analysis, planned, substitution))
    analysis.printed |= (
        control.union(*origins_of(analysis, manifest.printed, substitution)) if manifest.printed else frozenset()
    )
    data, decided = origins_of(analysis, manifest.raised, substitution)
    analysis.raised |= data | decided
    analysis.frame.failing |= data | decided
    for seen in analysis.frame.watching:
        # The error of a call that fails inside can say what the call was given and found.
        seen.origins |= data | decided | {c.origin for c in calls}
    return instantiate(analysis, manifest.result, substitution, (key, "result"))
