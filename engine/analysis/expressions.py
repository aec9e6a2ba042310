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
    taken,
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


def evaluate(analysis: Analysis, node: tree.Expr, control: Origins) -> AbstractValue:
    """The value of an expression that is evaluated if `control` lets it."""
    value = _EVALUATE[type(node)](analysis, node, control)
    if analysis.buffers and value.sites and not analysis.buffers.isdisjoint(value.sites):
        # Whatever reads a buffer decides where the next reader starts.
        concern(analysis, value, control)
        analysis.note_buffer(node)
    return value


def _constant(analysis: Analysis, node: tree.Constant, control: Origins) -> AbstractValue:
    return constant(node.value)


def _strings(analysis: Analysis, node: tree.Strings, control: Origins) -> AbstractValue:
    return formatted_text(analysis, node, control) if node.constant is None else constant(node.constant)


def _name(analysis: Analysis, node: tree.Name, control: Origins) -> AbstractValue:
    held = (analysis.frame.instance, node.id)
    if held in analysis.held:
        analysis.add(analysis.exits, held, control)
    entry = analysis.facts.entry(node)
    if entry is not None and entry.kind == "constant":
        analysis.note_use(node)
        return _facade_constant(*analysis.facts.imported[node.id])
    return analysis.lookup(node.id)


def _sequence(analysis: Analysis, node: tree.List | tree.Tuple | tree.Set, control: Origins) -> AbstractValue:
    starred = [x for x in node.elts if isinstance(x, tree.Starred)]
    if not starred and len(node.elts) <= _MAX_PLACES and not isinstance(node, tree.Set):
        return new_tuple(analysis, node, [analysis.evaluate(x, control) for x in node.elts])
    made = new_list(analysis, node)
    site = only_site(made)
    shape = NO_ORIGINS
    for x in node.elts:
        if isinstance(x, tree.Starred):
            value = analysis.evaluate(x.value, control)
            shape |= analysis.heap.condition(value) if isinstance(node, tree.Set) else analysis.heap.shape(value)
            analysis.heap.put(site, REST, analysis.heap.items(value).under(analysis.heap.shape(value)))
            analysis.changed_by(site, analysis.remember(x, value))
        else:
            value = analysis.evaluate(x, control)
            if isinstance(node, tree.Set):
                shape |= analysis.heap.condition(value)
            analysis.heap.put(site, REST, value)
    analysis.sized(site, "number", len(node.elts) - len(starred))
    return made.under(shape)


def _dict(analysis: Analysis, node: tree.Dict, control: Origins) -> AbstractValue:
    made = new_dict(analysis, node)
    site = only_site(made)
    shape = NO_ORIGINS
    for key, x in zip(node.keys, node.values, strict=True):
        value = analysis.evaluate(x, control)
        if key is None:
            merge(analysis, site, value)
            shape |= analysis.heap.shape(value)
            analysis.changed_by(site, analysis.remember(x, value))
        else:
            named = analysis.evaluate(key, control)
            shape |= analysis.heap.condition(named)
            analysis.current = key
            store(analysis, made, named, value)
    analysis.sized(site, "number", 0)
    return made.under(shape)


