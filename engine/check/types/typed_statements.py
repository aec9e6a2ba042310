"""The types of names after each statement, and the findings about a function's result.

The analysis follows the order of execution. Where two paths join, a name has either type. A loop is visited first to find out which
names keep their types from one round to the next; the others can be anything. What a ``try`` assigns can be anything afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import BIND_LOCALS, bindings, pattern_bindings
from albert_tools.engine.check.rule import error, warning
from albert_tools.engine.check.rules.assignment import irrefutable, is_always_true
from albert_tools.engine.check.types import operations
from albert_tools.engine.check.types.narrowing import narrowed
from albert_tools.engine.check.types.schema_fit import never_fits, why_no_json
from albert_tools.engine.check.types.source_types import State
from albert_tools.engine.check.types.typed_calls import Calls
from albert_tools.engine.check.types.value_types import Type, plain, sites_of, spell, widened
from albert_tools.engine.check.written import written
from albert_tools.engine.model.definition import spell as spell_schema
from albert_tools.grammar import tree

#: In loops that are nested deeper, all names that a loop assigns can be anything. Each level above is visited up to four times.
MAX_VERIFIED_LOOPS = 2
#: The classes whose values an operator such as ``+=`` changes.
_CHANGED_BY = {"+": ["list"], "*": ["list"], "|": ["dict", "set"], "&": ["set"], "-": ["set"], "^": ["set"]}


class Body(Calls):
    """One function, or the constants of the module."""

    def module(self) -> State:
        """The types of the module's constants."""
        s: State = {}
        for stmt in self.facts.module.body:
            if isinstance(stmt, tree.Assign | tree.AnnAssign) and id(stmt.value) not in self.facts.annotations:
                self.statement(stmt, s)
        return s

    def returns(self, s: State) -> Type:
        """The type of what the function returns, if its names have these types at the beginning."""
        assert self.function is not None
        self.returned: list[Type] = []
        self.exits: list[list[tuple[bool, State]]] = []
        self.depth = 0
        end = self.block(self.function.body, s)
        if end is not None:
            self.returned.append(plain("None"))
            self._missing_return()
        return self.sites.join(self.returned) if self.returned else None

    def _missing_return(self) -> None:
        function, schema = self.function, self.source.schema
        if function is not self.facts.tool or self.quiet or not schema or not never_fits(plain("None"), schema):
            return
        assert function is not None
        if not any(isinstance(n, tree.Return) for n in self.facts.own_nodes(function)):
            self.report(
                error(
                    "missing-return",
                    function.name_span,
                    f"{function.name} never returns a value, and the result must be {spell_schema(schema)}",
                    hint="write return value at the end, or change the annotation after -> to None",
                ),
                None,
            )

    def block(self, body: tuple[tree.Stmt, ...], s: State | None) -> State | None:
        """The state after the statements. None if they are never left at the end."""
        for stmt in body:
            if s is None:
                return None
            s = self.statement(stmt, s)
        return s

    def statement(self, stmt: tree.Stmt, s: State) -> State | None:
        """The state after a statement."""
        match stmt:
            case tree.Assign():
                type_ = self.expr(stmt.value, s)
                for target in stmt.targets:
                    self.assign(target, type_, s)
            case tree.AnnAssign() if stmt.value is not None:
                self.bind(stmt.target.id, self.expr(stmt.value, s), s)
            case tree.AugAssign():
                self._augment(stmt, s)
            case tree.Delete():
                self._delete(stmt, s)
            case tree.ExprStmt():
                self.expr(stmt.value, s)
            case tree.Return():
                self._return(stmt, s)
                return None
            case tree.Raise():
                self.parts(stmt, s)
                return None
            case tree.Assert():
                true, false = self.condition(stmt.test, s)
                if stmt.msg is not None and false is not None:
                    self.sites.escape(self.expr(stmt.msg, false))
                return true
            case tree.Break() | tree.Continue():
                if self.exits:
                    self.exits[-1].append((isinstance(stmt, tree.Break), s))
                return None
            case tree.If():
                return self._branches(stmt, s)
            case tree.For() | tree.While():
                return self._loop(stmt, s)
            case tree.Try():
                return self._attempt(stmt, s)
            case tree.Match():
                return self._cases(stmt, s)
        return s

    def _augment(self, stmt: tree.AugAssign, s: State) -> None:
        left = self.expr(stmt.target, s)
        right = self.expr(stmt.value, s)
        type_ = self.operator(stmt, stmt.op, operations.augmented, left, right)
        if left and all(a.name == "list" for a in left):
            type_ = plain("list")
        if written(self.facts, stmt):
            self.sites.change(left, _CHANGED_BY.get(stmt.op, ()))
        if isinstance(stmt.target, tree.Name):
            self.bind(stmt.target.id, type_, s)
        elif isinstance(stmt.target, tree.Subscript):
            self.assign(stmt.target, type_, s)

    def _delete(self, stmt: tree.Delete, s: State) -> None:
        for target in stmt.targets:
            if isinstance(target, tree.Subscript):
                base, index = self.expr(target.value, s), self.expr(target.slice, s)
                if self.fails(operations.deleting, base, index):
                    self.operand(target, f"items of {spell(base)} can't be deleted by {spell(index)}", base)
                self.change(target.slice, base)
            else:
                self.parts(target, s)

    def _return(self, stmt: tree.Return, s: State) -> None:
        type_ = plain("None") if stmt.value is None else self.expr(stmt.value, s)
        if self.exits:  # a loop: constants differ from round to round
            type_ = widened(type_)
        self.returned.append(type_)
        function, schema = self.function, self.source.schema
        if function is not self.facts.tool:
            # Callers have the type of the first visit, in which parameters can be anything.
            known = sites_of(self.source.results.get(function.name)) if function else frozenset()
            self.sites.escaped |= sites_of(type_) - known
        elif self.facts.tool_calls_itself:
            pass
        elif (why := why_no_json(type_)) is not None:
            self.report(error("not-json", stmt.value or stmt, why[0], hint=why[1]), None)
        elif type_ and all(a.odd_keys for a in type_):
            message = "the keys of this dict are no text, and JSON has only text as keys"
            self.report(warning("not-json", stmt.value or stmt, message, hint="convert them: {str(key): …}"), None)
        elif schema and never_fits(type_, schema):
            message = f"this is {spell(type_)}, and the result must be {spell_schema(schema)}"
            hint = "return a value that fits, or change the annotation after ->"
            self.report(error("result-type", stmt.value or stmt, message, hint=hint), None)

    def _branches(self, stmt: tree.If, s: State) -> State | None:
        out: State | None = None
        rest: State | None = s
        branch: tree.If | None = stmt
        while branch is not None and rest is not None:
            stmt = branch
            true, rest = self.condition(stmt.test, rest)
            out = self.merge(out, self.block(stmt.body, true))
            branch = tree.elif_of(stmt)
        return out if rest is None else self.merge(out, self.block(stmt.orelse, rest))

    # Loops

    def _loop(self, stmt: tree.For | tree.While, s: State) -> State | None:
        items = self.items(stmt.iter, self.expr(stmt.iter, s)) if isinstance(stmt, tree.For) else None
        bound = _bound((stmt,))
        start = self._start(stmt, items, bound, s)
        self.forget([name for name in s if name not in start], s)
        after, left, end = self._round(stmt, items, start)
        if isinstance(stmt, tree.For):
            end = self.merge(start, after)
        out = self.block(stmt.orelse, end)
        for state in left:
            out = self.merge(out, state)
        return out

    def _start(self, stmt: tree.For | tree.While, items: Type, bound: frozenset[str], s: State) -> State:
        """The state at the beginning of each round: what the loop assigns has the types of all rounds."""
        outside = {name: type_ for name, type_ in s.items() if name not in bound}
        if self.depth >= MAX_VERIFIED_LOOPS:
            return outside
        start = {name: widened(type_) if name in bound else type_ for name, type_ in s.items()}
        quiet, self.quiet = self.quiet, True
        self.depth += 1
        for attempt in range(3):
            after, _, _ = self._round(stmt, items, start)
            end = self.merge(start, after) or {}
            changed = {n: widened(end.get(n)) for n in bound & start.keys() if widened(end.get(n)) != start[n]}
            if not changed:
                break
            start = {n: t for n, t in start.items() if n not in changed}
            if attempt == 0:
                start |= {n: t for n, t in changed.items() if t is not None}
        else:
            start = outside
        self.depth -= 1
        self.quiet = quiet
        return start

    def _round(
        self, stmt: tree.For | tree.While, items: Type, s: State
    ) -> tuple[State | None, list[State], State | None]:
        """The states after one round: at its end, at each ``break``, and where the test of a ``while`` is false."""
        inner: State | None = dict(s)
        ended: State | None = None
        self.exits.append([])
        self.depth += 1
        if isinstance(stmt, tree.For):
            assert inner is not None
            self.assign(stmt.target, items, inner)
        else:
            inner, ended = self.condition(stmt.test, dict(s))
            if is_always_true(stmt.test):
                ended = None
        after = self.block(stmt.body, inner)
        self.depth -= 1
        exits = self.exits.pop()
        for is_break, state in exits:
            if not is_break:
                after = self.merge(after, state)
        return after, [state for is_break, state in exits if is_break], ended

    # Exceptions

    def _attempt(self, stmt: tree.Try, s: State) -> State | None:
        bound = _bound((*stmt.body, *stmt.orelse))
        final = _bound(stmt.finalbody)
        everything = bound | final | _bound(tuple(part for h in stmt.handlers for part in h.body))
        swallows = any(isinstance(n, tree.Return | tree.Break | tree.Continue) for n in tree.walk(*stmt.finalbody))
        after_all = [frozenset({"Exception", "TypeError"})] if swallows else []
        self.caught += after_all
        # A handler, and what follows, may see what the body has assigned before it failed.
        self.dropped.append(bound)
        self.caught.append(frozenset(_handled(stmt)))
        out = self.block(stmt.body, dict(s))
        self.caught.pop()
        out = self.block(stmt.orelse, out)
        self.dropped.pop()
        failed = dict(s)
        self.forget(bound, failed)
        for handler in stmt.handlers:
            inner = dict(failed)
            self.forget([handler.name or ""], inner)
            out = self.merge(out, self.block(handler.body, inner))
        del self.caught[len(self.caught) - len(after_all) :]
        if stmt.finalbody:
            inner = dict(s)
            self.forget(everything, inner)
            self.sites.escape(*(type_ for name, type_ in (out or {}).items() if name in everything))
            self.dropped.append(final)
            left = self.block(stmt.finalbody, inner)
            self.dropped.pop()
            if left is None or out is None:
                return None
            self.forget(final, out)
        return out

    def _cases(self, stmt: tree.Match, s: State) -> State | None:
        type_ = self.expr(stmt.subject, s)
        name = stmt.subject.id if isinstance(stmt.subject, tree.Name) else None
        out: State | None = None
        fall: State | None = s
        for case in stmt.cases:
            if fall is None:
                break
            captured = [b.name for b in pattern_bindings(case.pattern)]
            inner: State | None = dict(fall)
            test = _test_of(case.pattern, stmt.subject)
            if test is not None and name in fall and inner is not None:
                matched = narrowed(test, fall[name], True)
                inner[name] = matched
                inner = None if matched == () else inner
                rest = narrowed(test, fall[name], False)
                if case.guard is None:
                    fall = None if rest == () else {**fall, name: rest}
            if captured:
                self.sites.escape(type_)
                if inner is not None:
                    self.forget(captured, inner)
            if inner is not None and case.guard is not None:
                inner, _ = self.condition(case.guard, inner)
            if fall is not None:
                self.forget(captured, fall)
                fall = None if case.guard is None and irrefutable(case.pattern) else fall
            out = self.merge(out, self.block(case.body, inner))
        return self.merge(out, fall)


def _bound(body: tuple[tree.Stmt, ...]) -> frozenset[str]:
    """The names that statements bind."""
    return frozenset(b.name for n in tree.walk(*body) if isinstance(n, BIND_LOCALS) for b in bindings(n))


def _handled(stmt: tree.Try) -> Iterator[str]:
    """The names of the exceptions that a ``try`` catches."""
    for handler in stmt.handlers:
        types = handler.type.elts if isinstance(handler.type, tree.Tuple) else (handler.type,)
        for one in types:
            yield "Exception" if one is None else one.id if isinstance(one, tree.Name) else ""


def _test_of(pattern: tree.Pattern, subject: tree.Expr) -> tree.Expr | None:
    """The expression that says the same as a simple pattern."""
    match pattern:
        case tree.MatchSingleton(value=None):
            value = tree.Constant(pattern.span, None, "None")
            return tree.Compare(pattern.span, subject, ("is",), (value,))
        case tree.MatchValue(value=value):
            return tree.Compare(pattern.span, subject, ("==",), (value,))
        case tree.MatchClass(cls=cls) if isinstance(cls, tree.Name):
            return tree.Call(pattern.span, tree.Name(pattern.span, "isinstance"), (subject, cls), ())
    return None
