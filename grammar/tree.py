"""The tree of a source: frozen nodes with spans. It is also an index of the language: each docstring shows the source of a node.

Nodes and fields have the names of Python's own `ast` module, so the two trees are easy to compare. Spans, comments and the original
text of literals (`raw`) are not compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeAlias

from albert_tools.grammar.diagnostic import Span


@dataclass(frozen=True, slots=True)
class Node:
    """The base class of all nodes."""

    span: Span = field(compare=False, repr=False)


# Expressions


@dataclass(frozen=True, slots=True)
class Name(Node):
    """``total``"""

    id: str


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """``3``, ``0xff``, ``2.5``, ``True``, ``None``, ``...``"""

    value: int | float | bool | Any | None
    raw: str = field(compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        # Python considers 1, 1.0 and True equal, but they are different programs.
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


@dataclass(frozen=True, slots=True)
class Text(Node):
    """One string literal: ``"a"``, ``r"\\d"``, ``b"x"``. It is a part of `Strings`."""

    value: str | bytes
    raw: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Field(Node):
    """``{total!r:>{width}}`` in an f-string. `spec` is a sequence of texts and fields, or None."""

    value: Expr
    conversion: str | None
    spec: tuple[str | Field, ...] | None


@dataclass(frozen=True, slots=True)
class FText(Node):
    """``f"{n} rows"``. It is a part of `Strings`."""

    parts: tuple[str | Field, ...]
    raw: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Strings(Node):
    """``"a" f"{b}"``: adjacent literals that form one value."""

    pieces: tuple[Text | FText, ...]

    @property
    def constant(self) -> str | bytes | None:
        """The value if no piece has a field, otherwise None."""
        values = [p.value for p in self.pieces if isinstance(p, Text)]
        if len(values) != len(self.pieces):
            return None
        return b"".join(values) if isinstance(values[0], bytes) else "".join(values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class List(Node):
    """``[a, *b]``"""

    elts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """``a, b`` or ``()``"""

    elts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Set(Node):
    """``{a, b}``"""

    elts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Dict(Node):
    """``{k: v, **rest}``; the key of ``**rest`` is None."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """``for x in xs if x``"""

    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ListComp(Node):
    """``[x for x in xs]``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


@dataclass(frozen=True, slots=True)
class SetComp(Node):
    """``{x for x in xs}``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


@dataclass(frozen=True, slots=True)
class GeneratorExp(Node):
    """``(x for x in xs)``"""

    elt: Expr
    generators: tuple[Comprehension, ...]


@dataclass(frozen=True, slots=True)
class DictComp(Node):
    """``{k: v for k, v in pairs}``"""

    key: Expr
    value: Expr
    generators: tuple[Comprehension, ...]


@dataclass(frozen=True, slots=True)
class IfExp(Node):
    """``body if test else orelse``"""

    test: Expr
    body: Expr
    orelse: Expr


@dataclass(frozen=True, slots=True)
class BoolOp(Node):
    """``a and b and c``; `op` is ``and`` or ``or``."""

    op: str
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """``a < b <= c``"""

    left: Expr
    ops: tuple[str, ...]
    comparators: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class BinOp(Node):
    """``a + b``"""

    left: Expr
    op: str
    right: Expr


@dataclass(frozen=True, slots=True)
class UnaryOp(Node):
    """``-a``, ``not a``"""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Param(Node):
    """``limit: int = 10`` in a parameter list. After a bare ``*``, `keyword_only` is true."""

    name: str
    annotation: Expr | None
    default: Expr | None
    keyword_only: bool


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """``lambda a, b=1: a + b``"""

    params: tuple[Param, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """``path=p`` or ``**options`` in a call. In the second form, `arg` is None."""

    arg: str | None
    value: Expr


@dataclass(frozen=True, slots=True)
class Call(Node):
    """``f(a, *b, c=1, **d)``"""

    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True)
class Starred(Node):
    """``*rest``"""

    value: Expr


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``value.attr``. `attr_span` is the span of the name ``attr``."""

    value: Expr
    attr: str
    attr_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """``lower:upper:step`` between brackets"""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """``value[slice]``"""

    value: Expr
    slice: Expr


@dataclass(frozen=True, slots=True)
class NamedExpr(Node):
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


@dataclass(frozen=True, slots=True)
class MatchValue(Node):
    """``case 3:``, ``case "a":``, ``case -1:``"""

    value: Expr


@dataclass(frozen=True, slots=True)
class MatchSingleton(Node):
    """``case None:``, ``case True:``"""

    value: bool | None


@dataclass(frozen=True, slots=True)
class MatchSequence(Node):
    """``case [a, *rest]:``"""

    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class MatchMapping(Node):
    """``case {"kind": k, **rest}:``"""

    keys: tuple[Expr, ...]
    patterns: tuple[Pattern, ...]
    rest: str | None