def _comprehension(
    analysis: Analysis, node: tree.ListComp | tree.SetComp | tree.GeneratorExp | tree.DictComp, control: Origins
) -> AbstractValue:
    outer = analysis.frame.loops
    inside = control
    shape = NO_ORIGINS
    counted = isinstance(node, tree.ListComp | tree.GeneratorExp)
    made = new_dict(analysis, node) if isinstance(node, tree.DictComp) else new_list(analysis, node)
    with analysis.scope():
        for generator in node.generators:
            iterated = analysis.evaluate(generator.iter, inside)
            shape |= analysis.heap.size(iterated)
            counted = counted and not generator.ifs and analysis.heap.is_counted(iterated)
            loop = (analysis.frame.instance, id(generator))
            analysis.grow(analysis.iterated, loop, iterated)
            analysis.frame.loops = (*analysis.frame.loops, loop)
            assign(analysis, generator.target, analysis.heap.items(iterated), NO_ORIGINS)
            inside = control | shape
            for test in generator.ifs:
                shape |= analysis.heap.condition(analysis.evaluate(test, inside))
                inside = control | shape
        if isinstance(node, tree.DictComp):
            key = analysis.evaluate(node.key, inside)
            store(analysis, made, key, analysis.evaluate(node.value, inside).under(shape))
            shape |= analysis.heap.condition(key)
        else:
            value = analysis.evaluate(node.elt, inside)
            analysis.heap.put(only_site(made), REST, value.under(shape))
            if isinstance(node, tree.SetComp):
                shape |= analysis.heap.condition(value)
    analysis.heap.count(only_site(made), counted)
    analysis.sized(only_site(made), "loops", analysis.frame.loops[len(outer) :])
    analysis.frame.loops = outer
    return made.under(shape)


def _choice(analysis: Analysis, node: tree.IfExp, control: Origins) -> AbstractValue:
    test = analysis.heap.condition(analysis.evaluate(node.test, control))
    return (analysis.evaluate(node.body, control | test) | analysis.evaluate(node.orelse, control | test)).under(test)


def _logical(analysis: Analysis, node: tree.BoolOp, control: Origins) -> AbstractValue:
    result, decided = NEVER, NO_ORIGINS
    for x in node.values:
        value = analysis.evaluate(x, control | decided)
        result = result | value.under(decided)
        decided |= analysis.heap.condition(value)
    return result.under(decided)


def _compare(analysis: Analysis, node: tree.Compare, control: Origins) -> AbstractValue:
    operands = [analysis.evaluate(node.left, control)]
    # What compares decides how many items lazy operands make: `in` ends at the first that is equal.
    stopping = (
        analysis.stopping(node, NO_ORIGINS)
        if any(is_lazy(analysis, x) for x in node.comparators)
        else nullcontext(NO_ORIGINS)
    )
    with stopping as stops:
        for x in node.comparators:
            # Only the first two are always evaluated.
            decided = analysis.heap.condition(join(operands)) if len(operands) > 1 else NO_ORIGINS
            if is_lazy(analysis, x):
                decided |= stops | analysis.heap.condition(join(operands))
            operands.append(analysis.evaluate(x, control | decided))
    return booleans(analysis, *operands, by=_operator(node.ops[0], *operands) if len(node.ops) == 1 else "")


def _operator(op: str, left: AbstractValue, right: AbstractValue) -> str:
    """How something is compared with a constant: `200 < x` is `x > 200`, and `in` can ask for an item, a part or a whole."""
    is_first = bool(left.constants()) and not right.constants()
    negation, _, name = op.rpartition(" ")
    if name == "in":
        name = "contained" if is_first else "one of" if right.sites else "part of"
        return f"{negation} {name}".lstrip()
    return _MIRRORED.get(op, op) if is_first else op


def _unary(analysis: Analysis, node: tree.UnaryOp, control: Origins) -> AbstractValue:
    return unary(analysis, node, analysis.evaluate(node.operand, control))


def _binary(analysis: Analysis, node: tree.BinOp, control: Origins) -> AbstractValue:
    left, right = analysis.evaluate(node.left, control), analysis.evaluate(node.right, control)
    if node.op == "%":
        read_keys(analysis, control, left, right)
    return binary(analysis, node, left, node.op, right)


def _attribute(analysis: Analysis, node: tree.Attribute, control: Origins) -> AbstractValue:
    named = analysis.facts.facade(node)
    if named is not None:
        analysis.note_use(node)
        return _facade_constant(*named)
    value = analysis.evaluate(node.value, control)
    if (value is NEVER or not value.sites) and node.attr != "args":
        return text_of(analysis, value)
    return anything(analysis, node, value)


