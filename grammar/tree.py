"""The tree of a source: frozen nodes with spans. It is also an index of the language: each docstring shows the source of a node.

Nodes and fields have the names of Python's own `ast` module, so the two trees are easy to compare. Spans, comments and the original
text of literals (`raw`) are not compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import get_annotations
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct

from albert_tools.grammar.diagnostic import Span

#: The fields that are not compared: places, comments and original texts.
_UNCOMPARED = frozenset({"span", "attr_span", "name_span", "raw", "comments", "source"})


class Node(Struct, frozen=True, eq=False):
    """The base class of all nodes."""

    span: Span

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))

    def _compared(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__struct_fields__ if name not in _UNCOMPARED])


# Expressions


class Name(Node, frozen=True):
    """``total``"""

    id: str


class Constant(Node, frozen=True):
    """``3``, ``0xff``, ``2.5``, ``True``, ``None``, ``...``"""

    value: int | float | bool | Any | None
    raw: str

    def _compared(self) -> tuple[object, ...]:
        # Python considers 1, 1.0 and True equal, but they are different programs.
        return type(self.value), repr(self.value)


class Text(Node, frozen=True):
    """One string literal: ``"a"``, ``r"\\d"``, ``b"x"``. It is a part of `Strings`."""

    value: str | bytes
    raw: str


class Field(Node, frozen=True):
    """``{total!r:>{width}}`` in an f-string. `spec` is a sequence of texts and fields, or None."""

    value: Expr
    conversion: str | None
    spec: tuple[str | Field, ...] | None


class FText(Node, frozen=True):
    """``f"{n} rows"``. It is a part of `Strings`."""

    parts: tuple[str | Field, ...]
    raw: str


class Strings(Node, frozen=True):
    """``"a" f"{b}"``: adjacent literals that form one value."""

    pieces: tuple[Text | FText, ...]

    @property
    def constant(self) -> str | bytes | None:
        """The value if no piece has a field, otherwise None."""
        values = [p.value for p in self.pieces if isinstance(p, Text)]
        if len(values) != len(self.pieces):
            return None
        return b"".join(values) if isinstance(values[0], bytes) else "".join(values)  # type: ignore[arg-type]


class List(Node, frozen=True):
    """``[a, *b]``"""

    elts: tuple[Expr, ...]


class Tuple(Node, frozen=True):
    """``a, b`` or ``()``"""

    elts: tuple[Expr, ...]


class Set(Node, frozen=True):
    """``{a, b}``"""

    elts: tuple[Expr, ...]


class Dict(Node, frozen=True):
    """``{k: v, **rest}``; the key of ``**rest`` is None."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


class Comprehension(Node, frozen=True):
    """``for x in xs if x``"""

    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]


class ListComp(Node, frozen=True):
    """``[x for x in xs]``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


class SetComp(Node, frozen=True):
    """``{x for x in xs}``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


