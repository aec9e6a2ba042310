"""Every name has a value before it is read, and every statement can be reached.

Otherwise Python raises `UnboundLocalError` when the program runs. If no path assigns the name, this is certain, and an error. If
some paths assign it, it is a warning, because the author may know that the other paths are never taken.

The analysis visits the nodes once, in the order of evaluation. Its state is two sets: the names that certainly have a value, and
the names that may have one. After return, raise or break, the state is None, and the path is ignored at the next join. Each part
of a condition has its own state. So in ``if (m := find(x)) and m.ok:``, `m` has a value in the second part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from albert_tools.engine.check.facts import (
    BIND_LOCALS,
    COMPREHENSIONS,
    Facts,
    bindings,
    called_name,
    fixed_names,
    pattern_bindings,
)
from albert_tools.engine.check.rule import error, warning
from albert_tools.engine.check.scopes import spelled
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unassigned",
        "A name is read before it has a value. It is a warning if some paths assign the name.",
        "Python raises UnboundLocalError when the name is read.",
        example=in_tool('for part in path.split("/"):\n    count += 1\nreturn count'),
        rewrite=in_tool('count = 0\nfor part in path.split("/"):\n    count += 1\nreturn count'),
    ),
    FindingCode(
        "unreachable",
        "A statement or a handler can never run.",
        "Code that never runs misleads a reviewer, and is most often a slip.",
        example=in_tool("return path\nprint(path)"),
        rewrite=in_tool("print(path)\nreturn path"),
    ),
)


class Names(NamedTuple):
    """The names that certainly have a value, and the names that may have one."""

    sure: frozenset[str]
    possible: frozenset[str]

    def bind(self, *names: str) -> Names:
        return Names(self.sure.union(names), self.possible.union(names))

    def unbind(self, name: str) -> Names:
        return Names(self.sure - {name}, self.possible - {name})

    def or_bind(self, names: set[str]) -> Names:
        """The state if some of `names` have been bound."""
        return Names(self.sure, self.possible | names)

    def either(self, other: Names) -> Names:
        return Names(self.sure & other.sure, self.possible | other.possible)


State = Names | None
NOTHING = Names(frozenset(), frozenset())


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every function, and the module's constants in their order."""
    for function in facts.functions.values():
        # A nested function that binds a variable may run at any time.
        names = facts.names_in(function) - facts.rebound - facts.scopes.changed_inside
        flow = _Flow(facts, names, function)
        flow.block(function.body, NOTHING.bind(*(p.name for p in function.params)))
        yield from flow.found
    module = _Flow(facts, frozenset(facts.constants) - facts.rebound, None)
    state: State = NOTHING
    for stmt in facts.module.body:
        if isinstance(stmt, tree.Assign | tree.AnnAssign):
            state = module.statement(stmt, state)
    yield from module.found


def meet(a: State, b: State) -> State:
    """The state where two paths join."""
    if a is None:
        return b
    return a if b is None else a.either(b)