def _facade_constant(module: str, name: str) -> AbstractValue:
    if module in ("math", "string", "sys"):
        attribute: Any = getattr(importlib.import_module(module), name, None)
        if isinstance(attribute, str | int | float):
            return constant(attribute)
    return AbstractValue(templates.ANYTHING)


def _subscript(analysis: Analysis, node: tree.Subscript, control: Origins) -> AbstractValue:
    value = analysis.evaluate(node.value, control)
    if isinstance(node.slice, tree.Slice):
        bounds = [node.slice.lower, node.slice.upper, node.slice.step]
        given = [analysis.evaluate(b, control) for b in bounds if b is not None]
        decided = analysis.heap.condition(*given)
        result = NEVER
        if value.alternatives:
            # With a step, it is not one piece of the text.
            start = given[0].constants() if len(given) == 1 and node.slice.lower is not None else None
            rest = partial(from_place, start=start[0]) if start is not None and len(start) == 1 else None
            known = templates.pieces(value.alternatives, rest) if node.slice.step is None else templates.ANYTHING
            result = AbstractValue(known, value.data | analysis.heap.sources(join(given)), value.control)
        if value.sites:
            part = new_list(analysis, node, "slice", taken(analysis, analysis.heap.values(value), *given))
            analysis.sized(only_site(part), "length", analysis.remember(node, value))
            chosen = analysis.heap.shape(value) | analysis.picked(node)
            result = result | AbstractValue(data=value.data, control=chosen, sites=part.sites)
        return result.under(decided)
    key = analysis.evaluate(node.slice, control)
    for site in value.sites:
        default = analysis.heap.at[site].default
        if default is not None:
            store(analysis, AbstractValue(sites=frozenset({site})), key, default.under(control | value.origins))
    result = analysis.heap.item(value, key)
    if value.sites and key.alternatives and are_numbers(analysis, key) and is_plain_list(analysis, value) is None:
        result = result.under(analysis.picked(node))
    path = _split_path(node.value) if key.constants() == [-1] else None
    whole = analysis.evaluate(path, control) if path is not None else NEVER
    if whole.alternatives and not whole.sites:
        result = result._replace(alternatives=templates.pieces(whole.alternatives, last_name))
    # An object can be a slice.
    return result | anything(analysis, node, value, key) if key.sites and value is not NEVER else result


def _split_path(node: tree.Expr) -> tree.Expr | None:
    """The path in ``path.split("/")``."""
    match node:
        case tree.Call(
            func=tree.Attribute(value=path, attr="split" | "rsplit"), args=(tree.Strings(constant="/"),), keywords=()
        ):
            return path
    return None


def _walrus(analysis: Analysis, node: tree.NamedExpr, control: Origins) -> AbstractValue:
    value = analysis.evaluate(node.value, control)
    analysis.assign_walrus(node.target.id, value.under(control))
    return value


def _starred(analysis: Analysis, node: tree.Starred, control: Origins) -> AbstractValue:
    return analysis.evaluate(node.value, control)


def _lambda(analysis: Analysis, node: tree.Lambda, control: Origins) -> AbstractValue:
    return NEVER


def _call(analysis: Analysis, node: tree.Call, control: Origins) -> AbstractValue:
    if not ends_early(analysis, node):
        return _plain_call(analysis, node, control)
    with analysis.stopping(node, control) as decided:
        return _plain_call(analysis, node, decided)


