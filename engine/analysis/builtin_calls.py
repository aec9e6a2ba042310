"""What the built-in functions return. A function that is not in the table returns anything that its arguments contain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import (
    Invocation,
    call_back,
    error_of,
    keyword_callback,
    places_of,
    text_result,
    truth_result,
)
from albert_tools.engine.analysis.containers import (
    anything,
    list_like,
    merge,
    new_dict,
    new_list,
    new_tuple,
    numbers,
    only_site,
    text_of,
)
from albert_tools.engine.analysis.operators import are_numbers, arithmetic
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.templates import Count
from albert_tools.engine.analysis.values import (
    A_NUMBER,
    EMPTY_TEXT,
    NEVER,
    NONE,
    REST,
    AbstractValue,
    Key,
    constant,
    join,
)
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree

_Function = Callable[[Analysis, Invocation], AbstractValue]


def call_builtin(analysis: Analysis, name: str, call: Invocation) -> AbstractValue:
    """The result of a built-in function."""
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(analysis, call)
    if name in vocabulary.EXCEPTIONS or name == "ToolError":
        return error_of(analysis, call)
    return anything(analysis, call.node, *call.all)


def _print(analysis: Analysis, call: Invocation) -> AbstractValue:
    analysis.printed |= call.control | analysis.heap.condition(*call.all)
    return NONE


def _parallel(analysis: Analysis, call: Invocation) -> AbstractValue:
    given = call.arguments.positional
    if len(given) == 1 and isinstance(call.node.args[0], tree.GeneratorExp):
        return given[0]
    return new_tuple(analysis, call.node, given)


def _length(analysis: Analysis, call: Invocation) -> AbstractValue:
    value = join(call.all)
    known = value.constants()
    if known is not None and len(known) == 1 and isinstance(known[0], str):
        return AbstractValue(templates.constant(len(known[0])), value.data, value.control)
    key = analysis.remember(call.node, value)
    data = analysis.heap.shape(value) | value.data
    return AbstractValue(frozenset({(Count(key),)}), data)


def _range(analysis: Analysis, call: Invocation) -> AbstractValue:
    numbers_given = call.arguments.positional
    decided = analysis.heap.condition(*call.all)
    made = new_list(analysis, call.node, item=A_NUMBER._replace(data=decided))
    keys = tuple(analysis.remember(call.node, v, str(i)) for i, v in enumerate(numbers_given))
    if call.arguments.more is NEVER:
        analysis.sized(only_site(made), "range", keys)
    else:
        analysis.sized(only_site(made), "unknown")
    return made.under(decided)


def _as_list(analysis: Analysis, call: Invocation) -> AbstractValue:
    if not call.all:
        return _empty(analysis, call, "list")
    source = join(call.all)
    made = list_like(analysis, call.node, source)
    # A copy of a list with known places has the same places.
    if source.sites and not source.alternatives and all(analysis.heap.kind(s) == "list" for s in source.sites):
        for site in source.sites:
            for key, item in [*analysis.heap.at[site].fields.items()]:
                if not isinstance(key, Key):
                    analysis.heap.put(only_site(made), key, item)
    return made


def _unordered(analysis: Analysis, call: Invocation) -> AbstractValue:
    """A set: which items are equal decides how many there are."""
    if not call.all:
        return _empty(analysis, call, "list")
    source = join(call.all)
    return list_like(analysis, call.node, source, analysis.heap.items(source)).under(analysis.heap.condition(source))


def _empty(analysis: Analysis, call: Invocation, kind: str) -> AbstractValue:
    made = analysis.heap.make(analysis.site(call.node), kind)
    analysis.sized(only_site(made), "number", 0)
    return made


def _iterated(analysis: Analysis, call: Invocation) -> AbstractValue:
    return list_like(analysis, call.node, join(call.all))


def _sorted(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = join(call.arguments.positional) | call.arguments.more
    item = analysis.heap.items(source)
    key = keyword_callback(call, "key")
    # What is compared decides about the order.
    compared = item if key is None else call_back(analysis, call.node, key, [item], call.control, source)
    item = item.under(analysis.heap.condition(compared))
    others = [v for name, v in call.arguments.named.items() if name == "reverse"]
    return list_like(analysis, call.node, source, item).under(analysis.heap.condition(*others))


def _map(analysis: Analysis, call: Invocation) -> AbstractValue:
    function = call.node.args[0]
    sources = call.arguments.positional[1:]
    if call.arguments.more is not NEVER:
        sources = sources + [call.arguments.more] * (places_of(analysis, function) or 1)
    items = [analysis.heap.items(s) for s in sources]
    control = call.control.union(*(analysis.heap.size(s) for s in sources))
    result = call_back(analysis, call.node, function, items, control, sources[0])
    made = list_like(analysis, call.node, sources[0], result)
    return made.under(frozenset[str]().union(*(analysis.heap.size(s) for s in sources)))


def _filter(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(1) or NEVER
    item = analysis.heap.items(source)
    function = call.node.args[0]
    is_none = isinstance(function, tree.Constant)
    kept = item if is_none else call_back(analysis, call.node, function, [item], call.control, source)
    decided = analysis.heap.condition(kept)
    return list_like(analysis, call.node, source, item.under(decided)).under(decided)


def _dict(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = join(call.arguments.positional) | call.arguments.more
    made = new_dict(analysis, call.node)
    site = only_site(made)
    merge(analysis, site, source)
    for name, value in call.arguments.named.items():
        analysis.heap.put(site, name, value)
    analysis.sized(site, "number", len(call.arguments.named))
    if source is not NEVER:
        analysis.changed_by(site, analysis.remember(call.node, source))
    return AbstractValue(data=source.data, control=analysis.heap.shape(source), sites=made.sites)


def _enumerate(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0) or NEVER
    number = numbers(analysis, *call.all[1:])
    return list_like(
        analysis, call.node, source, new_tuple(analysis, call.node, [number, analysis.heap.items(source)], "pair")
    )


def _zip(analysis: Analysis, call: Invocation) -> AbstractValue:
    sources = call.all
    pair = new_tuple(analysis, call.node, [analysis.heap.items(s) for s in call.arguments.positional], "pair")
    if call.arguments.more is not NEVER:
        analysis.heap.put(only_site(pair), REST, analysis.heap.items(call.arguments.more))
    control = frozenset[str]().union(*(analysis.heap.size(s) for s in sources))
    # It ends with its shortest argument, so each of them is a bound. The first one is as good as another.
    return list_like(analysis, call.node, sources[0] if sources else NEVER, pair).under(control)


def _extreme(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`min` and `max`"""
    given = [*call.arguments.positional, *([call.arguments.more] if call.arguments.more is not NEVER else [])]
    item = analysis.heap.items(given[0]) if len(given) == 1 else join(given)
    # One value that is unpacked can be all, or one of several.
    item = item | call.arguments.more
    key = keyword_callback(call, "key")
    control = analysis.heap.condition(*call.all)
    if key is not None:
        over = given[0]
        if len(given) > 1 or call.arguments.more is not NEVER:
            over = new_tuple(analysis, call.node, given, "compared")
        if call.arguments.more is not NEVER:
            analysis.sized(only_site(over), "unknown")
        control |= analysis.heap.condition(call_back(analysis, call.node, key, [item], call.control, over))
    return (item | call.arguments.named.get("default", NEVER)).under(control)


