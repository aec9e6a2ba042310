"""Whether an argument of a call is fixed by the text of the program and by the arguments of its caller.

The manifest says which templates an argument can have. An argument is fixed if it fits a template that consists only of constants
and of the caller's own arguments. No output of another call has chosen such an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.manifest import Alternative, Part, PlannedCall, Value, values_in
from albert_tools.engine.model.manifest_match import inside, values_at

#: The beginning of a URL, up to the end of its authority.
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def is_fixed(planned: Value, actual: Any, given: Mapping[str, Any]) -> bool:
    """Whether the whole argument is fixed. `given` are the arguments of the program."""
    return inside(PlannedCall("", arguments={"": _fixed_part(planned)}), {"": actual}, given)


def is_host_fixed(planned: Value, actual: Any, given: Mapping[str, Any]) -> bool:
    """Whether the hosts of a URL, or of a list of URLs, are fixed."""
    templates = [a for v in values_in(planned) for a in v.alternatives if isinstance(a, tuple)]
    urls = actual if isinstance(actual, list) else [actual]
    return all(isinstance(url, str) and any(_fixes_host(t, url, given) for t in templates) for url in urls)


def _fixed_part(planned: Value) -> Value:
    """What is known about a value, without the templates that other calls can fill."""
    return Value(
        tuple(a for a in planned.alternatives if _is_fixed(a)),
        items=None if planned.items is None else _fixed_part(planned.items),
        fields=None if planned.fields is None else {name: _fixed_part(v) for name, v in planned.fields.items()},
        rest=None if planned.rest is None else _fixed_part(planned.rest),
    )


def _is_fixed(alternative: Alternative) -> bool:
    return not isinstance(alternative, tuple) or all(map(_is_fixed_hole, alternative))


def _is_fixed_hole(part: Part) -> bool:
    return isinstance(part, str) or part.kind == "parameter" or (bool(part.of) and all(map(_is_fixed_hole, part.of)))


def _fixes_host(template: tuple[Part, ...], url: str, given: Mapping[str, Any]) -> bool:
    """Whether the fixed parts at the beginning of a template give the beginning of a URL up to its host."""
    authority = _AUTHORITY.match(url)
    if authority is None:
        return False
    ends = {0}
    for part in template:
        if isinstance(part, str):
            texts = {part}
        elif part.kind == "parameter":
            texts = {str(value) for value in values_at(given, part.name, part.path)}
        else:
            # The character after the host must be fixed, too, or else the host could be longer.
            return any(end > authority.end() for end in ends)
        ends = {end + len(text) for end in ends for text in texts if url.startswith(text, end)}
    return len(url) in ends