class GeneratorExp(Node, frozen=True):
    """``(x for x in xs)``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


class DictComp(Node, frozen=True):
    """``{k: v for k, v in pairs}``"""

    key: Expr
    value: Expr
    generators: tuple[Comprehension, ...]


class IfExp(Node, frozen=True):
    """``body if test else orelse``"""

    test: Expr
    body: Expr
    orelse: Expr


class BoolOp(Node, frozen=True):
    """``a and b and c``; `op` is ``and`` or ``or``."""

    op: str
    values: tuple[Expr, ...]


class Compare(Node, frozen=True):
    """``a < b <= c``"""

    left: Expr
    ops: tuple[str, ...]
    comparators: tuple[Expr, ...]


class BinOp(Node, frozen=True):
    """``a + b``"""

    left: Expr
    op: str
    right: Expr


class UnaryOp(Node, frozen=True):
    """``-a``, ``not a``"""

    op: str
    operand: Expr


class Param(Node, frozen=True):
    """``limit: int = 10`` in a parameter list. After a bare ``*``, `keyword_only` is true."""

    name: str
    annotation: Expr | None
    default: Expr | None
    keyword_only: bool


class Lambda(Node, frozen=True):
    """``lambda a, b=1: a + b``"""

    params: tuple[Param, ...]
    body: Expr


class Keyword(Node, frozen=True):
    """``path=p`` or ``**options`` in a call. In the second form, `arg` is None."""

    arg: str | None
    value: Expr


class Call(Node, frozen=True):
    """``f(a, *b, c=1, **d)``"""

    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


class Starred(Node, frozen=True):
    """``*rest``"""

    value: Expr


class Attribute(Node, frozen=True):
    """``value.attr``. `attr_span` is the span of the name ``attr``."""

    value: Expr
    attr: str
    attr_span: Span


class Slice(Node, frozen=True):
    """``lower:upper:step`` between brackets"""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None


class Subscript(Node, frozen=True):
    """``value[slice]``"""

    value: Expr
    slice: Expr


class NamedExpr(Node, frozen=True):
    """``name := value``"""

    target: Name
    value: Expr


Expr: TypeAlias = (
    Name
    | Constant
    | Strings
    | List
    | Tuple
    | Set
    | Dict
    | ListComp
    | SetComp
    | GeneratorExp
    | DictComp
    | IfExp
    | BoolOp
    | Compare
    | BinOp
    | UnaryOp
    | Lambda
    | Call
    | Starred
    | Attribute
    | Slice
    | Subscript
    | NamedExpr
)

# Patterns of `match`


class MatchValue(Node, frozen=True):
    """``case 3:``, ``case "a":``, ``case -1:``"""

    value: Expr


class MatchSingleton(Node, frozen=True):
    """``case None:``, ``case True:``"""

    value: bool | None


class MatchSequence(Node, frozen=True):
    """``case [a, *rest]:``"""

    patterns: tuple[Pattern, ...]


class MatchMapping(Node, frozen=True):
    """``case {"kind": k, **rest}:``"""

    keys: tuple[Expr, ...]
    patterns: tuple[Pattern, ...]
    rest: str | None


class MatchClass(Node, frozen=True):
    """``case str():``"""

    cls: Expr


class MatchStar(Node, frozen=True):
    """``*rest`` in a sequence pattern; ``*_`` has no name."""

    name: str | None


class MatchAs(Node, frozen=True):
    """``case x:``, ``case p as x:``, ``case _:`` (without pattern and name)"""

    pattern: Pattern | None
    name: str | None


class MatchOr(Node, frozen=True):
    """``case 1 | 2:``"""

    patterns: tuple[Pattern, ...]


Pattern: TypeAlias = (
    MatchValue | MatchSingleton | MatchSequence | MatchMapping | MatchClass | MatchStar | MatchAs | MatchOr
)

# Statements


class ExprStmt(Node, frozen=True):
    """An expression as a statement."""

    value: Expr


class Assign(Node, frozen=True):
    """``a = b = value``"""

    targets: tuple[Expr, ...]
    value: Expr


class AnnAssign(Node, frozen=True):
    """``total: int = 0``; the target is a plain name."""

    target: Name
    annotation: Expr
    value: Expr | None


class AugAssign(Node, frozen=True):
    """``target += value``; `op` is without its ``=``."""

    target: Expr
    op: str
    value: Expr


class Delete(Node, frozen=True):
    """``del d[k]``"""

    targets: tuple[Expr, ...]


class Pass(Node, frozen=True):
    """``pass``"""


class Break(Node, frozen=True):
    """``break``"""


class Continue(Node, frozen=True):
    """``continue``"""


class Return(Node, frozen=True):
    """``return value``"""

    value: Expr | None


class Raise(Node, frozen=True):
    """``raise exc from cause``, or a bare ``raise``"""

    exc: Expr | None
    cause: Expr | None


class Assert(Node, frozen=True):
    """``assert test, msg``"""

    test: Expr
    msg: Expr | None


class Alias(Node, frozen=True):
    """``name as asname`` in an import"""

    name: str
    asname: str | None


class Import(Node, frozen=True):
    """``import json, re as r``"""

    names: tuple[Alias, ...]


class ImportFrom(Node, frozen=True):
    """``from math import sqrt``"""

    module: str
    names: tuple[Alias, ...]


class Nonlocal(Node, frozen=True):
    """``nonlocal a, b``"""

    names: tuple[str, ...]


class If(Node, frozen=True):
    """``if test: … elif …: … else: …``. An ``elif`` is an `If` that is the only statement in `orelse`."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class For(Node, frozen=True):
    """``for target in iter: … else: …``"""

    target: Expr
    iter: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class While(Node, frozen=True):
    """``while test: …``, with ``else`` in `orelse`."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class ExceptHandler(Node, frozen=True):
    """``except type as name: …``"""

    type: Expr | None
    name: str | None
    body: tuple[Stmt, ...]


class Try(Node, frozen=True):
    """``try: … except …: … else: … finally: …``"""

    body: tuple[Stmt, ...]
    handlers: tuple[ExceptHandler, ...]
    orelse: tuple[Stmt, ...]
    finalbody: tuple[Stmt, ...]


class MatchCase(Node, frozen=True):
    """``case pattern if guard: …``"""

    pattern: Pattern
    guard: Expr | None
    body: tuple[Stmt, ...]


class Match(Node, frozen=True):
    """``match subject: case …``"""

    subject: Expr
    cases: tuple[MatchCase, ...]


class FunctionDef(Node, frozen=True):
    """``@tool def name(params) -> returns: …``. `name_span` is the span of the name."""

    name: str
    params: tuple[Param, ...]
    returns: Expr | None
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    name_span: Span


class ClassDef(Node, frozen=True):
    """``class Row(TypedDict): …``; the checker refuses other classes."""

    name: str
    bases: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    name_span: Span


Stmt: TypeAlias = (
    ExprStmt
    | Assign
    | AnnAssign
    | AugAssign
    | Delete
    | Pass
    | Break
    | Continue
    | Return
    | Raise
    | Assert
    | Import
    | ImportFrom
    | Nonlocal
    | If
    | For
    | While
    | Try
    | Match
    | FunctionDef
    | ClassDef
)


class Comment(Node, frozen=True):
    """``# text``. `alone` is true if the comment is the only text on its line."""

    text: str
    alone: bool


