"""Convert expressions and patterns to documents for the pretty printer.

A document has as few brackets as the tree allows, and line breaks only inside brackets. Literals are printed as in the source, but
quotes become double quotes where that needs no backslash. A comment inside brackets is printed with its element. In this case each
element has its own line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TypeAlias

from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Span
from albert_tools.grammar.pretty import LINE, SOFT, Doc, Group, IfBroken, Indent, Line, Remark

# The precedence of each form, lowest first. If an operand's precedence is too low for its place, it gets brackets.
WALRUS, LAMBDA, TERNARY, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, POWER, ATOM = (
    range(16)
)

_BINARY = {
    "|": BIT_OR,
    "^": BIT_XOR,
    "&": BIT_AND,
    "<<": SHIFT,
    ">>": SHIFT,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "//": PRODUCT,
    "%": PRODUCT,
    "@": PRODUCT,
    "**": POWER,
}

_BRACKETS: dict[type[tree.Node], tuple[str, str]] = {
    tree.List: ("[", "]"),
    tree.ListComp: ("[", "]"),
    tree.Set: ("{", "}"),
    tree.SetComp: ("{", "}"),
    tree.DictComp: ("{", "}"),
    tree.Tuple: ("(", ")"),
    tree.GeneratorExp: ("(", ")"),
}

_Comprehending: TypeAlias = tree.ListComp | tree.SetComp | tree.GeneratorExp | tree.DictComp


class Comments:
    """The comments that have not been written yet, by position."""

    def __init__(self, module: tree.Module) -> None:
        self._left = sorted(module.comments, key=begin)
        self._places = [begin(c) for c in self._left]

    def take(self, until: tuple[int, int], since: tuple[int, int] = (0, 0)) -> list[tree.Comment]:
        """Remove the comments from `since` up to `until`, both (line, column). Returns them in order."""
        part = slice(bisect_left(self._places, since), bisect_left(self._places, until))
        comments = self._left[part]
        if comments:
            del self._left[part], self._places[part]
        return comments

    def put_back(self, comments: list[tree.Comment]) -> None:
        """Put back comments that were taken too early. They are then the next comments."""
        self._left[:0] = comments
        self._places[:0] = map(begin, comments)

    def within(self, span: Span) -> bool:
        """Whether `span` contains a comment that has not been written."""
        first = bisect_left(self._places, (span.line, span.column))
        return first < len(self._places) and self._places[first] < (span.end_line, span.end_column)


def begin(node: tree.Node) -> tuple[int, int]:
    """The start of a node, as (line, column)."""
    return node.span.line, node.span.column


def end(node: tree.Node) -> tuple[int, int]:
    """The end of a node, as (line, column)."""
    return node.span.end_line, node.span.end_column


#: Expressions that can be on several lines without brackets of their own.
_WITH_BREAKS = (tree.BinOp, tree.BoolOp, tree.Compare, tree.IfExp, tree.Lambda, tree.Strings, tree.UnaryOp)


class Speller:
    """Creates documents for the expressions of one module."""

    def __init__(self, module: tree.Module, comments: Comments) -> None:
        self._lines = module.source.split("\n")
        self._comments = comments

    # Expressions that are not operands.

    def whole(self, node: tree.Expr, least: int = TERNARY) -> Doc:
        """An expression at the end of a statement. It is on one line if there is room, otherwise in additional brackets."""
        if isinstance(node, tree.Tuple) and node.elts:
            starred = any(isinstance(e, tree.Starred) for e in node.elts)
            if starred or len(node.elts) == 1 or self._comments.within(node.span):
                return self.expr(node)
            parts = joined([self.expr(e, TERNARY) for e in node.elts], ",", LINE)
            return Group([IfBroken("("), Indent([SOFT, parts, IfBroken(",")]), SOFT, IfBroken(")")])
        return self.wrapped(node, least)

    def wrapped(self, node: tree.Expr, least: int = TERNARY) -> Doc:
        """`whole` for an expression that is not a tuple without brackets."""
        if not isinstance(node, _WITH_BREAKS):
            return self.expr(node, least)
        if isinstance(node, tree.Strings) and len(node.pieces) == 1:
            return self.expr(node, least)
        inner = self._bare(node)
        return Group([IfBroken("("), Indent([SOFT, inner]), SOFT, IfBroken(")")])

    def target(self, node: tree.Expr) -> Doc:
        """The target of an assignment. A list of names needs no brackets."""
        if isinstance(node, tree.Tuple) and node.elts:
            return [*joined([self.expr(e, BIT_OR) for e in node.elts], ", "), "," if len(node.elts) == 1 else ""]
        return self.expr(node, BIT_OR)

    # Expressions.

    def expr(self, node: tree.Expr, least: int = TERNARY) -> Doc:
        """An expression in a place that requires at least the precedence `least`."""
        if _strength(node) < least:
            return Group(["(", Indent([SOFT, self._bare(node)]), SOFT, ")"])
        return self._bare(node)

    def _bare(self, node: tree.Expr) -> Doc:
        match node:
            case tree.Name():
                return node.id
            case tree.Constant():
                return node.raw or ("..." if node.value is ... else repr(node.value))
            case tree.Strings():
                return self._strings(node)
            case tree.Tuple(elts=(only,)) if not self._comments.within(node.span):
                return ["(", self.expr(only), ",)"]
            case tree.List() | tree.Set() | tree.Tuple():
                opening, closing = _BRACKETS[type(node)]
                return self.bracket(opening, [self.expr(e) for e in node.elts], closing, node, node.elts)
            case tree.Dict():
                return self._dict(node)
            case tree.ListComp() | tree.SetComp() | tree.GeneratorExp():
                return self._comprehension(node, (node.elt, node.elt, self.expr(node.elt, WALRUS)))
            case tree.DictComp():
                pair: Doc = [self.expr(node.key), ": ", self.expr(node.value)]
                return self._comprehension(node, (node.key, node.value, pair))
            case tree.IfExp():
                test, other = self.expr(node.test, OR), self.expr(node.orelse, TERNARY)
                return [Group(self.expr(node.body, OR)), LINE, "if ", Group(test), LINE, "else ", Group(other)]
            case tree.BoolOp():
                least = AND if node.op == "or" else NOT
                return self._chain([self.expr(v, least) for v in node.values], [node.op] * (len(node.values) - 1))
            case tree.Compare():
                return self._chain([self.expr(v, BIT_OR) for v in (node.left, *node.comparators)], list(node.ops))
            case tree.BinOp():
                return self._binary(node)
            case tree.UnaryOp(op="not"):
                return ["not ", self.expr(node.operand, NOT)]
            case tree.UnaryOp():
                return [node.op, self.expr(node.operand, SIGN)]
            case tree.Lambda():
                return self._lambda(node)
            case tree.Call():
                return self._call(node)
            case tree.Starred():
                return ["*", self.expr(node.value, BIT_OR)]
            case tree.Attribute():
                whole = isinstance(node.value, tree.Constant) and isinstance(node.value.value, int | float)
                inner = self.expr(node.value, ATOM)
                return ["(", inner, ").", node.attr] if whole else [inner, ".", node.attr]
            case tree.Subscript():
                return [self.expr(node.value, ATOM), "[", Group(self._index(node.slice)), "]"]
            case tree.Slice():
                return self._index(node)
            case tree.NamedExpr():
                return [node.target.id, " := ", self.expr(node.value, LAMBDA)]

    def _chain(self, operands: list[Doc], operators: list[str]) -> Doc:
        parts: list[Doc] = [Group(operands[0])]
        for operator, operand in zip(operators, operands[1:], strict=True):
            parts += [LINE, f"{operator} ", Group(operand)]
        return parts

    def _binary(self, node: tree.BinOp) -> Doc:
        strength = _BINARY[node.op]
        if node.op == "**":
            left, right = self.expr(node.left, ATOM), self.expr(node.right, SIGN)
            plain = all(isinstance(e, tree.Name | tree.Constant | tree.Attribute) for e in (node.left, node.right))
            return [left, "**" if plain else " ** ", right]
        left = self.expr(node.left, strength)
        if not (isinstance(node.left, tree.BinOp) and _BINARY[node.left.op] == strength):
            left = Group(left)
        return [left, LINE, f"{node.op} ", Group(self.expr(node.right, strength + 1))]

    def _index(self, node: tree.Expr) -> Doc:
        match node:
            case tree.Slice():
                parts: list[Doc] = [self.expr(node.lower) if node.lower else "", ":"]
                parts.append(self.expr(node.upper) if node.upper else "")
                if node.step is not None:
                    parts += [":", self.expr(node.step)]
                return parts
            case tree.Tuple() if node.elts and not any(isinstance(e, tree.Starred) for e in node.elts):
                items = [self._index(e) if isinstance(e, tree.Slice) else self.expr(e) for e in node.elts]
                return [*joined(items, ", "), "," if len(node.elts) == 1 else ""]
        return self.expr(node, TERNARY)

    def _lambda(self, node: tree.Lambda) -> Doc:
        params = joined(self.parameter_docs(node.params), ", ")
        return ["lambda", " " if params else "", params, ": ", self.expr(node.body, LAMBDA)]

    def parameter_docs(self, params: tuple[tree.Param, ...]) -> list[Doc]:
        """Each parameter, and a star before the first keyword-only parameter."""
        docs: list[Doc] = []
        starred = False
        for p in params:
            doc: list[Doc] = []
            if p.keyword_only and not starred:
                starred = True
                doc.append("*, ")
            doc.append(p.name)
            if p.annotation is not None:
                doc += [": ", self.expr(p.annotation)]
            if p.default is not None:
                doc += [" = " if p.annotation is not None else "=", self.expr(p.default)]
            docs.append(doc)
        return docs

    def _call(self, node: tree.Call) -> Doc:
        function = self.expr(node.func, ATOM)
        if not node.keywords and len(node.args) == 1:
            only = node.args[0]
            if isinstance(only, tree.GeneratorExp):
                # The brackets of the call are also the brackets of the generator.
                whole = tree.GeneratorExp(Span(*end(node.func), *end(node)), only.elt, only.generators)
                return [function, self._bare(whole)]
        return [function, self.arguments(node, node.args, node.keywords)]

    def arguments(self, node: tree.Node, args: tuple[tree.Expr, ...], keywords: tuple[tree.Keyword, ...]) -> Doc:
        """The arguments of a call in brackets, in the order of the text."""
        docs: list[tuple[tuple[int, int], Doc, tree.Node]] = [(begin(a), self.expr(a, WALRUS), a) for a in args]
        for k in keywords:
            doc: Doc = ["**", self.expr(k.value)] if k.arg is None else [f"{k.arg}=", self.expr(k.value)]
            docs.append((begin(k), doc, k))
        docs.sort(key=lambda each: each[0])
        return self.bracket("(", [d for _, d, _ in docs], ")", node, tuple(n for _, _, n in docs))

    def _dict(self, node: tree.Dict) -> Doc:
        docs: list[Doc] = []
        places: list[tree.Node] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                docs.append(["**", self.expr(value, BIT_OR)])
            else:
                docs.append([self.expr(key), ": ", self.wrapped(value)])
            places.append(value if key is None else key)
        return self.bracket("{", docs, "}", node, tuple(places), node.values)

    def _comprehension(self, node: _Comprehending, element: tuple[tree.Node, tree.Node, Doc]) -> Doc:
        """A comprehension. `element` has the first and last node of its element, and the element's document."""
        opening, closing = _BRACKETS[type(node)]
        clauses = [element]
        for g in node.generators:
            clauses.append((g, g.iter, ["for ", self.target(g.target), " in ", Group(self.expr(g.iter, OR))]))
            clauses += [(test, test, ["if ", Group(self.expr(test, OR))]) for test in g.ifs]
        parts: list[Doc] = []
        since = begin(node)
        for i, (first, last, doc) in enumerate(clauses):
            right, above = self._split(self._comments.take(end(last), since), begin(first), not i)
            parts += [*right, *([LINE] if i else []), *above, Group(doc)]
            since = end(last)
        right, above = self._split(self._comments.take(end(node), since), end(node))
        below: list[Doc] = [LINE, *above[:-1]] if above else []
        return Group([opening, Indent([SOFT, *parts, *right, *below]), SOFT, closing])

    # Brackets.

    def bracket(
        self,
        opening: str,
        docs: list[Doc],
        closing: str,
        node: tree.Node,
        places: tuple[tree.Node, ...],
        ends: tuple[tree.Node, ...] | None = None,
    ) -> Doc:
        """Elements in brackets, either all on one line, or each on its own line with a comma.

        If the source has a comma before the closing bracket, each element gets its own line. `places` are the beginnings of the
        elements and `ends` their ends. They determine the positions of the comments.
        """
        if not docs:
            left = self._comments.take(end(node), begin(node))
            if not left:
                return opening + closing
            _, above = self._split(left, end(node), True)
            return Group([opening, Indent([SOFT, *above[:-1]]), SOFT, closing], True)
        ends = ends or places
        parts: list[Doc] = []
        since = begin(node)
        for i, (doc, place) in enumerate(zip(docs, places, strict=True)):
            # Comments up to the end of this element are written before it, unless the brackets of the element contain them.
            before = self._comments.take(end(ends[i]), since) if self._comments.within(node.span) else []
            right, above = self._split(before, begin(place), not i)
            if i:
                parts += [",", *right, LINE]
            parts += [*above, Group(doc)]
            since = end(ends[i])
        after = self._comments.take(end(node), since) if self._comments.within(node.span) else []
        right, above = self._split(after, end(node))
        parts += [IfBroken(","), *right]
        if above:
            parts += [LINE, *above[:-1]]
        return Group([opening, Indent([SOFT, *parts]), SOFT, closing], self._asks(node, len(docs), closing))

    @staticmethod
    def _split(
        comments: list[tree.Comment], until: tuple[int, int], first: bool = False
    ) -> tuple[list[Doc], list[Doc]]:
        """Split comments into the comment at the end of its line (if any) and the comments on lines of their own, in order.

        A comment before the first element (`first`) or after `until` (in the next element) never stays at the end of a line.
        """
        stays = bool(comments) and not first and not comments[0].alone and begin(comments[0]) < until
        right: list[Doc] = [Remark(comments[0].text, False)] if stays else []
        above: list[Doc] = [piece for c in comments[stays:] for piece in (Remark(c.text, True), Line(""))]
        return right, above

    def _asks(self, node: tree.Node, count: int, closing: str) -> bool:
        """Whether the source has a comma before the closing bracket."""
        line, column = node.span.end_line - 1, node.span.end_column - 2
        if line >= len(self._lines) or self._lines[line][column : column + 1] != closing:
            return False
        text = self._lines[line][:column].rstrip()
        while not text and line > node.span.line - 1:
            line -= 1
            text = _without_comment(self._lines[line])
        return text.endswith(",") and not (count == 1 and closing == ")" and isinstance(node, tree.Tuple))

    # Strings.

    def _strings(self, node: tree.Strings) -> Doc:
        return joined([_quoted(piece.raw) for piece in node.pieces], LINE)

    # Patterns.

    def pattern(self, node: tree.Pattern, least: int = 0) -> Doc:
        """A pattern of a `case`. If `least` is 1, an `as` pattern gets brackets. If it is 2, alternatives also get brackets."""
        match node:
            case tree.MatchValue():
                return self.expr(node.value)
            case tree.MatchSingleton():
                return repr(node.value)
            case tree.MatchSequence():
                return self.bracket("[", [self.pattern(p) for p in node.patterns], "]", node, node.patterns)
            case tree.MatchMapping():
                docs: list[Doc] = [
                    [self.expr(k), ": ", self.pattern(p)] for k, p in zip(node.keys, node.patterns, strict=True)
                ]
                places: list[tree.Node] = list(node.keys)
                ends: list[tree.Node] = list(node.patterns)
                if node.rest:
                    docs.append(f"**{node.rest}")
                    inner = list(ends) or [node]
                    places.append(tree.Node(_after(inner[-1], node)))
                    ends.append(places[-1])
                return self.bracket("{", docs, "}", node, tuple(places), tuple(ends))
            case tree.MatchClass():
                return [self.expr(node.cls), "()"]
            case tree.MatchStar():
                return f"*{node.name or '_'}"
            case tree.MatchAs(pattern=None):
                return node.name or "_"
            case tree.MatchAs():
                assert node.pattern is not None
                doc: Doc = [self.pattern(node.pattern, 1), f" as {node.name}"]
                return ["(", doc, ")"] if least else doc
            case tree.MatchOr():
                parts = joined([self.pattern(p, 2) for p in node.patterns], " | ")
                return ["(", *parts, ")"] if least > 1 else parts


