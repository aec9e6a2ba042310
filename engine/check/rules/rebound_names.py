"""A name of the prelude can't be bound, and the name of a function or a module has one meaning in its scope.

So every call of such a name calls the same function, and the call graph is exact. Programs escaped from other sandboxes by
shadowing what the sandbox adds."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import BINDING, Facts, bindings
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.scopes import VARIABLE, bound_name, spelled
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "rebound-name",
        "A name that the language adds to Python is bound, or the name of a function or a module gets a second meaning.",
        "Nobody could tell which function a call calls.",
        example=in_tool("example = path.split()\nreturn example"),
        rewrite=in_tool("words = path.split()\nreturn words"),
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
            name = spelled(b.name)
            if name in vocabulary.PRELUDE:
                yield _reserved(_at_name(b.span, name) if b.form == "parameter" else b.span, f"the {b.form} {name!r}")
            elif name.startswith("__"):
                yield error(
                    "private-name", b.span, f"the name {name!r} begins with two underscores", hint="leave them out"
                )
    for node in facts.every(tree.FunctionDef, tree.ClassDef, tree.Import, tree.ImportFrom):
        if isinstance(node, tree.FunctionDef | tree.ClassDef):
            name = spelled(node.name)
            if name in vocabulary.PRELUDE:
                yield _reserved(node.name_span, repr(name))
            elif isinstance(node, tree.ClassDef) and facts.language_has(name):
                yield error(
                    "rebound-name",
                    node.name_span,
                    f"{name!r} is a name of the language",
                    hint=f"choose another name, such as {name}_",
                )
            elif name.startswith("__"):
                yield error(
                    "private-name", node.name_span, f"the name {name!r} begins with two underscores", "leave one out"
                )
        else:
            for alias in node.names:
                name = spelled(bound_name(alias))
                if name in vocabulary.PRELUDE:
                    yield _reserved(alias.span, f"the import {name!r}")
    yield from _second_meanings(facts)
    seen: set[str] = set()
    for stmt in facts.module.body:
        for b in bindings(stmt):
            if b.name in seen:
                yield error("rebound-name", stmt, f"the constant {b.name!r} is set twice", hint="choose another name")
            seen.add(b.name)


def _second_meanings(facts: Facts) -> Iterator[Diagnostic]:
    for symbol in facts.scopes.repeated:
        name, meanings = symbol.spelling, symbol.meanings
        if symbol.scope.kind == "module" and all(meaning[0] in ("function", "class") for meaning in meanings):
            continue  # reported as defined twice
        first, second, *_ = meanings
        node = meanings[second]
        kinds = {"function": "a function", "class": "a class", "import": "imported", VARIABLE[0]: "a variable"}
        span = node.name_span if isinstance(node, tree.FunctionDef | tree.ClassDef) else node.span
        yield error(
            "rebound-name",
            span,
            f"{name!r} is {kinds[str(first[0])]} here already, and can't get another meaning",
            hint=f"choose another name, such as {name}_",
        )


def _at_name(span: Span, name: str) -> Span:
    return Span(span.line, span.column, span.line, span.column + len(name))


def _reserved(span: Span, what: str) -> Diagnostic:
    name = what.split("'")[1]
    return error(
        "rebound-name",
        span,
        f"{what} redefines a name that is part of the language",
        hint=f"choose another name, such as {name}_",
    )
