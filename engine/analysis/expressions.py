"""The abstract values of expressions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.assignments import assign
from albert_tools.engine.analysis.builtin_calls import call_builtin
from albert_tools.engine.analysis.calls import (
    Arguments,
    Invocation,
    arguments_of,
    call_back,
    call_helper,
    ends_early,
    is_lazy,
    name_of,
)
from albert_tools.engine.analysis.containers import (
    anything,
    booleans,
    concern,
    is_plain_list,
    merge,
    new_dict,
    new_list,
    new_tuple,
    only_site,
    read_buffers,
    read_keys,
    store,
    text_of,
)
from albert_tools.engine.analysis.facade_calls import call_facade
from albert_tools.engine.analysis.method_calls import call_method
from albert_tools.engine.analysis.operators import are_numbers, binary, formatted_text, unary
from albert_tools.engine.analysis.paths_below import from_place, last_name
from albert_tools.engine.analysis.recorded_calls import call_tool
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import (
    KEYS,
    NEVER,
    NO_ORIGINS,
    NONE,
    REST,
    AbstractValue,
    Origins,
    constant,
    join,
)
from albert_tools.engine.check.facts import tool_name
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree

#: The most items of a literal whose places are told apart.
_MAX_PLACES = 24
#: The functions and methods that choose items of a list, or their order.
_PICKING = frozenset(
    "heappop islice max min nlargest nsmallest pop popleft reverse reversed rotate sort sorted".split()
)
#: The operators that compare a constant on the left as if it stood on the right.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def evaluate(a: Analysis, node: tree.Expr, control: Origins) -> AbstractValue:
    """The value of an expression that is evaluated if `control` lets it."""
    value = _EVALUATE[type(node)](a, node, control)
    if a.buffers and value.sites and not a.buffers.isdisjoint(value.sites):
        # Whatever reads a buffer decides where the next reader starts.
        concern(a, value, control)
        a.note_buffer(node)
    return value


def _constant(a: Analysis, node: tree.Constant, control: Origins) -> AbstractValue:
    return constant(node.value)


def _strings(a: Analysis, node: tree.Strings, control: Origins) -> AbstractValue:
    return formatted_text(a, node, control) if node.constant is None else constant(node.constant)


def _name(a: Analysis, node: tree.Name, control: Origins) -> AbstractValue:
    held = (a.frame.instance, node.id)
    if held in a.held:
        a.add(a.exits, held, control)
    entry = a.facts.entry(node)
    if entry is not None and entry.kind == "constant":
        a.note_use(node)
        return _facade_constant(*a.facts.imported[node.id])
    return a.lookup(node.id)


def _sequence(a: Analysis, node: tree.List | tree.Tuple | tree.Set, control: Origins) -> AbstractValue:
    starred = [x for x in node.elts if isinstance(x, tree.Starred)]
    if not starred and len(node.elts) <= _MAX_PLACES and not isinstance(node, tree.Set):
        return new_tuple(a, node, [a.evaluate(x, control) for x in node.elts])
    made = new_list(a, node)
    site = only_site(made)
    shape = NO_ORIGINS
    for x in node.elts:
        if isinstance(x, tree.Starred):
            value = a.evaluate(x.value, control)
            shape |= a.heap.condition(value) if isinstance(node, tree.Set) else a.heap.shape(value)
            a.heap.put(site, REST, a.heap.items(value).under(a.heap.shape(value)))
            a.changed_by(site, a.remember(x, value))
        else:
            value = a.evaluate(x, control)
            if isinstance(node, tree.Set):
                shape |= a.heap.condition(value)
            a.heap.put(site, REST, value)
    a.sized(site, "number", len(node.elts) - len(starred))
    return made.under(shape)


def _dict(a: Analysis, node: tree.Dict, control: Origins) -> AbstractValue:
    made = new_dict(a, node)
    site = only_site(made)
    shape = NO_ORIGINS
    for key, x in zip(node.keys, node.values, strict=True):
        value = a.evaluate(x, control)
        if key is None:
            merge(a, site, value)
            shape |= a.heap.shape(value)
            a.changed_by(site, a.remember(x, value))
        else:
            named = a.evaluate(key, control)
            shape |= a.heap.condition(named)
            a.current = key
            store(a, made, named, value)
    a.sized(site, "number", 0)
    return made.under(shape)


def _comprehension(
    a: Analysis, node: tree.ListComp | tree.SetComp | tree.GeneratorExp | tree.DictComp, control: Origins
) -> AbstractValue:
    outer = a.frame.loops
    inside = control
    shape = NO_ORIGINS
    counted = isinstance(node, tree.ListComp | tree.GeneratorExp)
    made = new_dict(a, node) if isinstance(node, tree.DictComp) else new_list(a, node)
    with a.scope():
        for generator in node.generators:
            iterated = a.evaluate(generator.iter, inside)
            shape |= a.heap.size(iterated)
            counted = counted and not generator.ifs and a.heap.is_counted(iterated)
            loop = (a.frame.instance, id(generator))
            a.grow(a.iterated, loop, iterated)
            a.frame.loops = (*a.frame.loops, loop)
            assign(a, generator.target, a.heap.items(iterated), NO_ORIGINS)
            inside = control | shape
            for test in generator.ifs:
                shape |= a.heap.condition(a.evaluate(test, inside))
                inside = control | shape
        if isinstance(node, tree.DictComp):
            key = a.evaluate(node.key, inside)
            store(a, made, key, a.evaluate(node.value, inside).under(shape))
            shape |= a.heap.condition(key)
        else:
            value = a.evaluate(node.elt, inside)
            a.heap.put(only_site(made), REST, value.under(shape))
            if isinstance(node, tree.SetComp):
                shape |= a.heap.condition(value)
    a.heap.count(only_site(made), counted)
    a.sized(only_site(made), "loops", a.frame.loops[len(outer) :])
    a.frame.loops = outer
    return made.under(shape)


def _choice(a: Analysis, node: tree.IfExp, control: Origins) -> AbstractValue:
    test = a.heap.condition(a.evaluate(node.test, control))
    return (a.evaluate(node.body, control | test) | a.evaluate(node.orelse, control | test)).under(test)


def _logical(a: Analysis, node: tree.BoolOp, control: Origins) -> AbstractValue:
    found, decided = NEVER, NO_ORIGINS
    for x in node.values:
        value = a.evaluate(x, control | decided)
        found = found | value.under(decided)
        decided |= a.heap.condition(value)
    return found.under(decided)


def _compare(a: Analysis, node: tree.Compare, control: Origins) -> AbstractValue:
    found = [a.evaluate(node.left, control)]
    # What compares decides how many items lazy operands make: `in` ends at the first that is equal.
    stopping = a.stopping(node, NO_ORIGINS) if any(is_lazy(a, x) for x in node.comparators) else nullcontext(NO_ORIGINS)
    with stopping as stops:
        for x in node.comparators:
            # Only the first two are always evaluated.
            decided = a.heap.condition(join(found)) if len(found) > 1 else NO_ORIGINS
            if is_lazy(a, x):
                decided |= stops | a.heap.condition(join(found))
            found.append(a.evaluate(x, control | decided))
    return booleans(a, *found, by=_operator(node.ops[0], *found) if len(node.ops) == 1 else "")


def _operator(op: str, left: AbstractValue, right: AbstractValue) -> str:
    """How something is compared with a constant: `200 < x` is `x > 200`, and `in` can ask for an item, a part or a whole."""
    is_first = bool(left.constants()) and not right.constants()
    negation, _, name = op.rpartition(" ")
    if name == "in":
        name = "contained" if is_first else "one of" if right.sites else "part of"
        return f"{negation} {name}".lstrip()
    return _MIRRORED.get(op, op) if is_first else op


def _unary(a: Analysis, node: tree.UnaryOp, control: Origins) -> AbstractValue:
    return unary(a, node, a.evaluate(node.operand, control))


def _binary(a: Analysis, node: tree.BinOp, control: Origins) -> AbstractValue:
    left, right = a.evaluate(node.left, control), a.evaluate(node.right, control)
    if node.op == "%":
        read_keys(a, control, left, right)
    return binary(a, node, left, node.op, right)


def _attribute(a: Analysis, node: tree.Attribute, control: Origins) -> AbstractValue:
    named = a.facts.facade(node)
    if named is not None:
        a.note_use(node)
        return _facade_constant(*named)
    value = a.evaluate(node.value, control)
    if (value is NEVER or not value.sites) and node.attr != "args":
        return text_of(a, value)
    return anything(a, node, value)


def _facade_constant(module: str, name: str) -> AbstractValue:
    if module in ("math", "string", "sys"):
        found: Any = getattr(importlib.import_module(module), name, None)
        if isinstance(found, str | int | float):
            return constant(found)
    return AbstractValue(templates.ANYTHING)


def _subscript(a: Analysis, node: tree.Subscript, control: Origins) -> AbstractValue:
    value = a.evaluate(node.value, control)
    if isinstance(node.slice, tree.Slice):
        bounds = [node.slice.lower, node.slice.upper, node.slice.step]
        given = [a.evaluate(b, control) for b in bounds if b is not None]
        decided = frozenset[str]().union(*(a.heap.condition(g) for g in given))
        found = NEVER
        if value.alternatives:
            # With a step, it is not one piece of the text.
            start = given[0].constants() if len(given) == 1 and node.slice.lower is not None else None
            rest = partial(from_place, start=start[0]) if start is not None and len(start) == 1 else None
            known = templates.pieces(value.alternatives, rest) if node.slice.step is None else templates.ANYTHING
            found = AbstractValue(known, value.data | a.heap.sources(join(given)), value.control)
        if value.sites:
            part = new_list(a, node, "slice", a.heap.values(value))
            a.sized(only_site(part), "length", a.remember(node, value))
            chosen = a.heap.shape(value) | a.picked(node)
            found = found | AbstractValue(data=value.data, control=chosen, sites=part.sites)
        return found.under(decided)
    key = a.evaluate(node.slice, control)
    for site in value.sites:
        default = a.heap.at[site].default
        if default is not None:
            store(a, AbstractValue(sites=frozenset({site})), key, default.under(control | value.origins))
    found = a.heap.item(value, key)
    if value.sites and key.alternatives and are_numbers(a, key) and is_plain_list(a, value) is None:
        found = found.under(a.picked(node))
    path = _split_path(node.value) if key.constants() == [-1] else None
    whole = a.evaluate(path, control) if path is not None else NEVER
    if whole.alternatives and not whole.sites:
        found = found._replace(alternatives=templates.pieces(whole.alternatives, last_name))
    # An object can be a slice.
    return found | anything(a, node, value, key) if key.sites and value is not NEVER else found


def _split_path(node: tree.Expr) -> tree.Expr | None:
    """The path in ``path.split("/")``."""
    match node:
        case tree.Call(
            func=tree.Attribute(value=path, attr="split" | "rsplit"), args=(tree.Strings(constant="/"),), keywords=()
        ):
            return path
    return None


def _walrus(a: Analysis, node: tree.NamedExpr, control: Origins) -> AbstractValue:
    value = a.evaluate(node.value, control)
    a.assign_walrus(node.target.id, value.under(control))
    return value


def _starred(a: Analysis, node: tree.Starred, control: Origins) -> AbstractValue:
    return a.evaluate(node.value, control)


def _lambda(a: Analysis, node: tree.Lambda, control: Origins) -> AbstractValue:
    return NEVER


def _call(a: Analysis, node: tree.Call, control: Origins) -> AbstractValue:
    if not ends_early(a, node):
        return _plain_call(a, node, control)
    with a.stopping(node, control) as decided:
        return _plain_call(a, node, decided)


def _plain_call(a: Analysis, node: tree.Call, control: Origins) -> AbstractValue:
    a.note_use(node.func.value if isinstance(node.func, tree.Subscript) else node.func)
    name = tool_name(node.func)
    if name is not None:
        return call_tool(a, node, name, arguments_of(a, node, control), control)
    arguments = arguments_of(a, node, control)
    if isinstance(node.func, tree.Name) and node.func.id in a.facts.functions:
        return call_helper(a, node, node.func.id, arguments, control)
    table = a.facts.table_of(node.func)
    if table is not None and isinstance(node.func, tree.Subscript):
        return _chosen(a, node, table, a.evaluate(node.func.slice, control), arguments, control)
    call = Invocation(node, arguments, control)
    read_buffers(a, control, *arguments.all)
    named = a.facts.facade(node.func)
    box = NEVER
    if named is not None:
        result = call_facade(a, *named, call)
    elif isinstance(node.func, tree.Name):
        result = _call_name(a, node.func.id, call)
    elif not isinstance(node.func, tree.Attribute):
        result = anything(a, node, a.evaluate(node.func, control), *arguments.all)
    elif isinstance(node.func.value, tree.Name) and node.func.value.id in vocabulary.PLAIN_TYPES:
        result = _call_of_type(a, node.func.value.id, node.func.attr, call)
    else:
        box = a.evaluate(node.func.value, control)
        result = call_method(a, node.func.attr, box, call)
    if name_of(node) in _PICKING and any(v.sites for v in (box, *arguments.all)):
        result = result.under(a.picked(node))
        if box is not NEVER:
            concern(a, box, a.picked(node))
    return result if arguments.more is NEVER else _unpacked(a, call, box, result)


def _chosen(
    a: Analysis, node: tree.Call, table: tree.Dict, key: AbstractValue, arguments: Arguments, control: Origins
) -> AbstractValue:
    """The result of a function that a dictionary holds: of any of them."""
    decided = a.heap.condition(key)
    # The calls of a lambda are recorded once, so their number is not known if it is called from several places.
    is_only_place = a.facts.table_calls[id(table)] == 1
    times = new_tuple(a, node, [NEVER], "once") if is_only_place else AbstractValue(templates.ANYTHING)
    found = join(call_back(a, node, f, arguments.positional, control | decided, times) for f in table.values)
    return found.under(decided)


def _unpacked(a: Analysis, call: Invocation, box: AbstractValue, result: AbstractValue) -> AbstractValue:
    """The result of a call in which arguments are unpacked. Their places are not known, so anything can be returned or put into
    the object whose method it is."""
    whole = anything(a, call.node, box, *call.all, tag="unpacked").under(call.control)
    for site in box.sites:
        a.heap.put(site, REST, whole)
        if a.heap.kind(site) == "dict":
            a.heap.put(site, KEYS, whole)
        a.sized(site, "unknown")
    return result | whole


def _call_name(a: Analysis, name: str, call: Invocation) -> AbstractValue:
    if name in a.facts.typed_dicts:
        made = new_dict(a, call.node)
        for key, value in call.arguments.named.items():
            a.heap.put(only_site(made), key, value)
        merge(a, only_site(made), join(call.arguments.positional) | call.arguments.more)
        a.sized(only_site(made), "number", len(call.arguments.named))
        for value in call.arguments.positional:
            a.changed_by(only_site(made), a.remember(call.node, value))
        return made
    return call_builtin(a, name, call)


def _call_of_type(a: Analysis, owner: str, name: str, call: Invocation) -> AbstractValue:
    """``dict.fromkeys(…)``, ``str.strip(x)``, ``int.from_bytes(…)``"""
    if (owner, name) == ("dict", "fromkeys"):
        keys = call.arguments.get(0) or NEVER
        made = new_dict(a, call.node, a.heap.items(keys), (call.arguments.get(1) or NONE).under(a.heap.condition(keys)))
        a.sized(only_site(made), "length", a.remember(call.node, keys))
        return made.under(a.heap.condition(keys))
    if f"{owner}.{name}" in vocabulary.TYPE_METHODS or not call.arguments.positional:
        return anything(a, call.node, *call.all)
    first, *rest = call.arguments.positional
    return call_method(
        a, name, first, call._replace(arguments=Arguments(rest, call.arguments.named, call.arguments.more))
    )


_EVALUATE: dict[type[tree.Node], Callable[[Analysis, Any, Origins], AbstractValue]] = {
    tree.Constant: _constant,
    tree.Strings: _strings,
    tree.Name: _name,
    tree.List: _sequence,
    tree.Tuple: _sequence,
    tree.Set: _sequence,
    tree.Dict: _dict,
    tree.ListComp: _comprehension,
    tree.SetComp: _comprehension,
    tree.GeneratorExp: _comprehension,
    tree.DictComp: _comprehension,
    tree.IfExp: _choice,
    tree.BoolOp: _logical,
    tree.Compare: _compare,
    tree.UnaryOp: _unary,
    tree.BinOp: _binary,
    tree.Attribute: _attribute,
    tree.Subscript: _subscript,
    tree.NamedExpr: _walrus,
    tree.Starred: _starred,
    tree.Lambda: _lambda,
    tree.Call: _call,
}
