"""Python constructs that are not in the language, and their replacements.

If the grammar refuses a text that CPython accepts, the author used Python outside the language. This module searches CPython's tree
for all such constructs. Each one is reported with a rewrite, so the author can correct all of them at once. Tests check that the
checker accepts the rewrites.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from albert_tools.grammar.diagnostic import Diagnostic, Span

#: Name of the ast class → (code, name of the construct, replacement)
CONSTRUCTS: dict[str, tuple[str, str, str]] = {
    "AsyncFunctionDef": (
        "no-async",
        "`async def` is not in the language",
        "write def; to run calls at the same time write parallel(tools.x(a=i) for i in items)",
    ),
    "AsyncFor": ("no-async", "`async for` is not in the language", "write for"),
    "AsyncWith": ("no-async", "`async with` is not in the language", "call the tool directly"),
    "Await": ("no-async", "`await` is not in the language", "leave it out: tools.x(…) is the result itself"),
    "With": (
        "no-with",
        "`with` is not in the language: there are no files or locks to hold",
        "read with text = tools.read_file(path=…), write with tools.write_file(path=…, content=…)",
    ),
    "Yield": (
        "no-yield",
        "`yield` is not in the language: there are no generator functions",
        "collect into a list and return it: out = []; out.append(x); return out",
    ),
    "YieldFrom": (
        "no-yield",
        "`yield from` is not in the language: there are no generator functions",
        "collect into a list and return it: out.extend(xs); return out",
    ),
    "Global": (
        "no-global",
        "`global` is not in the language: module-level names are constants",
        "pass the value as a parameter and return the new one",
    ),
    "TryStar": (
        "no-except-star",
        "`except*` is not in the language",
        "write except E:, once per exception",
    ),
    "TypeAlias": ("no-type-alias", "`type X = …` is not in the language", "write the type where it is used"),
}


def refusals(module: ast.Module) -> list[Diagnostic]:
    """Every construct in CPython's tree that is not in the language, with its rewrite."""
    return [d for node in ast.walk(module) for d in _of(node)]


def _span(node: ast.AST, keyword: int = 0) -> Span:
    line, column = node.lineno, node.col_offset + 1  # type: ignore[attr-defined]
    if keyword:
        return Span(line, column, line, column + keyword)
    return Span(line, column, node.end_lineno, node.end_col_offset + 1)  # type: ignore[attr-defined]


def _of(node: ast.AST) -> Iterator[Diagnostic]:
    name = type(node).__name__
    if name in CONSTRUCTS:
        code, message, hint = CONSTRUCTS[name]
        word = {"With": 4, "AsyncFunctionDef": 5, "AsyncFor": 5, "AsyncWith": 5}
        at = node.handlers[0] if name == "TryStar" else node  # type: ignore[attr-defined]
        yield Diagnostic(code, message, _span(at, 7 if name == "TryStar" else word.get(name, 0)), hint=hint)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for extra, star in ((node.args.vararg, "*"), (node.args.kwarg, "**")):
            if extra is not None:
                yield Diagnostic(
                    "no-star-parameter",
                    f"`{star}{extra.arg}` parameters are not in the language",
                    _span(extra),
                    hint=f"name each parameter, or take one {'list' if star == '*' else 'dict'}:"
                    f" {extra.arg}: {'list' if star == '*' else 'dict'}",
                )
        for positional in node.args.posonlyargs:
            yield Diagnostic(
                "no-positional-only",
                "positional-only parameters are not in the language",
                _span(positional),
                hint="leave out the / in the parameter list",
            )
        if getattr(node, "type_params", None):
            yield Diagnostic(
                "no-type-parameters",
                "type parameters are not in the language",
                _span(node, 3),
                hint="write Any, or the type itself",
            )
    elif isinstance(node, ast.Lambda) and (node.args.vararg or node.args.kwarg or node.args.kwonlyargs):
        yield Diagnostic(
            "no-star-parameter",
            "a lambda takes plain parameters only",
            _span(node),
            hint="name each parameter",
        )
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            yield Diagnostic(
                "unknown-module",
                "relative imports are not in the language",
                _span(node),
                hint="a source can't import another; call saved tools as tools.NAME(…)",
            )
        elif any(a.name == "*" for a in node.names):
            yield Diagnostic(
                "no-star-import",
                f"`from {node.module} import *` is not in the language",
                _span(node),
                hint=f"name what you use: from {node.module} import x, y",
            )
    elif isinstance(node, ast.AnnAssign) and not isinstance(node.target, ast.Name):
        yield Diagnostic(
            "no-annotated-target",
            "only plain names take an annotation",
            _span(node),
            hint="leave the annotation out",
        )
    elif isinstance(node, ast.comprehension) and node.is_async:
        yield Diagnostic("no-async", "`async for` is not in the language", _span(node.target), hint="write for")
    elif isinstance(node, ast.Constant) and isinstance(node.value, complex):
        yield Diagnostic("no-complex", "complex numbers are not in the language", _span(node), hint="keep two floats")
    elif isinstance(node, ast.MatchClass) and (node.patterns or node.kwd_patterns):
        yield Diagnostic(
            "no-class-pattern",
            "a class pattern takes no arguments",
            _span(node),
            hint='write case str() as text: and look into it in the body; for a dict write case {"a": x}:',
        )
