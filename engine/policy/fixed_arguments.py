"""Whether an argument of a call is fixed by the text of the program and by the arguments of its caller.

The manifest says which templates an argument can have. An argument is fixed if it fits a template that consists only of constants
and of the caller's own arguments. No output of another call has chosen such an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from albert_tools.engine.model.manifest import Alternative, Part, PlannedCall, Value, values_in
from albert_tools.engine.model.manifest_match import inside, values_at
from albert_tools.engine.policy.host_rules import host_of

#: The beginning of a URL, and that up to the end of its authority.
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
#: The kinds of holes that have another form of one text, and of those that have parts of texts.
_FORMS, _PIECES = frozenset({"quoted", "path", "name"}), frozenset({"part", "joined"})


def is_fixed(planned: Value, actual: Any, given: Mapping[str, Any]) -> bool:
    """Whether the whole argument is fixed. `given` are the arguments of the program."""
    return inside(PlannedCall("", arguments={"": _fixed_part(planned)}), {"": actual}, given)


def is_host_fixed(
    planned: Value, actual: Any, given: Mapping[str, Any], is_listed: Callable[[str], bool] = lambda host: False
) -> bool:
    """Whether the hosts of a URL, or of a list of URLs, are fixed.

    That depends on the URL alone: if an output has chosen it, but the host is one that the caller or the text of the program names
    as well, or one that the rules list (`is_listed`), it is no new destination. So is the link to the next page.
    """
    templates = [a for v in values_in(planned) for a in v.alternatives if isinstance(a, tuple)]
    named = {_server_of(text) for text in _texts_in(given)}
    named |= {_server_of(t[0]) for t in templates if len(t) == 1 and isinstance(t[0], str)}
    return all(
        isinstance(url, str)
        and (
            any(_fixes_host(t, url, given) for t in templates)
            or (server := _server_of(url)) in named - {None}
            or (server is not None and is_listed(server[0]))
        )
        for url in (actual if isinstance(actual, list) else [actual])
    )


def _server_of(url: str) -> tuple[str, int] | None:
    """The host and the port of a URL, or of a text that is only a host; None for other texts."""
    scheme = _SCHEME.match(url)
    text = url if scheme is not None else f"https://{url}/"
    host = host_of(text)
    if host is None or (scheme is None and (host != url.lower() or "." not in host)):
        return None
    try:
        port = urlsplit(text).port
    except ValueError:
        return None
    return host, port or (80 if text[:5].lower() == "http:" else 443)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(inner)


def _fixed_part(planned: Value) -> Value:
    """What is known about a value, without the templates that other calls can fill."""
    is_chosen = any(origin.startswith("call:") for origin in planned.data)
    return Value(
        tuple(a for a in planned.alternatives if _is_fixed(a, is_chosen)),
        items=None if planned.items is None else _fixed_part(planned.items),
        fields=None if planned.fields is None else {name: _fixed_part(v) for name, v in planned.fields.items()},
        rest=None if planned.rest is None else _fixed_part(planned.rest),
    )


def _is_fixed(alternative: Alternative, is_chosen: bool) -> bool:
    """`is_chosen` says that an output takes part in the value. From parts of a text it can spell anything."""
    if not isinstance(alternative, tuple):
        return True
    if is_chosen and len(alternative) > 1 and any(_is_one_of_many(part) for part in alternative):
        return False
    return all(_is_fixed_part(part, is_chosen) for part in alternative)


def _is_one_of_many(part: Part) -> bool:
    """Whether a part is a place of a parameter that has many texts."""
    return not isinstance(part, str) and part.kind == "parameter" and ("*" in part.path or part.path.endswith("~"))


def _is_fixed_part(part: Part, is_chosen: bool) -> bool:
    if isinstance(part, str) or part.kind == "parameter":
        return True
    if part.kind not in _FORMS and (is_chosen or part.kind not in _PIECES):
        return False
    inner = [] if part.value is None else [*values_in(part.value)]
    alternatives = [part.of, *(a for value in inner for a in value.alternatives)]
    return not any(value.open for value in inner) and all(_is_fixed(a, is_chosen) for a in alternatives)


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
