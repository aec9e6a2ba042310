"""What methods return, and how they change their object.

The type of an object is not always known, so a method does what it does for each type that has it: `receiver.alternatives` are the
texts that it can be, `receiver.sites` the containers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import Invocation, call_back, keyword_callback, name_of
from albert_tools.engine.analysis.containers import (
    anything,
    booleans,
    concern,
    copy_of,
    extend,
    is_plain_list,
    list_like,
    new_dict,
    new_list,
    new_tuple,
    numbers,
    only_site,
    put_all,
    read_keys,
    store,
    taken,
    text_of,
)
from albert_tools.engine.analysis.encoded_texts import as_bytes, as_text, encoded, joined
from albert_tools.engine.analysis.operators import apart, are_numbers, concatenated, formatted
from albert_tools.engine.analysis.paths_below import with_ending, without_prefix
from albert_tools.engine.analysis.regular_expressions import MATCHING, match_objects, replaced
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import (
    A_NUMBER,
    EMPTY_TEXT,
    KEYS,
    NEVER,
    NONE,
    REST,
    WRITTEN,
    AbstractValue,
    constant,
    join,
    sizes_of,
)
from albert_tools.engine.check.format_call import read_template, template_of

_Method = Callable[[Analysis, AbstractValue, Invocation], AbstractValue]

#: The methods of text that are computed for constants.
_FOLDED = frozenset(
    """capitalize casefold endswith find index join lower lstrip partition removeprefix removesuffix replace rpartition rsplit
    rstrip split splitlines startswith strip swapcase title upper""".split()
)
_MAX_COMBINATIONS, _MAX_TEXT = 16, 2000


def call_method(analysis: Analysis, name: str, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """The result of a method."""
    if name in _FOLDED:
        known = _computed(analysis, name, receiver, call)
        if known is not None:
            return known
    method = _METHODS.get(name)
    if method is not None:
        return method(analysis, receiver, call)
    return anything(analysis, call.node, receiver, *call.all)


def _computed(analysis: Analysis, name: str, receiver: AbstractValue, call: Invocation) -> AbstractValue | None:
    """The result for constants."""
    if call.arguments.named or call.arguments.more is not NEVER:
        return None
    known = [v.constants() for v in (receiver, *call.arguments.positional)]
    choices = [k for k in known if k]
    if len(choices) < len(known) or _combinations(choices) > _MAX_COMBINATIONS:
        return None
    folded = NEVER
    for one in itertools.product(*choices):
        if not isinstance(one[0], str) or sum(len(str(x)) for x in one) > _MAX_TEXT:
            return None
        result: object = None
        with suppress(Exception):
            result = getattr(one[0], name)(*one[1:])
            if not isinstance(result, str | int | bool) or len(str(result)) > _MAX_TEXT:
                return None
            folded = folded | constant(result)
    inputs = join([receiver, *call.arguments.positional])
    return AbstractValue(folded.alternatives, inputs.data, inputs.control)


def _combinations(choices: list[list[object]]) -> int:
    total = 1
    for c in choices:
        total *= len(c)
    return total


# Texts


def _text(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    read_keys(analysis, call.control, receiver, *call.all)
    return text_of(analysis, receiver, *call.all)


def _move(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """`seek` and `truncate`: what is read afterwards depends on the place."""
    for site in receiver.sites & analysis.buffers:
        analysis.heap.put(site, WRITTEN, text_of(analysis))
    _place(analysis, receiver, call)
    return numbers(analysis, receiver, *call.all)


def _place(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> None:
    """Note that a buffer has another place, which `tell` returns."""
    concern(analysis, receiver, call.control | analysis.heap.condition(*call.all))
    if analysis.heap.sources(join(call.all)):
        for site in receiver.sites:
            analysis.heap.put(site, REST, text_of(analysis, *call.all))


def _read(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    _place(analysis, receiver, call)
    return text_of(analysis, receiver, *call.all)


def _read_lines(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    _place(analysis, receiver, call)
    return anything(analysis, call.node, receiver, *call.all)


def _truth(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return booleans(analysis, receiver, *call.all, by=name_of(call.node))


def _number(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return numbers(analysis, receiver, *call.all)


def _piece(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """A method that only takes away from the beginning and the end."""
    taken = join(call.all)
    known = None
    if name_of(call.node) == "removeprefix" and len(call.all) == 1:
        known = partial(without_prefix, prefix=call.all[0].alternatives)
    data, control = receiver.data | analysis.heap.sources(taken), receiver.control | analysis.heap.condition(taken)
    piece = AbstractValue(templates.pieces(receiver.alternatives, known), data, control)
    return piece | text_of(analysis, receiver, *call.all) if receiver.sites else piece


def _replaced_text(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    text = _text(analysis, receiver, call)
    given = [v.constants() or [] for v in call.all]
    if receiver.sites or [len(known) for known in given] != [1, 1]:
        return text
    paths = [with_ending(t, given[0][0], given[1][0]) or [(templates.ANY,)] for t in receiver.alternatives]
    return text._replace(alternatives=templates.union(frozenset(t for some in paths for t in some)))


def _same_case(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    kept = all(t in ((templates.WORD,), (templates.NUMBER,)) for t in receiver.alternatives)
    return receiver if kept and not receiver.sites else _text(analysis, receiver, call)


def _split(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    if _is_object(analysis, receiver):
        return _match(analysis, receiver, call)
    inputs = join([receiver, *call.all])
    data, control = analysis.heap.deep(inputs)
    alternatives = templates.pieces(receiver.alternatives) if not receiver.sites else templates.ANYTHING
    made = new_list(analysis, call.node, "split", AbstractValue(alternatives, data, control))
    analysis.sized(only_site(made), "pieces", analysis.remember(call.node, receiver._replace(sites=frozenset())))
    separator = [v.constants() for v in call.all]
    is_line = separator == [["\n"]] or (not call.all and name_of(call.node) == "splitlines")
    counted = is_line and not receiver.sites and all(map(templates.is_given, receiver.alternatives))
    analysis.heap.count(only_site(made), counted)
    return made.under((sizes_of(data) if counted else data) | control)


def _partition(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    inputs = join([receiver, *call.all])
    data, control = analysis.heap.deep(inputs)
    part = AbstractValue(
        templates.pieces(receiver.alternatives) if not receiver.sites else templates.ANYTHING, data, control
    )
    return new_tuple(analysis, call.node, [part, part, part])


def _format(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """`format` of a literal. Arguments that it has no field for are evaluated, too, and have no effect on the text."""
    template = template_of(call.node)
    assert template is not None
    result = EMPTY_TEXT
    for part in read_template(template):
        if isinstance(part, str):
            result = concatenated(analysis, result, constant(part))
            continue
        value, *inner = (_argument(call, argument) for argument in (part.argument, *part.inner))
        text = formatted(analysis, value, part.conversion, part.spec or "", inner)
        result = concatenated(analysis, result, apart(analysis, call.node, text, f"field {part.argument}"))
    return result


def _argument(call: Invocation, argument: int | str) -> AbstractValue:
    if isinstance(argument, int):
        return call.arguments.get(argument) or NEVER
    return call.arguments.named.get(argument, call.arguments.more)


def _join(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    given = call.arguments.get(0) or NEVER
    parts = is_plain_list(analysis, given)
    data, control = analysis.heap.deep(join([receiver, given]))
    control |= analysis.heap.shape(given)
    if parts is not None and len(parts) <= templates.MAX_PARTS:
        text = EMPTY_TEXT
        for i, part in enumerate(parts):
            text = concatenated(analysis, text if not i else concatenated(analysis, text, receiver), part)
        return AbstractValue(text.alternatives, data, control)
    if given.alternatives or not given.sites:
        return AbstractValue(templates.ANYTHING, data, control)
    # The number of parts is not known.
    return AbstractValue(joined(analysis, call.node, analysis.heap.items(given), receiver.alternatives), data, control)


# Objects that are not made of JSON: matches, patterns, dates, writers


def _is_object(analysis: Analysis, receiver: AbstractValue) -> bool:
    return not receiver.alternatives and any(analysis.heap.kind(s) == "open" for s in receiver.sites)


def _match(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """A method of a compiled pattern."""
    assert hasattr(call.node.func, "attr")
    subject = call.arguments.get(0, "string") or NEVER
    return match_objects(analysis, call.node, call.node.func.attr, subject, [receiver, *call.all])


def _replaced(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    assert hasattr(call.node.func, "attr")
    function = call.node.args[0] if call.node.args else None
    return replaced(
        analysis, call, call.node.func.attr, function, call.arguments.get(1, "string") or NEVER, [receiver, *call.all]
    )


def _matched(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """A group of a match, which can be None."""
    inner = analysis.heap.values(receiver)
    data, control = analysis.heap.deep(join([receiver, *call.all]))
    return AbstractValue(inner.alternatives or templates.ANYTHING, data, control) | NONE


def _group(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    group = _matched(analysis, receiver, call)
    return group | new_tuple(analysis, call.node, [group] * len(call.all)) if len(call.all) > 1 else group


def _groups(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    made = new_list(analysis, call.node, "groups", _matched(analysis, receiver, call) | join(call.all))
    analysis.sized(only_site(made), "unknown")
    return made


def _groupdict(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    group = _matched(analysis, receiver, call)
    made = new_dict(analysis, call.node, text_of(analysis, receiver), group | join(call.all))
    analysis.sized(only_site(made), "unknown")
    return made


def _write(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """What is written to a text buffer can be read from it, in other pieces. So can the options of a writer of CSV."""
    written = text_of(analysis, receiver, *call.all)
    # The text decides how many lines there are.
    written = written.under(call.control | receiver.origins | written.data)
    known = _known_text(analysis, receiver, call)
    for site in analysis.heap.reach(receiver):
        analysis.heap.put(site, REST, written)
        if site in analysis.buffers:
            analysis.heap.put(site, WRITTEN, written._replace(alternatives=known))
        analysis.changed_by(site, analysis.remember(call.node, written))
    return numbers(analysis, receiver, *call.all) | NONE


def _known_text(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> templates.Alternatives:
    """The texts, one after the other, that a method writes to a text buffer or to a writer of CSV."""
    given = call.arguments.get(0) or NEVER
    match name_of(call.node):
        case "write":
            return given.alternatives if not given.sites else templates.ANYTHING
        case "writerow":
            return encoded(analysis, "row", call.node, given).alternatives
        case "writerows":
            return encoded(analysis, "row", call.node, analysis.heap.items(given)).alternatives
    return templates.ANYTHING


def _value_of_buffer(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """`getvalue`"""
    text = _text(analysis, receiver, call)
    if (
        receiver.alternatives
        or not receiver.sites <= analysis.buffers
        or any(analysis.heap.kind(s) != "list" for s in receiver.sites)
    ):
        return text
    written = join(analysis.heap.at[s].fields.get(WRITTEN, NEVER) for s in receiver.sites)
    return text._replace(alternatives=joined(analysis, call.node, written, EMPTY_TEXT.alternatives))


# Containers


def _add(place: int) -> _Method:
    def method(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
        value = (call.arguments.get(place) or NEVER).under(call.control)
        put_all(analysis, receiver, REST, value)
        if place:
            concern(analysis, receiver, call.control | analysis.heap.condition(join(call.all[:1])))
        return NONE

    return method


def _add_to_set(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    value = call.arguments.get(0) or NEVER
    # A value that is already there is not added, so its content decides about the size.
    put_all(analysis, receiver, REST, value.under(call.control | analysis.heap.condition(value)))
    return NONE


def _append_left(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    put_all(analysis, receiver, REST, (call.arguments.get(0) or NEVER).under(call.control))
    for site in receiver.sites:
        analysis.heap.reorder(site)
    return NONE


def _extend(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    # Which items of a set are equal decides how many there are.
    is_update = name_of(call.node) == "update"
    for i, value in enumerate(
        [*call.arguments.positional, *([call.arguments.more] if call.arguments.more is not NEVER else [])]
    ):
        decided = analysis.heap.condition(value) if is_update else analysis.heap.shape(value)
        amount = analysis.remember(call.node, value, f"extend {i}")
        for site in receiver.sites:
            inner = value.under(call.control | receiver.origins)
            extend(
                analysis,
                site,
                inner.under(decided if analysis.heap.kind(site) == "list" else analysis.heap.shape(value)),
                amount,
            )
            if analysis.heap.kind(site) == "dict":
                # `Counter.update` counts characters and items.
                counted = frozenset(s for s in value.sites if analysis.heap.kind(s) != "dict")
                keys = analysis.heap.items(value._replace(sites=counted)).under(
                    call.control | analysis.heap.condition(value)
                )
                analysis.heap.put(site, KEYS, keys)
                if value.alternatives:
                    analysis.heap.put(site, REST, A_NUMBER.under(analysis.heap.condition(value)))
        if call.control or value.origins or receiver.origins:
            concern(analysis, receiver, call.control | analysis.heap.shape(value))
    for name, value in call.arguments.named.items():
        for site in receiver.sites:
            analysis.heap.put(site, name, value.under(call.control | receiver.origins))
            analysis.changed_by(site, analysis.remember(call.node, constant("x"), f"named {name}"))
    return NONE


def _remove(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    concern(analysis, receiver, call.control | analysis.heap.condition(*call.all))
    return NONE


def _subtract(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    _extend(analysis, receiver, call)
    return _remove(analysis, receiver, call)


def _intersect(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    concern(analysis, receiver, call.control | analysis.heap.condition(receiver, *call.all))
    for value in call.all:
        put_all(
            analysis,
            receiver,
            REST,
            analysis.heap.items(value).under(call.control),
            analysis.remember(call.node, value, "amount"),
        )
    return NONE


def _pop(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    is_dict = any(analysis.heap.kind(s) != "list" for s in receiver.sites)
    key = call.arguments.get(0)
    item = analysis.heap.item(receiver, key) if key is not None and is_dict else analysis.heap.values(receiver)
    concern(analysis, receiver, call.control | analysis.heap.condition(*call.all[:1]))
    return item | join(call.all[1:])


def _popitem(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    pair = new_tuple(analysis, call.node, [analysis.heap.items(receiver), analysis.heap.values(receiver)])
    concern(analysis, receiver, call.control)
    return pair.under(analysis.heap.shape(receiver))


def _sort(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    decided = call.control | analysis.heap.condition(*call.all)
    key = keyword_callback(call, "key")
    item = analysis.heap.items(receiver)
    compared = item if key is None else call_back(analysis, call.node, key, [item], call.control, receiver)
    concern(analysis, receiver, decided | analysis.heap.condition(compared))
    return NONE


def _setdefault(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    key = call.arguments.get(0) or NEVER
    default = call.arguments.get(1) or NONE
    store(analysis, receiver, key, default.under(call.control))
    return analysis.heap.item(receiver, key) | default


def _get(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    key = call.arguments.get(0) or NEVER
    item = analysis.heap.item(receiver, key) | (call.arguments.get(1) or NONE)
    return item.under(analysis.heap.shape(receiver) | key.origins)


def _items(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    # The numbers decide about the order.
    is_sorted = name_of(call.node) == "most_common"
    decided = analysis.heap.condition(receiver) if is_sorted else frozenset()
    both = (analysis.heap.items(receiver), analysis.heap.values(receiver))
    pair = new_tuple(analysis, call.node, [taken(analysis, one, *call.all).under(decided) for one in both])
    return list_like(analysis, call.node, receiver, pair).under(analysis.heap.condition(*call.all))


def _keys(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return list_like(analysis, call.node, receiver)


def _values(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return list_like(analysis, call.node, receiver, analysis.heap.values(receiver))


def _copy(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return copy_of(analysis, call.node, receiver)


def _set_operation(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    inputs = [receiver, *call.all]
    item = join(analysis.heap.items(v) for v in inputs)
    made = new_list(analysis, call.node, "set", item)
    keys = [analysis.remember(call.node, v, f"set {i}") for i, v in enumerate(inputs)]
    analysis.sized(only_site(made), "sum", *keys)
    return made.under(analysis.heap.condition(*inputs))


def _elements(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    made = new_list(analysis, call.node, "elements", analysis.heap.items(receiver))
    analysis.sized(only_site(made), "unknown")
    return made.under(analysis.heap.condition(receiver))


def _total(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    return (
        numbers(analysis, receiver)
        if are_numbers(analysis, analysis.heap.values(receiver))
        else text_of(analysis, receiver)
    )


_METHODS: dict[str, _Method] = {
    **dict.fromkeys(("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"), _piece),
    **dict.fromkeys(("lower", "upper", "casefold"), _same_case),
    **dict.fromkeys(("split", "rsplit", "splitlines"), _split),
    **dict.fromkeys(("partition", "rpartition"), _partition),
    **dict.fromkeys(("read", "readline"), _read),
    "readlines": _read_lines,
    "join": _join,
    **dict.fromkeys(
        """capitalize center expandtabs expand hex ljust rjust swapcase title translate zfill
        isoformat strftime ctime hexdigest digest geturl safe_substitute substitute""".split(),
        _text,
    ),
    "replace": _replaced_text,
    "encode": as_bytes,
    "decode": as_text,
    "getvalue": _value_of_buffer,
    "hexdigest": lambda analysis, receiver, call: text_of(
        analysis, receiver, *call.all, alternatives=frozenset({(templates.WORD,)})
    ),
    **dict.fromkeys(
        """startswith endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle
        isupper isdisjoint issubset issuperset is_integer""".split(),
        _truth,
    ),
    **dict.fromkeys(
        """bit_count bit_length count find index rfind rindex toordinal timestamp total_seconds weekday isoweekday start end
        ratio quick_ratio tell""".split(),
        _number,
    ),
    **dict.fromkeys(sorted(MATCHING), _match),
    **dict.fromkeys(("sub", "subn"), _replaced),
    "format": _format,
    "group": _group,
    "groups": _groups,
    "groupdict": _groupdict,
    **dict.fromkeys(("write", "writelines", "writerow", "writerows", "writeheader"), _write),
    **dict.fromkeys(("seek", "truncate"), _move),
    "append": _add(0),
    "insert": _add(1),
    "add": _add_to_set,
    "appendleft": _append_left,
    **dict.fromkeys(("extend", "extendleft", "update"), _extend),
    **dict.fromkeys(("remove", "discard", "clear", "reverse", "rotate", "move_to_end", "difference_update"), _remove),
    "subtract": _subtract,
    **dict.fromkeys(("intersection_update", "symmetric_difference_update"), _intersect),
    **dict.fromkeys(("pop", "popleft"), _pop),
    "popitem": _popitem,
    "sort": _sort,
    "setdefault": _setdefault,
    "get": _get,
    **dict.fromkeys(("items", "most_common"), _items),
    "keys": _keys,
    "values": _values,
    "copy": _copy,
    **dict.fromkeys(("union", "intersection", "difference", "symmetric_difference"), _set_operation),
    "elements": _elements,
    "total": _total,
}