@dataclass(frozen=True, slots=True)
class MatchClass(Node):
    """``case str():``"""

    cls: Expr


@dataclass(frozen=True, slots=True)
class MatchStar(Node):
    """``*rest`` in a sequence pattern; ``*_`` has no name."""

    name: str | None


@dataclass(frozen=True, slots=True)
class MatchAs(Node):
    """``case x:``, ``case p as x:``, ``case _:`` (without pattern and name)"""

    pattern: Pattern | None
    name: str | None


@dataclass(frozen=True, slots=True)
class MatchOr(Node):
    """``case 1 | 2:``"""

    patterns: tuple[Pattern, ...]


Pattern: TypeAlias = (
    MatchValue | MatchSingleton | MatchSequence | MatchMapping | MatchClass | MatchStar | MatchAs | MatchOr
)

# Statements


@dataclass(frozen=True, slots=True)
class ExprStmt(Node):
    """An expression as a statement."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """``a = b = value``"""

    targets: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class AnnAssign(Node):
    """``total: int = 0``; the target is a plain name."""

    target: Name
    annotation: Expr
    value: Expr | None


@dataclass(frozen=True, slots=True)
class AugAssign(Node):
    """``target += value``; `op` is without its ``=``."""

    target: Expr
    op: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Delete(Node):
    """``del d[k]``"""

    targets: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Pass(Node):
    """``pass``"""


@dataclass(frozen=True, slots=True)
class Break(Node):
    """``break``"""


@dataclass(frozen=True, slots=True)
class Continue(Node):
    """``continue``"""


@dataclass(frozen=True, slots=True)
class Return(Node):
    """``return value``"""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class Raise(Node):
    """``raise exc from cause``, or a bare ``raise``"""

    exc: Expr | None
    cause: Expr | None


@dataclass(frozen=True, slots=True)
class Assert(Node):
    """``assert test, msg``"""

    test: Expr
    msg: Expr | None


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """``name as asname`` in an import"""

    name: str
    asname: str | None


@dataclass(frozen=True, slots=True)
class Import(Node):
    """``import json, re as r``"""

    names: tuple[Alias, ...]


@dataclass(frozen=True, slots=True)
class ImportFrom(Node):
    """``from math import sqrt``"""

    module: str
    names: tuple[Alias, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """``if test: … elif …: … else: …``. An ``elif`` is an `If` that is the only statement in `orelse`."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class For(Node):
    """``for target in iter: … else: …``"""

    target: Expr
    iter: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class ExceptHandler(Node):
    """``except type as name: …``"""

    type: Expr | None
    name: str | None
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Try(Node):
    """``try: … except …: … else: … finally: …``"""

    body: tuple[Stmt, ...]
    handlers: tuple[ExceptHandler, ...]
    orelse: tuple[Stmt, ...]
    finalbody: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class MatchCase(Node):
    """``case pattern if guard: …``"""

    pattern: Pattern
    guard: Expr | None
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Match(Node):
    """``match subject: case …``"""

    subject: Expr
    cases: tuple[MatchCase, ...]


@dataclass(frozen=True, slots=True)
class FunctionDef(Node):
    """``@tool def name(params) -> returns: …``. `name_span` is the span of the name."""

    name: str
    params: tuple[Param, ...]
    returns: Expr | None
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ClassDef(Node):
    """``class Row(TypedDict): …``; the checker refuses other classes."""

    name: str
    bases: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    name_span: Span = field(compare=False, repr=False)


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
    | If
    | For
    | Try
    | Match
    | FunctionDef
    | ClassDef
)


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """``# text``. `alone` is true if the comment is the only text on its line."""

    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Module(Node):
    """A complete source. Comments are stored separately, by position."""

    body: tuple[Stmt, ...]
    comments: tuple[Comment, ...] = field(compare=False, repr=False)
    source: str = field(compare=False, repr=False, default="")


def elif_of(node: If) -> If | None:
    """The ``elif`` of an ``if``, or None. A chain of them can be long, so functions loop over it and do not recurse."""
    last = node.orelse[0] if len(node.orelse) == 1 else None
    return last if isinstance(last, If) else None


def children(node: Node) -> list[Node]:
    """The children of a node, in the order of the fields."""
    found: list[Node] = []
    for get in _GETTERS[type(node)]:
        value = get(node)
        if type(value) is tuple:
            found += [item for item in value if isinstance(item, Node)]
        elif isinstance(value, Node):
            found.append(value)
    return found


def walk(node: Node) -> Iterator[Node]:
    """`node` and all its descendants, parents before children. The function is iterative, so it works for any depth."""
    stack = [node]
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
        getters = tuple(attrgetter(f.name) for f in fields(cls) if f.type not in plain and f.name not in skip)
        self[cls] = getters
        return getters


_GETTERS = _Getters()