class Module(Node, frozen=True):
    """A complete source. Comments are stored separately, by position."""

    body: tuple[Stmt, ...]
    comments: tuple[Comment, ...]
    source: str = ""


def elif_of(node: If) -> If | None:
    """The ``elif`` of an ``if``, or None. A chain of them can be long, so functions loop over it and do not recurse."""
    last = node.orelse[0] if len(node.orelse) == 1 else None
    return last if isinstance(last, If) else None


def single_targets(target: Expr) -> Iterator[Expr]:
    """The names, items and attributes in a target: ``a, *b[0]`` has two."""
    match target:
        case Tuple(elts=parts) | List(elts=parts):
            for part in parts:
                yield from single_targets(part)
        case Starred(value=value):
            yield from single_targets(value)
        case _:
            yield target


def children(node: Node) -> list[Node]:
    """The children of a node, in the order of the fields."""
    children: list[Node] = []
    for get in _GETTERS[type(node)]:
        value = get(node)
        if type(value) is tuple:
            children += [item for item in value if isinstance(item, Node)]
        elif isinstance(value, Node):
            children.append(value)
    return children


def walk(*nodes: Node) -> Iterator[Node]:
    """`nodes` and all their descendants, parents before children. The function is iterative, so it works for any depth."""
    stack = list(reversed(nodes))
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(children(current))


class _Getters(dict[type, tuple[Callable[[Node], object], ...]]):
    """For each class, functions that read the fields that may contain nodes. They are made at the first use."""

    def __missing__(self, cls: type) -> tuple[Callable[[Node], object], ...]:
        # Annotations are texts here. A field with one of these types never contains a node.
        plain = {"Span", "str", "bool", "str | None", "bool | None", "str | bytes", "tuple[str, ...]"}
        skip = {"value"} if cls is Constant else {"comments"}
        types = {name: kind for base in cls.__mro__ for name, kind in get_annotations(base).items()}
        names = cls.__struct_fields__  # type: ignore[attr-defined]
        getters = tuple(attrgetter(name) for name in names if types[name] not in plain and name not in skip)
        self[cls] = getters
        return getters


_GETTERS = _Getters()
