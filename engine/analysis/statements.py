"""What statements do to the state of an analysis.

A statement may jump: by `break`, `continue` or `return`. Then what decides about the jump also decides about the statements that
follow, in the loop or in the function, so each function returns these origins. A `raise` or an `assert` that nothing catches
decides only about later calls (`Frame.failing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from albert_tools.engine.analysis.assignments import assign, delete
from albert_tools.engine.analysis.calls import is_lazy
from albert_tools.engine.analysis.containers import anything, concern, extend, read_keys
from albert_tools.engine.analysis.counted_rounds import counter_of, rounds_of
from albert_tools.engine.analysis.operators import binary
from albert_tools.engine.analysis.patterns import bind_pattern
from albert_tools.engine.analysis.state import Analysis, Environment, Loop, Seen
from albert_tools.engine.analysis.templates import ANYTHING
from albert_tools.engine.analysis.values import NEVER, NO_ORIGINS, NONE, AbstractValue, Origins, compared, made_with
from albert_tools.engine.check.facts import fixed_names
from albert_tools.grammar import tree


class Jumps(NamedTuple):
    """What decides whether the rest of a loop's body is left out, and the rest of the function."""

    loop: Origins = NO_ORIGINS
    function: Origins = NO_ORIGINS

    def __or__(self, other: Jumps) -> Jumps:
        return Jumps(self.loop | other.loop, self.function | other.function)

    @property
    def all(self) -> Origins:
        """What decides about the rest of the block."""
        return self.loop | self.function


_NO_JUMPS = Jumps()


def run(analysis: Analysis, body: tuple[tree.Stmt, ...], control: Origins) -> Jumps:
    """Run a block. Returns what decides whether the statements after it are left out."""
    jumps, loops = _NO_JUMPS, analysis.frame.loops
    if loops and _runs_once(analysis, body):
        analysis.frame.loops = ()
    for stmt in body:
        new_jumps = _statement(analysis, stmt, control | jumps.all)
        if analysis.rounds.changed and analysis.first_change is None:
            analysis.first_change = stmt
        if new_jumps is not _NO_JUMPS:
            jumps |= new_jumps
    analysis.frame.loops = loops
    return jumps


def _runs_once(analysis: Analysis, body: tuple[tree.Stmt, ...]) -> bool:
    """Whether a block ends the function when it runs, so that the loops around it don't run it again."""
    if not body or not isinstance(body[-1], tree.Return) or analysis.frame.assigned:
        return False
    return not any(isinstance(node, tree.Break | tree.Continue) for node in tree.walk(*body))


def _statement(analysis: Analysis, stmt: tree.Stmt, control: Origins) -> Jumps:
    analysis.current = stmt
    match stmt:
        case tree.ExprStmt():
            analysis.evaluate(stmt.value, control)
        case tree.Assign():
            value = _assigned(analysis, stmt, control)
            for target in stmt.targets:
                assign(analysis, target, value, control)
        case tree.AnnAssign():
            if stmt.value is not None:
                assign(analysis, stmt.target, analysis.evaluate(stmt.value, control), control)
        case tree.AugAssign():
            _augmented(analysis, stmt, control)
        case tree.Delete():
            for target in stmt.targets:
                delete(analysis, target, control)
        case tree.Return():
            value = NONE if stmt.value is None else analysis.evaluate(stmt.value, control)
            analysis.grow(analysis.results, analysis.frame.instance, value.under(control))
            return Jumps(function=control)
        case tree.Raise():
            analysis.frame.failing |= control
            for part in (stmt.exc, stmt.cause):
                if part is not None:
                    analysis.raised |= analysis.heap.condition(analysis.evaluate(part, control)) | control
        case tree.Assert():
            test = control | analysis.heap.condition(analysis.evaluate(stmt.test, control))
            analysis.frame.failing |= test
            analysis.raised |= test
            if stmt.msg is not None:
                analysis.raised |= analysis.heap.condition(analysis.evaluate(stmt.msg, test))
        case tree.Break():
            names, after_break, _ = analysis.frame.jumps[-1]
            _join_into(after_break, analysis.frame.locals, names)
            return Jumps(control)
        case tree.Continue():
            names, _, at_continue = analysis.frame.jumps[-1]
            _join_into(at_continue, analysis.frame.locals, names)
            return Jumps(control)
        case tree.FunctionDef() | tree.Import() | tree.ImportFrom():
            for name in fixed_names(stmt):
                analysis.assign(name, AbstractValue(control=control))
        case tree.If():
            return _if(analysis, stmt, control)
        case tree.For():
            return _for(analysis, stmt, control)
        case tree.While():
            return _while(analysis, stmt, control)
        case tree.Try():
            return _try(analysis, stmt, control)
        case tree.Match():
            return _match(analysis, stmt, control)
    return _NO_JUMPS


