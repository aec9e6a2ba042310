"""How many rounds a ``while`` makes, if its test compares a counter: ``while tries < 3: … tries += 1``."""

from __future__ import annotations

from albert_tools.engine.analysis.containers import new_list, only_site
from albert_tools.engine.analysis.operators import is_whole_number
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.templates import ANYTHING
from albert_tools.engine.analysis.values import NO_ORIGINS, AbstractValue
from albert_tools.engine.check.facts import bindings, walk_own
from albert_tools.grammar import tree


def rounds_of(analysis: Analysis, stmt: tree.While, start: AbstractValue | None) -> AbstractValue:
    """A value with as many items as a loop makes rounds. `start` is the value of its counter before it."""
    match _first(stmt.test):
        case tree.Compare(left=tree.Name(id=name), ops=("<" | "<=" as op,), comparators=(limit,)):
            least = 0 if op == "<" else 1
            first = None if start is None else start.constants()
            if first and all(type(x) is int and x >= least for x in first) and _counts(analysis, stmt, name):
                if _is_read_only(limit):
                    value = analysis.evaluate(limit, NO_ORIGINS)
                    if is_whole_number(analysis, value):
                        made = new_list(analysis, stmt, "rounds")
                        analysis.sized(only_site(made), "range", (analysis.remember(stmt, value, "rounds"),))
                        return made
    return AbstractValue(ANYTHING)


def counter_of(stmt: tree.While) -> str:
    """The name that the test of a loop compares first."""
    test = _first(stmt.test)
    return test.left.id if isinstance(test, tree.Compare) and isinstance(test.left, tree.Name) else ""


def _first(test: tree.Expr) -> tree.Expr:
    """What must be true for a round, and is evaluated first."""
    return _first(test.values[0]) if isinstance(test, tree.BoolOp) and test.op == "and" else test


def _counts(analysis: Analysis, stmt: tree.While, name: str) -> bool:
    """Whether each whole round adds a positive number to a name, and nothing else in the loop binds it."""
    if name in analysis.facts.scopes.captured or any(isinstance(n, tree.Continue) for n in walk_own(*stmt.body)):
        return False
    steps = [
        s
        for s in stmt.body
        if isinstance(s, tree.AugAssign) and s.op == "+" and isinstance(s.target, tree.Name) and s.target.id == name
    ]
    bound = [b for n in walk_own(stmt.test, *stmt.body) for b in bindings(n) if b.name == name]
    if len(steps) != 1 or len(bound) != 1:
        return False
    step = steps[0].value
    return isinstance(step, tree.Constant) and type(step.value) is int and step.value > 0


def _is_read_only(limit: tree.Expr) -> bool:
    """Whether a limit is a name, a number, or the length of a name. It is evaluated once more than there are rounds."""
    match limit:
        case tree.Name() | tree.Constant() | tree.Call(func=tree.Name(id="len"), args=(tree.Name(),)):
            return True
    return False
