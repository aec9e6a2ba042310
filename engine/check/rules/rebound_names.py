"""A binding can't redefine a name that already has a meaning.

A parameter named `tools`, a loop variable named `len` or an alias named `parallel` would mislead a reader. Programs escaped from
other sandboxes by such shadowing."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import BINDING, Facts, bindings
from albert_tools.engine.check.rule import error
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "rebound-name",
        "A binding redefines a name that already has a meaning.",
        "The text would mean something else than it says.",
        example=in_tool("list = path.split()\nreturn list"),
        rewrite=in_tool("parts = path.split()\nreturn parts"),
    ),
    FindingCode(
        "private-name",
        "A name begins with two underscores.",
        "Such names belong to Python and to the compiler of the language.",
        example=in_tool("__path = path.strip()\nreturn __path"),
        rewrite=in_tool("clean = path.strip()\nreturn clean"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every binding of every kind."""
    for binder in facts.every(*BINDING):
        for b in bindings(binder):
            what = facts.fixed(b.name)
            if what is not None:
                span = Span(b.span.line, b.span.column, b.span.line, b.span.column + len(b.name))
                yield error(
                    "rebound-name",
                    span if b.form == "parameter" else b.span,
                    f"the {b.form} {b.name!r} redefines a name that is {what}",
                    hint=f"choose another name, such as {b.name}_",
                )
            elif b.name.startswith("__"):
                yield error(
                    "private-name", b.span, f"the name {b.name!r} begins with two underscores", hint="leave them out"
                )
    for node in facts.every(tree.FunctionDef, tree.ClassDef, tree.Import, tree.ImportFrom):
        if isinstance(node, tree.FunctionDef | tree.ClassDef):
            taken = node.name in vocabulary.PRELUDE or node.name in vocabulary.BUILTINS
            if taken or node.name in vocabulary.EXCEPTIONS or node.name in facts.modules or node.name in facts.imported:
                yield error(
                    "rebound-name",
                    node.name_span,
                    f"{node.name!r} is taken: it is a name of the language or imported",
                    hint=f"choose another name, such as {node.name}_",
                )
            elif node.name.startswith("__"):
                yield error(
                    "private-name",
                    node.name_span,
                    f"the name {node.name!r} begins with two underscores",
                    "leave one out",
                )
            if isinstance(node, tree.FunctionDef) and node.name in facts.constants:
                yield error(
                    "rebound-name",
                    node.name_span,
                    f"{node.name!r} is a constant of this source already",
                    hint="choose another name",
                )
        else:
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name in vocabulary.PRELUDE or name in vocabulary.BUILTINS or name in facts.functions:
                    yield error(
                        "rebound-name",
                        alias,
                        f"this import redefines the name {name!r}",
                        hint=f"import the module, or write … as {name}_",
                    )
    seen: dict[str, Span] = {}
    for stmt in facts.module.body:
        names = [b.name for b in bindings(stmt)]
        for name in names:
            if name in seen:
                yield error("rebound-name", stmt, f"the constant {name!r} is set twice", hint="choose another name")
            seen[name] = stmt.span
