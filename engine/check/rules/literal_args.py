"""A literal argument of a tool must match the schema of its parameter.

``tools.sleep(seconds="1")`` always fails at run time, so the checker reports it. The rule only checks literals. It uses the same
code that validates every call, so both always give the same result."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.annotation_schemas import is_literal, value_of
from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.model.definition import ToolParameter, spell
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.nearest_name import nearest
from albert_tools.engine.model.validation import Violation, violations
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Fix
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "tool-value",
        "A literal argument does not fit the schema of the tool's parameter.",
        "The call would fail whenever it is reached.",
        example=in_tool("return tools.read_file(path=1)"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
)

#: The most characters of a parameter's description that a hint contains.
_MAX_DESCRIPTION = 160


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each literal argument of each ``tools.NAME(...)`` against its parameter."""
    for call, name in facts.tool_calls:
        definition = facts.catalog.get(name)
        if definition is None:
            continue
        named = {p.name: p for p in definition.parameters}
        arguments = [*zip(definition.parameters, call.args, strict=False)]
        arguments += [(named[k.arg], k.value) for k in call.keywords if k.arg in named]
        for parameter, value in arguments:
            if isinstance(value, tree.Starred):
                break
            if not is_literal(value):
                continue
            for violation in violations(value_of(value), parameter.schema, parameter.name):
                fix = _fix(value, parameter, violation)
                takes = brief(parameter.description or spell(parameter.schema), _MAX_DESCRIPTION)
                yield error(
                    "tool-value",
                    value,
                    f"{name} does not take this value: {violation['message']}",
                    hint=fix.title if fix is not None else f"{parameter.name}: {takes}",
                    fix=fix,
                )


def _fix(node: tree.Expr, parameter: ToolParameter, violation: Violation) -> Fix | None:
    """The fix that writes the most similar choice."""
    choices = parameter.schema.get("enum", ())
    value = value_of(node)
    if violation["rule"] != "enum" or not isinstance(value, str) or violation["field"] != parameter.name:
        return None
    meant = nearest(value, [c for c in choices if isinstance(c, str) and c.isidentifier()])
    return replace(node, f'"{meant}"') if meant is not None else None
