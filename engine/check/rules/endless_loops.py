"""A loop can end. All other loops have a bound when the program runs."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, walk_own
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.rules.assignment import is_always_true
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "endless-loop",
        "A loop never ends.",
        "It would run until the limit of rounds ends the whole run.",
        example=in_tool("count = 0\nwhile True:\n    count += 1"),
        rewrite=in_tool("count = 0\nwhile True:\n    count += 1\n    if count > 9:\n        break\nreturn path"),
    ),
)

_MAY_LEAVE = (tree.Break, tree.Return, tree.Raise, tree.Assert, tree.Call, tree.Subscript, tree.Delete, tree.Starred)
_MAY_FAIL = frozenset({"/", "//", "%", "**", "<<", ">>"})


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each ``while True``."""
    for loop in facts.every(tree.While):
        if is_always_true(loop.test) and not any(map(_may_leave, walk_own(*loop.body))):
            yield error(
                "endless-loop",
                loop.test,
                "this loop never ends",
                hint="leave it with break or return, or test a condition: while …:",
            )


def _may_leave(node: tree.Node) -> bool:
    """Whether a node of the body can leave the loop, at least by an exception."""
    return isinstance(node, _MAY_LEAVE) or (isinstance(node, tree.BinOp | tree.AugAssign) and node.op in _MAY_FAIL)
