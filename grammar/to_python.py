"""Convert the tree of `grammar.tree` to Python's own `ast`.

Nodes and fields have the same names, so the conversion is simple. There are three exceptions: Python joins the pieces of strings,
it has parallel lists for parameters, and its targets have contexts. The result equals CPython's own tree of the same text, which
the second reading checks. The compiler starts from this result. It has line numbers but no columns.
"""

from __future__ import annotations

import ast
from typing import Any

from albert_tools.grammar import tree

_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "@": ast.MatMult,
    "**": ast.Pow,
    "<<": ast.LShift,
    ">>": ast.RShift,
    "|": ast.BitOr,
    "^": ast.BitXor,
    "&": ast.BitAnd,
}
_UNARY: dict[str, type[ast.unaryop]] = {"-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "not": ast.Not}
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt,
    ">": ast.Gt,
    "==": ast.Eq,
    ">=": ast.GtE,
    "<=": ast.LtE,
    "!=": ast.NotEq,
    "in": ast.In,
    "not in": ast.NotIn,
    "is": ast.Is,
    "is not": ast.IsNot,
}
_CONVERSIONS = {None: -1, "s": 115, "r": 114, "a": 97}


def to_python(module: tree.Module) -> ast.Module:
    """The whole source as an `ast.Module` that can be compiled."""
    return ast.Module(body=[statement(s) for s in module.body], type_ignores=[])


def _at(new: Any, node: tree.Node) -> Any:
    new.lineno = node.span.line
    new.col_offset = 0
    new.end_lineno = node.span.end_line
    new.end_col_offset = 0
    return new


def body(nodes: tuple[tree.Stmt, ...]) -> list[ast.stmt]:
    """A block."""
    return [statement(n) for n in nodes]


def statement(node: tree.Stmt) -> ast.stmt:
    """One statement."""
    new: ast.stmt = _at(_statement(node), node)
    return new


def _statement(node: tree.Stmt) -> ast.stmt:
    match node:
        case tree.ExprStmt():
            return ast.Expr(expr(node.value))
        case tree.Assign():
            return ast.Assign([target(t) for t in node.targets], expr(node.value))
        case tree.AnnAssign():
            name = ast.Name(node.target.id, ast.Store(), lineno=node.span.line, col_offset=0)
            return ast.AnnAssign(name, expr(node.annotation), optional(node.value), 1)
        case tree.AugAssign():
            return ast.AugAssign(target(node.target), _BINARY[node.op](), expr(node.value))  # type: ignore[arg-type]
        case tree.Delete():
            return ast.Delete([target(t, ast.Del) for t in node.targets])
        case tree.Pass():
            return ast.Pass()
        case tree.Break():
            return ast.Break()
        case tree.Continue():
            return ast.Continue()
        case tree.Return():
            return ast.Return(optional(node.value))
        case tree.Raise():
            return ast.Raise(optional(node.exc), optional(node.cause))
        case tree.Assert():
            return ast.Assert(expr(node.test), optional(node.msg))
        case tree.Import():
            return ast.Import([_alias(a) for a in node.names])
        case tree.ImportFrom():
            return ast.ImportFrom(node.module, [_alias(a) for a in node.names], 0)
        case tree.If():
            return ast.If(expr(node.test), body(node.body), body(node.orelse))
        case tree.For():
            return ast.For(target(node.target), expr(node.iter), body(node.body), body(node.orelse))
        case tree.Try():
            handlers = [_at(ast.ExceptHandler(optional(h.type), h.name, body(h.body)), h) for h in node.handlers]
            return ast.Try(body(node.body), handlers, body(node.orelse), body(node.finalbody))
        case tree.Match():
            cases = [ast.match_case(pattern(c.pattern), optional(c.guard), body(c.body)) for c in node.cases]
            return ast.Match(expr(node.subject), cases)
        case tree.FunctionDef():
            return _without_type_parameters(
                ast.FunctionDef(
                    node.name,
                    _parameters(node.params),
                    body(node.body),
                    [expr(d) for d in node.decorators],
                    optional(node.returns),
                )
            )
        case tree.ClassDef():
            return _without_type_parameters(
                ast.ClassDef(
                    node.name,
                    [expr(b) for b in node.bases],
                    [_keyword(k) for k in node.keywords],
                    body(node.body),
                    [expr(d) for d in node.decorators],
                )
            )


def _without_type_parameters(new: ast.stmt) -> ast.stmt:
    if "type_params" in new._fields:  # Python 3.12 and newer
        new.type_params = []  # type: ignore[attr-defined]
    return new


def _alias(node: tree.Alias) -> ast.alias:
    new: ast.alias = _at(ast.alias(node.name, node.asname), node)
    return new


def _keyword(node: tree.Keyword) -> ast.keyword:
    new: ast.keyword = _at(ast.keyword(node.arg, expr(node.value)), node)
    return new


def _parameters(params: tuple[tree.Param, ...]) -> ast.arguments:
    plain = [p for p in params if not p.keyword_only]
    named = [p for p in params if p.keyword_only]
    return ast.arguments(
        posonlyargs=[],
        args=[_at(ast.arg(p.name, optional(p.annotation)), p) for p in plain],
        vararg=None,
        kwonlyargs=[_at(ast.arg(p.name, optional(p.annotation)), p) for p in named],
        kw_defaults=[optional(p.default) for p in named],
        kwarg=None,
        defaults=[expr(p.default) for p in plain if p.default is not None],
    )