def _assigned(analysis: Analysis, stmt: tree.Assign, control: Origins) -> AbstractValue:
    """What is assigned. The items of a lazy value are made where its name is used, and that decides how many."""
    if not is_lazy(analysis, stmt.value):
        return analysis.evaluate(stmt.value, control)
    if len(stmt.targets) == 1 and isinstance(target := stmt.targets[0], tree.Name):
        held = (analysis.frame.instance, target.id)
        analysis.note(analysis.held, held)
        control = control | analysis.exits[held]
    return analysis.evaluate_lazy(stmt.value, control)


def _add_to_head(analysis: Analysis, loop: Loop, more: Environment, names: frozenset[str]) -> None:
    """Add to what the names that a loop binds can be when a round of it begins."""
    head = dict(analysis.heads.peek(loop))
    if _join_into(head, more, names, analysis.heap.is_late):
        analysis.heads[loop] = head


def _augmented(analysis: Analysis, stmt: tree.AugAssign, control: Origins) -> None:
    old = analysis.evaluate(stmt.target, control)
    value = analysis.evaluate(stmt.value, control)
    if stmt.op == "%":
        read_keys(analysis, control, old, value)
    # A list, a set or a dictionary changes in place. A text or a number becomes a new value.
    inner = value.under(control | analysis.heap.shape(value) | old.origins)
    # How often a list is repeated is not followed.
    amount = analysis.remember(stmt, AbstractValue(ANYTHING) if stmt.op == "*" else value)
    for site in old.sites:
        extend(analysis, site, inner, amount)
    is_dict = any(analysis.heap.kind(s) == "dict" for s in old.sites)
    if is_dict or (old.sites and stmt.op in "-&^|"):
        # Counters keep what is positive.
        concern(
            analysis,
            old,
            control | analysis.heap.condition(value) | (analysis.heap.condition(old) if is_dict else NO_ORIGINS),
        )
    new = old._replace(alternatives=frozenset(), data=old.data | value.data, control=old.control | value.control)
    if old.alternatives or not old.sites:
        scalar = old._replace(sites=frozenset())
        new = binary(analysis, stmt, scalar, stmt.op, value) | (new if old.sites else NEVER)
    assign(analysis, stmt.target, new, control)


def _join_into(target: Environment, more: Environment, names: frozenset[str], widens: bool = False) -> bool:
    """Add the values of some names to an environment. Returns whether that changed it."""
    changed = False
    for name in names & more.keys():
        value, old = more[name], target.get(name)
        new = value if old is None else old | value
        if old is None or (new is not old and new != old):
            target[name] = new.widened() if widens else new
            changed = True
    return changed


def _leaves(body: tuple[tree.Stmt, ...]) -> bool:
    """Whether a block certainly ends by a jump, so that its locals don't reach the statement after it."""
    return bool(body) and isinstance(body[-1], tree.Return | tree.Raise | tree.Break | tree.Continue)


