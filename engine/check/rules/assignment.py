"""Every name has a value before it is read, and every statement can be reached.

Python would raise `UnboundLocalError` at run time on some paths. This rule reports the problem before the program runs. The
analysis visits the nodes once, in the order of evaluation. Its state is the set of names that certainly have a value. Where
branches join, the state is the intersection of their states. After return, raise or break, the state is None, and the path is
ignored at the next join. Each part of a condition has its own state. So in ``if (m := find(x)) and m.ok:``, `m` has a value in the
second part."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import COMPREHENSIONS, Facts, bound_names, pattern_bindings
from albert_tools.engine.check.rule import error, warning
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unassigned",
        "A name may be read before it has a value.",
        "Python would raise UnboundLocalError, but only on the path that nobody tried.",
        example=in_tool('for line in path.split("/"):\n    last = line\nreturn last'),
        rewrite=in_tool('last = ""\nfor line in path.split("/"):\n    last = line\nreturn last'),
    ),
    FindingCode(
        "unreachable",
        "A statement or a handler can never run.",
        "Code that never runs misleads a reviewer, and is most often a slip.",
        example=in_tool("return path\nprint(path)"),
        rewrite=in_tool("print(path)\nreturn path"),
    ),
)

State = frozenset[str] | None


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every function, and the module's constants in their order."""
    for stmt in facts.module.body:
        if isinstance(stmt, tree.FunctionDef):
            flow = _Flow(facts, facts.locals_in(stmt) - facts.rebound, stmt)
            flow.block(stmt.body, frozenset(p.name for p in stmt.params))
            yield from flow.found
    module = _Flow(facts, frozenset(facts.constants) - facts.rebound, None)
    state: State = frozenset()
    for stmt in facts.module.body:
        if isinstance(stmt, tree.Assign | tree.AnnAssign):
            state = module.statement(stmt, state)
    yield from module.found


def meet(a: State, b: State) -> State:
    """The names that certainly have a value after both paths."""
    if a is None:
        return b
    return a if b is None else a & b


