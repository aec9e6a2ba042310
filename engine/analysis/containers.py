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


def new_list(analysis: Analysis, node: object, tag: str = "", item: AbstractValue = NEVER) -> AbstractValue:
    """A list, tuple, set or iterator that is made at a node, whose items are all `item`."""
    site = analysis.site(node, tag)
    made = analysis.heap.make(site)
    analysis.heap.put(site, REST, item)
    return made


def new_tuple(analysis: Analysis, node: object, items: Iterable[AbstractValue], tag: str = "tuple") -> AbstractValue:
    """A tuple that is made at a node, with known places."""
    site = analysis.site(node, tag)
    made = analysis.heap.make(site)
    count = 0
    for i, item in enumerate(items):
        analysis.heap.put(site, i, item)
        count += 1
    analysis.sized(site, "number", count)
    return made


def new_dict(
    analysis: Analysis, node: object, keys: AbstractValue = NEVER, values: AbstractValue = NEVER
) -> AbstractValue:
    """A dictionary that is made at a node, whose keys are not known one by one."""
    site = analysis.site(node)
    made = analysis.heap.make(site, "dict")
    analysis.heap.put(site, KEYS, keys)
    analysis.heap.put(site, REST, values)
    return made


def only_site(value: AbstractValue) -> Hashable:
    """The site of a container that was just made."""
    (site,) = value.sites
    return site


def list_like(
    analysis: Analysis, node: object, source: AbstractValue, item: AbstractValue | None = None
) -> AbstractValue:
    """A list with at most as many items as `source`, whose shape depends on the shape of `source`."""
    made = new_list(analysis, node, "list", analysis.heap.items(source) if item is None else item)
    analysis.sized(only_site(made), "length", analysis.remember(node, source, "source"))
    analysis.heap.count(only_site(made), analysis.heap.is_counted(source))
    return AbstractValue(data=source.data, control=analysis.heap.size(source), sites=made.sites)


def taken(analysis: Analysis, item: AbstractValue, *by: AbstractValue) -> AbstractValue:
    """An item that was taken by its place. Among many items, the numbers `by` choose any text, so it has their data, too."""
    return item._replace(data=item.data | analysis.heap.sources(join(by)))


def anything(analysis: Analysis, node: object, *values: AbstractValue, tag: str = "any") -> AbstractValue:
    """A value whose origins alone are known. It may contain, or be, any of the containers in the given values."""
    site = analysis.site(node, tag)
    data, control = analysis.heap.deep(join(values))
    inner = frozenset(analysis.heap.reach(join(values)))
    made = analysis.heap.make(site, "open", outside=True)
    whole = AbstractValue(templates.ANYTHING, data, control, made.sites | inner)
    analysis.heap.put(site, REST, whole)
    return whole


def text_of(
    analysis: Analysis, *values: AbstractValue, alternatives: templates.Alternatives = templates.ANYTHING
) -> AbstractValue:
    """A scalar that is computed from values."""
    data, control = analysis.heap.deep(join(values))
    return AbstractValue(alternatives, data, control)


def put_all(
    analysis: Analysis, container: AbstractValue, key: object, value: AbstractValue, amount: Hashable = None
) -> None:
    """Add a value to each container that `container` can be. Each grows by one item, or by the length of `amount`."""
    value = value.under(container.origins)
    for site in container.sites:
        analysis.heap.put(site, key, value)
        analysis.changed_by(site, amount)


def store(analysis: Analysis, container: AbstractValue, key: AbstractValue, value: AbstractValue) -> None:
    """``container[key] = value``"""
    value = value.under(container.origins)
    constants = key.constants()
    if constants is not None and all(isinstance(k, str | int | float | None) for k in constants):
        # Which of several keys it is depends on the origins of the key.
        value = value.under(key.origins)
        for site in container.sites:
            is_list = analysis.heap.kind(site) == "list"
            for k in constants:
                analysis.heap.put(site, REST if is_list and isinstance(k, int) and k < 0 else k, value)
            if not is_list:
                if key.data:
                    analysis.heap.put(site, KEYS, key.under(value.control))
                analysis.changed_by(site)
    else:
        value = value.under(analysis.heap.condition(key))
        for site in container.sites:
            analysis.heap.put(site, REST, value)
            if analysis.heap.kind(site) != "list":
                analysis.heap.put(site, KEYS, key.under(value.control))
                analysis.changed_by(site)


def extend(analysis: Analysis, site: Hashable, value: AbstractValue, amount: Hashable) -> None:
    """``list.extend``, ``set.update`` and ``dict.update``."""
    if analysis.heap.kind(site) == "dict":
        merge(analysis, site, value)
    elif analysis.heap.kind(site) == "open":
        whole = AbstractValue(templates.ANYTHING, *analysis.heap.deep(value), frozenset(analysis.heap.reach(value)))
        analysis.heap.put(site, REST, whole)
    else:
        analysis.heap.put(site, REST, analysis.heap.items(value))
        analysis.heap.reorder(site)
    analysis.changed_by(site, amount)