def joined(docs: list[Doc], *between: Doc) -> list[Doc]:
    """The documents, with `between` between each two."""
    parts: list[Doc] = []
    for i, doc in enumerate(docs):
        parts += [*between, doc] if i else [doc]
    return parts


def _without_comment(line: str) -> str:
    """A line without the comment at its end. A comment with a quote is not recognised."""
    comment = re.compile(r"\s#").search(line, max(line.rfind("'"), line.rfind('"')) + 1)
    return line[: comment.start() if comment else None].rstrip()


def _after(inner: tree.Node, whole: tree.Node) -> Span:
    """A place just before the end of `whole`, or directly after `inner`."""
    line, column = (whole.span.end_line, max(1, whole.span.end_column - 1)) if inner is whole else end(inner)
    return Span(line, column, line, column)


def _strength(node: tree.Expr) -> int:
    match node:
        case tree.NamedExpr():
            return WALRUS
        case tree.Lambda():
            return LAMBDA
        case tree.IfExp():
            return TERNARY
        case tree.BoolOp():
            return OR if node.op == "or" else AND
        case tree.UnaryOp():
            return NOT if node.op == "not" else SIGN
        case tree.Compare():
            return COMPARE
        case tree.BinOp():
            return _BINARY[node.op]
        case tree.Strings() if len(node.pieces) > 1:
            # Several adjacent literals get brackets if they are an operand.
            return POWER
    return ATOM


_LITERAL = re.compile(r"([A-Za-z]*)('''|')(.*)\2\Z", re.DOTALL)


def _quoted(raw: str) -> str:
    """A literal in double quotes, if this does not change its value."""
    match = _LITERAL.match(raw)
    if match is None or '"' in raw or "\\" in raw or "{" in raw:
        return raw
    prefix, quote, text = match.groups()
    double = quote.replace("'", '"')
    return f"{prefix}{double}{text}{double}"
