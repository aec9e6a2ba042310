"""A result that is computed and dropped is usually a mistake: ``text.strip()`` changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, tool_name
from albert_tools.engine.check.rule import warning
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unused-result",
        "The result of an expression without an effect is dropped.",
        "Text and numbers never change in place, so the statement does nothing.",
        example=in_tool("path.strip()\nreturn path"),
        rewrite=in_tool("path = path.strip()\nreturn path"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each expression statement."""
    for node in facts.every(tree.ExprStmt):
        above = facts.parent(node)
        if isinstance(node.value, tree.Strings):
            first = isinstance(above, tree.FunctionDef | tree.ClassDef | tree.Module) and above.body[0] is node
            if first:
                continue
        if isinstance(node.value, tree.Starred) or (isinstance(node.value, tree.Constant) and node.value.value is ...):
            continue  # another rule refuses it
        if isinstance(node.value, tree.Attribute) and node.value.attr in vocabulary.METHODS:
            continue  # another rule refuses the missing call
        if isinstance(node.value, tree.Call) and _tried(facts, node):
            continue  # ``int(text)`` in a try tests the text
        if _pure(facts, node.value):
            yield warning(
                "unused-result",
                node,
                "the result of this is not used",
                hint="assign it: name = …; or remove the line",
            )


def _tried(facts: Facts, node: tree.ExprStmt) -> bool:
    above = facts.parent(node)
    return isinstance(above, tree.Try) and bool(above.handlers) and any(s is node for s in above.body)


def _pure(facts: Facts, node: tree.Expr) -> bool:
    if isinstance(node, tree.NamedExpr):
        return False
    if not isinstance(node, tree.Call):
        return not any(isinstance(n, tree.Call | tree.NamedExpr) for n in tree.walk(node))
    func = node.func
    if tool_name(func) is not None:
        return False
    if isinstance(func, tree.Name) and func.id in vocabulary.BUILTINS:
        return vocabulary.BUILTINS[func.id].pure and not any(
            isinstance(n, tree.Call) and n is not node and not _pure(facts, n) for n in tree.walk(node)
        )
    return (
        isinstance(func, tree.Attribute)
        and facts.facade(func) is None
        and func.attr in vocabulary.METHODS
        and func.attr not in vocabulary.MUTATORS
        and func.attr not in ("read", "readline", "readlines")
    )
