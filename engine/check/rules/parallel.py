"""`parallel` gives what the same calls one after the other would give.

``parallel(f(x) for x in xs)`` is ``list(f(x) for x in xs)``, and ``parallel(a(), b())`` is ``(a(), b())``. For that
to hold whatever order the calls end in, a body and every helper it reaches changes only containers it created
itself, and captures no walrus target. It is syntax, not a value: it stands in call position only.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, bindings, bound_names, locals_of, tool_name
from albert_tools.engine.check.rule import error
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic

#: Façade functions that change an argument in place.
MUTATING_FACADES = frozenset(
    """heapq.heappush heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop bisect.insort
    bisect.insort_left bisect.insort_right csv.writer csv.DictWriter""".split()
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Each `parallel`: its form, and what its bodies change."""
    for node in facts.nodes:
        if isinstance(node, tree.Name) and node.id == "parallel":
            above = facts.parent(node)
            if not (isinstance(above, tree.Call) and above.func is node):
                yield error("parallel", node, "'parallel' is syntax: it stands only where it is called")
        if not (isinstance(node, tree.Call) and isinstance(node.func, tree.Name) and node.func.id == "parallel"):
            continue
        if node.keywords or any(isinstance(a, tree.Starred) for a in node.args) or not node.args:
            yield error(
                "parallel",
                node,
                "parallel takes one generator expression, or calls side by side",
                hint="parallel(tools.read_file(path=p) for p in paths), or parallel(a(), b())",
            )
            continue
        for body, own in bodies(node):
            yield from _body(facts, body, own)
            if len(node.args) > 1 and isinstance(body, tree.GeneratorExp):
                yield error("parallel", body, "one generator expression, alone, or calls side by side")
        if len(node.args) == 1 and isinstance(node.args[0], tree.GeneratorExp):
            yield from _header(node.args[0])
        elif len(node.args) == 1 and isinstance(node.args[0], tree.ListComp | tree.Name | tree.Attribute):
            yield error(
                "parallel",
                node.args[0],
                "parallel needs to see the calls",
                hint="write the generator expression itself: parallel(tools.read_file(path=p) for p in paths)",
            )


def bodies(call: tree.Call) -> list[tuple[tree.Expr, frozenset[str]]]:
    """Each body with the names that are its own (the comprehension's variables)."""
    if len(call.args) == 1 and isinstance(call.args[0], tree.GeneratorExp):
        generator = call.args[0]
        own = frozenset(n.id for g in generator.generators for n in bound_names(g.target))
        return [(generator.elt, own)]
    return [(a, frozenset()) for a in call.args]


def _header(generator: tree.GeneratorExp) -> Iterator[Diagnostic]:
    parts: list[tree.Expr] = []
    for i, g in enumerate(generator.generators):
        parts += g.ifs if i == 0 else [g.iter, *g.ifs]
    for part in parts:
        for node in tree.walk(part):
            if isinstance(node, tree.Call) and tool_name(node.func) is not None:
                yield error(
                    "parallel",
                    node,
                    "only the body of a parallel may call tools, not its conditions",
                    hint="choose the items in a list first",
                )


def _body(facts: Facts, body: tree.Expr, own: frozenset[str]) -> Iterator[Diagnostic]:
    reached: set[str] = set()
    for node in tree.walk(body):
        if isinstance(node, tree.NamedExpr):
            yield error("parallel", node, "a walrus in a parallel body would be shared between the bodies")
        if isinstance(node, tree.Name) and node.id in facts.functions:
            reached |= {node.id} | facts.reaches(node.id)
        # In the expression itself nothing is created that has a name, so nothing named may be changed.
        yield from _changes(facts, node, frozenset())
    for name in sorted(reached):
        helper = facts.functions[name]
        fresh = _fresh(facts, helper)
        for stmt in helper.body:
            for node in tree.walk(stmt):
                yield from _changes(facts, node, fresh)


def _fresh(facts: Facts, helper: tree.FunctionDef) -> frozenset[str]:
    """The locals of a helper that only ever hold containers made in it."""
    candidates = locals_of(helper) - {p.name for p in helper.params}
    spoiled: set[str] = set()
    for stmt in helper.body:
        for node in tree.walk(stmt):
            if isinstance(node, tree.Assign):
                for target in node.targets:
                    plain = isinstance(target, tree.Name) and len(node.targets) == 1
                    if not (plain and _creates(facts, node.value)):
                        spoiled |= {n.id for n in bound_names(target)}
            elif isinstance(node, tree.AnnAssign):
                if node.value is not None and not _creates(facts, node.value):
                    spoiled.add(node.target.id)
            elif not isinstance(node, tree.AugAssign | tree.Param | tree.Comprehension):
                spoiled |= {b.name for b in bindings(node)}
    return frozenset(candidates - spoiled)


#: Built-ins and façades that return a new container.
_CREATORS = frozenset({"list", "dict", "set", "sorted"})
_FACADE_CREATORS = frozenset(
    {"collections.Counter", "collections.OrderedDict", "collections.defaultdict", "collections.deque", "io.StringIO"}
)


def _creates(facts: Facts, node: tree.Expr) -> bool:
    match node:
        case tree.List() | tree.Dict() | tree.Set() | tree.ListComp() | tree.DictComp() | tree.SetComp():
            return True
        case tree.Constant() | tree.Strings() | tree.Tuple() | tree.BinOp() | tree.Compare():
            return True
        case tree.Call(func=tree.Name(id=name)):
            return name in _CREATORS or name in ("str", "int", "float", "len", "sum", "tuple")
        case tree.Call(func=tree.Attribute(attr="split" | "splitlines" | "copy" | "findall")):
            return True
        case tree.Call(func=func):
            named = facts.facade(func)
            return named is not None and f"{named[0]}.{named[1]}" in _FACADE_CREATORS
    return False


def _changes(facts: Facts, node: tree.Node, fresh: frozenset[str]) -> Iterator[Diagnostic]:
    changed: tree.Expr | None = None
    match node:
        case tree.Call(func=tree.Attribute(attr=attr, value=value)) if attr in vocabulary.MUTATORS:
            if facts.facade(node.func) is None:
                changed = value
        case tree.Call(func=func, args=args) if args:
            named = facts.facade(func)
            if named is not None and f"{named[0]}.{named[1]}" in MUTATING_FACADES:
                changed = args[0]
            elif (
                isinstance(func, tree.Name)
                and func.id == "next"
                and not isinstance(args[0], tree.Call | tree.GeneratorExp)
            ):
                changed = args[0]
        case tree.AugAssign(target=target):
            changed = target if not isinstance(target, tree.Name) or target.id not in fresh else None
            if isinstance(target, tree.Name):
                changed = None if _number_like(node) else changed
        case tree.Assign(targets=found):
            changed = next((t for t in found if isinstance(t, tree.Subscript)), None)
        case tree.Delete(targets=found):
            changed = found[0]
    if changed is None:
        return
    # What is written to is named by itself: an item of a fresh container may be somebody else's.
    holder = changed.value if isinstance(changed, tree.Subscript) else changed
    if isinstance(holder, tree.Name) and holder.id in fresh:
        return
    if isinstance(holder, tree.Call | tree.List | tree.Dict | tree.Set) and _creates(facts, holder):
        return
    yield error(
        "parallel-change",
        node,
        "inside parallel only containers that the body created itself may be changed",
        hint="return the value from the body, and put the results together after parallel(…)",
    )


def _number_like(node: tree.AugAssign) -> bool:
    """``n += 1`` on a name binds a number anew and changes nothing shared."""
    return isinstance(node.value, tree.Constant | tree.Strings) or node.op != "+"