def _plain_call(analysis: Analysis, node: tree.Call, control: Origins) -> AbstractValue:
    analysis.note_use(node.func.value if isinstance(node.func, tree.Subscript) else node.func)
    name = tool_name(node.func)
    if name is not None:
        return call_tool(analysis, node, name, arguments_of(analysis, node, control), control)
    arguments = arguments_of(analysis, node, control)
    if isinstance(node.func, tree.Name) and node.func.id in analysis.facts.functions:
        return call_helper(analysis, node, node.func.id, arguments, control)
    table = analysis.facts.table_of(node.func)
    if table is not None and isinstance(node.func, tree.Subscript):
        return _chosen(analysis, node, table, analysis.evaluate(node.func.slice, control), arguments, control)
    call = Invocation(node, arguments, control)
    read_buffers(analysis, control, *arguments.all)
    named = analysis.facts.facade(node.func)
    receiver = NEVER
    if named is not None:
        result = call_facade(analysis, *named, call)
    elif isinstance(node.func, tree.Name):
        result = _call_name(analysis, node.func.id, call)
    elif not isinstance(node.func, tree.Attribute):
        result = anything(analysis, node, analysis.evaluate(node.func, control), *arguments.all)
    elif isinstance(node.func.value, tree.Name) and node.func.value.id in vocabulary.PLAIN_TYPES:
        result = _call_of_type(analysis, node.func.value.id, node.func.attr, call)
    else:
        receiver = analysis.evaluate(node.func.value, control)
        result = call_method(analysis, node.func.attr, receiver, call)
    if name_of(node) in _PICKING and any(v.sites for v in (receiver, *arguments.all)):
        result = result.under(analysis.picked(node))
        if receiver is not NEVER:
            concern(analysis, receiver, analysis.picked(node))
    return result if arguments.more is NEVER else _unpacked(analysis, call, receiver, result)


def _chosen(
    analysis: Analysis, node: tree.Call, table: tree.Dict, key: AbstractValue, arguments: Arguments, control: Origins
) -> AbstractValue:
    """The result of a function that a dictionary holds: of any of them."""
    decided = analysis.heap.condition(key)
    # The calls of a lambda are recorded once, so their number is not known if it is called from several places.
    is_only_place = analysis.facts.table_calls[id(table)] == 1
    times = new_tuple(analysis, node, [NEVER], "once") if is_only_place else AbstractValue(templates.ANYTHING)
    result = join(call_back(analysis, node, f, arguments.positional, control | decided, times) for f in table.values)
    return taken(analysis, result, key).under(decided)


def _unpacked(analysis: Analysis, call: Invocation, receiver: AbstractValue, result: AbstractValue) -> AbstractValue:
    """The result of a call in which arguments are unpacked. Their places are not known, so anything can be returned or put into
    the object whose method it is."""
    whole = anything(analysis, call.node, receiver, *call.all, tag="unpacked").under(call.control)
    for site in receiver.sites:
        analysis.heap.put(site, REST, whole)
        if analysis.heap.kind(site) == "dict":
            analysis.heap.put(site, KEYS, whole)
        analysis.sized(site, "unknown")
    return result | whole


def _call_name(analysis: Analysis, name: str, call: Invocation) -> AbstractValue:
    if name in analysis.facts.typed_dicts:
        made = new_dict(analysis, call.node)
        for key, value in call.arguments.named.items():
            analysis.heap.put(only_site(made), key, value)
        merge(analysis, only_site(made), join(call.arguments.positional) | call.arguments.more)
        analysis.sized(only_site(made), "number", len(call.arguments.named))
        for value in call.arguments.positional:
            analysis.changed_by(only_site(made), analysis.remember(call.node, value))
        return made
    return call_builtin(analysis, name, call)


def _call_of_type(analysis: Analysis, owner: str, name: str, call: Invocation) -> AbstractValue:
    """``dict.fromkeys(…)``, ``str.strip(x)``, ``int.from_bytes(…)``"""
    if (owner, name) == ("dict", "fromkeys"):
        keys = call.arguments.get(0) or NEVER
        made = new_dict(
            analysis,
            call.node,
            analysis.heap.items(keys),
            (call.arguments.get(1) or NONE).under(analysis.heap.condition(keys)),
        )
        analysis.sized(only_site(made), "length", analysis.remember(call.node, keys))
        return made.under(analysis.heap.condition(keys))
    if f"{owner}.{name}" in vocabulary.TYPE_METHODS or not call.arguments.positional:
        return anything(analysis, call.node, *call.all)
    first, *rest = call.arguments.positional
    return call_method(
        analysis, name, first, call._replace(arguments=Arguments(rest, call.arguments.named, call.arguments.more))
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
