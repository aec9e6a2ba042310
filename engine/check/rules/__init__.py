"""The rules, in the order they run. A new rule is a file here and a line in this list."""

from __future__ import annotations

from albert_tools.engine.check.rule import Rule
from albert_tools.engine.check.rules import (
    annotation_rules,
    assignment,
    attributes,
    calls,
    growing_containers,
    imports,
    lazy_values,
    literal_args,
    names,
    parallel,
    size_limits,
    statements,
    tool_shape,
    unused_results,
    values,
)

RULES: tuple[Rule, ...] = (
    tool_shape.check,
    tool_shape.documented,
    tool_shape.defaults,
    imports.check,
    names.rebound,
    names.unknown,
    assignment.check,
    calls.tools,
    calls.others,
    literal_args.check,
    values.check,
    lazy_values.check,
    attributes.check,
    annotation_rules.check,
    statements.targets,
    statements.places,
    statements.handlers,
    statements.patterns,
    statements.decorators,
    growing_containers.check,
    parallel.check,
    size_limits.check,
    unused_results.check,
)
