"""When calls are made: the steps of a tool, which certainly come one after the other.

A step is a statement outside of loops; a whole loop is one step. A function that is called in one place alone, outside of loops,
has steps within the step of its caller. What may run at another time than it is written has no step of its own: lambdas,
callbacks, lazy values that a name holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple, get_args

from albert_tools.engine.analysis.state import Analysis, Instance, Loop, Recorded
from albert_tools.engine.check.facts import tool_name
from albert_tools.engine.model.manifest import Step
from albert_tools.grammar import tree

_STATEMENTS, _EXPRESSIONS = frozenset(get_args(tree.Stmt)), frozenset(get_args(tree.Expr))


class _Place(NamedTuple):
    """The number of a step in its function, and the name that its statement binds, if it binds one."""

    number: int
    binds: str


class Steps:
    """The steps of a solved analysis."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        calls = [call for call in analysis.facts.every(tree.Call) if self._is_followed(call)]
        #: The ids of these calls and of all nodes around them: no other expression needs a look.
        self._around = {id(node) for call in calls for node in (call, *analysis.facts.ancestors(call))}
        self._places = {name: self._places_in(f.body) for name, f in analysis.facts.functions.items()}
        #: By function: how many calls each step has.
        self._crowds = {name: Counter(p.number for p in places.values()) for name, places in self._places.items()}
        self._known: dict[Instance, tuple[Step, bool]] = {}

    def of_calls(self, calls: Iterable[Recorded]) -> Step:
        """The step that contains all these calls."""
        return _common(map(self._of_call, calls))

    def _of_call(self, call: Recorded) -> Step:
        step, is_alone = self._of(call.instance, call.node, call.loops)
        return step + call.planned.step if is_alone and call.planned is not None else step

    def _of(self, instance: Instance, node: int, loops: tuple[Loop, ...]) -> tuple[Step, bool]:
        """The step in which a call is made, by the id of its node, and whether no other call is made in that step."""
        base, is_alone = self._of_instance(instance)
        place = self._places.get(instance[0], {}).get(node)
        if not is_alone or place is None or (instance, place.binds) in self._analysis.held:
            return base, False
        return (*base, place.number), not loops and self._crowds[instance[0]][place.number] == 1

    def _of_instance(self, instance: Instance) -> tuple[Step, bool]:
        if instance == self._analysis.entry:
            return (), True
        if instance not in self._known:
            # A recursion has no steps.
            self._known[instance] = (), False
            caller_steps = [self._of(caller, node, loops) for caller, loops, node in self._analysis.callers[instance]]
            self._known[instance] = (
                caller_steps[0] if len(caller_steps) == 1 else (_common(step for step, _ in caller_steps), False)
            )
        return self._known[instance]

    def _places_in(self, body: tuple[tree.Stmt, ...]) -> dict[int, _Place]:
        """The steps of the calls in a function, by the ids of their nodes."""
        places: dict[int, _Place] = {}
        count = 0
        # Each node with its step, and whether that is a loop.
        pending: list[tuple[tree.Node, _Place, bool]] = [(stmt, _Place(0, ""), False) for stmt in reversed(body)]
        while pending:
            node, place, in_loop = pending.pop()
            before = None
            if isinstance(node, tree.FunctionDef | tree.Lambda):
                continue
            if type(node) in _STATEMENTS and not in_loop:
                count += 1
                place = _Place(count, _bound_by(node))
                in_loop = isinstance(node, tree.For | tree.While)
                if isinstance(node, tree.For) and not any(
                    isinstance(n, tree.GeneratorExp) for n in tree.walk(node.iter)
                ):
                    # What the loop runs over is made before the loop.
                    before, place, count = (node.iter, place, True), _Place(count + 1, ""), count + 1
            elif isinstance(node, tree.Call) and self._is_followed(node):
                places[id(node)] = place
            inner = (
                child
                for child in tree.children(node)
                if (id(child) in self._around or type(child) not in _EXPRESSIONS)
                and (before is None or child is not before[0])
            )
            pending += reversed([(child, place, in_loop) for child in inner])
            pending += [before] if before is not None else []
        return places

    def _is_followed(self, call: tree.Call) -> bool:
        """Whether a call is one of a tool or of a function of the source."""
        is_function = isinstance(call.func, tree.Name) and call.func.id in self._analysis.facts.functions
        return is_function or tool_name(call.func) is not None


def _bound_by(stmt: tree.Node) -> str:
    """The only name that an assignment binds."""
    if isinstance(stmt, tree.Assign) and len(stmt.targets) == 1 and isinstance(target := stmt.targets[0], tree.Name):
        return target.id
    return ""


def _common(steps: Iterable[Step]) -> Step:
    same = takewhile(lambda numbers: len(set(numbers)) == 1, zip(*steps, strict=False))
    return tuple(numbers[0] for numbers in same)
