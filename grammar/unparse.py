"""The canonical text of a tree with its comments. ``albert fmt`` writes this text.

Parsing the text gives the same tree, and formatting it again gives the same text. A comment remains at its place: before a
statement, at the end of its line, at an element in brackets, or at the end of a block. A comment inside an expression where no line
can end is moved before the statement. `format_source` verifies its result before it returns it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.parse import parse, parse_or_raise
from albert_tools.grammar.pretty import LINE, SOFT, STEP, Doc, Group, IfBroken, Indent, render
from albert_tools.grammar.python_parser import parse_python
from albert_tools.grammar.second_reading import different_line
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.spell import LAMBDA, TERNARY, WALRUS, Comments, Speller, begin, end, joined

#: The maximum length of a line, in columns. A docstring or a long literal may be longer.
WIDTH = 100


def format_source(source: str) -> str:
    """Format a source in canonical form.

    Raises:
        SourceError: The source can't be parsed.
    """
    module = parse_or_raise(source)
    text = unparse(module)
    again = parse(text).module
    if (
        again is None
        or different_line(module, parse_python(text)) is not None
        or Counter(c.text for c in again.comments) != Counter(c.text for c in module.comments)
    ):
        raise SourceError(
            [
                Diagnostic(
                    "not-formatted",
                    "this text would not survive formatting, so it is left alone",
                    Span(1, 1, 1, 2),
                    hint="this is a defect of Albert Tools, please report it",
                )
            ]
        )
    return text


def unparse(module: tree.Module) -> str:
    """The canonical text of a parsed module."""
    return _Writer(module).text()


class _Writer:
    def __init__(self, module: tree.Module) -> None:
        self._module = module
        self._source = module.source.split("\n")
        self._comments = Comments(module)
        self._speller = Speller(module, self._comments)
        self._out: list[str] = []

    def text(self) -> str:
        self._block(self._module.body, 0, 0, (len(self._source) + 1, 1))
        text = "\n".join(self._out).strip("\n")
        return text + "\n" if text else ""

    # Blocks.

    def _block(self, body: tuple[tree.Stmt, ...], indent: int, above: int, until: tuple[int, int]) -> None:
        """Write statements and the comments before them. Also write the last comments if they are indented more than `above`."""
        previous: tree.Stmt | None = None
        for i, stmt in enumerate(body):
            first = self._first(stmt)
            comments = self._comments.take(first)
            gap = self._gap(comments[0].span.line if comments else first[0], previous, stmt, indent)
            if self._out and (previous is not None or indent == 0):
                self._out += [""] * gap
            for j, c in enumerate(comments):
                if j and self._blank_before(c.span.line):
                    self._out.append("")
                self._out.append(" " * indent + c.text)
            if comments and self._blank_before(first[0]) and not isinstance(stmt, tree.FunctionDef | tree.ClassDef):
                self._out.append("")
            following = self._first(body[i + 1]) if i + 1 < len(body) else until
            self._statement(stmt, indent, following)
            previous = stmt
        later: list[tree.Comment] = []
        for c in self._comments.take(until):
            if c.span.column > above or not above:
                if self._blank_before(c.span.line):
                    self._out += [""] * (
                        2 if not indent and isinstance(previous, tree.FunctionDef | tree.ClassDef) else 1
                    )
                self._out.append(" " * indent + c.text)
            else:
                later.append(c)
        self._comments.put_back(later)

    def _gap(self, line: int, previous: tree.Stmt | None, stmt: tree.Stmt, indent: int) -> int:
        big = (tree.FunctionDef, tree.ClassDef)
        if indent == 0 and previous is not None and (isinstance(stmt, big) or isinstance(previous, big)):
            return 2
        return int(self._blank_before(line) and previous is not None)

    def _blank_before(self, line: int) -> bool:
        return line >= 2 and line - 2 < len(self._source) and not self._source[line - 2].strip()

    def _first(self, stmt: tree.Stmt) -> tuple[int, int]:
        if isinstance(stmt, tree.FunctionDef | tree.ClassDef) and stmt.decorators:
            line, column = begin(stmt.decorators[0])
            return min((line, max(1, column - 1)), begin(stmt))
        return begin(stmt)

    # Statements.

    def _statement(self, stmt: tree.Stmt, indent: int, following: tuple[int, int]) -> None:
        match stmt:
            case tree.If():
                self._if(stmt, indent, following)
            case tree.For():
                head: Doc = ["for ", self._speller.target(stmt.target), " in ", self._speller.whole(stmt.iter, TERNARY)]
                self._compound(head, stmt, stmt.body, indent, self._else_at(stmt, stmt.body, stmt.orelse, following))
                self._else("else", stmt.body, stmt.orelse, indent, following)
            case tree.While():
                head = ["while ", self._speller.whole(stmt.test, WALRUS)]
                self._compound(head, stmt, stmt.body, indent, self._else_at(stmt, stmt.body, stmt.orelse, following))
                self._else("else", stmt.body, stmt.orelse, indent, following)
            case tree.Try():
                self._try(stmt, indent, following)
            case tree.Match():
                self._match(stmt, indent, following)
            case tree.FunctionDef():
                self._decorators(stmt.decorators, indent)
                self._function(stmt, indent, following)
            case tree.ClassDef():
                self._decorators(stmt.decorators, indent)
                head = ["class ", stmt.name]
                if stmt.bases or stmt.keywords:
                    name = stmt.name_span
                    place = Span(name.end_line, name.end_column, *begin(stmt.body[0]))
                    head = [*head, self._speller.arguments(tree.Node(place), stmt.bases, stmt.keywords)]
                self._compound(head, stmt, stmt.body, indent, following)
            case _:
                self._emit(self._line(stmt), indent, stmt.span)
                self._trail(end(stmt), stmt.span.end_line, following)

    def _write(self, comments: list[tree.Comment], indent: int) -> None:
        """Write comments on lines of their own."""
        self._out += [" " * indent + c.text for c in comments]

    def _emit(self, doc: Doc, indent: int, span: Span) -> None:
        """Write a logical line, after the comments inside it that are not inside brackets."""
        text = render(doc, WIDTH, indent)
        self._write(self._comments.take((span.end_line, span.end_column), (span.line, span.column)), indent)
        self._out.append(" " * indent + text)

    def _trail(self, since: tuple[int, int], line: int, following: tuple[int, int]) -> None:
        """Write the comments at the end of the last written line."""
        comments = self._comments.take(min((line + 1, 0), following), since)
        for c in comments:
            self._out[-1] += f"  {c.text}"

    def _line(self, stmt: tree.Stmt) -> Doc:
        s = self._speller
        match stmt:
            case tree.ExprStmt():
                return s.whole(stmt.value, TERNARY)
            case tree.Assign():
                return joined([*map(s.target, stmt.targets), s.whole(stmt.value, LAMBDA)], " = ")
            case tree.AnnAssign():
                doc: list[Doc] = [stmt.target.id, ": ", s.expr(stmt.annotation)]
                return [*doc, " = ", s.wrapped(stmt.value, LAMBDA)] if stmt.value is not None else doc
            case tree.AugAssign():
                return [s.expr(stmt.target), f" {stmt.op}= ", s.whole(stmt.value, LAMBDA)]
            case tree.Delete():
                return ["del ", *joined([s.expr(t) for t in stmt.targets], ", ")]
            case tree.Pass() | tree.Break() | tree.Continue():
                return type(stmt).__name__.lower()
            case tree.Return():
                return "return" if stmt.value is None else ["return ", s.whole(stmt.value, LAMBDA)]
            case tree.Raise():
                if stmt.exc is None:
                    return "raise"
                cause: list[Doc] = [] if stmt.cause is None else [" from ", s.wrapped(stmt.cause, LAMBDA)]
                return ["raise ", s.wrapped(stmt.exc, LAMBDA), *cause]
            case tree.Assert():
                message: list[Doc] = [] if stmt.msg is None else [", ", s.wrapped(stmt.msg, LAMBDA)]
                return ["assert ", s.wrapped(stmt.test, LAMBDA), *message]
            case tree.Nonlocal():
                return "nonlocal " + ", ".join(stmt.names)
            case tree.Import():
                return "import " + ", ".join(map(_alias, stmt.names))
            case tree.ImportFrom():
                names = joined([_alias(name) for name in stmt.names], ",", LINE)
                inner = Group([IfBroken("("), Indent([SOFT, *names, IfBroken(",")]), SOFT, IfBroken(")")])
                return [f"from {stmt.module} import ", inner]
        raise AssertionError(f"not a simple statement: {stmt!r}")

    def _head(self, head: Doc, start: tuple[int, int], until: tuple[int, int], indent: int) -> None:
        """Write the line that opens a block, with the comment at its end."""
        text = render([head, ":"], WIDTH, indent)
        # A comment after the colon remains there. Comments on lines of their own belong to the block.
        inside = self._comments.take(until, start)
        last = max((c.span.line for c in inside if not c.alone), default=0)
        right = [c for c in inside if not c.alone and c.span.line == last and self._closes(c)]
        block = [c for c in self._in_block(inside, start) if c.alone and (not right or c.span.line > last)]
        later = {id(c) for c in (*right, *block)}
        self._write([c for c in inside if id(c) not in later], indent)
        self._out.append(" " * indent + text + "".join(f"  {c.text}" for c in right))
        self._write(block, indent + STEP)

    def _closes(self, comment: tree.Comment) -> bool:
        before = self._source[comment.span.line - 1][: comment.span.column - 1].rstrip()
        return before.endswith(":")

    def _in_block(self, comments: list[tree.Comment], start: tuple[int, int]) -> Iterator[tree.Comment]:
        """The comments after the end of the line that opens the block."""
        line, opened = start[0], False
        for c in comments:
            for text in self._source[line - 1 : c.span.line - 1]:
                code = text.partition("#")[0].rstrip()
                opened = code.endswith(":") if code else opened
            line = c.span.line
            if opened:
                yield c

    def _compound(
        self, head: Doc, stmt: tree.Node, body: tuple[tree.Stmt, ...], indent: int, until: tuple[int, int]
    ) -> None:
        start = begin(stmt)
        self._head(head, start, self._first(body[0]), indent)
        self._block(body, indent + STEP, stmt.span.column, until)

    def _if(self, stmt: tree.If, indent: int, following: tuple[int, int]) -> None:
        column = stmt.span.column
        word = "if"
        while True:
            head: Doc = [f"{word} ", self._speller.wrapped(stmt.test, WALRUS)]
            until = self._else_at(stmt, stmt.body, stmt.orelse, following)
            self._head(head, begin(stmt), self._first(stmt.body[0]), indent)
            self._block(stmt.body, indent + STEP, column, until)
            branch = tree.elif_of(stmt)
            if branch is None:
                break
            self._write(self._comments.take(begin(branch)), indent)
            stmt, word = branch, "elif"
        self._else("else", stmt.body, stmt.orelse, indent, following, column)

    def _else(
        self,
        word: str,
        before: tuple[tree.Stmt, ...],
        body: tuple[tree.Stmt, ...],
        indent: int,
        following: tuple[int, int],
        column: int = 0,
    ) -> None:
        if not body:
            return
        line = self._word_line(word, end(before[-1])[0], self._first(body[0])[0])
        self._write(self._comments.take((line, 1)), indent)
        self._head(word, (line, 1), self._first(body[0]), indent)
        self._block(body, indent + STEP, column or self._column(line), following)

    def _else_at(
        self,
        stmt: tree.Node,
        before: tuple[tree.Stmt, ...],
        after: tuple[tree.Stmt, ...],
        following: tuple[int, int],
        word: str = "else",
    ) -> tuple[int, int]:
        """A place after the end of the block `before`."""
        if not after:
            return following
        if word == "else" and isinstance(stmt, tree.If) and tree.elif_of(stmt) is not None:
            word = "elif|else"
        return self._word_line(word, end(before[-1])[0], self._first(after[0])[0]), 1

    def _word_line(self, word: str, since: int, until: int) -> int:
        pattern = re.compile(rf"\s*(?:{word})\b")
        for line in range(until, since - 1, -1):
            if pattern.match(self._source[line - 1]):
                return line
        return until

    def _column(self, line: int) -> int:
        text = self._source[line - 1]
        return len(text) - len(text.lstrip()) + 1

    def _try(self, stmt: tree.Try, indent: int, following: tuple[int, int]) -> None:
        column = stmt.span.column
        parts: list[tuple[str, tuple[tree.Stmt, ...], tuple[int, int]]] = []
        for h in stmt.handlers:
            parts.append(("except", h.body, (begin(h)[0], 1)))
        before = stmt.handlers[-1].body if stmt.handlers else stmt.body
        if stmt.orelse:
            parts.append(("else", stmt.orelse, self._else_at(stmt, before, stmt.orelse, following)))
            before = stmt.orelse
        if stmt.finalbody:
            parts.append(("finally", stmt.finalbody, self._else_at(stmt, before, stmt.finalbody, following, "finally")))
        self._head("try", begin(stmt), self._first(stmt.body[0]), indent)
        self._block(stmt.body, indent + STEP, column, parts[0][2] if parts else following)
        for i, (word, body, place) in enumerate(parts):
            until = parts[i + 1][2] if i + 1 < len(parts) else following
            self._write(self._comments.take(place), indent)
            head: Doc = word
            if word == "except":
                handler = stmt.handlers[i]
                if handler.type is not None:
                    head = ["except ", self._speller.expr(handler.type)]
                if handler.name:
                    head = [head, f" as {handler.name}"]
            self._head(head, place, self._first(body[0]), indent)
            self._block(body, indent + STEP, column, until)

    def _match(self, stmt: tree.Match, indent: int, following: tuple[int, int]) -> None:
        head: Doc = ["match ", self._speller.whole(stmt.subject, TERNARY)]
        self._head(head, begin(stmt), begin(stmt.cases[0]), indent)
        for i, case in enumerate(stmt.cases):
            until = begin(stmt.cases[i + 1]) if i + 1 < len(stmt.cases) else following
            if i:
                self._write(self._comments.take(begin(case)), indent + STEP)
            doc: list[Doc] = ["case ", self._speller.pattern(case.pattern)]
            if case.guard is not None:
                doc += [" if ", self._speller.wrapped(case.guard, WALRUS)]
            self._head(doc, begin(case), self._first(case.body[0]), indent + STEP)
            self._block(case.body, indent + 2 * STEP, case.span.column, (until[0], 1))

    def _decorators(self, decorators: tuple[tree.Expr, ...], indent: int) -> None:
        for i, d in enumerate(decorators):
            if i:
                self._write(self._comments.take(begin(d)), indent)
            self._emit(["@", self._speller.expr(d)], indent, d.span)
            self._trail(end(d), d.span.end_line, (d.span.end_line + 1, 0))

    def _function(self, stmt: tree.FunctionDef, indent: int, following: tuple[int, int]) -> None:
        s = self._speller
        start = (stmt.name_span.line, stmt.name_span.column)
        self._write(self._comments.take(start), indent)
        docs = s.parameter_docs(stmt.params)
        close = end(stmt.params[-1]) if stmt.params else start
        inside = Span(*start, *close)
        holder = tree.Node(inside)
        doc: list[Doc] = [f"def {stmt.name}", s.bracket("(", docs, ")", holder, stmt.params) if docs else "()"]
        if stmt.returns is not None:
            doc += [" -> ", s.expr(stmt.returns)]
        self._head(doc, start, self._first(stmt.body[0]), indent)
        self._block(stmt.body, indent + STEP, stmt.span.column, following)


def _alias(node: tree.Alias) -> str:
    return f"{node.name} as {node.asname}" if node.asname else node.name
