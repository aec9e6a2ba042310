"""Parse a text. The result is either a tree or a list of problems.

Untrusted text passes four stages. The cost of each stage is limited for any input that the previous stage accepts:

1. Check size and encoding.
2. Make tokens: one scan, which also checks nesting, literals and deceptive characters.
3. Parse with Lark's LALR parser and the grammar in `tool.lark`, which builds the tree. Its depth is measured before any function
   recurses into the tree.
4. Parse again with CPython and compare the trees.

`parse` never raises, whatever the input is. It returns problems as diagnostics.
"""

from __future__ import annotations

import ast
import keyword
import re
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer
from msgspec import Struct

from albert_tools.grammar import layout, tree
from albert_tools.grammar.build import Builder, BuildError
from albert_tools.grammar.diagnostic import Diagnostic, Span, in_order
from albert_tools.grammar.second_reading import disagreement, python_tree
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.source_text import source_text
from albert_tools.grammar.syntax_hints import advice
from albert_tools.grammar.unsupported import refusals

#: Nesting of operators, calls and brackets within one expression. CPython's compiler and this package recurse over them.
MAX_PARSE_DEPTH = 150


class Parsed(Struct, frozen=True):
    """`module` is None if and only if `diagnostics` contains an error. `python` is CPython's tree of the text, if it was needed."""

    module: tree.Module | None
    diagnostics: tuple[Diagnostic, ...]
    python: ast.Module | SyntaxError | None = None


def parse(source: str | bytes) -> Parsed:
    """Parse a source. All line ends of Python are accepted."""
    text = source_text(source)
    if isinstance(text, Diagnostic):
        return Parsed(None, (text,))
    lark, scanner = _lark()
    scan = scanner.scan(text)
    if scan.diagnostics:
        return Parsed(None, in_order(scan.diagnostics))
    try:
        with _PARSER_LOCK:
            body: Any = lark.parse(scan.tokens, start="module")
        module = tree.Module(Span(1, 1, text.count("\n") + 1, 1), body, tuple(scan.comments), text)
        _measure(module)
    except BuildError as error:
        return Parsed(None, (error.diagnostic,))
    except UnexpectedToken as error:
        theirs = python_tree(text)
        return Parsed(None, in_order(_explain(text, error, theirs)), theirs)
    theirs = python_tree(text)
    difference = disagreement(module, theirs)
    if difference is not None:
        return Parsed(None, (difference,), theirs)
    return Parsed(module, (), theirs)


def parse_or_raise(source: str | bytes) -> tree.Module:
    """The tree of a source.

    Raises:
        SourceError: The source is refused.
    """
    parsed = parse(source)
    if parsed.module is None:
        raise SourceError(parsed.diagnostics, source)
    return parsed.module


#: The builder has state, so only one thread at a time may use the parser.
_PARSER_LOCK = threading.Lock()


class _MadeTokens(Lexer):
    """Passes on the tokens of the layout pass."""

    def __init__(self, _configuration: Any) -> None:
        pass

    def lex(self, tokens: Iterable[layout.Token]) -> Iterator[layout.Token]:  # type: ignore[override]
        return iter(tokens)


@cache
def _lark() -> tuple[Lark, layout.Scanner]:
    grammar = (files("albert_tools.grammar") / "tool.lark").read_text(encoding="utf-8")
    lark = Lark(
        grammar,
        parser="lalr",
        lexer=_MadeTokens,
        start=["module", "field"],
        keep_all_tokens=True,
        propagate_positions=False,
        transformer=Builder(_field),
    )
    return lark, layout.Scanner(lark.terminals)


def _field(text: str, line: int, column: int) -> tree.Expr | None:
    """The expression inside the braces of an f-string. None if there is none. The parser calls it while it has the lock."""
    lark, scanner = _lark()
    scan = scanner.scan(text, line, column)
    if scan.diagnostics:
        return None
    try:
        expr: Any = lark.parse(scan.tokens, start="field")
    except UnexpectedToken:
        expr = None
    return expr  # type: ignore[no-any-return]


def _measure(module: tree.Module) -> None:
    """Refuse a tree that is too deep for recursion. This function is iterative, so it works for any depth."""
    level: list[tree.Node] = [module]
    # Blocks add levels. They are added to the limit, so that expressions in nested blocks may have their full depth.
    for _ in range(1, MAX_PARSE_DEPTH + 3 * layout.MAX_INDENTS):
        below: list[tree.Node] = []
        for node in level:
            if isinstance(node, tree.If) and (chained := tree.elif_of(node)):
                level.append(chained)
                below += [node.test, *node.body]
            else:
                below += tree.children(node)
        level = below
        if not level:
            return
    raise BuildError(
        Diagnostic(
            "nesting-too-deep",
            f"an expression is nested more than {MAX_PARSE_DEPTH} levels deep",
            level[0].span,
            hint="name the inner parts: assign them to variables first",
        )
    )