def _next(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0) or NEVER
    return (analysis.heap.items(source) | join(call.all[1:])).under(analysis.heap.shape(source))


def _sum(analysis: Analysis, call: Invocation) -> AbstractValue:
    item = analysis.heap.items(join(call.all[:1])) | join(call.all[1:])
    if item.sites:
        return anything(analysis, call.node, *call.all)
    return numbers(analysis, *call.all) if are_numbers(analysis, item) else text_of(analysis, *call.all)


def _str(analysis: Analysis, call: Invocation) -> AbstractValue:
    if not call.all:
        return EMPTY_TEXT
    value = call.all[0]
    if len(call.all) > 1 or value.sites:
        return text_of(analysis, *call.all)
    return value._replace(alternatives=templates.texts(value.alternatives))


def _number(function: Callable[..., Any]) -> _Function:
    def result(analysis: Analysis, call: Invocation) -> AbstractValue:
        known = [v.constants() for v in call.arguments.positional]
        if call.arguments.named or call.arguments.more is not NEVER or len(known) != 1 or not known[0]:
            value = call.all[0] if len(call.all) == 1 else None
            if function is int and value is not None and not value.sites and all(map(_is_count, value.alternatives)):
                return value
            return arithmetic(analysis, *call.all) if function is abs else numbers(analysis, *call.all)
        folded = NEVER
        for x in known[0]:
            with suppress(Exception):
                folded = folded | (constant(function(x)) if len(str(x)) < 20 else A_NUMBER)
        value = call.arguments.positional[0]
        return AbstractValue(folded.alternatives, value.data, value.control)

    return result


def _is_count(t: templates.Alternative) -> bool:
    return len(t) == 1 and isinstance(t[0], Count)


def _arithmetic(analysis: Analysis, call: Invocation) -> AbstractValue:
    return arithmetic(analysis, *call.all)


def _divmod(analysis: Analysis, call: Invocation) -> AbstractValue:
    number = arithmetic(analysis, *call.all)
    return new_tuple(analysis, call.node, [number, number])


_FUNCTIONS: dict[str, _Function] = {
    "print": _print,
    "parallel": _parallel,
    "len": _length,
    "range": _range,
    "list": _as_list,
    "tuple": _as_list,
    "set": _unordered,
    "frozenset": _unordered,
    "iter": _iterated,
    "reversed": _iterated,
    "sorted": _sorted,
    "map": _map,
    "filter": _filter,
    "dict": _dict,
    "enumerate": _enumerate,
    "zip": _zip,
    "min": _extreme,
    "max": _extreme,
    "next": _next,
    "sum": _sum,
    "str": _str,
    "int": _number(int),
    "float": _number(float),
    "abs": _number(abs),
    "divmod": _divmod,
    "ord": lambda analysis, call: numbers(analysis, *call.all),
    **dict.fromkeys(("pow", "round"), _arithmetic),
    **dict.fromkeys(("all", "any", "bool", "isinstance"), truth_result),
    **dict.fromkeys(("type", "ascii", "bin", "bytes", "chr", "format", "hex", "oct", "repr"), text_result),
}
