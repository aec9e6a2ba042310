"""Find further problems in a source that uses Python outside the language.

The grammar refuses such a source, so there is no tree for the rules. But the author should see all problems at once. If CPython can
parse the source, its tree is translated into the language. For example, `with` becomes assignments. The
rules then check the translation. A finding is reported under two conditions: its exact place in the author's text is known, and the
translation itself can't be its cause. It has no fix, because a fix can't be tried out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.parse import parse
from albert_tools.grammar.tree import Module
from albert_tools.grammar.unsupported import refusals

_Node = TypeVar("_Node", bound=ast.AST)

#: Codes of findings that the translation can cause: it adds blocks, removes `yield` and `await`, and ends no block early.
CAUSED = frozenset({"block-depth", "unreachable", "unused-result"})


def partial_findings(
    theirs: ast.Module | SyntaxError, findings: Callable[[Module], Iterable[Diagnostic]]
) -> list[Diagnostic]:
    """The result of `findings` for the translation of a refused source; empty if CPython also refuses the source.

    `theirs` is CPython's tree of the source. It is changed.
    """
    if isinstance(theirs, SyntaxError) or not refusals(theirs):
        return []
    translation = _Translation(theirs)
    try:
        translated = ast.fix_missing_locations(translation.visit(theirs))
        text = ast.unparse(translated)
    except (ValueError, RecursionError):
        return []
    parsed = parse(text)
    if parsed.module is None or not isinstance(parsed.python, ast.Module):
        return []
    places = dict(_places(translated, parsed.python))
    return list(_relocated(findings(parsed.module), places, translation, text.split("\n")))


def _relocated(
    diagnostics: Iterable[Diagnostic], places: dict[tuple[int, int], Span], translation: _Translation, lines: list[str]
) -> Iterator[Diagnostic]:
    lost = translation.lost
    for d in diagnostics:
        at = places.get((d.span.line, d.span.column))
        word = re.match(r"\w*", lines[d.span.line - 1][d.span.column - 1 :])
        if (
            at is None
            or d.code in CAUSED
            or (word and word[0] in lost)
            or any(f"{name!r}" in d.message for name in lost)
        ):
            continue
        if d.code == "unknown-name" and "*" in lost:
            continue
        if d.code == "arguments" and d.message.split(" ")[0] in translation.starred:
            continue
        yield replace(d, span=at, fix=None)


def _places(translated: ast.AST, parsed: ast.AST) -> Iterator[tuple[tuple[int, int], Span]]:
    """Map places in the translated text to places in the author's text. Empty unless both trees have the same nodes in order."""
    ours, theirs = list(ast.walk(translated)), list(ast.walk(parsed))
    if [type(n) for n in ours] != [type(n) for n in theirs]:
        return
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, _PLACED) and isinstance(a, _PLACED):
            # If several nodes begin at this place, the innermost node comes last. Its place is the most exact.
            yield (b.lineno, b.col_offset + 1), _span(a)
        if isinstance(a, ast.Attribute) and isinstance(b, ast.Attribute):
            # A finding about an attribute is reported at the attribute's name.
            at, long = _span(a), len(a.attr)
            place = Span(at.end_line, at.end_column - long, at.end_line, at.end_column)
            yield (b.end_lineno or b.lineno, (b.end_col_offset or 0) - long + 1), place
    for a, b in zip(ours, theirs, strict=True):
        # A finding about a function is reported at the function's name.
        if isinstance(a, ast.FunctionDef | ast.ClassDef) and isinstance(b, ast.FunctionDef | ast.ClassDef):
            word = len("def " if isinstance(a, ast.FunctionDef) else "class ")
            column = a.col_offset + word + 1
            yield (b.lineno, b.col_offset + word + 1), Span(a.lineno, column, a.lineno, column + len(a.name))


_PLACED = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias, ast.excepthandler, ast.pattern)


def _span(node: ast.AST) -> Span:
    line, column = getattr(node, "lineno"), getattr(node, "col_offset")  # noqa: B009 - many classes have them, not all
    end = getattr(node, "end_lineno", None) or line
    return Span(line, column + 1, end, (getattr(node, "end_col_offset", None) or column) + 1)


class _Translation(ast.NodeTransformer):
    """Translates Python's tree into the language.

    `lost` collects names that are no longer bound after the translation. `starred` are the functions that lose a parameter.
    """

    def __init__(self, module: ast.Module) -> None:
        functions = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        self.lost: set[str] = set()
        self.starred = {f.name for f in functions if f.args.vararg or f.args.kwarg}

    def visit(self, node: ast.AST) -> Any:
        """Translate a node after its children."""
        self.generic_visit(node)
        return getattr(self, f"visit_{type(node).__name__}", lambda same: same)(node)

    def visit_Module(self, node: ast.Module) -> ast.Module:
        # The `pass` that replaces an import would cause a finding.
        node.body = [s for s in node.body if not isinstance(s, ast.Pass)]
        return node

    def visit_With(self, node: ast.With | ast.AsyncWith) -> list[ast.AST]:
        statements: list[ast.AST] = []
        for item in node.items:
            value = item.context_expr
            new = ast.Assign([item.optional_vars], value) if item.optional_vars is not None else ast.Expr(value)
            statements.append(_at(new, value))
        return [*statements, *node.body]

    visit_AsyncWith = visit_With

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return _at(ast.For(node.target, node.iter, node.body, node.orelse), node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        new = ast.FunctionDef(node.name, node.args, node.body, node.decorator_list, node.returns)
        return self.visit_FunctionDef(_at(new, node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if hasattr(node, "type_params"):
            self.lost |= {p.name for p in node.type_params}
            node.type_params = []
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        node.args = [*node.posonlyargs, *node.args]
        node.posonlyargs = []
        for extra in (node.vararg, node.kwarg):
            if extra is not None:
                self.lost.add(extra.arg)
        node.vararg = node.kwarg = None
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return node.value

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        return node.value if node.value is not None else _at(ast.Constant(None), node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        return _at(ast.Call(ast.Name("list", ast.Load()), [node.value], []), node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        self.lost |= set(node.names)
        return _at(ast.Pass(), node)

    def visit_TryStar(self, node: ast.AST) -> ast.AST:
        parts = (getattr(node, name) for name in ("body", "handlers", "orelse", "finalbody"))
        return _at(ast.Try(*parts), node)

    def visit_TypeAlias(self, node: ast.AST) -> ast.AST:
        self.lost.add(node.name.id)  # type: ignore[attr-defined]
        return _at(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level or any(a.name == "*" for a in node.names):
            self.lost |= {a.asname or a.name for a in node.names}
            return _at(ast.Pass(), node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if isinstance(node.target, ast.Name):
            return node
        return _at(ast.Assign([node.target], node.value) if node.value is not None else ast.Pass(), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.is_async = 0
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return _at(ast.Constant(0), node) if isinstance(node.value, complex) else node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        self.lost |= {n.name for n in ast.walk(node) if isinstance(n, ast.MatchAs | ast.MatchStar) and n.name}
        node.patterns, node.kwd_attrs, node.kwd_patterns = [], [], []
        return node


def _at(new: _Node, node: ast.AST) -> _Node:
    return ast.copy_location(new, node)