def target(node: tree.Expr, context: type[ast.expr_context] = ast.Store) -> ast.expr:
    """The target of an assignment or a deletion."""
    new: Any
    match node:
        case tree.Name():
            new = ast.Name(node.id, context())
        case tree.Attribute():
            new = ast.Attribute(expr(node.value), node.attr, context())
        case tree.Subscript():
            new = ast.Subscript(expr(node.value), expr(node.slice), context())
        case tree.Starred():
            new = ast.Starred(target(node.value, context), context())
        case tree.Tuple():
            new = ast.Tuple([target(e, context) for e in node.elts], context())
        case tree.List():
            new = ast.List([target(e, context) for e in node.elts], context())
        case _:
            raise AssertionError(f"not a target: {node!r}")
    found: ast.expr = _at(new, node)
    return found


def optional(node: tree.Expr | None) -> ast.expr | None:
    """An expression, or None."""
    return None if node is None else expr(node)


def expr(node: tree.Expr) -> ast.expr:
    """One expression."""
    new: ast.expr = _at(_expr(node), node)
    return new


def _expr(node: tree.Expr) -> ast.expr:
    load = ast.Load()
    match node:
        case tree.Name():
            return ast.Name(node.id, load)
        case tree.Constant():
            return ast.Constant(node.value)
        case tree.Strings():
            return _strings(node)
        case tree.List():
            return ast.List([expr(e) for e in node.elts], load)
        case tree.Tuple():
            return ast.Tuple([expr(e) for e in node.elts], load)
        case tree.Set():
            return ast.Set([expr(e) for e in node.elts])
        case tree.Dict():
            return ast.Dict([optional(k) for k in node.keys], [expr(v) for v in node.values])
        case tree.ListComp():
            return ast.ListComp(expr(node.elt), [_comprehension(g) for g in node.generators])
        case tree.SetComp():
            return ast.SetComp(expr(node.elt), [_comprehension(g) for g in node.generators])
        case tree.GeneratorExp():
            return ast.GeneratorExp(expr(node.elt), [_comprehension(g) for g in node.generators])
        case tree.DictComp():
            return ast.DictComp(expr(node.key), expr(node.value), [_comprehension(g) for g in node.generators])
        case tree.IfExp():
            return ast.IfExp(expr(node.test), expr(node.body), expr(node.orelse))
        case tree.BoolOp():
            return ast.BoolOp(ast.And() if node.op == "and" else ast.Or(), [expr(v) for v in node.values])
        case tree.Compare():
            return ast.Compare(expr(node.left), [_COMPARE[o]() for o in node.ops], [expr(c) for c in node.comparators])
        case tree.BinOp():
            return ast.BinOp(expr(node.left), _BINARY[node.op](), expr(node.right))
        case tree.UnaryOp():
            return ast.UnaryOp(_UNARY[node.op](), expr(node.operand))
        case tree.Lambda():
            return ast.Lambda(_parameters(node.params), expr(node.body))
        case tree.Call():
            return ast.Call(expr(node.func), [expr(a) for a in node.args], [_keyword(k) for k in node.keywords])
        case tree.Starred():
            return ast.Starred(expr(node.value), load)
        case tree.Attribute():
            return ast.Attribute(expr(node.value), node.attr, load)
        case tree.Slice():
            return ast.Slice(optional(node.lower), optional(node.upper), optional(node.step))
        case tree.Subscript():
            return ast.Subscript(expr(node.value), expr(node.slice), load)
        case tree.NamedExpr():
            return ast.NamedExpr(target(node.target), expr(node.value))  # type: ignore[arg-type]


def _comprehension(node: tree.Comprehension) -> ast.comprehension:
    return ast.comprehension(target(node.target), expr(node.iter), [expr(i) for i in node.ifs], 0)


def _strings(node: tree.Strings) -> ast.expr:
    constant = node.constant
    if constant is not None:
        return ast.Constant(constant)
    parts: list[str | tree.Field] = []
    for piece in node.pieces:
        parts.extend([piece.value] if isinstance(piece, tree.Text) else piece.parts)  # type: ignore[list-item]
    return ast.JoinedStr(_joined(parts, node))


def _joined(parts: list[str | tree.Field], node: tree.Node) -> list[ast.expr]:
    """Texts and fields. As in CPython, adjacent texts are joined and empty texts are dropped."""
    values: list[ast.expr] = []
    text = ""
    for part in [*parts, None]:
        if isinstance(part, str):
            text += part
            continue
        if text:
            values.append(_at(ast.Constant(text), node))
            text = ""
        if part is not None:
            spec = None if part.spec is None else _at(ast.JoinedStr(_joined(list(part.spec), node)), node)
            values.append(_at(ast.FormattedValue(expr(part.value), _CONVERSIONS[part.conversion], spec), node))
    return values


def pattern(node: tree.Pattern) -> ast.pattern:
    """One pattern of a `case`."""
    new: ast.pattern = _at(_pattern(node), node)
    return new


def _pattern(node: tree.Pattern) -> ast.pattern:
    match node:
        case tree.MatchValue():
            return ast.MatchValue(expr(node.value))
        case tree.MatchSingleton():
            return ast.MatchSingleton(node.value)
        case tree.MatchSequence():
            return ast.MatchSequence([pattern(p) for p in node.patterns])
        case tree.MatchMapping():
            return ast.MatchMapping([expr(k) for k in node.keys], [pattern(p) for p in node.patterns], node.rest)
        case tree.MatchClass():
            return ast.MatchClass(expr(node.cls), [], [], [])
        case tree.MatchStar():
            return ast.MatchStar(node.name)
        case tree.MatchAs():
            return ast.MatchAs(None if node.pattern is None else pattern(node.pattern), node.name)
        case tree.MatchOr():
            return ast.MatchOr([pattern(p) for p in node.patterns])