def _if(analysis: Analysis, stmt: tree.If, control: Origins) -> Jumps:
    # A chain of `elif` can be long, so this is a loop.
    frame, names = analysis.frame, analysis.bound_in(stmt)
    after, jumps, survives = Environment(), _NO_JUMPS, False
    branch: tree.If | None = stmt
    while branch is not None:
        control = control | analysis.heap.condition(analysis.evaluate(branch.test, control))
        before = frame.locals
        following = tree.elif_of(branch)
        for body in (branch.body, branch.orelse) if following is None else (branch.body,):
            frame.locals = dict(before)
            jumps |= run(analysis, body, control)
            if not _leaves(body):
                survives = True
                _join_into(after, frame.locals, names)
        frame.locals = before
        branch = following
    if survives:
        frame.locals = {**frame.locals, **after}
    return jumps


def _while(analysis: Analysis, stmt: tree.While, control: Origins) -> Jumps:
    """The test decides about each round, and so does what has left earlier ones."""
    frame, names = analysis.frame, analysis.bound_in(stmt)
    loop = (frame.instance, id(stmt))
    before, failing = frame.locals, frame.failing
    start = before.get(counter_of(stmt))
    _add_to_head(analysis, loop, before, names)
    frame.loops = (*frame.loops, loop)
    frame.jumps.append((names, Environment(), Environment()))
    frame.locals = {**before, **analysis.heads[loop]}
    analysis.grow(analysis.iterated, loop, rounds_of(analysis, stmt, start))
    tested = control | analysis.exits[loop]
    tested |= analysis.heap.condition(analysis.evaluate(stmt.test, tested))
    at_test = dict(frame.locals)
    leaving = run(analysis, stmt.body, tested)
    _, after_break, at_continue = frame.jumps.pop()
    for end in (frame.locals, at_continue):
        _add_to_head(analysis, loop, end, names)
    frame.loops = frame.loops[:-1]
    # The test of a later round is evaluated only if those before were true.
    analysis.add(analysis.exits, loop, leaving.all | tested | (frame.failing - failing))
    frame.locals = {**before, **analysis.heads[loop]}
    _join_into(frame.locals, at_test, names)  # a walrus in the test
    jumps = Jumps(function=leaving.function)
    if stmt.orelse:
        jumps |= run(analysis, stmt.orelse, tested | leaving.all)
    _join_into(frame.locals, after_break, names)
    return jumps


def _for(analysis: Analysis, stmt: tree.For, control: Origins) -> Jumps:
    frame, names = analysis.frame, analysis.bound_in(stmt)
    loop = (frame.instance, id(stmt))
    if is_lazy(analysis, stmt.iter):
        # Its items are made between the iterations, with the values that names have then.
        iterated = analysis.evaluate_lazy(stmt.iter, control | analysis.exits[loop])
    else:
        iterated = analysis.evaluate(stmt.iter, control)
    analysis.grow(analysis.iterated, loop, iterated)
    control = control | analysis.heap.size(iterated)
    inside = control | analysis.exits[loop]
    # Names have the values of before the loop, or of the end of any iteration.
    before, failing = frame.locals, frame.failing
    _add_to_head(analysis, loop, before, names)
    frame.loops = (*frame.loops, loop)
    frame.jumps.append((names, Environment(), Environment()))
    frame.locals = {**before, **analysis.heads[loop]}
    assign(analysis, stmt.target, analysis.heap.items(iterated), inside)
    leaving = run(analysis, stmt.body, inside)
    _, after_break, at_continue = frame.jumps.pop()
    for end in (frame.locals, at_continue):
        _add_to_head(analysis, loop, end, names)
    frame.loops = frame.loops[:-1]
    analysis.add(analysis.exits, loop, leaving.all | (frame.failing - failing))
    frame.locals = {**before, **analysis.heads[loop]}
    jumps = Jumps(function=leaving.function)
    if stmt.orelse:
        jumps |= run(analysis, stmt.orelse, control | leaving.all)
    _join_into(frame.locals, after_break, names)
    return jumps


