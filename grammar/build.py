"""Convert Lark's parse tree to the tree of `grammar.tree`.

There is one method for each rule of the grammar. `parse` limits the depth first, so recursion is safe here. Some texts match the
grammar but are not programs, such as an assignment to a call. The grammar would need many more rules to exclude them, so this
module refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from albert_tools.grammar import fstrings, tree
from albert_tools.grammar.diagnostic import Diagnostic, Span

Child = Tree[Any] | Token | None


class BuildError(Exception):
    """The text matches the grammar but is not a program."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Builder:
    """Converts parse trees to nodes. `subparse` parses the expression inside the braces of an f-string."""

    def __init__(self, subparse: Callable[[str], Tree[Any]], line: int = 0, column: int = 0) -> None:
        self.subparse = subparse
        # The source position of line 1, column 1 of the text. A field of an f-string is parsed as a separate text.
        self.line = line
        self.column = column

    # Positions

    def span(self, item: Tree[Any] | Token) -> Span:
        m = item.meta if isinstance(item, Tree) else item
        line, column, end_line, end_column = m.line, m.column, m.end_line, m.end_column
        assert line is not None and column is not None and end_line is not None and end_column is not None  # noqa: PT018
        return Span(
            line + self.line,
            column + self.column if line == 1 else column,
            end_line + self.line,
            end_column + self.column if end_line == 1 else end_column,
        )

    def refuse(self, item: Tree[Any] | Token | Span, message: str, hint: str | None = None) -> BuildError:
        span = item if isinstance(item, Span) else self.span(item)
        return BuildError(Diagnostic("syntax", message, span, hint=hint))

    # Statements

    def module(self, t: Tree[Any], comments: tuple[tree.Comment, ...], source: str) -> tree.Module:
        lines = source.count("\n")
        return tree.Module(Span(1, 1, lines + 1, 1), self.statements(t.children), comments, source)

    def statements(self, items: list[Any]) -> tuple[tree.Stmt, ...]:
        return tuple(self.statement(c) for c in items if isinstance(c, Tree))

    def statement(self, t: Tree[Any]) -> tree.Stmt:
        method: Callable[[Tree[Any]], tree.Stmt] = getattr(self, "s_" + t.data)
        return method(t)

    def body(self, t: Tree[Any]) -> tuple[tree.Stmt, ...]:
        return self.statements(t.children)

    def upto(self, t: Tree[Any], stmts: tuple[tree.Stmt, ...]) -> Span:
        """The span from the start of `t` to the end of the last statement. The parser's own end is after the dedent."""
        return self.span(t).to(stmts[-1].span) if stmts else self.span(t)

    def s_expression(self, t: Tree[Any]) -> tree.Stmt:
        return tree.ExprStmt(self.span(t), self.expr(t.children[0]))

    def s_assign(self, t: Tree[Any]) -> tree.Stmt:
        *targets, value = t.children
        return tree.Assign(self.span(t), tuple(self.target(x) for x in targets), self.expr(value))

    def s_annotated(self, t: Tree[Any]) -> tree.Stmt:
        name, annotation, value = t.children
        return tree.AnnAssign(self.span(t), self.e_name_token(name), self.expr(annotation), self.optional(value))

    def s_augmented(self, t: Tree[Any]) -> tree.Stmt:
        left, op, value = t.children
        target = self.target(left)
        if not isinstance(target, tree.Name | tree.Subscript | tree.Attribute):
            raise self.refuse(
                target.span,
                "the left side of an augmented assignment must be one name or item",
                "write one assignment for each",
            )
        return tree.AugAssign(self.span(t), target, str(op)[:-1], self.expr(value))

    def s_delete(self, t: Tree[Any]) -> tree.Stmt:
        target = self.target(t.children[0])
        plain = isinstance(target, tree.Tuple) and t.children[0].data == "items"
        targets = target.elts if plain and isinstance(target, tree.Tuple) else (target,)
        return tree.Delete(self.span(t), targets)

    def s_pass_(self, t: Tree[Any]) -> tree.Stmt:
        return tree.Pass(self.span(t))

    def s_break_(self, t: Tree[Any]) -> tree.Stmt:
        return tree.Break(self.span(t))

    def s_continue_(self, t: Tree[Any]) -> tree.Stmt:
        return tree.Continue(self.span(t))

    def s_return_(self, t: Tree[Any]) -> tree.Stmt:
        return tree.Return(self.span(t), self.optional(t.children[0]))

    def s_raise_(self, t: Tree[Any]) -> tree.Stmt:
        exc, cause = t.children
        return tree.Raise(self.span(t), self.optional(exc), self.optional(cause))

    def s_assert_(self, t: Tree[Any]) -> tree.Stmt:
        test, msg = t.children
        return tree.Assert(self.span(t), self.expr(test), self.optional(msg))

    def s_import_(self, t: Tree[Any]) -> tree.Stmt:
        return tree.Import(self.span(t), tuple(self.alias(c) for c in t.children))

    def s_import_from(self, t: Tree[Any]) -> tree.Stmt:
        module, *names = t.children
        return tree.ImportFrom(self.span(t), self.dotted(module), tuple(self.alias(c) for c in names))

    def alias(self, t: Tree[Any]) -> tree.Alias:
        name, asname = t.children
        return tree.Alias(
            self.span(t),
            self.dotted(name) if isinstance(name, Tree) else str(name),
            None if asname is None else str(asname),
        )

    def dotted(self, t: Tree[Any]) -> str:
        return ".".join(str(c) for c in t.children)

    def s_if_(self, t: Tree[Any]) -> tree.Stmt:
        test, suite, *rest = t.children
        return self.if_chain(t, test, suite, rest)

    def if_chain(self, t: Tree[Any], test: Any, suite: Any, rest: list[Any]) -> tree.If:
        body = self.body(suite)
        orelse: tuple[tree.Stmt, ...] = ()
        if rest and rest[0].data == "elif_":
            inner_test, inner_suite = rest[0].children
            orelse = (self.if_chain(rest[0], inner_test, inner_suite, rest[1:]),)
        elif rest:
            orelse = self.body(rest[0].children[0])
        return tree.If(self.upto(t, orelse or body), self.expr(test), body, orelse)

    def s_for_(self, t: Tree[Any]) -> tree.Stmt:
        target, iterable, suite, *rest = t.children
        body = self.body(suite)
        orelse = self.body(rest[0].children[0]) if rest else ()
        return tree.For(self.upto(t, orelse or body), self.target(target), self.expr(iterable), body, orelse)

    def s_try_(self, t: Tree[Any]) -> tree.Stmt:
        suite, *rest = t.children
        body = self.body(suite)
        handlers = tuple(self.handler(c) for c in rest if c.data == "handler")
        orelse: tuple[tree.Stmt, ...] = ()
        finalbody: tuple[tree.Stmt, ...] = ()
        for c in rest:
            if c.data == "else_":
                orelse = self.body(c.children[0])
            elif c.data == "finally_":
                finalbody = self.body(c.children[0])
        last = finalbody or orelse or handlers[-1].body
        return tree.Try(self.upto(t, last), body, handlers, orelse, finalbody)

    def handler(self, t: Tree[Any]) -> tree.ExceptHandler:
        type_, name, suite = t.children
        body = self.body(suite)
        return tree.ExceptHandler(self.upto(t, body), self.optional(type_), None if name is None else str(name), body)

    def s_match_(self, t: Tree[Any]) -> tree.Stmt:
        subject, *cases = t.children
        built = tuple(self.case(c) for c in cases)
        return tree.Match(self.upto(t, built[-1].body), self.expr(subject), built)

    def case(self, t: Tree[Any]) -> tree.MatchCase:
        pattern, guard, suite = t.children
        body = self.body(suite)
        return tree.MatchCase(self.upto(t, body), self.pattern(pattern), self.optional(guard), body)

    def s_function(self, t: Tree[Any]) -> tree.Stmt:
        *decorators, name, params, returns, suite = t.children
        body = self.body(suite)
        return tree.FunctionDef(
            self.upto(t, body),
            str(name),
            () if params is None else self.params(params),
            self.optional(returns),
            body,
            tuple(self.expr(d.children[0]) for d in decorators),
            self.span(name),
        )

    def params(self, t: Tree[Any]) -> tuple[tree.Param, ...]:
        built = []
        star: Tree[Any] | None = None
        defaults = False
        for c in t.children:
            if c.data == "bare_star":
                if star is not None:
                    raise self.refuse(c, "a parameter list takes only one bare *", "leave one out")
                star = c
                continue
            name, annotation, default = c.children
            if default is None and defaults and star is None:
                raise self.refuse(
                    c, "a parameter without a default follows one with a default", "put it first, or give it a default"
                )
            defaults = defaults or default is not None
            built.append(
                tree.Param(
                    self.span(c),
                    str(name),
                    self.optional(annotation),
                    self.optional(default),
                    star is not None,
                )
            )
        if star is not None and not (built and built[-1].keyword_only):
            raise self.refuse(star, "named parameters must follow a bare *", "leave the * out")
        return tuple(built)

    def s_class_(self, t: Tree[Any]) -> tree.Stmt:
        *decorators, name, arguments, suite = t.children
        args, keywords = self.arguments(arguments)
        body = self.body(suite)
        return tree.ClassDef(
            self.upto(t, body),
            str(name),
            args,
            keywords,
            body,
            tuple(self.expr(d.children[0]) for d in decorators),
            self.span(name),
        )

    # Patterns

    def pattern(self, t: Tree[Any]) -> tree.Pattern:
        span = self.span(t)
        kids: list[Any] = [c for c in t.children if c is not None]
        match t.data:
            case "literal_pattern":
                return self.literal_pattern(kids[0])
            case "capture_pattern":
                name = str(kids[0])
                return tree.MatchAs(span, None, None if name == "_" else name)
            case "value_pattern":
                return tree.MatchValue(span, self.dotted_expr(kids))
            case "class_pattern":
                return tree.MatchClass(span, self.dotted_expr(kids))
            case "as_pattern":
                if str(kids[1]) == "_":
                    raise self.refuse(kids[1], "'_' can't be captured", "choose a name, or leave `as _` out")
                return tree.MatchAs(span, self.pattern(kids[0]), str(kids[1]))
            case "alternatives":
                return tree.MatchOr(span, tuple(self.pattern(c) for c in kids))
            case "star_pattern":
                name = str(kids[0])
                return tree.MatchStar(span, None if name == "_" else name)
            case "sequence_pattern":
                return tree.MatchSequence(span, tuple(self.pattern(c) for c in kids))
        assert t.data == "mapping_pattern", t.data
        keys, patterns, rest = [], [], None
        for c in kids:
            if rest is not None:
                raise self.refuse(c, "nothing may follow **rest in a mapping pattern", "put **rest last")
            if c.data == "rest_pattern":
                rest = str(c.children[0])
                continue
            key = self.literal_pattern(c.children[0])
            keys.append(
                key.value if isinstance(key, tree.MatchValue) else tree.Constant(key.span, key.value, str(key.value))
            )
            patterns.append(self.pattern(c.children[1]))
        return tree.MatchMapping(span, tuple(keys), tuple(patterns), rest)

    def literal_pattern(self, t: Tree[Any]) -> tree.MatchValue | tree.MatchSingleton:
        span = self.span(t)
        first: Any = t.children[0]
        if first.type == "STRING":
            strings = self.strings(t)
            if strings.constant is None:
                raise self.refuse(span, "a pattern can't be an f-string", "match a name and compare in a guard")
            return tree.MatchValue(span, strings)
        if first.type == "MINUS":
            return tree.MatchValue(span, tree.UnaryOp(span, "-", self.number(t.children[1])))
        if first.type == "NUMBER":
            return tree.MatchValue(span, self.number(first))
        return tree.MatchSingleton(span, {"None": None, "True": True, "False": False}[str(first)])

    def dotted_expr(self, tokens: list[Token]) -> tree.Expr:
        built: tree.Expr = self.e_name_token(tokens[0])
        for token in tokens[1:]:
            built = tree.Attribute(built.span.to(self.span(token)), built, str(token), self.span(token))
        return built

    # Targets

    def target(self, t: Tree[Any]) -> tree.Expr:
        return self.check_target(self.expr(t))

    def check_target(self, node: tree.Expr, starred: bool = False) -> tree.Expr:
        match node:
            case tree.Name() | tree.Subscript() | tree.Attribute():
                return node
            case tree.Tuple(elts=elts) | tree.List(elts=elts):
                for e in elts:
                    self.check_target(e, starred=True)
                if sum(isinstance(e, tree.Starred) for e in elts) > 1:
                    raise self.refuse(node.span, "two starred names in one assignment", "keep one: first, *rest = xs")
                return node
            case tree.Starred(value=value) if starred:
                self.check_target(value)
                return node
        what = {
            "Constant": "a constant",
            "Strings": "a string",
            "Call": "a call",
            "Compare": "a comparison",
            "Starred": "a starred name outside a list or tuple",
        }.get(type(node).__name__, "this expression")
        raise self.refuse(
            node.span,
            f"{what} can't be assigned to",
            "write a = list(xs), or first, *rest = xs"
            if isinstance(node, tree.Starred)
            else "assign to a name or an item: d[key] = value; to compare write ==",
        )

    # Expressions

    def optional(self, t: Child) -> tree.Expr | None:
        return None if t is None else self.expr(t)

    def expr(self, t: Any) -> tree.Expr:
        method: Callable[[Tree[Any]], tree.Expr] = getattr(self, "e_" + t.data)
        return method(t)

    def exprs(self, items: list[Any]) -> tuple[tree.Expr, ...]:
        return tuple(self.expr(c) for c in items if c is not None)

    def e_name(self, t: Tree[Any]) -> tree.Expr:
        return self.e_name_token(t.children[0])

    def e_name_token(self, token: Any) -> tree.Name:
        return tree.Name(self.span(token), str(token))

    def number(self, token: Any) -> tree.Constant:
        text = str(token).replace("_", "").lower()
        value: int | float
        if text.startswith(("0x", "0b", "0o")):
            value = int(text, 0)
        elif any(c in text for c in ".e"):
            value = float(text)
        else:
            value = int(text)
        return tree.Constant(self.span(token), value, str(token))

    def e_number(self, t: Tree[Any]) -> tree.Expr:
        return self.number(t.children[0])

    def e_constant(self, t: Tree[Any]) -> tree.Expr:
        text = str(t.children[0])
        value = {"None": None, "True": True, "False": False, "...": ...}[text]
        return tree.Constant(self.span(t), value, text)

    def e_strings(self, t: Tree[Any]) -> tree.Expr:
        return self.strings(t)

    def strings(self, t: Tree[Any]) -> tree.Strings:
        pieces = tuple(self.piece(token) for token in t.children)
        kinds = {isinstance(p, tree.Text) and isinstance(p.value, bytes) for p in pieces}
        if len(kinds) > 1:
            raise self.refuse(t, "bytes and text can't be written side by side", 'write both as text, or both as b"…"')
        return tree.Strings(self.span(t), pieces)

    def piece(self, token: Any) -> tree.Text | tree.FText:
        raw, span = str(token), self.span(token)
        prefix = raw[: min(raw.find(q) for q in "\"'" if q in raw)].lower()
        if "f" not in prefix:
            try:
                return tree.Text(span, fstrings.literal_value(raw), raw)
            except (SyntaxError, ValueError) as error:
                text = getattr(error, "msg", None) or str(error)
                hint = '"é".encode() makes bytes of text' if "ASCII" in text else r"double the backslash: \\"
                raise self.refuse(span, f"a malformed string: {text}", hint) from error
        try:
            return tree.FText(span, tuple(self.parts(fstrings.split(raw), raw, span)), raw)
        except fstrings.FStringError as error:
            at = self.offset(raw, span, error.offset)
            raise self.refuse(Span(*at, at[0], at[1] + 1), error.message, error.hint) from error

    @staticmethod
    def offset(raw: str, span: Span, offset: int) -> tuple[int, int]:
        """Line and column of a character in a literal that starts at `span`."""
        before = raw[:offset]
        lines = before.count("\n")
        if not lines:
            return span.line, span.column + offset
        return span.line + lines, offset - before.rindex("\n")

    def parts(self, raw_parts: list[str | fstrings.RawField], raw: str, span: Span) -> Iterator[str | tree.Field]:
        for part in raw_parts:
            if isinstance(part, str):
                yield part
                continue
            line, column = self.offset(raw, span, part.offset)
            # The field is parsed in parentheses, so its text begins one character earlier.
            inner = Builder(self.subparse, line - 1, column - 2)
            try:
                statements = self.subparse(f"({part.expression})\n").children
            except UnexpectedInput:
                statements = []
            ok = len(statements) == 1 and isinstance(statements[0], Tree) and statements[0].data == "expression"
            value = inner.expr(statements[0].children[0]) if ok else None
            if value is None or isinstance(value, tree.Starred):
                raise self.refuse(
                    Span(line, column, line, column + 1),
                    "the braces of this f-string do not hold an expression",
                    "write an expression, as in {name} or {total:.2f}; a brace itself is written {{",
                )
            spec = None if part.spec is None else tuple(self.parts(part.spec, raw, span))
            yield tree.Field(value.span, value, part.conversion, spec)

    def e_items(self, t: Tree[Any]) -> tree.Expr:
        return tree.Tuple(self.span(t), self.exprs(t.children))

    def e_star(self, t: Tree[Any]) -> tree.Expr:
        return tree.Starred(self.span(t), self.expr(t.children[0]))

    def e_list(self, t: Tree[Any]) -> tree.Expr:
        return tree.List(self.span(t), self.exprs(t.children))

    def e_set(self, t: Tree[Any]) -> tree.Expr:
        return tree.Set(self.span(t), self.exprs(t.children))

    def e_dict(self, t: Tree[Any]) -> tree.Expr:
        keys: list[tree.Expr | None] = []
        values = []
        for c in t.children:
            if c is None:
                continue
            if c.data == "double_star":
                keys.append(None)
                values.append(self.expr(c.children[0]))
            else:
                keys.append(self.expr(c.children[0]))
                values.append(self.expr(c.children[1]))
        return tree.Dict(self.span(t), tuple(keys), tuple(values))

    def generators(self, items: list[Any]) -> tuple[tree.Comprehension, ...]:
        return tuple(
            tree.Comprehension(
                self.span(c),
                self.target(c.children[0]),
                self.expr(c.children[1]),
                self.exprs(c.children[2:]),
            )
            for c in items
        )

    def e_list_comp(self, t: Tree[Any]) -> tree.Expr:
        return tree.ListComp(self.span(t), self.expr(t.children[0]), self.generators(t.children[1:]))

    def e_set_comp(self, t: Tree[Any]) -> tree.Expr:
        return tree.SetComp(self.span(t), self.expr(t.children[0]), self.generators(t.children[1:]))

    def e_generator(self, t: Tree[Any]) -> tree.Expr:
        return tree.GeneratorExp(self.span(t), self.expr(t.children[0]), self.generators(t.children[1:]))

    def e_dict_comp(self, t: Tree[Any]) -> tree.Expr:
        key, value = t.children[0].children
        return tree.DictComp(self.span(t), self.expr(key), self.expr(value), self.generators(t.children[1:]))

    def e_walrus(self, t: Tree[Any]) -> tree.Expr:
        return tree.NamedExpr(self.span(t), self.e_name_token(t.children[0]), self.expr(t.children[1]))

    def e_conditional(self, t: Tree[Any]) -> tree.Expr:
        body, test, orelse = self.exprs(t.children)
        return tree.IfExp(self.span(t), test, body, orelse)

    def e_lambda_(self, t: Tree[Any]) -> tree.Expr:
        params, body = t.children
        built = []
        defaults = False
        for c in () if params is None else params.children:
            name, default = c.children
            if default is None and defaults:
                raise self.refuse(
                    c, "a parameter without a default follows one with a default", "put it first, or give it a default"
                )
            defaults = defaults or default is not None
            built.append(tree.Param(self.span(c), str(name), None, self.optional(default), False))
        return tree.Lambda(self.span(t), tuple(built), self.expr(body))

    def e_any_of(self, t: Tree[Any]) -> tree.Expr:
        return tree.BoolOp(self.span(t), "or", self.exprs(t.children))

    def e_all_of(self, t: Tree[Any]) -> tree.Expr:
        return tree.BoolOp(self.span(t), "and", self.exprs(t.children))

    def e_unary(self, t: Tree[Any]) -> tree.Expr:
        return tree.UnaryOp(self.span(t), str(t.children[0]), self.expr(t.children[1]))

    def e_binary(self, t: Tree[Any]) -> tree.Expr:
        left, op, right = t.children
        return tree.BinOp(self.span(t), self.expr(left), str(op), self.expr(right))

    def e_compare(self, t: Tree[Any]) -> tree.Expr:
        left, *rest = t.children
        ops = tuple(" ".join(str(x) for x in op.children) for op in rest[::2])
        return tree.Compare(self.span(t), self.expr(left), ops, self.exprs(rest[1::2]))

    def e_attribute(self, t: Tree[Any]) -> tree.Expr:
        value, name = t.children
        return tree.Attribute(self.span(t), self.expr(value), str(name), self.span(name))

    def e_call(self, t: Tree[Any]) -> tree.Expr:
        func, arguments = t.children
        if isinstance(arguments, Tree) and arguments.data == "generator":
            # In this case, Python's span of the generator includes the parentheses of the call.
            return tree.Call(self.span(t), self.expr(func), (self.expr(arguments),), ())
        args, keywords = self.arguments(arguments)
        return tree.Call(self.span(t), self.expr(func), args, keywords)

    def arguments(self, t: Tree[Any] | None) -> tuple[tuple[tree.Expr, ...], tuple[tree.Keyword, ...]]:
        args: list[tree.Expr] = []
        keywords: list[tree.Keyword] = []
        unpacked = False
        for c in () if t is None else t.children:
            if c.data == "keyword":
                name, value = c.children
                if any(k.arg == str(name) for k in keywords):
                    raise self.refuse(c, f"the argument {str(name)!r} is given twice", "leave one out")
                keywords.append(tree.Keyword(self.span(c), str(name), self.expr(value)))
            elif c.data == "double_star":
                keywords.append(tree.Keyword(self.span(c), None, self.expr(c.children[0])))
                unpacked = True
            else:
                if keywords and c.data != "star":
                    raise self.refuse(c, "a positional argument follows a named one", "put it first, or name it")
                if unpacked:
                    raise self.refuse(c, "a positional argument follows a ** argument", "put it first")
                args.append(self.expr(c))
        return tuple(args), tuple(keywords)

    def e_subscript(self, t: Tree[Any]) -> tree.Expr:
        value, index = t.children
        return tree.Subscript(self.span(t), self.expr(value), self.expr(index))

    def e_slice(self, t: Tree[Any]) -> tree.Expr:
        parts: list[tree.Expr | None] = [None]
        for c in t.children:
            if isinstance(c, Token):
                parts.append(None)
            elif c is not None:
                parts[-1] = self.expr(c)
        lower, upper, step = (*parts, None)[:3]
        return tree.Slice(self.span(t), lower, upper, step)
