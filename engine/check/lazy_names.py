"""Lazy values that a name holds until they are consumed.

``parts = (p.strip() for p in text.split(","))`` is read like a list, if three conditions are true: the name is consumed exactly
once, later in the same block, and nothing that the lazy value reads changes in between. If making the values has effects, nothing
else in between may have effects either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from albert_tools.engine.check.facts import (
    BIND_LOCALS,
    BINDING,
    Facts,
    bindings,
    called_name,
    tool_name,
)
from albert_tools.engine.check.written import written
from albert_tools.grammar import tree

#: The most statements between a lazy value and its use. A reader can't keep more in mind, and each is searched for changes.
MAX_BETWEEN = 30
#: The most lazy values that read each other. CPython makes each value by a recursion through all of them.
MAX_CHAIN = 10
#: Built-ins whose calls have effects.
_EFFECTS = frozenset({"print", "next"})


def lazy_names(
    facts: Facts, lazy: Callable[[Facts, tree.Node], bool], consumed: Callable[[Facts, tree.Node], bool]
) -> dict[int, tree.Expr]:
    """The lazy values that are consumed by name, by id of the name that consumes them, in their order in the source."""
    made = [
        (a, a.targets[0])
        for a in facts.every(tree.Assign)
        if len(a.targets) == 1 and isinstance(a.targets[0], tree.Name) and lazy(facts, a.value)
    ]
    if not made:
        return {}
    uses: defaultdict[tuple[int, str], list[tree.Name]] = defaultdict(list)
    for name in facts.every(tree.Name):
        uses[id(facts.function_of(name)), name.id].append(name)
    bound = Counter((id(facts.function_of(node)), b.name) for node in facts.every(*BINDING) for b in bindings(node))
    acting = _acting_functions(facts)
    places = {
        id(stmt): (block, i)
        for node in facts.nodes
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), tuple)
        for i, stmt in enumerate(block)
    }
    lazy_values: dict[int, tree.Expr] = {}
    # By function and name: what a lazy value reads, and how many lazy values it is made of.
    reads: dict[tuple[int, str], frozenset[str]] = {}
    chains: dict[tuple[int, str], int] = {}
    for assign, target in sorted(made, key=lambda pair: pair[1].span):
        function = facts.function_of(assign)
        key = id(function), target.id
        if function is None or bound[key] != 1 or len(uses[key]) != 2 or target.id in facts.scopes.captured:
            continue
        use = next(name for name in uses[key] if name is not target)
        between = _between(facts, assign, use, places)
        if between is None or not consumed(facts, use):
            continue
        names = _names_read(assign.value) | facts.captured_through(assign.value)
        # If it reads another lazy name, that name's values are made later, too.
        inner = [k for name in names if (k := (key[0], name)) in reads]
        names = names.union(*(reads[k] for k in inner))
        acts = _acts(assign.value, acting)
        chain = 1 + max((chains[k] for k in inner), default=0)
        if chain > MAX_CHAIN:
            continue
        if not any(_changes(facts, part, names) or (acts and _acts(part, acting)) for part in between):
            lazy_values[id(use)] = assign.value
            reads[key], chains[key] = names, chain
    return lazy_values


def _between(
    facts: Facts, assign: tree.Assign, use: tree.Name, places: dict[int, tuple[tuple[tree.Node, ...], int]]
) -> list[tree.Node] | None:
    """What runs between an assignment and the use of its name. None if the use is not soon after in the same block, or not once."""
    above = facts.parent(assign)
    if above is None:
        return None
    statement: tree.Node = use
    while (holder := facts.parent(statement)) is not above:
        match holder:
            case None | tree.Lambda() | tree.Call(func=tree.Name(id="parallel")):
                return None
            case tree.For() | tree.While() | tree.If() | tree.Try() | tree.Match() if not _in_header(holder, statement):
                return None
            case tree.Comprehension() if holder.iter is not statement:
                return None
            case tree.ListComp() | tree.SetComp() | tree.DictComp() | tree.GeneratorExp():
                if holder.generators[0] is not statement:
                    return None
        statement = holder
    block, first = places[id(assign)]
    # The use may be in the header of the block, above the assignment.
    other, last = places.get(id(statement), ((), 0))
    if other is not block or not first < last <= first + MAX_BETWEEN:
        return None
    header = [child for child in tree.children(statement) if _in_header(statement, child)]
    return [*block[first + 1 : last], *header]


def _in_header(statement: tree.Node, child: tree.Node) -> bool:
    """Whether a part of a statement runs once, before the blocks of the statement."""
    match statement:
        case tree.For():
            return child is statement.iter
        case tree.If():
            return child is statement.test
        case tree.Match():
            return child is statement.subject
        case tree.Try() | tree.While():
            return False  # the test of a `while` runs in each round
    return True


def _names_read(value: tree.Expr) -> frozenset[str]:
    nodes = list(tree.walk(value))
    own = {b.name for n in nodes if isinstance(n, tree.Comprehension | tree.Param) for b in bindings(n)}
    return frozenset(n.id for n in nodes if isinstance(n, tree.Name)) - own


def _changes(facts: Facts, part: tree.Node, names: frozenset[str]) -> bool:
    """Whether a part assigns one of the names, changes its container, or passes it to a helper."""
    for node in tree.walk(part):
        if isinstance(node, BIND_LOCALS) and any(b.name in names for b in bindings(node)):
            return True
        if isinstance(node, tree.Name) and not names.isdisjoint(facts.captured_through(node)):
            return True
        changed: list[tree.Expr] = written(facts, node)
        if isinstance(node, tree.Call) and called_name(node) in facts.functions:
            changed = [*node.args, *(k.value for k in node.keywords)]
        if any(isinstance(n, tree.Name) and n.id in names for c in changed for n in tree.walk(c)):
            return True
    return False


def _acting_functions(facts: Facts) -> frozenset[str]:
    """The functions whose calls have effects, and the built-ins."""
    direct = {f.name for node, _ in facts.tool_calls if (f := facts.function_of(node))}
    direct |= {f.name for node in facts.every(tree.Name) if node.id in _EFFECTS and (f := facts.function_of(node))}
    return _EFFECTS.union(facts.tables, (f for f in facts.functions if f in direct or facts.reaches(f) & direct))


def _acts(part: tree.Node, acting: frozenset[str]) -> bool:
    return any(
        (isinstance(n, tree.Name) and n.id in acting) or (isinstance(n, tree.Call) and tool_name(n.func) is not None)
        for n in tree.walk(part)
    )