_SPELLINGS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "_NEWLINE": "the end of the line",
    "_INDENT": "an indented block",
    "_DEDENT": "the end of the block",
    "$END": "the end of the source",
    "AUGMENTED": "+=",
    "_MATCH": "match",
    "_CASE": "case",
}
_EXPRESSION_STARTS = {"NAME", "NUMBER", "STRING", "LPAR", "LSQB", "LBRACE", "NONE"}
_EXPRESSION_CONTINUES = {"DOT", "LPAR", "LSQB"}


def _explain(text: str, error: UnexpectedToken, theirs: ast.Module | SyntaxError) -> list[Diagnostic]:
    """Explain why the grammar refuses a text: constructs outside the language, CPython's own message, or the expected tokens."""
    if not isinstance(theirs, SyntaxError):
        outside = refusals(theirs)
        if outside:
            return outside
    span = _place(error.token)
    expected = _expected(error)
    lines = text.split("\n")
    cut = _cut_fstring(text, span)
    if cut is not None:
        return [cut]
    at = _line(lines, span.line)
    fragment = at[span.column - 1 : span.end_column - 1]
    if keyword.iskeyword(fragment) and expected and "a name" in expected:
        message = f"{fragment!r} is a keyword, so it can't be a name"
        return [Diagnostic("syntax", message, span, hint=f"choose another name, such as {fragment}_")]
    if isinstance(theirs, SyntaxError) and theirs.msg and theirs.msg != "invalid syntax":
        line = min(max(1, theirs.lineno or span.line), text.count("\n") + 1)
        column = max(1, theirs.offset or 1)
        end = theirs.end_offset if theirs.end_lineno == line and theirs.end_offset else column + 1
        hint = advice(theirs.msg, _line(lines, line)) or expected
        return [Diagnostic("syntax", theirs.msg, Span(line, column, line, max(end, column + 1)), hint=hint)]
    what = f"{fragment!r} is not allowed here" if fragment.strip() else "something is missing here"
    return [Diagnostic("syntax", what, span, hint=advice("", at) or expected)]


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1] if number <= len(lines) else ""


def _cut_fstring(text: str, span: Span) -> Diagnostic | None:
    """Find an f-string that its own quotes end inside a field: ``f"{d["a"]}"``. Python 3.12 accepts it, but 3.11 does not."""
    line = _line(text.split("\n"), span.line)
    for m in re.finditer(r"""(?i)\b(?:f|rf|fr)(["'])((?:(?!\1)[^\\\n]|\\.)*)\1(?=\w)""", line):
        inside = re.sub(r"\{\{|\}\}", "", m[2])
        if inside.count("{") > inside.count("}"):
            other = "'" if m[1] == '"' else '"'
            return Diagnostic(
                "syntax",
                f"the {m[1]} inside the braces ends this f-string",
                Span(span.line, m.end(), span.line, m.end() + 1),
                hint=f"inside the braces use the other quotes: {other}",
            )
    return None


def _place(token: layout.Token) -> Span:
    """The place of the token that the grammar refuses. Tokens without a text have a width of one column."""
    width = len(token.value.partition("\n")[0]) or 1
    return Span(token.line, token.column, token.line, token.column + width)


def _expected(error: UnexpectedToken) -> str | None:
    names: set[str] = set(error.accepts or error.expected or ())
    if not names:
        return None
    words = set()
    if names >= _EXPRESSION_STARTS:
        words.add("an expression")
        names -= _EXPRESSION_STARTS | {"TRUE", "FALSE", "ELLIPSIS", "MINUS", "PLUS", "TILDE", "NOT", "LAMBDA"}
    if names >= _EXPRESSION_CONTINUES:
        names -= _EXPRESSION_CONTINUES
    lark, _ = _lark()
    patterns = {t.name: t.pattern.value for t in lark.terminals}
    words |= {_SPELLINGS.get(name) or f"'{patterns[name]}'" for name in names}
    if len(words) > 8:
        return None
    ordered = sorted(words)
    return "expected " + (ordered[0] if len(ordered) == 1 else ", ".join(ordered[:-1]) + " or " + ordered[-1])
