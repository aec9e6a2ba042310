"""What methods return, and how they change their object.

The type of an object is not always known, so a method does what it does for each type that has it: `box.alternatives` are the texts
that it can be, `box.sites` the containers.
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


def call_method(a: Analysis, name: str, box: AbstractValue, call: Invocation) -> AbstractValue:
    """The result of a method."""
    if name in _FOLDED:
        known = _computed(a, name, box, call)
        if known is not None:
            return known
    method = _METHODS.get(name)
    if method is not None:
        return method(a, box, call)
    return anything(a, call.node, box, *call.all)


def _computed(a: Analysis, name: str, box: AbstractValue, call: Invocation) -> AbstractValue | None:
    """The result for constants."""
    if call.arguments.named or call.arguments.more is not NEVER:
        return None
    known = [v.constants() for v in (box, *call.arguments.positional)]
    choices = [k for k in known if k]
    if len(choices) < len(known) or _combinations(choices) > _MAX_COMBINATIONS:
        return None
    found = NEVER
    for one in itertools.product(*choices):
        if not isinstance(one[0], str) or sum(len(str(x)) for x in one) > _MAX_TEXT:
            return None
        result: object = None
        with suppress(Exception):
            result = getattr(one[0], name)(*one[1:])
            if not isinstance(result, str | int | bool) or len(str(result)) > _MAX_TEXT:
                return None
            found = found | constant(result)
    every = join([box, *call.arguments.positional])
    return AbstractValue(found.alternatives, every.data, every.control)


def _combinations(choices: list[list[object]]) -> int:
    total = 1
    for c in choices:
        total *= len(c)
    return total


# Texts


def _text(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    read_keys(a, call.control, box, *call.all)
    return text_of(a, box, *call.all)


def _move(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """`seek` and `truncate`: what is read afterwards depends on the place."""
    for site in box.sites & a.buffers:
        a.heap.put(site, WRITTEN, text_of(a))
    concern(a, box, call.control.union(*(a.heap.condition(v) for v in call.all)))
    return numbers(a, *call.all)


def _read(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    concern(a, box, call.control.union(*(a.heap.condition(v) for v in call.all)))
    return text_of(a, box, *call.all)


def _read_lines(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    concern(a, box, call.control.union(*(a.heap.condition(v) for v in call.all)))
    return anything(a, call.node, box, *call.all)


def _truth(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return booleans(a, box, *call.all, by=name_of(call.node))


def _number(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return numbers(a, box, *call.all)


def _piece(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """A method that only takes away from the beginning and the end."""
    taken = join(call.all)
    known = None
    if name_of(call.node) == "removeprefix" and len(call.all) == 1:
        known = partial(without_prefix, prefix=call.all[0].alternatives)
    data, control = box.data | a.heap.sources(taken), box.control | a.heap.condition(taken)
    found = AbstractValue(templates.pieces(box.alternatives, known), data, control)
    return found | text_of(a, box, *call.all) if box.sites else found


def _replaced_text(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    found = _text(a, box, call)
    given = [v.constants() or [] for v in call.all]
    if box.sites or [len(known) for known in given] != [1, 1]:
        return found
    paths = [with_ending(t, given[0][0], given[1][0]) or [(templates.ANY,)] for t in box.alternatives]
    return found._replace(alternatives=templates.union(frozenset(t for some in paths for t in some)))


def _same_case(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    kept = all(t in ((templates.WORD,), (templates.NUMBER,)) for t in box.alternatives)
    return box if kept and not box.sites else _text(a, box, call)


def _split(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    if _is_object(a, box):
        return _match(a, box, call)
    every = join([box, *call.all])
    data, control = a.heap.deep(every)
    alternatives = templates.pieces(box.alternatives) if not box.sites else templates.ANYTHING
    made = new_list(a, call.node, "split", AbstractValue(alternatives, data, control))
    a.sized(only_site(made), "pieces", a.remember(call.node, box._replace(sites=frozenset())))
    separator = [v.constants() for v in call.all]
    is_line = separator == [["\n"]] or (not call.all and name_of(call.node) == "splitlines")
    counted = is_line and not box.sites and all(map(templates.is_given, box.alternatives))
    a.heap.count(only_site(made), counted)
    return made.under((sizes_of(data) if counted else data) | control)


def _partition(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    every = join([box, *call.all])
    data, control = a.heap.deep(every)
    part = AbstractValue(templates.pieces(box.alternatives) if not box.sites else templates.ANYTHING, data, control)
    return new_tuple(a, call.node, [part, part, part])


def _format(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """`format` of a literal. Arguments that it has no field for are evaluated, too, and have no effect on the text."""
    template = template_of(call.node)
    assert template is not None
    found = EMPTY_TEXT
    for part in read_template(template):
        if isinstance(part, str):
            found = concatenated(a, found, constant(part))
            continue
        value, *inner = (_argument(call, argument) for argument in (part.argument, *part.inner))
        text = formatted(a, value, part.conversion, part.spec or "", inner)
        found = concatenated(a, found, apart(a, call.node, text, f"field {part.argument}"))
    return found


def _argument(call: Invocation, argument: int | str) -> AbstractValue:
    if isinstance(argument, int):
        return call.arguments.get(argument) or NEVER
    return call.arguments.named.get(argument, call.arguments.more)


def _join(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    given = call.arguments.get(0) or NEVER
    parts = is_plain_list(a, given)
    data, control = a.heap.deep(join([box, given]))
    control |= a.heap.shape(given)
    if parts is not None and len(parts) <= templates.MAX_PARTS:
        found = EMPTY_TEXT
        for i, part in enumerate(parts):
            found = concatenated(a, found if not i else concatenated(a, found, box), part)
        return AbstractValue(found.alternatives, data, control)
    if given.alternatives or not given.sites:
        return AbstractValue(templates.ANYTHING, data, control)
    # The number of parts is not known.
    return AbstractValue(joined(a, call.node, a.heap.items(given), box.alternatives), data, control)


# Objects that are not made of JSON: matches, patterns, dates, writers


def _is_object(a: Analysis, box: AbstractValue) -> bool:
    return not box.alternatives and any(a.heap.kind(s) == "open" for s in box.sites)


def _match(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """A method of a compiled pattern."""
    assert hasattr(call.node.func, "attr")
    subject = call.arguments.get(0, "string") or NEVER
    return match_objects(a, call.node, call.node.func.attr, subject, [box, *call.all])


def _replaced(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    assert hasattr(call.node.func, "attr")
    function = call.node.args[0] if call.node.args else None
    return replaced(a, call, call.node.func.attr, function, call.arguments.get(1, "string") or NEVER, [box, *call.all])


def _group(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    inner = a.heap.values(box)
    found = AbstractValue(inner.alternatives or templates.ANYTHING, *a.heap.deep(join([box, *call.all]))) | NONE
    return found | new_tuple(a, call.node, [found] * len(call.all)) if len(call.all) > 1 else found


def _groups(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    inner = a.heap.values(box)
    found = AbstractValue(inner.alternatives or templates.ANYTHING, *a.heap.deep(join([box, *call.all]))) | NONE
    made = new_list(a, call.node, "groups", found | join(call.all))
    a.sized(only_site(made), "unknown")
    return made


def _groupdict(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    inner = a.heap.values(box)
    found = AbstractValue(inner.alternatives or templates.ANYTHING, *a.heap.deep(join([box, *call.all]))) | NONE
    made = new_dict(a, call.node, text_of(a, box), found | join(call.all))
    a.sized(only_site(made), "unknown")
    return made


def _write(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """What is written to a text buffer can be read from it, in other pieces."""
    written = text_of(a, *call.all)
    # The text decides how many lines there are.
    written = written.under(call.control | box.origins | written.data)
    known = _known_text(a, box, call)
    for site in a.heap.reach(box):
        a.heap.put(site, REST, written)
        if site in a.buffers:
            a.heap.put(site, WRITTEN, written._replace(alternatives=known))
        a.changed_by(site, a.remember(call.node, written))
    return numbers(a, *call.all) | NONE


def _known_text(a: Analysis, box: AbstractValue, call: Invocation) -> templates.Alternatives:
    """The texts, one after the other, that a method writes to a text buffer or to a writer of CSV."""
    given = call.arguments.get(0) or NEVER
    match name_of(call.node):
        case "write":
            return given.alternatives if not given.sites else templates.ANYTHING
        case "writerow":
            return encoded(a, "row", call.node, given).alternatives
        case "writerows":
            return encoded(a, "row", call.node, a.heap.items(given)).alternatives
    return templates.ANYTHING


def _value_of_buffer(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    """`getvalue`"""
    found = _text(a, box, call)
    if box.alternatives or not box.sites <= a.buffers or any(a.heap.kind(s) != "list" for s in box.sites):
        return found
    written = join(a.heap.at[s].fields.get(WRITTEN, NEVER) for s in box.sites)
    return found._replace(alternatives=joined(a, call.node, written, EMPTY_TEXT.alternatives))


# Containers


def _add(place: int) -> _Method:
    def method(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
        value = (call.arguments.get(place) or NEVER).under(call.control)
        put_all(a, box, REST, value)
        if place:
            concern(a, box, call.control | a.heap.condition(join(call.all[:1])))
        return NONE

    return method


def _add_to_set(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    value = call.arguments.get(0) or NEVER
    # A value that is already there is not added, so its content decides about the size.
    put_all(a, box, REST, value.under(call.control | a.heap.condition(value)))
    return NONE


def _append_left(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    put_all(a, box, REST, (call.arguments.get(0) or NEVER).under(call.control))
    for site in box.sites:
        a.heap.reorder(site)
    return NONE


def _extend(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    # Which items of a set are equal decides how many there are.
    is_update = name_of(call.node) == "update"
    for i, value in enumerate(
        [*call.arguments.positional, *([call.arguments.more] if call.arguments.more is not NEVER else [])]
    ):
        decided = a.heap.condition(value) if is_update else a.heap.shape(value)
        amount = a.remember(call.node, value, f"extend {i}")
        for site in box.sites:
            inner = value.under(call.control | box.origins)
            extend(a, site, inner.under(decided if a.heap.kind(site) == "list" else a.heap.shape(value)), amount)
            if a.heap.kind(site) == "dict":
                # `Counter.update` counts characters and items.
                counted = frozenset(s for s in value.sites if a.heap.kind(s) != "dict")
                keys = a.heap.items(value._replace(sites=counted)).under(call.control | a.heap.condition(value))
                a.heap.put(site, KEYS, keys)
                if value.alternatives:
                    a.heap.put(site, REST, A_NUMBER.under(a.heap.condition(value)))
        if call.control or value.origins or box.origins:
            concern(a, box, call.control | a.heap.shape(value))
    for name, value in call.arguments.named.items():
        for site in box.sites:
            a.heap.put(site, name, value.under(call.control | box.origins))
            a.changed_by(site, a.remember(call.node, constant("x"), f"named {name}"))
    return NONE


def _remove(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    concern(a, box, call.control.union(*(a.heap.condition(v) for v in call.all)))
    return NONE


def _subtract(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    _extend(a, box, call)
    return _remove(a, box, call)


def _intersect(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    concern(a, box, call.control.union(a.heap.condition(box), *(a.heap.condition(v) for v in call.all)))
    for value in call.all:
        put_all(a, box, REST, a.heap.items(value).under(call.control), a.remember(call.node, value, "amount"))
    return NONE


def _pop(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    is_dict = any(a.heap.kind(s) != "list" for s in box.sites)
    key = call.arguments.get(0)
    found = a.heap.item(box, key) if key is not None and is_dict else a.heap.values(box)
    concern(a, box, call.control.union(*(a.heap.condition(v) for v in call.all[:1])))
    return found | join(call.all[1:])


def _popitem(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    pair = new_tuple(a, call.node, [a.heap.items(box), a.heap.values(box)])
    concern(a, box, call.control)
    return pair.under(a.heap.shape(box))


def _sort(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    decided = call.control.union(*(a.heap.condition(v) for v in call.all))
    key = keyword_callback(call, "key")
    item = a.heap.items(box)
    compared = item if key is None else call_back(a, call.node, key, [item], call.control, box)
    concern(a, box, decided | a.heap.condition(compared))
    return NONE


def _setdefault(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    key = call.arguments.get(0) or NEVER
    default = call.arguments.get(1) or NONE
    store(a, box, key, default.under(call.control))
    return a.heap.item(box, key) | default


def _get(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    key = call.arguments.get(0) or NEVER
    found = a.heap.item(box, key) | (call.arguments.get(1) or NONE)
    return found.under(a.heap.shape(box) | key.origins)


def _items(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    # The numbers decide about the order.
    is_sorted = name_of(call.node) == "most_common"
    decided = a.heap.condition(box) if is_sorted else frozenset()
    pair = new_tuple(a, call.node, [a.heap.items(box).under(decided), a.heap.values(box).under(decided)])
    return list_like(a, call.node, box, pair).under(frozenset[str]().union(*(a.heap.condition(v) for v in call.all)))


def _keys(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return list_like(a, call.node, box)


def _values(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return list_like(a, call.node, box, a.heap.values(box))


def _copy(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return copy_of(a, call.node, box)


def _set_operation(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    every = [box, *call.all]
    item = join(a.heap.items(v) for v in every)
    made = new_list(a, call.node, "set", item)
    keys = [a.remember(call.node, v, f"set {i}") for i, v in enumerate(every)]
    a.sized(only_site(made), "sum", *keys)
    return made.under(frozenset[str]().union(*(a.heap.condition(v) for v in every)))


def _elements(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    made = new_list(a, call.node, "elements", a.heap.items(box))
    a.sized(only_site(made), "unknown")
    return made.under(a.heap.condition(box))


def _total(a: Analysis, box: AbstractValue, call: Invocation) -> AbstractValue:
    return numbers(a, box) if are_numbers(a, a.heap.values(box)) else text_of(a, box)


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
    "hexdigest": lambda a, box, call: text_of(a, box, *call.all, alternatives=frozenset({(templates.WORD,)})),
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
