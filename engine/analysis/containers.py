"""Making, copying and changing containers.

How many items a container has, and in which order, is information too. So what decides about a change becomes control of its items.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import (
    A_NUMBER,
    KEYS,
    NEVER,
    REST,
    AbstractValue,
    Key,
    Origins,
    compared,
    constant,
    join,
    marks_in,
)


def new_list(a: Analysis, node: object, tag: str = "", item: AbstractValue = NEVER) -> AbstractValue:
    """A list, tuple, set or iterator that is made at a node, whose items are all `item`."""
    site = a.site(node, tag)
    made = a.heap.make(site)
    a.heap.put(site, REST, item)
    return made


def new_tuple(a: Analysis, node: object, items: Iterable[AbstractValue], tag: str = "tuple") -> AbstractValue:
    """A tuple that is made at a node, with known places."""
    site = a.site(node, tag)
    made = a.heap.make(site)
    count = 0
    for i, item in enumerate(items):
        a.heap.put(site, i, item)
        count += 1
    a.sized(site, "number", count)
    return made


def new_dict(a: Analysis, node: object, keys: AbstractValue = NEVER, values: AbstractValue = NEVER) -> AbstractValue:
    """A dictionary that is made at a node, whose keys are not known one by one."""
    site = a.site(node)
    made = a.heap.make(site, "dict")
    a.heap.put(site, KEYS, keys)
    a.heap.put(site, REST, values)
    return made


def only_site(value: AbstractValue) -> Hashable:
    """The site of a container that was just made."""
    (site,) = value.sites
    return site


def list_like(a: Analysis, node: object, source: AbstractValue, item: AbstractValue | None = None) -> AbstractValue:
    """A list with at most as many items as `source`, whose shape depends on the shape of `source`."""
    made = new_list(a, node, "list", a.heap.items(source) if item is None else item)
    a.sized(only_site(made), "length", a.remember(node, source, "source"))
    a.heap.count(only_site(made), a.heap.is_counted(source))
    return AbstractValue(data=source.data, control=a.heap.size(source), sites=made.sites)


def anything(a: Analysis, node: object, *values: AbstractValue, tag: str = "any") -> AbstractValue:
    """A value whose origins alone are known. It may contain, or be, any of the containers in the given values."""
    site = a.site(node, tag)
    data, control = a.heap.deep(join(values))
    inner = frozenset(a.heap.reach(join(values)))
    made = a.heap.make(site, "open", outside=True)
    whole = AbstractValue(templates.ANYTHING, data, control, made.sites | inner)
    a.heap.put(site, REST, whole)
    return whole


def text_of(
    a: Analysis, *values: AbstractValue, alternatives: templates.Alternatives = templates.ANYTHING
) -> AbstractValue:
    """A scalar that is computed from values."""
    data, control = a.heap.deep(join(values))
    return AbstractValue(alternatives, data, control)


def put_all(a: Analysis, box: AbstractValue, key: object, value: AbstractValue, amount: Hashable = None) -> None:
    """Add a value to each container that `box` can be. Each grows by one item, or by the length of `amount`."""
    value = value.under(box.origins)
    for site in box.sites:
        a.heap.put(site, key, value)
        a.changed_by(site, amount)


def store(a: Analysis, box: AbstractValue, key: AbstractValue, value: AbstractValue) -> None:
    """``box[key] = value``"""
    value = value.under(box.origins)
    constants = key.constants()
    if constants is not None and all(isinstance(k, str | int | float | None) for k in constants):
        # Which of several keys it is depends on the origins of the key.
        value = value.under(key.origins)
        for site in box.sites:
            is_list = a.heap.kind(site) == "list"
            for k in constants:
                a.heap.put(site, REST if is_list and isinstance(k, int) and k < 0 else k, value)
            if not is_list:
                a.changed_by(site)
    else:
        value = value.under(a.heap.condition(key))
        for site in box.sites:
            a.heap.put(site, REST, value)
            if a.heap.kind(site) != "list":
                a.heap.put(site, KEYS, key.under(value.control))
                a.changed_by(site)


def extend(a: Analysis, site: Hashable, value: AbstractValue, amount: Hashable) -> None:
    """``list.extend``, ``set.update`` and ``dict.update``."""
    if a.heap.kind(site) == "dict":
        merge(a, site, value)
    elif a.heap.kind(site) == "open":
        whole = AbstractValue(templates.ANYTHING, *a.heap.deep(value), frozenset(a.heap.reach(value)))
        a.heap.put(site, REST, whole)
    else:
        a.heap.put(site, REST, a.heap.items(value))
        a.heap.reorder(site)
    a.changed_by(site, amount)


def merge(a: Analysis, site: Hashable, value: AbstractValue) -> None:
    """Add the entries of a dictionary, or of a list of pairs, to a dictionary."""
    for source in value.sites:
        container = a.heap.at[source]
        if container.kind == "list":
            pair = a.heap.items(AbstractValue(sites=frozenset({source})))
            both = pair.under(value.origins)
            named = a.heap.item(both, constant(0))
            decided = a.heap.condition(named)
            a.heap.put(site, KEYS, named.under(decided))
            a.heap.put(site, REST, a.heap.item(both, constant(1)).under(decided))
            continue
        for key, item in [*container.fields.items()]:
            a.heap.put(
                site,
                key,
                AbstractValue(item.alternatives, item.data | value.data, item.control | value.control, item.sites),
            )
        if container.kind == "open":
            a.heap.put(site, KEYS, a.heap.items(AbstractValue(sites=frozenset({source}))))


def concern(a: Analysis, box: AbstractValue, origins: Origins) -> None:
    """Note that these origins decide about the items of a container: a removal, or a new order."""
    origins = origins | box.origins
    for site in box.sites:
        a.heap.count(site, False)
        a.heap.reorder(site)
        a.heap.put(site, REST, AbstractValue(control=origins))
        for key, item in [*a.heap.at[site].fields.items()]:
            if not origins <= item.control:
                a.heap.put(site, key, item.under(origins))


def copy_of(a: Analysis, node: object, value: AbstractValue, tag: str = "copy") -> AbstractValue:
    """A shallow copy: a new container with the same items."""
    made = AbstractValue(value.alternatives, value.data, value.control)
    for source in value.sites:
        original = a.heap.at[source]
        site = a.site(node, f"{tag} {original.kind}")
        made = made | a.heap.make(site, original.kind, outside=original.outside)
        for key, item in [*original.fields.items()]:
            a.heap.put(site, key, item)
        if original.default is not None:
            a.heap.set_default(site, original.default)
        a.sized(site, "length", a.remember(node, value, tag))
        if len(value.sites) > 1:
            a.heap.reorder(site)  # one list may be longer than another, so no place is certain
    return made


def spread(a: Analysis, box: AbstractValue, i: int, total: int, starred: bool) -> AbstractValue:
    """The value of place `i` of `total` when `box` is unpacked."""
    found = NEVER
    for site in box.sites:
        one = AbstractValue(sites=frozenset({site}))
        container = a.heap.at[site]
        if container.kind == "list" and not starred:
            found = found | container.fields.get(i, NEVER) | container.fields.get(REST, NEVER)
        else:
            found = found | a.heap.items(one)
    if box.alternatives:
        found = found | a.heap.items(AbstractValue(box.alternatives))
    return AbstractValue(found.alternatives, found.data | box.data, found.control | box.control, found.sites)


def is_plain_list(a: Analysis, value: AbstractValue) -> list[AbstractValue] | None:
    """The items of a list with known places, if the value is just that; otherwise None."""
    if len(value.sites) != 1 or value.alternatives:
        return None
    container = a.heap.at[only_site(value)]
    fields = container.fields
    if container.kind != "list" or container.growth or any(isinstance(k, Key) and fields[k] != NEVER for k in fields):
        return None
    places = sorted(k for k in fields if isinstance(k, int))
    return [fields[i] for i in places] if places == [*range(len(places))] else None


def numbers(a: Analysis, *values: AbstractValue) -> AbstractValue:
    """A number that is computed from values."""
    data, control = a.heap.deep(join(values))
    return A_NUMBER._replace(data=data, control=control) if data or control else A_NUMBER


def booleans(a: Analysis, *values: AbstractValue, by: str = "") -> AbstractValue:
    """A boolean that is computed from values, by an operator, a function or a method."""
    found = text_of(a, *values, alternatives=templates.TRUE_OR_FALSE)
    directly = [marks_in(v.alternatives) for each in values for v in (each, a.heap.items(each) if each.sites else each)]
    return found._replace(data=compared(found.data, by, frozenset().union(*directly)))


def read_keys(a: Analysis, control: Origins, *values: AbstractValue) -> None:
    """Note that keys of all dictionaries in some values are read. A `defaultdict` adds those that are missing."""
    sites = a.heap.reach(join(values))
    for site in sites:
        default = a.heap.at[site].default
        if default is not None:
            data, decided = a.heap.deep(join(values))
            key = AbstractValue(templates.ANYTHING, data, decided)
            store(a, AbstractValue(control=control, sites=frozenset({site})), key, default)
            a.sized(site, "unknown")  # it can be any number of keys


def read_buffers(a: Analysis, control: Origins, *values: AbstractValue) -> None:
    """Note that text buffers inside some containers can be read, each by its place in the container."""
    for value in values if a.buffers else ():
        if a.buffers.isdisjoint(value.sites):
            inside = frozenset(a.buffers & a.heap.reach(value))
            concern(a, AbstractValue(sites=inside), control | a.heap.shape(value))
