"""The types of a whole source: rounds over its functions, and what one function knows of another.

A round visits each helper twice. First callees before callers, to find out what each returns if its parameters can be anything.
Then callers before callees, with the types of the arguments that the calls give; only this visit reports findings. The
parameters of a recursive helper, or of one that is a callback, can be anything. The annotations of helpers are not used,
because Python does not check them. The parameters of the tool and the outputs of the tools that it calls fit their schemas,
because the service validates each call.

A round assumes that certain containers are never changed (`sites`). If it finds changes of others, another round assumes these,
too. There are at most `MAX_ROUNDS`, so the time is proportional to the size of the source.
"""

from __future__ import annotations

from albert_tools.engine.check import annotation_schemas
from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.types.source_types import SourceTypes, State
from albert_tools.engine.check.types.typed_statements import Body
from albert_tools.engine.check.types.value_types import Site, constant, from_schema
from albert_tools.engine.model.definition import Schema
from albert_tools.grammar import tree

#: After this many rounds, all containers are assumed to change.
MAX_ROUNDS = 3


def infer(facts: Facts, trusts_tools: bool = True) -> SourceTypes:
    """The types of a source.

    Args:
        facts: The source.
        trusts_tools: Whether the outputs of tools fit their schemas. The stubs of an example need not.
    """
    order, recursive = _callers_first(facts)
    callbacks = {n.id for n in facts.every(tree.Name) if n.id in facts.functions and not facts.is_called(n)}
    parameters: list[Schema] = []
    schema: Schema = {}
    if facts.tool is not None:
        try:
            parameters, schema = annotation_schemas.signature_schemas(facts.tool, facts)
        except annotation_schemas.TooManyNodes:
            parameters = [{} for _ in facts.tool.params]
    changed: frozenset[Site] | None = frozenset()
    for _ in range(MAX_ROUNDS):
        source = SourceTypes(facts, changed, schema, recursive | callbacks, trusts_tools)
        _round(source, order, recursive, parameters)
        assert changed is not None
        if source.sites.found() <= changed:
            return source
        changed |= source.sites.found()
    source = SourceTypes(facts, None, schema, recursive | callbacks, trusts_tools)
    _round(source, order, recursive, parameters)
    return source


def _round(source: SourceTypes, order: list[str], recursive: frozenset[str], parameters: list[Schema]) -> None:
    facts = source.facts
    if any(True for _ in facts.every(tree.Try)):
        # A caller may not have been visited before.
        for name in recursive:
            source.excused[name].add("Exception")
    source.constants = Body(source, None, quiet=True).module()
    for name in reversed(order):
        if facts.functions[name] is not facts.tool:
            source.results[name] = Body(source, facts.functions[name], quiet=True).returns({})
    # Only the second visit knows the values that are changed.
    source.forget_sites()
    source.constants = Body(source, None, quiet=False).module()
    for name in order:
        function = facts.functions[name]
        returned = Body(source, function, quiet=False).returns(_entry(source, function, parameters))
        if function is facts.tool:
            source.result = returned


def _entry(source: SourceTypes, function: tree.FunctionDef, parameters: list[Schema]) -> State:
    """The types of a function's parameters."""
    if function.name in source.opaque:
        return {}
    s: State = {}
    for i, p in enumerate(function.params):
        if function is source.facts.tool:
            types = [from_schema(parameters[i], id(p), source.sites.changed)]
            if p.default is not None:
                known = annotation_schemas.is_literal(p.default)
                types.append(constant(annotation_schemas.value_of(p.default)) if known else None)
        else:
            types = source.arguments[function.name][p.name] or [None]
        type_ = source.sites.join(types)
        if p.name in source.facts.scopes.captured:
            source.sites.escape(type_)
        elif type_ is not None and p.name not in source.facts.rebound:
            s[p.name] = type_
    return s


def _callers_first(facts: Facts) -> tuple[list[str], frozenset[str]]:
    """The functions, callers before callees, and those that are recursive or called by one that is."""
    waiting = dict.fromkeys(facts.functions, 0)
    for callees in facts.edges.values():
        for name in callees:
            waiting[name] += 1
    ready = [name for name, count in waiting.items() if count == 0]
    for name in ready:
        for callee in facts.edges[name]:
            waiting[callee] -= 1
            if waiting[callee] == 0:
                ready.append(callee)
    rest = [name for name in facts.functions if waiting[name]]
    return [*ready, *rest], frozenset(rest)