def _try(analysis: Analysis, stmt: tree.Try, control: Origins) -> Jumps:
    """`finally` runs after any part of the body, of a handler or of `else`."""
    if not stmt.finalbody:
        return _except(analysis, stmt, control)
    frame, names = analysis.frame, analysis.bound_in(stmt)
    place, seen, at_any_time = (frame.instance, id(stmt), "finally"), Seen(), dict(frame.locals)
    frame.watching.append(seen)
    frame.assigned.append(at_any_time)
    jumps = _except(analysis, stmt, control | analysis.exits[place])
    frame.watching.pop()
    frame.assigned.pop()
    analysis.add(analysis.exits, place, seen.all(analysis.heap))
    _join_into(frame.locals, at_any_time, names)
    at_end = Environment()
    frame.assigned.append(at_end)
    jumps |= run(analysis, stmt.finalbody, control)
    frame.assigned.pop()
    if frame.jumps:
        # After a `break` or a `continue` in the body, `finally` assigns, too.
        _, after_break, at_continue = frame.jumps[-1]
        for scope in (after_break, at_continue):
            _join_into(scope, at_end, frozenset(at_end))
    return jumps


def _except(analysis: Analysis, stmt: tree.Try, control: Origins) -> Jumps:
    frame, names = analysis.frame, analysis.bound_in(stmt)
    place = (frame.instance, id(stmt), "try")
    seen = Seen()
    at_any_time, after = dict(frame.locals), Environment()
    frame.watching.append(seen)
    frame.assigned.append(at_any_time)
    # A part of the body runs only if the parts before it have not failed, in this and in earlier iterations.
    jumps = run(analysis, stmt.body, control | analysis.exits[place])
    frame.watching.pop()
    frame.assigned.pop()
    caught = seen.all(analysis.heap)
    if stmt.handlers:
        analysis.add(analysis.exits, place, caught)
    _join_into(at_any_time, frame.locals, names)
    if stmt.orelse:
        jumps |= run(analysis, stmt.orelse, control | jumps.all | caught)
    if not _leaves(stmt.orelse or stmt.body):
        _join_into(after, frame.locals, names)
    for handler in stmt.handlers:
        frame.locals = dict(at_any_time)
        if handler.name:
            # The message can contain all that the body has computed, and outputs of tools.
            message = AbstractValue(ANYTHING, caught, control)
            analysis.assign(
                handler.name,
                anything(analysis, handler, message, analysis.thrown) if analysis.thrown.sites else message,
            )
        jumps |= run(analysis, handler.body, control | caught)
        if not _leaves(handler.body):
            _join_into(after, frame.locals, names)
    frame.locals = {**at_any_time, **after}
    return jumps


def _constants_of(pattern: tree.Pattern) -> Iterator[str | float | None]:
    for node in tree.walk(pattern):
        value = node.constant if isinstance(node, tree.Strings) else getattr(node, "value", None)
        if isinstance(node, tree.Strings | tree.Constant) and isinstance(value, str | int | float):
            yield value


def _match(analysis: Analysis, stmt: tree.Match, control: Origins) -> Jumps:
    frame, names = analysis.frame, analysis.bound_in(stmt)
    value = analysis.evaluate(stmt.subject, control)
    control = control | analysis.heap.condition(value)
    before, after, jumps = frame.locals, Environment(), _NO_JUMPS
    for case in stmt.cases:
        frame.locals = dict(before)
        constants = made_with(_constants_of(case.pattern))
        control = control | compared(constants, "case", constants)
        bind_pattern(analysis, case.pattern, value, control)
        if case.guard is not None:
            control = control | analysis.heap.condition(analysis.evaluate(case.guard, control))
        _join_into(before, frame.locals, names)  # a pattern that fails late has bound its names
        jumps |= run(analysis, case.body, control)
        if not _leaves(case.body):
            _join_into(after, frame.locals, names)
    _join_into(after, before, names)
    frame.locals = {**before, **after}
    return jumps