class _Flow:
    def __init__(self, facts: Facts, names: frozenset[str], function: tree.FunctionDef | None) -> None:
        self.facts = facts
        self.names = names
        self.function = function
        #: Names that a handler binds and Python deletes at the handler's end.
        self.handled = {
            n.name for n in (tree.walk(function) if function else ()) if isinstance(n, tree.ExceptHandler) and n.name
        }
        self.found: list[Diagnostic] = []
        self.reported: set[str] = set()
        # For each enclosing loop, the states at its breaks.
        self.breaks: list[list[State]] = []

    # Statements

    def block(self, body: tuple[tree.Stmt, ...], state: State) -> State:
        for stmt in body:
            if state is None:
                last = body[-1]
                self.found.append(
                    warning(
                        "unreachable",
                        stmt.span.to(last.span),
                        "this can't be reached",
                        hint="remove it, or move it before the statement that leaves",
                    )
                )
                return None
            state = self.statement(stmt, state)
        return state

    def statement(self, stmt: tree.Stmt, s: State) -> State:
        if s is None:
            return None
        match stmt:
            case tree.ExprStmt():
                return self.expr(stmt.value, s)
            case tree.Assign():
                s = self.expr(stmt.value, s)
                for t in stmt.targets:
                    s = self.target(t, s)
                return s
            case tree.AnnAssign():
                if stmt.value is None:
                    return s
                return self.expr(stmt.value, s) | {stmt.target.id}
            case tree.AugAssign():
                s = self.expr(stmt.target, s)
                return self.expr(stmt.value, s)
            case tree.Delete():
                for t in stmt.targets:
                    s = self.expr(t, s)
                return s
            case tree.Return():
                if stmt.value is not None:
                    self.expr(stmt.value, s)
                return None
            case tree.Raise():
                for part in (stmt.exc, stmt.cause):
                    if part is not None:
                        s = self.expr(part, s)
                return None
            case tree.Assert():
                true, false = self.condition(stmt.test, s)
                if stmt.msg is not None:
                    self.expr(stmt.msg, false)
                return true
            case tree.Break():
                if self.breaks:
                    self.breaks[-1].append(s)
                return None
            case tree.Continue():
                return None
            case tree.If():
                return self.branches(stmt, s)
            case tree.For():
                return self.loop(stmt, s)
            case tree.Try():
                return self.attempt(stmt, s)
            case tree.Match():
                return self.cases(stmt, s)
        return s

    def branches(self, stmt: tree.If, s: frozenset[str]) -> State:
        out: State = None
        branch: tree.If | None = stmt
        while branch is not None:
            stmt = branch
            true, s = self.condition(stmt.test, s)
            out = meet(out, self.block(stmt.body, true))
            branch = tree.elif_of(stmt)
        return meet(out, self.block(stmt.orelse, s))

    def loop(self, stmt: tree.For, s: frozenset[str]) -> State:
        s = self.expr(stmt.iter, s)
        self.breaks.append([])
        self.block(stmt.body, self.target(stmt.target, s))
        out = self.block(stmt.orelse, s)
        for left in self.breaks.pop():
            out = meet(out, left)
        return out

    def attempt(self, stmt: tree.Try, s: frozenset[str]) -> State:
        out = self.block(stmt.body, s)
        if stmt.orelse:
            out = self.block(stmt.orelse, out)
        for handler in stmt.handlers:
            inner = s if handler.type is None else self.expr(handler.type, s)
            after = self.block(handler.body, inner | {handler.name} if handler.name else inner)
            # Python deletes the exception's name when the handler ends.
            out = meet(out, None if after is None else after - {handler.name or ""})
        if stmt.finalbody:
            final = self.block(stmt.finalbody, s)
            if out is not None and final is not None:
                return out | final
            return None
        return out

    def cases(self, stmt: tree.Match, s: frozenset[str]) -> State:
        s = self.expr(stmt.subject, s)
        out: State = None
        fall: State = s
        for case in stmt.cases:
            if fall is None:
                break  # a case that matches everything must be last; another rule reports further cases
            inner = fall | {b.name for b in pattern_bindings(case.pattern)}
            if case.guard is not None:
                inner, _ = self.condition(case.guard, inner)
            elif irrefutable(case.pattern):
                fall = None
            out = meet(out, self.block(case.body, inner))
        return meet(out, fall)

    def target(self, node: tree.Expr, s: frozenset[str]) -> frozenset[str]:
        match node:
            case tree.Name():
                return s | {node.id}
            case tree.Tuple() | tree.List():
                for e in node.elts:
                    s = self.target(e, s)
                return s
            case tree.Starred():
                return self.target(node.value, s)
        return self.expr(node, s)

    # Expressions

    def condition(self, node: tree.Expr, s: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """The states if `node` is true and if it is false."""
        match node:
            case tree.BoolOp():
                conj = node.op == "and"
                ends: State = None
                through = s
                for value in node.values:
                    true, false = self.condition(value, through)
                    through, left = (true, false) if conj else (false, true)
                    ends = meet(ends, left)
                assert ends is not None
                return (through, ends) if conj else (ends, through)
            case tree.UnaryOp(op="not"):
                true, false = self.condition(node.operand, s)
                return false, true
        after = self.expr(node, s)
        return after, after

    def expr(self, node: tree.Expr, s: frozenset[str]) -> frozenset[str]:
        """The state after the evaluation of `node` in state `s`."""
        match node:
            case tree.Name():
                self.read(node, s)
                return s
            case tree.BoolOp():
                true, false = self.condition(node, s)
                return true & false
            case tree.IfExp():
                true, false = self.condition(node.test, s)
                return self.expr(node.body, true) & self.expr(node.orelse, false)
            case tree.NamedExpr():
                return self.expr(node.value, s) | {node.target.id}
            case tree.Lambda():
                inner = s | {p.name for p in node.params}
                self.expr(node.body, inner)
                return s
            case tree.Compare():
                # The evaluation of a chain stops at the first false comparison.
                first = self.expr(node.comparators[0], self.expr(node.left, s))
                rest = first
                for c in node.comparators[1:]:
                    rest = self.expr(c, rest)
                return first
        if isinstance(node, COMPREHENSIONS):
            return self.comprehension(node, s)
        for child in tree.children(node):
            s = self.child(child, s)
        return s

    def child(self, node: tree.Node, s: frozenset[str]) -> frozenset[str]:
        if isinstance(node, tree.Keyword):
            return self.expr(node.value, s)
        if isinstance(node, tree.FText | tree.Text | tree.Field):
            for inner in tree.children(node):
                s = self.child(inner, s)
            return s
        return self.expr(node, s)  # type: ignore[arg-type]

    def comprehension(
        self, node: tree.ListComp | tree.SetComp | tree.DictComp | tree.GeneratorExp, s: frozenset[str]
    ) -> frozenset[str]:
        inner = after = s
        for i, g in enumerate(node.generators):
            inner = self.expr(g.iter, inner)
            if i == 0:
                after = inner
            inner = inner | {n.id for n in bound_names(g.target)}
            for test in g.ifs:
                inner, _ = self.condition(test, inner)
        if isinstance(node, tree.DictComp):
            inner = self.expr(node.key, inner)
            self.expr(node.value, inner)
        else:
            self.expr(node.elt, inner)
        return after

    def read(self, node: tree.Name, s: frozenset[str]) -> None:
        if node.id not in self.names or node.id in s or node.id in self.reported:
            return
        self.reported.add(node.id)
        if self.function is None:
            self.found.append(
                error(
                    "unassigned",
                    node,
                    f"the constant {node.id!r} is set further down",
                    hint="move its line above this one",
                )
            )
            return
        if node.id in self.facts.constants:
            self.found.append(
                error(
                    "unassigned",
                    node,
                    f"{node.id!r} is assigned in this function, so here it is a local variable, not the constant",
                    hint=f"choose another name in the function: {node.id.lower()}_ = {node.id}",
                )
            )
            return
        if node.id in self.handled:
            self.found.append(
                error(
                    "unassigned",
                    node,
                    f"{node.id!r} has no value here: Python removes an exception's name when its handler ends",
                    hint=f"keep what is needed under another name in the handler: problem = str({node.id})",
                )
            )
            return
        counted = isinstance(self.facts.parent(node), tree.AugAssign)
        value = "0" if counted else "None"
        self.found.append(
            error(
                "unassigned",
                node,
                f"{node.id!r} may not have a value here",
                hint=f"not every path that leads here assigns it; give it a value first: {node.id} = {value}",
                fix=self.assign_first(node, value),
            )
        )

    def assign_first(self, node: tree.Name, value: str) -> Fix | None:
        """The fix that assigns a value to the name at the start of the function, after its docstring."""
        assert self.function is not None
        body = self.function.body
        first = body[1] if len(body) > 1 and isinstance(body[0], tree.ExprStmt) else body[0]
        if first.span.line == body[0].span.line and first is not body[0]:
            return None
        at = Span(first.span.line, first.span.column, first.span.line, first.span.column)
        text = f"{node.id} = {value}\n{' ' * (at.column - 1)}"
        return Fix(f"set {node.id} to {value} first", (Edit(at, text),))


def irrefutable(pattern: tree.Pattern) -> bool:
    """Whether a pattern matches every value."""
    match pattern:
        case tree.MatchAs(pattern=None):
            return True
        case tree.MatchAs(pattern=inner):
            assert inner is not None
            return irrefutable(inner)
        case tree.MatchOr():
            return any(irrefutable(p) for p in pattern.patterns)
    return False
