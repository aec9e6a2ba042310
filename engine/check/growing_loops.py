"""Loops whose container may grow while they run. Python then goes on to what was added, so such a loop may never end.

The rounds over what was added are counted when the program runs. Which loops are counted is only a question of speed: a loop is
left out if its container is certainly new, or if nothing that runs in the loop can make a list or a buffer larger.
"""

from __future__ import annotations

from albert_tools.engine.check.facts import COMPREHENSIONS, Facts, targets, tool_name, walk_own
from albert_tools.engine.check.rules.lazy_values import consumed_names
from albert_tools.engine.check.written import MUTATING_FACADES, only_rebinds
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Span

#: Built-ins that return a new container, or read a list from its end.
_NEW = frozenset("range sorted list tuple set frozenset dict reversed str bytes".split())
#: Built-ins that read their arguments step by step, and the first argument that they read.
_STEP_BY_STEP = {"enumerate": 0, "zip": 0, "iter": 0, "map": 1, "filter": 1}
#: Methods that return what a container holds.
_INNER = frozenset("get pop popleft popitem setdefault".split())
#: Modules whose functions return new values.
_NEW_FROM = frozenset("base64 hashlib html json math posixpath re shlex string textwrap urllib.parse datetime".split())
_GROWERS = vocabulary.GROWERS | {"writerow", "writerows", "writeheader"}


def growing_iterables(facts: Facts) -> frozenset[Span]:
    """The places of the expressions that loops run over and that may grow meanwhile."""
    loops: list[tree.For | tree.Comprehension] = [*facts.every(tree.For, tree.Comprehension)]
    growing = _Growth(facts)
    if not loops or not growing.anywhere:
        return frozenset()
    named = consumed_names(facts)
    spans: set[Span] = set()
    for loop in loops:
        sources = _sources(facts, named, loop.iter)
        region = _region(facts, named, loop) if sources else None
        if sources and (growing.within(region) if region is not None else growing.anywhere):
            spans.update(source.span for source in sources)
    return frozenset(spans)


def _region(facts: Facts, named: dict[int, tree.Expr], loop: tree.For | tree.Comprehension) -> tree.Node | None:
    """What can run while a loop runs: its statement. If a name holds what it makes for later: None, anything."""
    if isinstance(loop, tree.For):
        return None if id(loop.iter) in named else loop
    made = facts.parent(loop)
    if any(value is made for value in named.values()):
        return None
    return next(a for a in facts.ancestors(loop) if not isinstance(a, _EXPRESSIONS))


_EXPRESSIONS = (*tree.Expr.__args__, tree.Keyword, tree.Comprehension, tree.Field, tree.FText, tree.Param)


def _sources(facts: Facts, named: dict[int, tree.Expr], node: tree.Expr) -> list[tree.Expr]:
    """The expressions in an iterable that may be a container which something else can change."""
    node = named.get(id(node), node)
    if isinstance(node, tree.Constant | tree.Strings | tree.List | tree.Tuple | tree.Set | tree.Dict | tree.BinOp):
        return []
    if isinstance(node, COMPREHENSIONS):
        return []  # its own loops are counted
    match node:
        case tree.Subscript(slice=tree.Slice()):
            return []
        case tree.Call(func=tree.Name(id=name)) if name in _STEP_BY_STEP:
            return [s for a in node.args[_STEP_BY_STEP[name] :] for s in _sources(facts, named, a)]
        case tree.Call(func=tree.Name(id=name)) if name in _NEW:
            return []
        case tree.Call(func=func) if tool_name(func) is not None:
            return []
        case tree.Call(func=tree.Attribute(attr=attr) as func):
            module = (facts.facade(func) or (None, ""))[0]
            return [] if (module in _NEW_FROM if module else attr not in _INNER) else [node]
    return [node.value if isinstance(node, tree.Starred) else node]


class _Growth:
    """Which parts of a source can make a list or a buffer larger."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        #: A subscript can be a slice without a colon.
        self._has_slices = any(name.id == "slice" for name in facts.every(tree.Name))
        direct = {name for name, f in facts.functions.items() if any(map(self._grows, facts.own_nodes(f)))}
        self._names = {*facts.tables, *(f for f in facts.functions if direct & {f, *facts.reaches(f)})}
        self._known: dict[int, bool] = {}
        #: Whether any part can.
        self.anywhere = bool(direct) or any(map(self._grows, facts.nodes))

    def within(self, part: tree.Node) -> bool:
        """Whether a part can, itself or through the functions that it names."""
        if id(part) not in self._known:
            self._known[id(part)] = any(
                self._grows(node) or (isinstance(node, tree.Name) and node.id in self._names) for node in walk_own(part)
            )
        return self._known[id(part)]

    def _grows(self, node: tree.Node) -> bool:
        match node:
            case tree.Call(func=tree.Attribute(attr=attr)) if attr in _GROWERS:
                return True
            case tree.AugAssign():
                return not only_rebinds(node)
            case tree.Assign() | tree.For() | tree.Comprehension():
                return any(
                    isinstance(t, tree.Subscript) and (self._has_slices or isinstance(t.slice, tree.Slice))
                    for t in targets(node)
                )
            case tree.Name() | tree.Attribute():
                named = self._facts.facade(node)
                return named is not None and ".".join(named) in MUTATING_FACADES
        return False
