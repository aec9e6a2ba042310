"""Limits on the shape of a source. They refuse sources that are too hard to review or would exceed limits at run time.

The size of the source is limited before it is parsed."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

#: Nesting of blocks. Deeper blocks are too hard to review.
_MAX_BLOCK_DEPTH = 8
#: Nesting of operators, calls and brackets within one expression.
_MAX_EXPRESSION_DEPTH = 40

CODES = (
    FindingCode(
        "tool-depth",
        "A tool calls saved tools that call saved tools, nested too deep.",
        "Nobody can review a tower of tools, and each level costs time.",
    ),
    FindingCode(
        "block-depth",
        "Blocks are nested too deep.",
        "A reader can't keep so many conditions in mind.",
        example=in_tool(
            "".join("    " * i + f"if len(path) > {i}:\n" for i in range(9)) + "    " * 9 + "return path\nreturn None"
        ),
        rewrite=in_tool("return path if len(path) > 8 else None"),
    ),
    FindingCode(
        "expression-depth",
        "An expression is nested too deep.",
        "A reader can't follow it, and Python's own compiler recurses over it.",
        example=in_tool("return " + "-" * 41 + "1"),
        rewrite=in_tool("return -1"),
    ),
)

_EXPRESSIONS = frozenset(tree.Expr.__args__)
_BLOCKS = (tree.If, tree.For, tree.While, tree.Try, tree.Match)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the depth of blocks, expressions and tool calls."""
    yield from _blocks(facts.module.body, 0)
    yield from _expressions(facts)
    for call, name in facts.tool_calls:
        callee = facts.catalog.get(name)
        if callee is not None and 1 + callee.depth > MAX_TOOL_DEPTH:
            yield error(
                "tool-depth",
                call.func,
                f"calling {name!r} nests saved tools {1 + callee.depth} deep; at most {MAX_TOOL_DEPTH} are allowed",
                hint="call what it calls, directly",
            )


def _blocks(body: tuple[tree.Stmt, ...], depth: int) -> Iterator[Diagnostic]:
    for stmt in body:
        if isinstance(stmt, tree.FunctionDef):
            yield from _blocks(stmt.body, 0)
        if not isinstance(stmt, _BLOCKS):
            continue
        if depth + 1 > _MAX_BLOCK_DEPTH:
            at = stmt.span._replace(end_line=stmt.span.line, end_column=stmt.span.column + 1)
            yield error(
                "block-depth",
                at,
                f"blocks are nested more than {_MAX_BLOCK_DEPTH} deep",
                hint="move the inner part into a helper",
            )
            continue
        for inner in _inner(stmt):
            yield from _blocks(inner, depth + 1)


def _inner(stmt: tree.Stmt) -> list[tuple[tree.Stmt, ...]]:
    match stmt:
        case tree.If():
            # An elif is at the same level as its if.
            bodies = [stmt.body]
            while (branch := tree.elif_of(stmt)) is not None:
                bodies.append(branch.body)
                stmt = branch
            return [*bodies, stmt.orelse]
        case tree.For() | tree.While():
            return [stmt.body, stmt.orelse]
        case tree.Try():
            return [stmt.body, *(h.body for h in stmt.handlers), stmt.orelse, stmt.finalbody]
        case tree.Match():
            return [c.body for c in stmt.cases]
    return []


def _expressions(facts: Facts) -> Iterator[Diagnostic]:
    depth: dict[int, int] = {id(facts.module): 0}
    reported: set[int] = set()
    statements: set[int] = set()
    for node in facts.nodes:
        for child in tree.children(node):
            is_expression = type(child) in _EXPRESSIONS
            depth[id(child)] = depth[id(node)] + 1 if is_expression else 0
            if id(node) in reported:
                reported.add(id(child))
            elif depth[id(child)] > _MAX_EXPRESSION_DEPTH:
                reported.add(id(child))
                statement = next((id(a) for a in facts.ancestors(child) if type(a) not in _EXPRESSIONS), 0)
                if statement in statements:
                    continue  # one finding for each expression
                statements.add(statement)
                yield error(
                    "expression-depth",
                    child,
                    f"an expression is nested more than {_MAX_EXPRESSION_DEPTH} deep",
                    hint="name the inner parts: assign them to variables first",
                )
