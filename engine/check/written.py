"""Which containers a node changes, as far as the source shows this."""

from __future__ import annotations

from albert_tools.engine.check.facts import Facts, called_name, targets, tool_name
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree

#: Façade functions that change an argument in place.
MUTATING_FACADES = frozenset(
    """heapq.heappush heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop bisect.insort
    bisect.insort_left bisect.insort_right csv.writer csv.DictWriter""".split()
)


def written(facts: Facts, node: tree.Node) -> list[tree.Expr]:
    """The expressions for the containers that a node changes."""
    match node:
        case tree.Call(func=tree.Attribute(attr=attr, value=value)) if attr in vocabulary.MUTATORS:
            # A tool may have the name of such a method.
            return [] if facts.facade(node.func) is not None or tool_name(node.func) is not None else [value]
        case tree.Name() | tree.Attribute() if _mutating(facts, node) and not facts.is_called(node):
            return [node]  # passed as a callback: map(heapq.heappop, heaps)
        case tree.Call(func=func, args=args) if args:
            if _mutating(facts, func):
                return [args[0]]
            stored = not isinstance(args[0], tree.Call | tree.GeneratorExp)
            return [args[0]] if called_name(node) == "next" and stored else []
        case tree.AugAssign(target=tree.Name() as name):
            return [] if only_rebinds(node) else [name]
    return [target.value for target in targets(node) if isinstance(target, tree.Subscript)]


def _mutating(facts: Facts, func: tree.Expr) -> bool:
    named = facts.facade(func)
    return named is not None and f"{named[0]}.{named[1]}" in MUTATING_FACADES


#: Operators that never change a container in place.
_NEVER_IN_PLACE = frozenset({"/", "//", "%", "**", "<<", ">>", "@"})


def only_rebinds(node: tree.AugAssign) -> bool:
    """Whether the statement only binds a name, as in ``n += 1``. In contrast, ``xs *= 2`` changes the object."""
    if node.op in _NEVER_IN_PLACE:
        return True
    return node.op != "*" and isinstance(node.value, tree.Constant)