def merge(analysis: Analysis, site: Hashable, value: AbstractValue) -> None:
    """Add the entries of a dictionary, or of a list of pairs, to a dictionary."""
    for source in value.sites:
        container = analysis.heap.at[source]
        if container.kind == "list":
            pair = analysis.heap.items(AbstractValue(sites=frozenset({source})))
            both = pair.under(value.origins)
            named = analysis.heap.item(both, constant(0))
            decided = analysis.heap.condition(named)
            analysis.heap.put(site, KEYS, named.under(decided))
            analysis.heap.put(site, REST, analysis.heap.item(both, constant(1)).under(decided))
            continue
        for key, item in container.entries():
            analysis.heap.put(
                site,
                key,
                AbstractValue(item.alternatives, item.data | value.data, item.control | value.control, item.sites),
            )
        if container.kind == "open":
            analysis.heap.put(site, KEYS, analysis.heap.items(AbstractValue(sites=frozenset({source}))))


def concern(analysis: Analysis, container: AbstractValue, origins: Origins) -> None:
    """Note that these origins decide about the items of a container: a removal, or a new order."""
    origins = origins | container.origins
    for site in container.sites:
        analysis.heap.count(site, False)
        analysis.heap.reorder(site)
        analysis.heap.put(site, REST, AbstractValue(control=origins))
        for key, item in [*analysis.heap.at[site].fields.items()]:
            if not origins <= item.control:
                analysis.heap.put(site, key, item.under(origins))


def copy_of(analysis: Analysis, node: object, value: AbstractValue, tag: str = "copy") -> AbstractValue:
    """A shallow copy: a new container with the same items."""
    made = AbstractValue(value.alternatives, value.data, value.control)
    for source in value.sites:
        original = analysis.heap.at[source]
        site = analysis.site(node, f"{tag} {original.kind}")
        made = made | analysis.heap.make(site, original.kind, outside=original.outside)
        if source in analysis.buffers:
            analysis.note(analysis.buffers, site)
        for key, item in original.entries():
            analysis.heap.put(site, key, item)
        if original.default is not None:
            analysis.heap.set_default(site, original.default)
        analysis.sized(site, "length", analysis.remember(node, value, tag))
        if len(value.sites) > 1:
            analysis.heap.reorder(site)  # one list may be longer than another, so no place is certain
    return made


def spread(analysis: Analysis, unpacked: AbstractValue, i: int, total: int, starred: bool) -> AbstractValue:
    """The value of place `i` of `total` when `unpacked` is unpacked."""
    item = NEVER
    for site in unpacked.sites:
        one = AbstractValue(sites=frozenset({site}))
        container = analysis.heap.at[site]
        if container.kind == "list" and not starred:
            item = item | container.fields.get(i, NEVER) | container.fields.get(REST, NEVER)
        else:
            item = item | analysis.heap.items(one)
    if unpacked.alternatives:
        item = item | analysis.heap.items(AbstractValue(unpacked.alternatives))
    return AbstractValue(item.alternatives, item.data | unpacked.data, item.control | unpacked.control, item.sites)


def is_plain_list(analysis: Analysis, value: AbstractValue) -> list[AbstractValue] | None:
    """The items of a list with known places, if the value is just that; otherwise None."""
    if len(value.sites) != 1 or value.alternatives:
        return None
    container = analysis.heap.at[only_site(value)]
    fields = container.fields
    if container.kind != "list" or container.growth or any(isinstance(k, Key) and fields[k] != NEVER for k in fields):
        return None
    places = sorted(k for k in fields if isinstance(k, int))
    return [fields[i] for i in places] if places == [*range(len(places))] else None


def numbers(analysis: Analysis, *values: AbstractValue) -> AbstractValue:
    """A number that is computed from values."""
    data, control = analysis.heap.deep(join(values))
    return A_NUMBER._replace(data=data, control=control) if data or control else A_NUMBER


def booleans(analysis: Analysis, *values: AbstractValue, by: str = "") -> AbstractValue:
    """A boolean that is computed from values, by an operator, a function or a method."""
    boolean = text_of(analysis, *values, alternatives=templates.TRUE_OR_FALSE)
    directly = [
        marks_in(v.alternatives) for each in values for v in (each, analysis.heap.items(each) if each.sites else each)
    ]
    return boolean._replace(data=compared(boolean.data, by, frozenset().union(*directly)))


def read_keys(analysis: Analysis, control: Origins, *values: AbstractValue) -> None:
    """Note that keys of all dictionaries in some values are read. A `defaultdict` adds those that are missing."""
    sites = analysis.heap.reach(join(values))
    for site in sites:
        default = analysis.heap.at[site].default
        if default is not None:
            data, decided = analysis.heap.deep(join(values))
            key = AbstractValue(templates.ANYTHING, data, decided)
            store(analysis, AbstractValue(control=control, sites=frozenset({site})), key, default)
            analysis.sized(site, "unknown")  # it can be any number of keys


def read_buffers(analysis: Analysis, control: Origins, *values: AbstractValue) -> None:
    """Note that text buffers inside some containers can be read, each by its place in the container."""
    for value in values if analysis.buffers else ():
        if analysis.buffers.isdisjoint(value.sites):
            inside = frozenset(analysis.buffers & analysis.heap.reach(value))
            concern(analysis, AbstractValue(sites=inside), control | analysis.heap.shape(value))
