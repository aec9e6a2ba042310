"""The second reading: parse the text again with CPython and compare the trees.

After the project's grammar has accepted a text, CPython parses the same text, and the two trees must be equal. A defect of the
grammar can therefore cause a good program to be refused. But it can't give a program a meaning that differs from Python, which
reviewers know. A difference is reported as a defect of Albert Tools.

Nodes and fields of both trees have the same names, so for most classes a table of the fields is enough. `_SPECIAL` has a function
for each other class: Python joins the pieces of strings, and it has parallel lists for parameters. The comparison is iterative, and
it copies no tree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.python_parser import compile_python, parse_python


def python_tree(text: str) -> ast.Module | SyntaxError:
    """CPython's tree of a text. All errors, including excessive depth and size, are returned as a SyntaxError."""
    try:
        return parse_python(text)
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        return SyntaxError(f"Python can't read this: {error}")


def disagreement(module: tree.Module, theirs: ast.Module | SyntaxError) -> Diagnostic | None:
    """The finding that refuses the text if the two trees differ, otherwise None. `theirs` is `python_tree` of the text."""
    if isinstance(theirs, SyntaxError):
        return _refusal(theirs)
    line = different_line(module, theirs)
    if line is None:
        return None
    return Diagnostic(
        "readings-differ",
        "Albert Tools and Python read this text differently, so it is refused",
        Span(line, 1, line, 2),
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
    "from __future__": "move it above all other statements except the docstring",
    "assignment expression": "assign in a statement before the comprehension",
    "duplicate key": "compare in a guard, or write a case for each",
    "duplicate argument": "choose another name for one of them",
    "literal": "put the number into brackets: (0)",
    "nonlocal": "give the name a value in the function around this one, or leave nonlocal out",
    "default 'except:'": "put the handlers that name an exception above it",
    # Since Python 3.13, a docstring must be valid Unicode.
    "surrogates not allowed": "leave the half of a surrogate pair out; it is no text",
    "can't compile": "write it in smaller parts",
}


_Pairs: TypeAlias = "list[tuple[Any, Any]] | None"