class _Flow:
    def __init__(self, facts: Facts, names: frozenset[str], function: tree.FunctionDef | None) -> None:
        self.facts = facts
        self.names = names
        self.function = function
        #: Names that a handler binds and Python deletes at the handler's end.
        self.handled = {
            n.name
            for n in (facts.own_nodes(function) if function else ())
            if isinstance(n, tree.ExceptHandler) and n.name
        }
        self.bound = _bound_in_blocks(facts, function)
        self.found: list[Diagnostic] = []
        #: Name → whether an error was reported.
        self.reported: dict[str, bool] = {}
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
            case tree.ExprStmt() | tree.AugAssign() | tree.Delete():
                return self.expr(stmt, s)
            case tree.Assign():
                s = self.expr(stmt.value, s)
                for t in stmt.targets:
                    s = self.target(t, s)
                return s
            case tree.AnnAssign():
                if stmt.value is None:
                    return s
                return self.expr(stmt.value, s).bind(stmt.target.id)
            case tree.FunctionDef() | tree.Import() | tree.ImportFrom():
                return s.bind(*fixed_names(stmt))
            case tree.Return() | tree.Raise():
                self.expr(stmt, s)
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
            case tree.For() | tree.While():
                return self.loop(stmt, s)
            case tree.Try():
                return self.attempt(stmt, s)
            case tree.Match():
                return self.cases(stmt, s)
        return s

    def branches(self, stmt: tree.If, s: Names) -> State:
        out: State = None
        branch: tree.If | None = stmt
        while branch is not None:
            stmt = branch
            true, s = self.condition(stmt.test, s)
            out = meet(out, self.block(stmt.body, true))
            branch = tree.elif_of(stmt)
        return meet(out, self.block(stmt.orelse, s))

    def loop(self, stmt: tree.For | tree.While, s: Names) -> State:
        if isinstance(stmt, tree.For):
            s = self.expr(stmt.iter, s)
        self.breaks.append([])
        # A later round, and the code after the loop, may see what an earlier round has assigned.
        s = s.or_bind(self.bound[id(stmt)])
        if isinstance(stmt, tree.For):
            self.block(stmt.body, self.target(stmt.target, s))
            after: State = s
        else:
            inner, after = self.condition(stmt.test, s)
            self.block(stmt.body, inner)
            if is_always_true(stmt.test):
                after = None
        out = None if after is None else self.block(stmt.orelse, after)
        for left in self.breaks.pop():
            out = meet(out, left)
        return out

    def attempt(self, stmt: tree.Try, s: Names) -> State:
        out = self.block(stmt.body, s)
        if stmt.orelse:
            out = self.block(stmt.orelse, out)
        failed = s.or_bind(self.bound[id(stmt)])
        for handler in stmt.handlers:
            inner = failed if handler.type is None else self.expr(handler.type, failed)
            after = self.block(handler.body, inner.bind(handler.name) if handler.name else inner)
            # Python deletes the exception's name when the handler ends.
            out = meet(out, None if after is None else after.unbind(handler.name or ""))
        if stmt.finalbody:
            final = self.block(stmt.finalbody, s.or_bind(self.bound[id(stmt.finalbody)]))
            if out is not None and final is not None:
                return Names(out.sure | final.sure, out.possible | final.possible)
            return None
        return out

    def cases(self, stmt: tree.Match, s: Names) -> State:
        s = self.expr(stmt.subject, s)
        out: State = None
        fall: State = s
        for case in stmt.cases:
            if fall is None:
                break  # a case that matches everything must be last; another rule reports further cases
            captured = {b.name for b in pattern_bindings(case.pattern)}
            inner = fall.bind(*captured)
            if case.guard is not None:
                inner, failed = self.condition(case.guard, inner)
                fall = failed if irrefutable(case.pattern) else fall.either(failed)
            elif irrefutable(case.pattern):
                fall = None
            out = meet(out, self.block(case.body, inner))
        return meet(out, fall)

    def target(self, node: tree.Expr, s: Names) -> Names:
        for part in tree.single_targets(node):
            s = s.bind(part.id) if isinstance(part, tree.Name) else self.expr(part, s)
        return s

    # Expressions

    def condition(self, node: tree.Expr, s: Names) -> tuple[Names, Names]:
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

    def expr(self, node: tree.Node, s: Names) -> Names:
        """The state after the evaluation of `node` in state `s`. By default, Python evaluates the parts of a node in order."""
        match node:
            case tree.Name():
                self.read(node, s)
                return s
            case tree.BoolOp():
                true, false = self.condition(node, s)
                return true.either(false)
            case tree.IfExp():
                true, false = self.condition(node.test, s)
                return self.expr(node.body, true).either(self.expr(node.orelse, false))
            case tree.NamedExpr():
                return self.expr(node.value, s).bind(node.target.id)
            case tree.Lambda() if self.facts.is_in_table(node):
                return s  # it is called later
            case tree.Lambda():
                self.expr(node.body, s.bind(*(p.name for p in node.params)))
                return s
            case tree.Compare():
                # The evaluation of a chain stops at the first false comparison.
                first = self.expr(node.comparators[0], self.expr(node.left, s))
                rest = first
                for c in node.comparators[1:]:
                    rest = self.expr(c, rest)
                return first.either(rest)
        if isinstance(node, COMPREHENSIONS):
            return self.comprehension(node, s)
        for child in tree.children(node):
            s = self.expr(child, s)
        return s

    def comprehension(self, node: tree.ListComp | tree.SetComp | tree.DictComp | tree.GeneratorExp, s: Names) -> Names:
        inner = after = s
        for i, g in enumerate(node.generators):
            inner = self.expr(g.iter, inner)
            if i == 0:
                after = inner
            inner = inner.bind(*(b.name for b in bindings(g)))
            for test in g.ifs:
                inner, _ = self.condition(test, inner)
        if isinstance(node, tree.DictComp):
            inner = self.expr(node.value, self.expr(node.key, inner))
        else:
            inner = self.expr(node.elt, inner)
        # A walrus binds a name of the function.
        variables = {b.name for g in node.generators for b in bindings(g)}
        return after.or_bind(set(inner.possible) - variables)

    def read(self, node: tree.Name, s: Names) -> None:
        if node.id not in self.names or node.id in s.sure:
            return
        certain = node.id not in s.possible or self._separate(node)
        if self.reported.get(node.id) in (True, certain):
            return
        self.reported[node.id] = certain
        message, hint = self._explained(node, certain)
        self.found.append((error if certain else warning)("unassigned", node, message, hint))

    def _explained(self, node: tree.Name, certain: bool) -> tuple[str, str]:
        name = node.id
        if self.function is None:
            return f"the constant {name!r} is set further down", "move its line above this one"
        hidden = self._hidden(spelled(name))
        if hidden is not None and name in self.facts.locals_in(self.function):
            return (
                f"{name!r} is assigned in this function, so here it is a local variable, not the {hidden}",
                f"choose another name in the function: {spelled(name).lower()}_ = {name}",
            )
        if name in self.handled:
            return (
                f"{name!r} {'has' if certain else 'may have'} no value here: Python removes an exception's name when its handler"
                " ends",
                f"keep the exception under another name in the handler: last = {name}",
            )
        first = f"{name} = {'0' if isinstance(self.facts.parent(node), tree.AugAssign) else 'None'}"
        remedy = f"give it a value first: {first}"
        if name in self.facts.functions or name in self.facts.modules or name in self.facts.imported:
            remedy = (
                f"{'define' if name in self.facts.functions else 'import'} it above this line, outside of any condition"
            )
        if certain:
            return f"{name!r} has no value here", remedy
        return (
            f"{name!r} may not have a value here",
            f"not every path that leads here assigns it, and Python raises UnboundLocalError on the others; {remedy}",
        )

    def _hidden(self, name: str) -> str | None:
        """What a name means where no local variable hides it; None if nothing."""
        if name in self.facts.constants:
            return "constant"
        meaning = self.facts.fixed(name)
        return meaning and {"a built-in": "built-in", "an exception": "exception", "imported": "import"}.get(
            meaning, "function"
        )

    def _separate(self, node: tree.Name) -> bool:
        """Whether a body of ``parallel(a(), b())`` reads the name. There Python's error would not be UnboundLocalError."""
        return any(
            isinstance(above, tree.Call)
            and called_name(above) == "parallel"
            and not any(isinstance(part, tree.GeneratorExp) for part in above.args[:1])
            for above in self.facts.ancestors(node)
        )


