"""The rules, in the order they run. A new rule is a file here and a line in this list."""

from __future__ import annotations

from albert_tools.engine.check.rule import Rule
from albert_tools.engine.check.rules import (
    annotated,
    assigned,
    attributes,
    calls,
    handed,
    imports,
    lazy,
    limits,
    names,
    parallel,
    shape,
    statements,
    totality,
    unused,
    values,
)

RULES: tuple[Rule, ...] = (
    shape.check,
    shape.documented,
    shape.defaults,
    imports.check,
    names.rebound,
    names.unknown,
    assigned.check,
    calls.tools,
    calls.others,
    handed.check,
    values.check,
    lazy.check,
    attributes.check,
    annotated.check,
    statements.targets,
    statements.places,
    statements.handlers,
    statements.patterns,
    statements.decorators,
    totality.check,
    parallel.check,
    limits.check,
    unused.check,
)