_OPERATORS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@"},
    **{ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&"},
    **{ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not", ast.And: "and", ast.Or: "or"},
    **{ast.Lt: "<", ast.Gt: ">", ast.Eq: "==", ast.GtE: ">=", ast.LtE: "<=", ast.NotEq: "!="},
    **{ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"},
}
_CONVERSIONS = {None: -1, "s": 115, "r": 114, "a": 97}


def different_line(module: tree.Module, theirs: ast.Module) -> int | None:
    """The line of the first difference that is found, or None if the trees are equal, except for positions."""
    line = 1
    pending: list[tuple[Any, Any]] = [(module, theirs)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, tree.Node):
            line = a.span.line
            pairs = _pairs(a, b)
            if pairs is None:
                return line
            pending += pairs
        elif type(a) is tuple:
            if type(b) is not list or len(a) != len(b):
                return line
            pending += zip(a, b, strict=True)
        elif type(a) is str and isinstance(b, ast.AST):
            if _OPERATORS.get(type(b)) != a:
                return line
        elif type(a) is not type(b) or a != b:
            return line
    return None


def twins(module: tree.Module, theirs: ast.Module) -> Iterator[tuple[tree.Node, ast.AST]]:
    """Each node of our tree with CPython's node for the same text, parents before children. The trees must be equal.

    Parameters and the pieces of strings have no twins.
    """
    pending: list[tuple[Any, Any]] = [(module, theirs)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, tree.Node):
            yield a, b
            pending += reversed(_pairs(a, b) or ())
        elif type(a) is tuple:
            pending += reversed([*zip(a, b, strict=True)])


def _pairs(a: tree.Node, b: ast.AST) -> _Pairs:
    special = _SPECIAL.get(type(a))
    return _fields(a, b) if special is None else special(a, b)


def _fields(a: tree.Node, b: ast.AST) -> _Pairs:
    """The pairs of values that must be equal. None if the nodes differ."""
    cls, names, others = _TABLE[type(a)]
    if type(b) is not cls or any(getattr(b, name) for name in others):
        return None
    return [(getattr(a, ours), getattr(b, theirs)) for ours, theirs in names]


#: The classes and fields whose names differ.
_CLASSES = {
    "ExprStmt": "Expr",
    "Comprehension": "comprehension",
    "Keyword": "keyword",
    "Alias": "alias",
    "MatchCase": "match_case",
}
_FIELDS = {"decorator_list": "decorators"}
#: `ctx` and `simple` follow from the place and the form of a target, `kind` is the `u` of a string. `_parameters` compares
#: `args`, if it is not the field of a call.
_IGNORED = {"ctx", "simple", "kind", "args"}

_Row: TypeAlias = "tuple[type[ast.AST], list[tuple[str, str]], list[str]]"


class _Table(dict[type[tree.Node], _Row]):
    """For each class: Python's class, the names of the common fields, and Python's other fields, which must be empty."""

    def __missing__(self, cls: type[tree.Node]) -> _Row:
        theirs: type[ast.AST] = getattr(ast, _CLASSES.get(cls.__name__, cls.__name__))
        known = set(cls.__struct_fields__)
        names = [(_FIELDS.get(name, name), name) for name in theirs._fields]
        common = [(ours, name) for ours, name in names if ours in known]
        others = [name for ours, name in names if ours not in known and name not in _IGNORED]
        self[cls] = theirs, common, others
        return self[cls]


_TABLE = _Table()


def _constant(a: tree.Constant, b: ast.AST) -> _Pairs:
    # Python considers 1, 1.0 and True equal, and nan different from itself.
    same = type(b) is ast.Constant and type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
    return [] if same else None


def _strings(a: tree.Strings, b: ast.AST) -> _Pairs:
    constant = a.constant
    if constant is not None:
        return [(constant, b.value)] if type(b) is ast.Constant else None
    parts = [part for p in a.pieces for part in ([p.value] if isinstance(p, tree.Text) else p.parts)]
    return _joined(parts, b)


def _joined(parts: Sequence[Any], b: ast.AST | None) -> _Pairs:
    """Texts and fields. As in CPython, adjacent texts are joined and empty texts are dropped."""
    joined: list[Any] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    if type(b) is not ast.JoinedStr:
        return None
    return [(tuple(joined), [v.value if type(v) is ast.Constant else v for v in b.values])]


def _field(a: tree.Field, b: ast.AST) -> _Pairs:
    if type(b) is not ast.FormattedValue:
        return None
    spec = [(None, b.format_spec)] if a.spec is None else _joined(a.spec, b.format_spec)
    return spec and [(a.value, b.value), (_CONVERSIONS[a.conversion], b.conversion), *spec]


def _function(a: tree.FunctionDef | tree.Lambda, b: ast.AST) -> _Pairs:
    pairs = _fields(a, b)
    parameters = None if pairs is None else _parameters(a.params, b.args)  # type: ignore[attr-defined]
    return parameters and [*(pairs or ()), *parameters]


def _parameters(params: tuple[tree.Param, ...], b: ast.arguments) -> _Pairs:
    if b.posonlyargs or b.vararg or b.kwarg:
        return None
    plain = [p for p in params if not p.keyword_only]
    named = [p for p in params if p.keyword_only]
    pairs: list[tuple[Any, Any]] = [
        (tuple(p.default for p in plain if p.default is not None), b.defaults),
        (tuple(p.default for p in named), b.kw_defaults),
    ]
    for ours, theirs in ((plain, b.args), (named, b.kwonlyargs)):
        pairs.append((tuple(p.name for p in ours), [p.arg for p in theirs]))
        pairs.append((tuple(p.annotation for p in ours), [p.annotation for p in theirs]))
    return pairs


_SPECIAL: dict[type[tree.Node], Callable[[Any, ast.AST], _Pairs]] = {
    tree.Constant: _constant,
    tree.Strings: _strings,
    tree.Field: _field,
    tree.FunctionDef: _function,
    tree.Lambda: _function,
}