def _bound_in_blocks(facts: Facts, function: tree.FunctionDef | None) -> defaultdict[int, set[str]]:
    """The names that are bound in each loop, in each body of a ``try``, and in each ``try`` outside of its ``finally``.

    The key is the id of the loop, of the ``try``, or of the tuple of statements in ``finally``. A statement like ``n += 1`` only
    succeeds if the name has a value, so it does not count.
    """
    bound: defaultdict[int, set[str]] = defaultdict(set)
    for node in facts.own_nodes(function) if function else ():
        names = {*fixed_names(node)}
        if isinstance(node, BIND_LOCALS) and not isinstance(node, tree.AugAssign):
            if isinstance(node, tree.AnnAssign) and node.value is None:
                continue
            names = {b.name for b in bindings(node)}
        if not names:
            continue
        if isinstance(node, tree.For):
            bound[id(node)] |= names
        # No exception can follow the last assignment of a body.
        last = isinstance(node, tree.Assign | tree.AnnAssign) and len(names) == 1
        for above in facts.ancestors(node):
            if isinstance(above, tree.For | tree.While):
                bound[id(above)] |= names
            elif isinstance(above, tree.Try):
                if node.span.line <= above.body[-1].span.end_line and not (last and above.body[-1] is node):
                    bound[id(above)] |= names
                if not above.finalbody or node.span.line < above.finalbody[0].span.line:
                    bound[id(above.finalbody)] |= names
    return bound


def is_always_true(test: tree.Expr) -> bool:
    """Whether a test is a constant that is true: ``while True``."""
    return isinstance(test, tree.Constant) and test.value is not ... and bool(test.value)


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
