"""`parallel` returns the same result as a sequence of the same calls.

``parallel(f(x) for x in xs)`` equals ``list(f(x) for x in xs)``, and ``parallel(a(), b())`` equals ``(a(), b())``. This must be
true for every order in which the calls end. So a body may only change containers that it created, and may not bind names with a
walrus. The same restriction applies to every helper that the body can reach. `parallel` is syntax, not a value: it can only be
called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, bindings, called_name, tool_name
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.written import written
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "parallel",
        "A `parallel` has a form that the language does not have.",
        "The checker must see the calls that may overlap.",
        example=in_tool("jobs = [tools.read_file(path=p) for p in path.split()]\nreturn parallel(jobs)"),
        rewrite=in_tool("return parallel(tools.read_file(path=p) for p in path.split())"),
    ),
    FindingCode(
        "parallel-change",
        "The body of a `parallel` changes a container that it did not create.",
        "The result would depend on which call ends first.",
        example=in_tool(
            "texts = []\nparallel(texts.append(tools.read_file(path=p)) for p in path.split())\nreturn texts"
        ),
        rewrite=in_tool("return parallel(tools.read_file(path=p) for p in path.split())"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the form of each `parallel`, and the changes by its bodies and by the helpers that they can reach."""
    reached: set[str] = set()
    for use in facts.every(tree.Name):
        if use.id == "parallel" and not facts.is_called(use):
            yield error(
                "parallel",
                use,
                "'parallel' is syntax, not a value: it must be called",
                hint="write parallel(tools.read_file(path=p) for p in paths)",
            )
    for node in facts.every(tree.Call):
        if called_name(node) != "parallel":
            continue
        if node.keywords or any(isinstance(a, tree.Starred) for a in node.args) or not node.args:
            yield error(
                "parallel",
                node,
                "parallel takes one generator expression, or calls side by side",
                hint="parallel(tools.read_file(path=p) for p in paths), or parallel(a(), b())",
            )
            continue
        for body in bodies(node):
            yield from _part(facts, body, reached)
            if len(node.args) > 1 and isinstance(body, tree.GeneratorExp):
                yield error(
                    "parallel",
                    body,
                    "parallel takes one generator expression alone, or calls side by side",
                    hint="write two calls of parallel, one for each",
                )
        if len(node.args) == 1 and isinstance(node.args[0], tree.GeneratorExp):
            yield from _header(facts, node.args[0], reached)
        elif len(node.args) == 1 and isinstance(node.args[0], tree.ListComp | tree.Name | tree.Attribute):
            yield error(
                "parallel",
                node.args[0],
                "parallel takes the calls themselves, not a list of results",
                hint="write the generator expression itself: parallel(tools.read_file(path=p) for p in paths)",
            )
    for name in sorted(reached):
        yield from _helper(facts, facts.functions[name])


def bodies(call: tree.Call) -> list[tree.Expr]:
    """The expression for each item, or the separate calls."""
    if len(call.args) == 1 and isinstance(call.args[0], tree.GeneratorExp):
        return [call.args[0].elt]
    return list(call.args)


def _header(facts: Facts, generator: tree.GeneratorExp, reached: set[str]) -> Iterator[Diagnostic]:
    """Check the part that selects the items. It runs between bodies, so the same restrictions apply, and it can't call a tool."""
    parts: list[tree.Expr] = []
    for i, g in enumerate(generator.generators):
        parts += g.ifs if i == 0 else [g.iter, *g.ifs]
        yield from _changes(facts, g)
    for part in parts:
        yield from _part(facts, part, reached)
        for node in tree.walk(part):
            if isinstance(node, tree.Call) and (tool_name(node.func) is not None or _reaches_tools(facts, node.func)):
                yield error(
                    "parallel",
                    node,
                    "only the body of a parallel may call tools, not the part that chooses its items",
                    hint="choose the items in a list first",
                )


def _reaches_tools(facts: Facts, func: tree.Expr) -> bool:
    if not isinstance(func, tree.Name) or func.id not in facts.functions:
        return False
    entered = {func.id} | facts.reaches(func.id)
    return any((f := facts.function_of(call)) is not None and f.name in entered for call, _ in facts.tool_calls)


def _part(facts: Facts, part: tree.Expr, reached: set[str]) -> Iterator[Diagnostic]:
    """Check a body, or a part of the header that runs between bodies."""
    for node in tree.walk(part):
        if isinstance(node, tree.NamedExpr):
            yield error(
                "parallel",
                node,
                "a walrus in a parallel body would be shared between the bodies",
                hint="put the body into a helper, and assign there",
            )
        yield from _table(facts, node)
        if isinstance(node, tree.Name) and node.id in facts.functions and node.id not in reached:
            reached |= {node.id} | facts.reaches(node.id)
        # The expression itself creates no named container, so it must not change any named container.
        yield from _changes(facts, node)


def _table(facts: Facts, node: tree.Node) -> Iterator[Diagnostic]:
    if isinstance(node, tree.Call) and facts.table_of(node.func) is not None:
        yield error(
            "parallel",
            node,
            "inside parallel a function can't be chosen from a dict",
            hint="choose it with if, or with match",
        )


def _helper(facts: Facts, helper: tree.FunctionDef) -> Iterator[Diagnostic]:
    fresh = _fresh(facts, helper)
    owned = _owned(facts, helper, fresh)
    for node in facts.own_nodes(helper):
        yield from _table(facts, node)
        yield from _changes(facts, node, fresh, owned)
        if isinstance(node, tree.Nonlocal):
            yield error(
                "parallel-change",
                node,
                "inside parallel a variable of another function can't be assigned",
                hint="return the value, and put the results together after parallel(…)",
            )


