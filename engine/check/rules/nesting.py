"""Classes are at module level."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "nested-class",
        "A TypedDict is defined inside another block.",
        "Annotations anywhere in the source may name it.",
        example=in_tool("class Row(TypedDict):\n    name: str\nreturn path"),
        rewrite="class Row(TypedDict):\n    name: str\n\n\n" + in_tool("return Row(name=path)"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the place of every class."""
    for node in facts.every(tree.ClassDef):
        if facts.parent(node) is not facts.module:
            yield error("nested-class", node.name_span, "a TypedDict must be at module level", hint="move it there")
