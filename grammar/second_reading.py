"""The second reading: parse the text again with CPython and compare the trees.

After the project's grammar has accepted a text, CPython parses the same text, and the two trees must be equal. A defect of the
grammar can therefore cause a good program to be refused. But it can't give a program a meaning that differs from Python, which
reviewers know. A difference is reported as a defect of Albert Tools.
"""

from __future__ import annotations

import ast

from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.python_parser import compile_python, parse_python
from albert_tools.grammar.to_python import to_python


def python_tree(text: str) -> ast.Module | SyntaxError:
    """CPython's tree of a text. All errors, including excessive depth and size, are returned as a SyntaxError."""
    try:
        return parse_python(text)
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        return SyntaxError(f"Python can't read this: {error}")


def disagreement(module: tree.Module) -> Diagnostic | None:
    """The finding that refuses the text if the two trees differ, otherwise None."""
    theirs = python_tree(module.source)
    if isinstance(theirs, SyntaxError):
        return _refusal(theirs)
    ours = to_python(module)
    if same(ours, theirs):
        return None
    place = _first_difference(ours, theirs, module.span.line)
    return Diagnostic(
        "readings-differ",
        "Albert Tools and Python read this text differently, so it is refused",
        Span(place, 1, place, 2),
        hint="write it in a simpler way; this is a defect of Albert Tools, please report it",
    )


def uncompilable(text: str) -> Diagnostic | None:
    """The finding if CPython can parse the text but not compile it, for example because of a repeated key in a pattern."""
    try:
        compile_python(text)
    except SyntaxError as error:
        return _refusal(error)
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        return _refusal(SyntaxError(f"Python can't compile this: {error}"))
    return None


def _refusal(error: SyntaxError) -> Diagnostic:
    line = max(1, error.lineno or 1)
    column = max(1, error.offset or 1)
    hint = next((h for words, h in _HINTS.items() if words in error.msg), None)
    return Diagnostic("syntax", f"Python refuses this: {error.msg}", Span(line, column, line, column + 1), hint)


#: Words in CPython's message → the hint.
_HINTS = {
    "assignment expression": "assign in a statement before the comprehension",
    "duplicate key": "compare in a guard, or write a case for each",
    "duplicate argument": "choose another name for one of them",
    "can't compile": "write it in smaller parts",
}


def same(ours: object, theirs: object) -> bool:
    """Whether two `ast` trees are equal, except for positions and the `u` prefix of strings."""
    if isinstance(ours, ast.AST):
        if type(ours) is not type(theirs):
            return False
        if isinstance(ours, ast.Constant):
            value = theirs.value  # type: ignore[attr-defined]
            return type(ours.value) is type(value) and repr(ours.value) == repr(value)
        return all(
            same(getattr(ours, name, None), getattr(theirs, name, None))
            for name in ours._fields
            if name not in ("type_comment", "type_ignores")
        )
    if isinstance(ours, list):
        return (
            isinstance(theirs, list)
            and len(ours) == len(theirs)
            and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
        )
    return type(ours) is type(theirs) and ours == theirs


def _first_difference(ours: ast.Module, theirs: ast.Module, default: int) -> int:
    for a, b in zip(ours.body, theirs.body, strict=False):
        if not same(a, b):
            return b.lineno
    return default
