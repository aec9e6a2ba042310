"""Programs can only raise and catch exceptions of the language."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, called_name, is_typed_dict
from albert_tools.engine.check.rule import error, warning
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "except",
        "A handler catches something that is not an exception of the language.",
        "Only exceptions that programs can meet are in the language; a failed tool raises ToolError.",
        example=in_tool("try:\n    return int(path)\nexcept path:\n    return None"),
        rewrite=in_tool("try:\n    return int(path)\nexcept ValueError:\n    return None"),
    ),
    FindingCode(
        "raise",
        "Something is raised that is not an exception of the language, or ToolError gets arguments that it does not take.",
        "The caller of a tool sees an error with a code and a message.",
        example=in_tool('raise "no such path"'),
        rewrite=in_tool('raise ToolError("no such path", code="not_found")'),
    ),
    FindingCode(
        "bare-raise",
        "A `raise` without an exception is outside a handler.",
        "Outside a handler there is nothing to raise again.",
        example=in_tool("if not path:\n    raise\nreturn path"),
        rewrite=in_tool('if not path:\n    raise ToolError("no path")\nreturn path'),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every raise statement and every handler."""
    for node in facts.every(tree.Raise, tree.Try):
        match node:
            case tree.Raise(exc=None):
                if not any(isinstance(a, tree.ExceptHandler) for a in facts.ancestors(node)):
                    yield error(
                        "bare-raise", node, "a bare raise is allowed only in a handler", hint='raise ToolError("…")'
                    )
            case tree.Raise(exc=exc):
                if exc is not None and not _unbound(facts, exc):
                    yield from _raised(facts, node)
            case tree.Try():
                yield from _handlers(facts, node)


def _handlers(facts: Facts, node: tree.Try) -> Iterator[Diagnostic]:
    """Check the handlers of one ``try``."""
    for i, handler in enumerate(node.handlers):
        if handler.type is None:
            continue  # it catches what `except Exception` catches
        parts = handler.type.elts if isinstance(handler.type, tree.Tuple) else (handler.type,)
        for part in parts:
            if not facts.is_exception(part) and not _unbound(facts, part):
                yield error(
                    "except",
                    part,
                    "only exceptions of the language can be caught",
                    hint="name them: ToolError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, Exception, …",
                )
        if any(isinstance(h.type, tree.Name) and h.type.id == "Exception" for h in node.handlers[:i]):
            yield warning(
                "unreachable",
                handler.type,
                "a handler of Exception above catches this already",
                hint="put this handler first, or remove it",
            )


def _raised(facts: Facts, node: tree.Raise) -> Iterator[Diagnostic]:
    exc = node.exc
    if exc is not None and not _may_be_exception(facts, exc):
        named = exc.func if isinstance(exc, tree.Call) else exc
        yield error(
            "raise",
            named,
            "only exceptions can be raised",
            hint='raise ToolError("what went wrong"), or raise ValueError("…")',
        )
    if isinstance(exc, tree.Call) and called_name(exc) == "ToolError":
        if len(exc.args) > 1 or any(k.arg not in ("code", "retryable") for k in exc.keywords):
            yield error(
                "raise",
                exc,
                "ToolError takes a message, and code= and retryable= by name",
                hint='raise ToolError("the file is empty", code="empty_file")',
            )


def _may_be_exception(facts: Facts, node: tree.Expr) -> bool:
    """Whether an expression names an exception, or may have a caught one as its value. Anything else is a TypeError in Python."""
    match node:
        case tree.Name():
            if facts.is_exception(node):
                return True
            function = facts.function_of(node)
            if function is None:
                return False
            # An argument of a tool is JSON.
            json = function is facts.tool and not facts.tool_calls_itself
            given = {p.name for p in function.params} if json else set()
            return node.id in (facts.locals_in(function) | facts.scopes.captured) - given
        case tree.Call(func=func):
            return facts.is_exception(func) or called_name(node) in facts.functions
        case tree.IfExp():
            return _may_be_exception(facts, node.body) and _may_be_exception(facts, node.orelse)
        case tree.BoolOp():
            return all(_may_be_exception(facts, value) for value in node.values)
        case tree.Subscript():
            return True
    return facts.is_exception(node)


def _unbound(facts: Facts, node: tree.Expr) -> bool:
    """Whether another finding reports the name as unknown or as part of a refused class."""
    named = node.func if isinstance(node, tree.Call) else node
    if isinstance(named, tree.Name) and named.id in facts.typed_dicts:
        return not is_typed_dict(facts.typed_dicts[named.id])
    return facts.unbound_below(named)
