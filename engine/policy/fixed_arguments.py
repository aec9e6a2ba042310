"""Whether an argument of a call is fixed by the text of the program and by the arguments of its caller.

The manifest says which templates an argument can have. An argument is fixed if it fits a template that consists only of constants
and of the caller's own arguments. No output of another call has chosen such an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from albert_tools.engine.model.manifest import Alternative, Hole, Value

_STEP = re.compile(r"\.(?P<key>[^.\[\]~]+)|\[(?P<index>\*|[0-9]+)\]|(?P<below>~)")
#: The most places of one parameter that are compared. An argument that comes from one of more places counts as not fixed.
_MAX_PLACES = 10_000
#: Where the authority of a URL ends.
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")

#: Whether a text fits a template, by the caller's arguments.
_Fits = Callable[[tuple[str | Hole, ...], str, Mapping[str, Any]], bool]


def is_fixed(planned: Value, actual: Any, given: Mapping[str, Any]) -> bool:
    """Whether the whole argument is fixed. `given` are the arguments of the program."""
    return _is_fixed(planned, actual, given, _fits_whole)


def is_host_fixed(planned: Value, actual: Any, given: Mapping[str, Any]) -> bool:
    """Whether the beginning of a URL, up to its host, is fixed."""
    return _is_fixed(planned, actual, given, _fits_host)


def _is_fixed(planned: Value, actual: Any, given: Mapping[str, Any], fits: _Fits) -> bool:
    if any(_is(alternative, actual, given, fits) for alternative in planned.alternatives):
        return True
    if isinstance(actual, list) and planned.items is not None:
        return all(_is_fixed(planned.items, item, given, fits) for item in actual)
    if isinstance(actual, dict) and (planned.fields is not None or planned.rest is not None):
        known, rest = planned.fields or {}, planned.rest or Value()
        return all(_is_fixed(known.get(key, rest), value, given, fits) for key, value in actual.items())
    return False


def _is(alternative: Alternative, actual: Any, given: Mapping[str, Any], fits: _Fits) -> bool:
    if not isinstance(alternative, tuple):
        return type(alternative) is type(actual) and alternative == actual
    if len(alternative) == 1 and isinstance(hole := alternative[0], Hole) and hole.kind == "parameter":
        # It can have any type. 1 and True are equal in Python.
        if any(type(value) is type(actual) and value == actual for value in _places(hole, given)):
            return True
    return isinstance(actual, str) and fits(alternative, actual, given)


def _fits_whole(template: tuple[str | Hole, ...], actual: str, given: Mapping[str, Any]) -> bool:
    ends, complete = _ends(template, actual, given)
    return complete and len(actual) in ends


def _fits_host(template: tuple[str | Hole, ...], actual: str, given: Mapping[str, Any]) -> bool:
    authority = _AUTHORITY.match(actual)
    if authority is None:
        return False
    ends, complete = _ends(template, actual, given)
    # The template must also fix the character after the host, or else the host could be longer.
    return any(end > authority.end() or (complete and end == len(actual)) for end in ends)


def _ends(template: tuple[str | Hole, ...], actual: str, given: Mapping[str, Any]) -> tuple[set[int], bool]:
    """Where the fixed parts at the beginning of a template can end in a text, and whether all of its parts are fixed."""
    ends = {0}
    for part in template:
        if isinstance(part, str):
            texts = {part}
        elif part.kind == "parameter":
            texts = {str(v) for v in _places(part, given) if type(v) in (str, int)}
        else:
            return ends, False
        ends = {end + len(text) for end in ends for text in texts if actual.startswith(text, end)}
    return ends, True


def _places(hole: Hole, given: Mapping[str, Any]) -> list[Any]:
    """The values at the place of a parameter that a hole names; none if there are too many."""
    found = [given[hole.name]] if hole.name in given else []
    at = 0
    while at < len(hole.path):
        step = _STEP.match(hole.path, at)
        if step is None:
            return []
        at = step.end()
        found = [inner for value in found for inner in _inner(value, step)]
        if len(found) > _MAX_PLACES:
            return []
    return found


def _inner(value: Any, step: re.Match[str]) -> Iterator[Any]:
    key, index = step["key"], step["index"]
    if step["below"]:
        yield from _all_below(value)
    elif isinstance(value, dict):
        if key == "*" or index == "*":
            yield from value.values()
        elif key in value:
            yield value[key]
    elif isinstance(value, list) and index is not None:
        if index == "*":
            yield from value
        elif int(index) < len(value):
            yield value[int(index)]


def _all_below(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, (list, dict)):
            pending += current.values() if isinstance(current, dict) else current
