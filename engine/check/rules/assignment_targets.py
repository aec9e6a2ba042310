"""An assignment can change names and items, but not attributes. ``del`` can only remove items."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "attribute-assignment",
        "An attribute is assigned.",
        "Values have no attributes of their own; a dict holds what belongs together.",
        example=in_tool("path.name = 1\nreturn path"),
        rewrite=in_tool('row = {"path": path}\nrow["name"] = 1\nreturn row'),
    ),
    FindingCode(
        "delete",
        "`del` removes something other than an item.",
        "A deleted name has no value afterwards, and names need no deleting.",
        example=in_tool("parts = path.split()\ndel parts\nreturn path"),
        rewrite=in_tool("parts = path.split()\ndel parts[0]\nreturn parts"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each assigned attribute and each ``del``."""
    for node in facts.every(tree.Attribute):
        if id(node) in facts.assigned_attributes:
            yield error(
                "attribute-assignment",
                node,
                f"the attribute {node.attr!r} can't be assigned",
                hint=f'use a dict: value["{node.attr}"] = …',
            )
    for stmt in facts.every(tree.Delete):
        for t in stmt.targets:
            if not isinstance(t, tree.Subscript):
                yield error(
                    "delete",
                    t,
                    "del removes items only",
                    hint="write del d[key]; a name needs no deleting",
                )