def _fresh(facts: Facts, helper: tree.FunctionDef) -> frozenset[str]:
    """The locals of a helper that only refer to containers created by the helper."""
    candidates = facts.locals_in(helper) - {p.name for p in helper.params}
    spoiled = set(facts.scopes.changed_inside)
    for node in facts.own_nodes(helper):
        match node:
            case tree.Assign(targets=(target,), value=value):
                pairs = _pairs(target, value)
                created = Counter(t.id for t, given in pairs if isinstance(t, tree.Name) and _creates(facts, given))
                spoiled |= set(Counter(b.name for b in bindings(node)) - created)
            case tree.AnnAssign(value=value) if value is None or _creates(facts, value):
                pass
            case tree.AugAssign():
                pass
            case _:
                # A lambda's parameter or a comprehension's variable may have the same name and refer to any value.
                spoiled |= {b.name for b in bindings(node)}
    return frozenset(candidates - spoiled)


def _pairs(target: tree.Expr, value: tree.Expr) -> list[tuple[tree.Expr, tree.Expr]]:
    """Each target with its value: ``a, b = [], {}`` has two."""
    match target, value:
        case tree.Tuple(elts=targets), tree.Tuple(elts=values) if len(targets) == len(values) and not any(
            isinstance(e, tree.Starred) for e in (*targets, *values)
        ):
            return list(zip(targets, values, strict=True))
    return [(target, value)]


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
        case tree.Call() if (named := facts.facade(node.func)) is not None:
            return f"{named[0]}.{named[1]}" in _FACADE_CREATORS
        case tree.Call(func=tree.Name(id=name)):
            return name in _CREATORS or name in ("str", "int", "float", "len", "sum", "tuple")
        case tree.Call(func=func) if tool_name(func) is not None:
            return True  # a result is a copy
        case tree.Call(func=tree.Attribute(attr=attr)):
            return attr in vocabulary.TEXT_METHODS or attr in ("copy", "findall")
    return False


def _new(facts: Facts, node: tree.Expr) -> bool:
    """Whether a value and all its parts are created here or are immutable."""
    match node:
        case tree.List() | tree.Tuple() | tree.Set():
            return all(_new(facts, e) for e in node.elts)
        case tree.Dict():
            return all(k is not None for k in node.keys) and all(_new(facts, v) for v in node.values)
        case tree.Constant() | tree.Strings() | tree.Compare():
            return True
        case tree.Call() if (named := facts.facade(node.func)) is not None:
            return f"{named[0]}.{named[1]}" in _FACADE_CREATORS and len(node.args) < 2
        case tree.Call(func=tree.Name(id=name)) if not node.args:
            return name in _CREATORS
        case tree.Call(func=tree.Name(id=name)):
            return name in ("str", "int", "float", "len", "sum", "bool", "round", "abs", "range")
    return False


def _owned(facts: Facts, helper: tree.FunctionDef, fresh: frozenset[str]) -> frozenset[str]:
    """The fresh names whose items are also created by the helper, as in ``groups.setdefault(k, []).append(x)``.

    These containers are empty at first, and every value stored in them is new.
    """
    spoiled: set[str] = set()
    for node in tree.walk(*helper.body):
        match node:
            case tree.Assign(targets=all_targets, value=value):
                for t, given in (pair for target in all_targets for pair in _pairs(target, value)):
                    if isinstance(t, tree.Name) and not _new(facts, given):
                        spoiled.add(t.id)
                    for s in tree.walk(t):
                        if isinstance(s, tree.Subscript) and not _new(facts, given):
                            spoiled |= _base(s)
            case tree.AnnAssign(target=target, value=value) if value is not None and not _new(facts, value):
                spoiled.add(target.id)
            case tree.AugAssign(target=tree.Name(id=name)):
                spoiled.add(name)
            case tree.Call(func=tree.Attribute(attr=attr, value=tree.Name(id=name))) if attr in vocabulary.GROWERS:
                if not (attr == "setdefault" and len(node.args) == 2 and _new(facts, node.args[1])):
                    spoiled.add(name)
    return fresh - spoiled


def _base(node: tree.Expr) -> set[str]:
    while isinstance(node, tree.Subscript):
        node = node.value
    return {node.id} if isinstance(node, tree.Name) else set()


def _item_of(node: tree.Expr) -> str | None:
    """The name of the container if an expression is one of its items: ``groups[k]``, ``groups.setdefault(k, [])``."""
    match node:
        case tree.Subscript(value=tree.Name(id=name)):
            return name
        case tree.Call(func=tree.Attribute(attr="setdefault", value=tree.Name(id=name))):
            return name
    return None


def _changes(
    facts: Facts, node: tree.Node, fresh: frozenset[str] = frozenset(), owned: frozenset[str] = frozenset()
) -> Iterator[Diagnostic]:
    for container in written(facts, node):
        if isinstance(container, tree.Name) and container.id in fresh:
            continue
        # An item of a fresh container may come from outside, unless the helper creates all items.
        if _item_of(container) in owned:
            continue
        if not isinstance(container, tree.Name) and _creates(facts, container):
            continue
        yield error(
            "parallel-change",
            node,
            "inside parallel only containers that the body created itself may be changed",
            hint="return the value from the body, and put the results together after parallel(…)",
        )
