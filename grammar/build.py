"""Build the tree of `grammar.tree` while Lark parses.

There is one method for each alternative of the grammar. Its arguments are the tokens and the results of the inner rules, in order.
Some texts match the grammar but are not programs, such as an assignment to a call. The grammar would need many more rules to
exclude them, so this module refuses them. Nothing here recurses over the tree, so a tree of any depth can be built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeAlias

from lark import Transformer, v_args

from albert_tools.grammar import fstrings, tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.layout import Token

_Spanned: TypeAlias = "Token | tree.Node | _Group"
_Block: TypeAlias = list[tree.Stmt]
_Body: TypeAlias = tuple[tree.Stmt, ...]
_Decorators: TypeAlias = list[tuple[Token, tree.Expr]] | None
_Generators: TypeAlias = list[tree.Comprehension]

#: The most branches of an ``if``. CPython's parser and compiler recurse over them; their limit is below 3,000.
MAX_BRANCHES = 1000

_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False, "...": ...}

# The precedence of each operator, lowest first.
_OR, _AND, _NOT, _COMPARE, _PRODUCT, _SIGN = 1, 2, 3, 4, 10, 11
_STRENGTH = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("in", "not in", "is", "is not", "<", ">", "==", ">=", "<=", "!="), _COMPARE),
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    **dict.fromkeys(("*", "/", "//", "%", "@"), _PRODUCT),
    "**": 12,
}


class BuildError(Exception):
    """The text matches the grammar but is not a program."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class _Group(NamedTuple):
    """A node in brackets that it does not need, with their span."""

    node: tree.Node
    span: Span


def _refuse(at: _Spanned | Span, message: str, hint: str | None = None) -> NoReturn:
    raise BuildError(Diagnostic("syntax", message, at if isinstance(at, Span) else at.span, hint=hint))


