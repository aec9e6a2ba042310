"""Defaults are immutable literals. Python evaluates a default once, so a mutable default would share data between calls."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.annotation_schemas import is_literal
from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.scopes import spelled
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode

CODES = (
    FindingCode(
        "mutable-default",
        "The default of a parameter is not an immutable literal.",
        "Python evaluates a default once, so a list would keep what an earlier call put into it.",
        example='''def work(names: list[str] = []) -> int:
    """Count the names."""
    return len(names)
''',
        rewrite='''def work(names: list[str] | None = None) -> int:
    """Count the names."""
    return len(names or [])
''',
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each default."""
    for node in facts.every(tree.Param):
        if node.default is not None and not _immutable(node.default):
            hint = f"write {node.name}=None and set it in the body: if {node.name} is None: …"
            if isinstance(node.default, tree.Name) and spelled(node.default.id) == spelled(node.name):
                hint = f"leave the parameter out, and read {node.name} of the function around; or give it in each call"
            yield error(
                "mutable-default",
                node.default,
                f"the default of {node.name!r} must be a literal: a number, a string, True, False, None or a tuple of these",
                hint=hint,
            )


def _immutable(node: tree.Expr) -> bool:
    """Whether an expression is a literal that can't change."""
    match node:
        case tree.Strings():
            return node.constant is not None
        case tree.Tuple():
            return all(_immutable(e) for e in node.elts)
        case tree.List() | tree.Dict():
            return False
    return is_literal(node)
