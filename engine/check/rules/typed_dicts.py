"""A TypedDict is the only kind of class. It only contains annotated fields."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, is_typed_dict
from albert_tools.engine.check.rule import error
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "no-class",
        "A class is defined that is not a TypedDict, or a TypedDict holds something other than fields.",
        "Values are data; what would be a method is a helper.",
        example="class Row:\n    name = 1\n\n\n" + in_tool("return path"),
        rewrite="class Row(TypedDict):\n    name: str\n\n\n" + in_tool("return Row(name=path)"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each class."""
    for node in facts.every(tree.ClassDef):
        yield from _class(facts, node)


def _class(facts: Facts, node: tree.ClassDef) -> Iterator[Diagnostic]:
    if not is_typed_dict(node):
        yield error(
            "no-class",
            node.name_span,
            "TypedDict is the only class in the language",
            hint=_instead_of_class(facts, node),
        )
        return
    for k in node.keywords:
        if k.arg != "total" or not (isinstance(k.value, tree.Constant) and isinstance(k.value.value, bool)):
            yield error("no-class", k, "a TypedDict takes only total=False", hint="leave it out")
    for i, stmt in enumerate(node.body):
        is_doc = i == 0 and isinstance(stmt, tree.ExprStmt) and isinstance(stmt.value, tree.Strings)
        if isinstance(stmt, tree.AnnAssign) and stmt.value is None:
            if stmt.target.id.startswith("__"):
                yield error(
                    "private-name", stmt, "a field's name can't begin with two underscores", hint="leave one out"
                )
            continue
        if not is_doc and not isinstance(stmt, tree.Pass):
            yield error("no-class", stmt, "a TypedDict has annotated fields only", hint="name: str")


def _instead_of_class(facts: Facts, node: tree.ClassDef) -> str:
    names = {b.id for b in node.bases if isinstance(b, tree.Name)}
    if names & (vocabulary.EXCEPTIONS | {"ToolError"}):
        return 'raise ToolError("…", code="…") and compare error.code where it is caught'
    if names & set(facts.typed_dicts):
        return f"write class {node.name}(TypedDict): and repeat the fields"
    return (
        f"keep the data in a dict, or write class {node.name}(TypedDict): with annotated fields; methods become helpers"
    )
