"""The tool has a docstring, which becomes its description. Each parameter has an annotation, which becomes its schema."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, docstring
from albert_tools.engine.check.rule import error, warning
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model.primitive import read_docstring
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode

CODES = (
    FindingCode(
        "no-docstring",
        "The tool has no docstring.",
        "Its first line is what agents read when they search for a tool.",
        example="def work(path: str) -> str:\n    return path\n",
        rewrite='def work(path: str) -> str:\n    """Return the path."""\n    return path\n',
    ),
    FindingCode(
        "no-annotation",
        "A parameter of the tool has no annotation.",
        "Annotations become the schema that every call is checked against.",
        example='def work(path) -> str:\n    """Return the path."""\n    return path\n',
        rewrite='def work(path: str) -> str:\n    """Return the path."""\n    return path\n',
    ),
    FindingCode(
        "docstring-argument",
        "The docstring describes a parameter that the tool does not have.",
        "The descriptions go into the schema, so a wrong name gets lost.",
        example='''def work(path: str) -> str:
    """Return the path.

    Args:
        file: The path.
    """
    return path
''',
        rewrite='''def work(path: str) -> str:
    """Return the path.

    Args:
        path: The path.
    """
    return path
''',
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the docstring and the parameters of the tool."""
    tool = facts.tool
    if tool is None:
        return
    text = docstring(tool)
    if text is None or not text.strip():
        first = tool.body[0].span
        indent = " " * (first.column - 1)
        on_own_line = first.line > tool.span.line
        yield error(
            "no-docstring",
            tool.name_span,
            f"the tool {tool.name!r} has no docstring",
            hint='its first line is what callers read: """Count the words of a file."""',
            fix=Fix(
                "add a docstring",
                (
                    Edit(
                        Span(first.line, first.column, first.line, first.column),
                        f'"""{spelled(tool.name).replace("_", " ").capitalize()}."""'
                        + (f"\n{indent}" if on_own_line else "; "),
                    ),
                ),
            )
            if text is None
            else None,
        )
    for p in tool.params:
        if p.annotation is None:
            column = p.span.column + len(spelled(p.name))
            end = Span(p.span.line, column, p.span.line, column)
            kind = _kind_of_default(p.default)
            usual = "str" if kind == "Any" else kind
            yield error(
                "no-annotation",
                p,
                f"the parameter {p.name!r} has no annotation",
                hint=f"annotations are the tool's schema: write {p.name}: {usual}, or Any when it can be anything",
                fix=Fix(f"annotate {p.name} as {kind}", (Edit(end, f": {kind}"),)),
            )
    described = read_docstring(inspect.cleandoc(text or ""))[1]
    for name in described:
        if name not in {spelled(p.name) for p in tool.params}:
            yield warning(
                "docstring-argument",
                tool.name_span,
                f"the docstring describes {name!r}, which is not a parameter",
                hint=f"the parameters are {', '.join(p.name for p in tool.params) or 'none'}",
            )


def _kind_of_default(default: tree.Expr | None) -> str:
    """The annotation that matches a default, or Any."""
    match default:
        case tree.Constant(value=bool() | int() | float() as value):
            return type(value).__name__
        case tree.Strings() if isinstance(default.constant, str):
            return "str"
        case tree.List():
            return "list"
        case tree.Dict():
            return "dict"
    return "Any"
