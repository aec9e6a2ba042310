"""Some statements are only allowed in a certain place, for example inside a loop or a try."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, walk_own
from albert_tools.engine.check.rule import error
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "outside-loop",
        "A `break` or `continue` is outside a loop.",
        "There is no loop to leave.",
        example=in_tool("if not path:\n    break\nreturn path"),
        rewrite=in_tool("if not path:\n    return None\nreturn path"),
    ),
    FindingCode(
        "finally-leaves",
        "A `finally` block is left by return, break or continue.",
        "Leaving it early would swallow the error that is on its way.",
        example=in_tool("try:\n    return int(path)\nfinally:\n    return None"),
        rewrite=in_tool("try:\n    return int(path)\nfinally:\n    print(path)"),
    ),
    FindingCode(
        "starred",
        "A starred expression is a statement of its own.",
        "Nothing takes the values that it unpacks.",
        example=in_tool("parts = path.split()\n*parts\nreturn parts"),
        rewrite=in_tool("parts = path.split()\nreturn [*parts]"),
    ),
    FindingCode(
        "ellipsis",
        "`...` is used outside an annotation.",
        "It is no value of the language, and as a body it hides that code is missing.",
        example=in_tool("if path:\n    ...\nreturn path"),
        rewrite=in_tool("if path:\n    pass\nreturn path"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each statement that is only allowed in a certain place."""
    classes = (tree.Break, tree.Continue, tree.Return, tree.ExprStmt, tree.Constant, tree.Try)
    for node in facts.every(*classes):
        match node:
            case tree.Break() | tree.Continue():
                word = type(node).__name__.lower()
                loop = _loop_around(facts, node)
                if loop is None:
                    yield error(
                        "outside-loop",
                        node,
                        f"{word!r} is outside a loop",
                        hint="leave it out; to leave the function write return",
                    )
            case tree.Return():
                if facts.function_of(node) is None:
                    yield error(
                        "module-level", node, "'return' is outside a function", hint="indent it into the function"
                    )
            case tree.ExprStmt(value=tree.Starred()):
                yield error(
                    "starred", node, "a starred expression is not allowed here", hint="unpack it into a list: [*xs]"
                )
            case tree.Constant(value=value) if value is ... and id(node) not in facts.annotations:
                yield error(
                    "ellipsis", node, "'...' is allowed only in annotations", hint="write pass, or the code itself"
                )
            case tree.Try():
                for stmt in node.finalbody:
                    for inner in walk_own(stmt):
                        if isinstance(inner, tree.Return) or (
                            isinstance(inner, tree.Break | tree.Continue) and not _loop_within(facts, inner, stmt)
                        ):
                            word = type(inner).__name__.lower()
                            yield error(
                                "finally-leaves",
                                inner,
                                f"'{word}' in a finally block would swallow errors",
                                hint="put it after the try statement",
                            )


def _loop_around(facts: Facts, node: tree.Node) -> tree.For | tree.While | None:
    below = node
    for above in facts.ancestors(node):
        if isinstance(above, tree.For | tree.While) and any(below is s for s in above.body):
            return above
        if isinstance(above, tree.FunctionDef):
            return None
        below = above
    return None


def _loop_within(facts: Facts, node: tree.Node, root: tree.Node) -> bool:
    loop = _loop_around(facts, node)
    return loop is not None and (loop is root or any(a is root for a in facts.ancestors(loop)))