@v_args(inline=True)
class Builder(Transformer[Token, Any]):
    """Lark's callbacks. `parse_field` parses the expression inside the braces of an f-string, given its first line and column."""

    def __init__(self, parse_field: Callable[[str, int, int], tree.Expr | None]) -> None:
        super().__init__()
        self._parse_field = parse_field
        #: By the id of its node. A node's span is without such brackets, but the span of its parent includes them.
        self._groups: dict[int, _Group] = {}

    def _span(self, first: _Spanned, last: _Spanned) -> Span:
        """The span from the start of one token or node to the end of another."""
        groups = self._groups
        return groups.get(id(first), first).span.to(groups.get(id(last), last).span)

    # Lists

    def one(self, item: Any) -> list[Any]:
        return [item]

    def two(self, first: Any, _mark: Token, second: Any) -> list[Any]:
        return [first, second]

    def more(self, items: list[Any], *added: Any) -> list[Any]:
        items.append(added[-1])
        return items

    def extended(self, items: list[Any], added: list[Any]) -> list[Any]:
        items += added
        return items

    def without_comma(self, items: list[Any], _comma: Token | None = None) -> list[Any]:
        return items

    def second(self, _word: Token, part: Any) -> Any:
        return part

    as_name = guard = returns = condition = second

    def pair(self, key: Any, _colon: Token, value: Any) -> Any:
        return key, value

    key_pattern = pair

    # Statements

    def module(self, body: _Block | None = None) -> _Body:
        self._groups.clear()
        return tuple(body or ())

    def field(self, value: tree.Expr, _newline: Token) -> tree.Expr:
        return value

    def line(self, statements: _Block, *_end: Token) -> _Block:
        return statements

    def suite(self, *parts: Any) -> _Body:
        return tuple(parts[0] if len(parts) == 1 else parts[2])

    def assignment(self, parts: list[tree.Expr]) -> tree.Stmt:
        value = parts.pop()
        if not parts:
            return tree.ExprStmt(self._span(value, value), value)
        return tree.Assign(self._span(parts[0], value), tuple(map(self._target, parts)), value)

    def annotated(self, name: Token, _colon: Token, annotation: tree.Expr, *rest: Any) -> tree.Stmt:
        value = rest[1] if rest else None
        return tree.AnnAssign(self._span(name, value or annotation), self.name(name), annotation, value)

    def augmented(self, left: tree.Expr, operator: Token, value: tree.Expr) -> tree.Stmt:
        if not isinstance(self._target(left), tree.Name | tree.Subscript | tree.Attribute):
            _refuse(
                left,
                "the left side of an augmented assignment must be one name or item",
                "write one assignment for each",
            )
        return tree.AugAssign(self._span(left, value), left, operator.value[:-1], value)

    def delete(self, start: Token, targets: list[tree.Expr], *comma: Token) -> tree.Stmt:
        last = comma[0] if comma else targets[-1]
        return tree.Delete(self._span(start, last), tuple(map(self._target, targets)))

    def pass_(self, word: Token) -> tree.Stmt:
        return tree.Pass(word.span)

    def break_(self, word: Token) -> tree.Stmt:
        return tree.Break(word.span)

    def continue_(self, word: Token) -> tree.Stmt:
        return tree.Continue(word.span)

    def return_(self, start: Token, value: tree.Expr | None = None) -> tree.Stmt:
        return tree.Return(self._span(start, value or start), value)

    def raise_(
        self, start: Token, exc: tree.Expr | None = None, _from: Token | None = None, cause: tree.Expr | None = None
    ) -> tree.Stmt:
        return tree.Raise(self._span(start, cause or exc or start), exc, cause)

    def assert_(
        self, start: Token, test: tree.Expr, _comma: Token | None = None, msg: tree.Expr | None = None
    ) -> tree.Stmt:
        return tree.Assert(self._span(start, msg or test), test, msg)

    def nonlocal_(self, start: Token, names: list[Token]) -> tree.Stmt:
        return tree.Nonlocal(self._span(start, names[-1]), tuple(name.value for name in names))

    def import_(self, start: Token, names: list[tree.Alias]) -> tree.Stmt:
        return tree.Import(self._span(start, names[-1]), tuple(names))

    def import_from(self, start: Token, module: list[Token], _import: Token, *rest: Any) -> tree.Stmt:
        names, last = (rest[1], rest[-1]) if len(rest) > 1 else (rest[0], rest[0][-1])
        return tree.ImportFrom(self._span(start, last), ".".join(t.value for t in module), tuple(names))

    def alias(self, name: Token | list[Token], _as: Token | None = None, asname: Token | None = None) -> tree.Alias:
        parts = [name] if isinstance(name, Token) else name
        span = self._span(parts[0], asname or parts[-1])
        return tree.Alias(span, ".".join(t.value for t in parts), asname and asname.value)

    # Compound statements

    def if_(self, start: Token, test: tree.Expr, _colon: Token, body: _Body, *rest: Any) -> tree.Stmt:
        branches = [(start, test, body)]
        orelse: _Body = ()
        for part in rest:
            if isinstance(part, list):
                branches += part
            else:
                orelse = part
        if len(branches) > MAX_BRANCHES:
            at = branches[MAX_BRANCHES][0].span
            message = f"an if has more than {MAX_BRANCHES:,} branches"
            raise BuildError(Diagnostic("nesting-too-deep", message, at, hint="look the value up in a dict"))
        for word, condition, block in reversed(branches):
            orelse = (tree.If(self._span(word, (orelse or block)[-1]), condition, block, orelse),)
        return orelse[0]

    def elif_(self, start: Token, test: tree.Expr, _colon: Token, body: _Body) -> Any:
        return start, test, body

    def else_(self, _start: Token, _colon: Token, body: _Body) -> Any:
        return body

    finally_ = else_

    def for_(
        self,
        start: Token,
        target: tree.Expr,
        _in: Token,
        iterable: tree.Expr,
        _colon: Token,
        body: _Body,
        orelse: _Body = (),
    ) -> tree.Stmt:
        span = self._span(start, (orelse or body)[-1])
        return tree.For(span, self._target(target), iterable, body, orelse)

    def while_(self, start: Token, test: tree.Expr, _colon: Token, body: _Body, orelse: _Body = ()) -> tree.Stmt:
        return tree.While(self._span(start, (orelse or body)[-1]), test, body, orelse)

    def try_(self, start: Token, _colon: Token, body: _Body, *rest: Any) -> tree.Stmt:
        handlers, orelse, finalbody = ((), (), *rest)[-3:]  # without handlers there is only a `finally`
        last = (finalbody or orelse or handlers[-1].body)[-1]
        return tree.Try(self._span(start, last), body, tuple(handlers), orelse or (), finalbody or ())

    def handler(
        self, start: Token, type_: tree.Expr | None, name: Token | None, _colon: Token, body: _Body
    ) -> tree.ExceptHandler:
        return tree.ExceptHandler(self._span(start, body[-1]), type_, name and name.value, body)

    def match_(self, start: Token, subject: tree.Expr, *rest: Any) -> tree.Stmt:
        cases: list[tree.MatchCase] = rest[3]
        return tree.Match(self._span(start, cases[-1]), subject, tuple(cases))

    def case(
        self, start: Token, pattern: tree.Pattern, guard: tree.Expr | None, _colon: Token, body: _Body
    ) -> tree.MatchCase:
        return tree.MatchCase(self._span(start, body[-1]), pattern, guard, body)

    def function(
        self,
        decorators: _Decorators,
        start: Token,
        name: Token,
        _open: Token,
        params: list[tree.Param | Token] | None,
        _close: Token,
        returns: tree.Expr | None,
        _colon: Token,
        body: _Body,
    ) -> tree.Stmt:
        return tree.FunctionDef(
            self._span(decorators[0][0] if decorators else start, body[-1]),
            name.value,
            self._parameters(params or []),
            returns,
            body,
            tuple(expr for _, expr in decorators or ()),
            name.span,
        )

    def class_(
        self,
        decorators: _Decorators,
        start: Token,
        name: Token,
        bases: list[tree.Expr | tree.Keyword] | None,
        _colon: Token,
        body: _Body,
    ) -> tree.Stmt:
        args, keywords = self._arguments(bases or [])
        return tree.ClassDef(
            self._span(decorators[0][0] if decorators else start, body[-1]),
            name.value,
            args,
            keywords,
            body,
            tuple(expr for _, expr in decorators or ()),
            name.span,
        )

    def decorator(self, at: Token, expr: tree.Expr, _newline: Token) -> tuple[Token, tree.Expr]:
        return at, expr

    def bases(self, _open: Token, *rest: Any) -> list[Any]:
        return rest[0] if len(rest) > 1 else []

    def param(self, name: Token, *rest: Any) -> tree.Param:
        parts = {mark.value: part for mark, part in zip(rest[::2], rest[1::2], strict=True)}
        last = rest[-1] if rest else name
        return tree.Param(self._span(name, last), name.value, parts.get(":"), parts.get("="), False)

    lambda_param = param

    def _parameters(self, items: list[tree.Param | Token]) -> tuple[tree.Param, ...]:
        params: list[tree.Param] = []
        star: Token | None = None
        defaults = False
        for item in items:
            if isinstance(item, Token):
                if star is not None:
                    _refuse(item, "a parameter list takes only one bare *", "leave one out")
                star = item
                continue
            if item.default is None and defaults and star is None:
                _refuse(
                    item,
                    "a parameter without a default follows one with a default",
                    "put it first, or give it a default",
                )
            defaults = defaults or item.default is not None
            params.append(tree.Param(item.span, item.name, item.annotation, item.default, star is not None))
        if star is not None and not (params and params[-1].keyword_only):
            _refuse(star, "named parameters must follow a bare *", "leave the * out")
        return tuple(params)

    # Patterns

    def sequence(self, items: Any, *comma: Token) -> tree.Pattern:
        patterns = items if isinstance(items, list) else [items]
        return tree.MatchSequence(self._span(patterns[0], comma[0] if comma else patterns[-1]), tuple(patterns))

    def bracketed_sequence(self, start: Token, *rest: Any) -> tree.Pattern:
        return tree.MatchSequence(self._span(start, rest[-1]), self._items(rest))

    def as_pattern(self, pattern: tree.Pattern, _as: Token, name: Token) -> tree.Pattern:
        if name.value == "_":
            _refuse(name, "'_' can't be captured", "choose a name, or leave `as _` out")
        return tree.MatchAs(self._span(pattern, name), pattern, name.value)

    def alternatives(self, patterns: list[tree.Pattern]) -> tree.Pattern:
        return tree.MatchOr(self._span(patterns[0], patterns[-1]), tuple(patterns))

    def capture(self, name: Token) -> tree.Pattern:
        return tree.MatchAs(name.span, None, None if name.value == "_" else name.value)

    def value_pattern(self, names: list[Token]) -> tree.Pattern:
        return tree.MatchValue(self._span(names[0], names[-1]), self._dotted(names))

    def class_pattern(self, name: Token | list[Token], _open: Token, close: Token) -> tree.Pattern:
        names = [name] if isinstance(name, Token) else name
        return tree.MatchClass(self._span(names[0], close), self._dotted(names))

    def _dotted(self, names: list[Token]) -> tree.Expr:
        built: tree.Expr = self.name(names[0])
        for token in names[1:]:
            built = tree.Attribute(built.span.to(token.span), built, token.value, token.span)
        return built

    def star_pattern(self, star: Token, name: Token) -> tree.Pattern:
        return tree.MatchStar(self._span(star, name), None if name.value == "_" else name.value)

    def mapping_pattern(self, start: Token, *rest: Any) -> tree.Pattern:
        keys: list[tree.Expr] = []
        patterns: list[tree.Pattern] = []
        last: Token | None = None
        for key, value in self._items(rest):
            if last is not None:
                at = value.span if key is None else self._span(key, value)
                _refuse(at, "nothing may follow **rest in a mapping pattern", "put **rest last")
            if key is None:
                last = value
                continue
            keys.append(
                key.value if isinstance(key, tree.MatchValue) else tree.Constant(key.span, key.value, str(key.value))
            )
            patterns.append(value)
        return tree.MatchMapping(self._span(start, rest[-1]), tuple(keys), tuple(patterns), last and last.value)

    def rest_pattern(self, _stars: Token, name: Token) -> Any:
        return None, name

    def number_pattern(self, *parts: Token) -> tree.Pattern:
        number = self.number(parts[-1])
        span = self._span(parts[0], parts[-1])
        return tree.MatchValue(span, tree.UnaryOp(span, "-", number) if len(parts) > 1 else number)

    def string_pattern(self, tokens: list[Token]) -> tree.Pattern:
        strings = self.strings(tokens)
        if strings.constant is None:
            _refuse(strings, "a pattern can't be an f-string", "match a name and compare in a guard")
        return tree.MatchValue(strings.span, strings)

    def singleton(self, word: Token) -> tree.Pattern:
        return tree.MatchSingleton(word.span, _CONSTANTS[word.value])

    # Targets

    def _target(self, node: tree.Expr) -> tree.Expr:
        """Check that a value can be assigned to an expression."""
        pending = [(node, False)]
        while pending:
            target, starred = pending.pop()
            match target:
                case tree.Name() | tree.Subscript() | tree.Attribute():
                    pass
                case tree.Tuple(elts=elts) | tree.List(elts=elts):
                    if sum(isinstance(e, tree.Starred) for e in elts) > 1:
                        _refuse(target, "two starred names in one assignment", "keep one: first, *rest = xs")
                    pending += [(e, True) for e in reversed(elts)]
                case tree.Starred(value=value) if starred:
                    pending.append((value, False))
                case _:
                    self._refuse_target(target)
        return node

    def _refuse_target(self, node: tree.Expr) -> NoReturn:
        what = {
            "Constant": "a constant",
            "Strings": "a string",
            "Call": "a call",
            "Compare": "a comparison",
            "Starred": "a starred name outside a list or tuple",
        }.get(type(node).__name__, "this expression")
        _refuse(
            node,
            f"{what} can't be assigned to",
            "write a = list(xs), or first, *rest = xs"
            if isinstance(node, tree.Starred)
            else "assign to a name or an item: d[key] = value; to compare write ==",
        )

    # Operators

    def prefixed(self, prefixes: list[Token], operand: tree.Expr) -> list[Token | tree.Expr]:
        return [*prefixes, operand]

    def operands(self, left: Any, operator: list[Token], right: tree.Expr) -> list[Token | tree.Expr]:
        parts: list[Token | tree.Expr] = left if isinstance(left, list) else [left]
        parts += operator
        parts.append(right)
        return parts

    def not_in(self, first: Token, second: Token) -> list[Token]:
        return [first._replace(value="not in", end_line=second.end_line, end_column=second.end_column)]

    def fold(self, parts: list[Token | tree.Expr]) -> tree.Expr:
        """Apply operators to operands by precedence: the shunting-yard algorithm."""
        operands: list[tree.Expr] = []
        waiting: list[tuple[int, str, Token]] = []
        after_operand = False
        for part in parts:
            if not isinstance(part, Token):
                operands.append(part)
                after_operand = True
                continue
            word = part.value
            if after_operand:
                strength = _STRENGTH[word]
                # Comparisons are chained, `and` and `or` take many operands, `**` binds to the right.
                left = 5 <= strength <= _PRODUCT
                while waiting and (waiting[-1][0] > strength or (left and waiting[-1][0] == strength)):
                    self._apply(operands, waiting)
                after_operand = False
            elif word != "not":
                strength = _SIGN
            elif waiting and waiting[-1][1] == "is":
                waiting[-1] = (_COMPARE, "is not", part)
                continue
            else:
                strength = _NOT
                if waiting and waiting[-1][0] > _NOT:
                    _refuse(part, "'not' is not allowed here", "expected an expression")
            waiting.append((strength, word, part))
        while waiting:
            self._apply(operands, waiting)
        return operands[0]

    def _apply(self, operands: list[tree.Expr], waiting: list[tuple[int, str, Token]]) -> None:
        """Apply the last operator to the last operands."""
        strength, word, token = waiting.pop()
        right = operands.pop()
        if strength in (_NOT, _SIGN):
            operands.append(tree.UnaryOp(self._span(token, right), word, right))
        elif strength > _COMPARE:
            left = operands.pop()
            operands.append(tree.BinOp(self._span(left, right), left, word, right))
        else:
            words, values = [word], [right]
            while waiting and waiting[-1][0] == strength:
                words.append(waiting.pop()[1])
                values.append(operands.pop())
            left = operands.pop()
            words.reverse()
            values.reverse()
            span = self._span(left, right)
            operands.append(
                tree.Compare(span, left, tuple(words), tuple(values))
                if strength == _COMPARE
                else tree.BoolOp(span, word, (left, *values))
            )

    def star(self, star: Token, value: tree.Expr) -> tree.Expr:
        loose = isinstance(value, tree.BoolOp | tree.Compare) or (isinstance(value, tree.UnaryOp) and value.op == "not")
        if loose and id(value) not in self._groups:
            _refuse(value, "a starred expression needs brackets here", "write (…) around its value")
        return self.argument_star(star, value)

    def argument_star(self, star: Token, value: tree.Expr) -> tree.Expr:
        return tree.Starred(self._span(star, value), value)

    def walrus(self, name: Token, _walrus: Token, value: tree.Expr) -> tree.Expr:
        return tree.NamedExpr(self._span(name, value), self.name(name), value)

    def conditional(self, body: tree.Expr, _if: Token, test: tree.Expr, _else: Token, orelse: tree.Expr) -> tree.Expr:
        return tree.IfExp(self._span(body, orelse), test, body, orelse)

    def lambda_(
        self, start: Token, params: list[tree.Param | Token] | None, _colon: Token, body: tree.Expr
    ) -> tree.Expr:
        return tree.Lambda(self._span(start, body), self._parameters(params or []), body)

    # Atoms

    def name(self, token: Token) -> tree.Name:
        return tree.Name(token.span, token.value)

    def number(self, token: Token) -> tree.Constant:
        text = token.value.replace("_", "").lower()
        value: int | float
        if text.startswith(("0x", "0b", "0o")):
            value = int(text, 0)
        else:
            value = int(text) if text.isdigit() else float(text)
        return tree.Constant(token.span, value, token.value)

    def constant(self, token: Token) -> tree.Expr:
        return tree.Constant(token.span, _CONSTANTS[token.value], token.value)

    def strings(self, tokens: list[Token]) -> tree.Strings:
        pieces = tuple(self._piece(token) for token in tokens)
        span = self._span(tokens[0], tokens[-1])
        if len({isinstance(p, tree.Text) and isinstance(p.value, bytes) for p in pieces}) > 1:
            _refuse(span, "bytes and text can't be written side by side", 'write both as text, or both as b"…"')
        return tree.Strings(span, pieces)

    def _piece(self, token: Token) -> tree.Text | tree.FText:
        raw, span = token.value, token.span
        if "f" not in raw[:2].lower().partition(raw[-1])[0]:
            try:
                return tree.Text(span, fstrings.literal_value(raw), raw)
            except (SyntaxError, ValueError) as error:
                text = getattr(error, "msg", None) or str(error)
                hint = '"é".encode() makes bytes of text' if "ASCII" in text else r"double the backslash: \\"
                _refuse(span, f"a malformed string: {text}", hint)
        try:
            return tree.FText(span, tuple(self._fields(fstrings.split(raw), raw, span)), raw)
        except fstrings.FStringError as error:
            at = _place(raw, span, error.offset)
            _refuse(Span(*at, at[0], at[1] + 1), error.message, error.hint)

    def _fields(self, parts: list[str | fstrings.RawField], raw: str, span: Span) -> Iterator[str | tree.Field]:
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            line, column = _place(raw, span, part.offset)
            # The field is parsed in brackets, so its text begins one character earlier.
            value = self._parse_field(f"({part.expression})\n", line, column - 1)
            if value is None or isinstance(value, tree.Starred):
                _refuse(
                    Span(line, column, line, column + 1),
                    "the braces of this f-string do not hold an expression",
                    "write an expression, as in {name} or {total:.2f}; a brace itself is written {{",
                )
            spec = None if part.spec is None else tuple(self._fields(part.spec, raw, span))
            yield tree.Field(value.span, value, part.conversion, spec)

    # Brackets

    def group(self, start: Token, node: tree.Node, end: Token) -> tree.Node:
        self._groups[id(node)] = _Group(node, self._span(start, end))
        return node

    def tuple_(self, items: Any, *comma: Token) -> tree.Expr:
        elts = items if isinstance(items, list) else [items]
        return tree.Tuple(self._span(elts[0], comma[0] if comma else elts[-1]), tuple(elts))

    def _items(self, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """The items before a closing bracket, and perhaps before a comma."""
        if len(rest) == 1:
            return ()
        return tuple(rest[0]) if isinstance(rest[0], list) else (rest[0],)

    def bracketed_tuple(self, start: Token, *rest: Any) -> tree.Expr:
        return tree.Tuple(self._span(start, rest[-1]), self._items(rest))

    def list_(self, start: Token, *rest: Any) -> tree.Expr:
        return tree.List(self._span(start, rest[-1]), self._items(rest))

    def set_(self, start: Token, *rest: Any) -> tree.Expr:
        return tree.Set(self._span(start, rest[-1]), self._items(rest))

    def dict_(self, start: Token, *rest: Any) -> tree.Expr:
        pairs = self._items(rest)
        return tree.Dict(self._span(start, rest[-1]), tuple(k for k, _ in pairs), tuple(v for _, v in pairs))

    def double_star_pair(self, stars: Token, value: tree.Expr) -> Any:
        self.star(stars, value)
        return None, value

    def list_comp(self, start: Token, elt: tree.Expr, generators: _Generators, end: Token) -> tree.Expr:
        return tree.ListComp(self._span(start, end), elt, tuple(generators))

    def set_comp(self, start: Token, elt: tree.Expr, generators: _Generators, end: Token) -> tree.Expr:
        return tree.SetComp(self._span(start, end), elt, tuple(generators))

    def generator(self, start: Token, elt: tree.Expr, generators: _Generators, end: Token) -> tree.Expr:
        return tree.GeneratorExp(self._span(start, end), elt, tuple(generators))

    def dict_comp(self, start: Token, pair: Any, generators: _Generators, end: Token) -> tree.Expr:
        key, value = pair
        return tree.DictComp(self._span(start, end), key, value, tuple(generators))

    def comp_for(
        self,
        start: Token,
        target: tree.Expr,
        _in: Token,
        iterable: tree.Expr,
        conditions: list[tree.Expr] | None = None,
    ) -> tree.Comprehension:
        tests = tuple(conditions or ())
        span = self._span(start, tests[-1] if tests else iterable)
        return tree.Comprehension(span, self._target(target), iterable, tests)

    # Operands with something after them

    def attribute(self, value: tree.Expr, _dot: Token, name: Token) -> tree.Expr:
        return tree.Attribute(self._span(value, name), value, name.value, name.span)

    def call(self, func: tree.Expr, _open: Token, *rest: Any) -> tree.Expr:
        args, keywords = self._arguments(rest[0] if len(rest) > 1 else [])
        return tree.Call(self._span(func, rest[-1]), func, args, keywords)

    def call_with_generator(
        self, func: tree.Expr, start: Token, elt: tree.Expr, generators: _Generators, end: Token
    ) -> tree.Expr:
        # The brackets belong to both nodes, but the span of the generator is without them.
        argument = tree.GeneratorExp(self._span(elt, generators[-1]), elt, tuple(generators))
        return tree.Call(self._span(func, end), func, (argument,), ())

    def keyword(self, name: Token, _equals: Token, value: tree.Expr) -> tree.Keyword:
        return tree.Keyword(self._span(name, value), name.value, value)

    def double_star(self, stars: Token, value: tree.Expr) -> tree.Keyword:
        return tree.Keyword(self._span(stars, value), None, value)

    def _arguments(self, items: list[Any]) -> tuple[tuple[tree.Expr, ...], tuple[tree.Keyword, ...]]:
        args: list[tree.Expr] = []
        keywords: list[tree.Keyword] = []
        named: set[str | None] = set()
        for item in items:
            if isinstance(item, tree.Keyword):
                if item.arg is not None and item.arg in named:
                    _refuse(item, f"the argument {item.arg!r} is given twice", "leave one out")
                named.add(item.arg)
                keywords.append(item)
            else:
                if keywords and not isinstance(item, tree.Starred):
                    _refuse(item, "a positional argument follows a named one", "put it first, or name it")
                if None in named:
                    _refuse(item, "a positional argument follows a ** argument", "put it first")
                args.append(item)
        return tuple(args), tuple(keywords)

    def subscript(self, value: tree.Expr, _open: Token, index: tree.Expr, end: Token) -> tree.Expr:
        return tree.Subscript(self._span(value, end), value, index)

    def slice(self, *parts: Any) -> tree.Expr:
        lower, _, upper, _, step = parts
        present = [p for p in parts if p is not None]
        return tree.Slice(self._span(present[0], present[-1]), lower, upper, step)


def _place(raw: str, span: Span, offset: int) -> tuple[int, int]:
    """Line and column of a character in a literal that starts at `span`."""
    lines = raw.count("\n", 0, offset)
    if not lines:
        return span.line, span.column + offset
    return span.line + lines, offset - raw.rindex("\n", 0, offset)
