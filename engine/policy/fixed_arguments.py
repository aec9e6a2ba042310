"""Whether an argument of a call is fixed by the text of the program and by the arguments of its caller.

The manifest says which templates an argument can have. An argument is fixed if a template that consists only of constants and of
the caller's own texts gives exactly this value. No output of another call has chosen such an argument.

An output that takes part in a value can choose among such texts, for example by an index. One choice gives a text that the program
or its caller has written. Several choices can spell anything, so a text, a list or an object that is made by several is not fixed,
unless the manifest lists all that they can give.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.manifest import Alternative, Hole, Part, Value, values_in
from albert_tools.engine.model.manifest_match import values_at
from albert_tools.engine.policy.host_rules import host_of

#: A host and a port.
Server = tuple[str, int]

#: The beginning of a URL, one in the text of a program, and that up to the end of its authority.
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'\\{}]+", re.IGNORECASE)
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
#: A number that the program has computed.
_NUMBER = Hole("number")
#: The most texts of a template that are compared. A template with more is not fixed.
_MAX_TEXTS = 1_000
#: The holes that are another form of a text.
_FORMS: Mapping[str, Callable[[str], str]] = {
    "quoted": shlex.quote,
    "path": posixpath.normpath,
    "name": lambda path: posixpath.basename(path.rstrip("/")),
}


def is_fixed(planned: Value, actual: Any, given: Mapping[str, Any], takes_numbers: bool = True) -> bool:
    """Whether the whole argument is fixed. `given` are the arguments of the program. With `takes_numbers`, one that it has computed
    may be any number."""
    is_chosen = _is_chosen(planned)
    if any(_gives(a, actual, given, is_chosen, takes_numbers and not is_chosen) for a in planned.alternatives):
        return True
    if isinstance(actual, list):
        items, places = planned.items, planned.places
        if places is not None and len(places) == len(actual) and sum(map(_is_chosen, places)) <= 1:
            return all(is_fixed(p, item, given, takes_numbers) for p, item in zip(places, actual, strict=True))
        if items is None:
            return False
        return not actual or (
            not _is_chosen(items) and all(is_fixed(items, item, given, takes_numbers) for item in actual)
        )
    if isinstance(actual, dict) and (planned.fields is not None or planned.rest is not None):
        # An output can be a name, too.
        rest = None if planned.rest is None or is_chosen or _is_chosen(planned.rest) else planned.rest
        described = [((planned.fields or {}).get(name, rest), item) for name, item in actual.items()]
        is_spelled = sum(value is not None and _is_chosen(value) for value, _ in described) > 1
        return not is_spelled and all(
            value is not None and is_fixed(value, item, given, takes_numbers) for value, item in described
        )
    return False


def is_host_fixed(
    planned: Value, actual: Any, given: Mapping[str, Any], is_named: Callable[[Server], bool] = lambda server: False
) -> bool:
    """Whether the hosts of a URL, or of a list of URLs, are fixed.

    That depends on the URL alone: if an output has chosen it, but the host is one that the caller names as well, or the text of the
    program or the rules (`is_named`), it is not a new destination. An example is the link to the next page.
    """
    templates = [(a, _is_chosen(v)) for v in values_in(planned) for a in v.alternatives if isinstance(a, tuple)]
    named = {_server_of(text) for text in _texts_in(given)}
    named |= {_server_of(t[0]) for t, _ in templates if len(t) == 1 and isinstance(t[0], str)}
    return all(
        isinstance(url, str)
        and (
            any(_gives_host(t, url, given, is_chosen) for t, is_chosen in templates)
            or ((server := _server_of(url)) is not None and (server in named or is_named(server)))
        )
        for url in (actual if isinstance(actual, list) else [actual])
    )


@lru_cache(maxsize=256)
def servers_in(source: str) -> frozenset[Server]:
    """The servers of all URLs in a source. The manifest doesn't have them all: an unknown value hides the constants next to it."""
    return frozenset(filter(None, map(_server_of, _URL.findall(source))))


def _server_of(url: str) -> Server | None:
    """The host and the port of a URL; None for other texts. A host alone can be the name of a file, such as ``readme.md``."""
    host = host_of(url) if _SCHEME.match(url) else None
    if host is None:
        return None
    try:
        port = urlsplit(url).port
    except ValueError:
        return None
    return host, port or (80 if url[:5].lower() == "http:" else 443)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(inner)


def takes_outputs(planned: Value) -> bool:
    """Whether an output takes part in a value, or in a part of it."""
    return any(map(_is_chosen, values_in(planned)))


def _is_chosen(planned: Value) -> bool:
    """Whether an output takes part in a value."""
    return any(origin.startswith("call:") for origin in planned.data)


def _gives(
    alternative: Alternative, actual: Any, given: Mapping[str, Any], is_chosen: bool, takes_numbers: bool
) -> bool:
    """Whether an alternative is fixed, and gives the value. `is_chosen` says whether an output takes part in it."""
    if not isinstance(alternative, tuple):
        return type(alternative) is type(actual) and alternative == actual
    if is_chosen and _choices(alternative) > 1:
        return False
    first = alternative[0] if len(alternative) == 1 else ""
    if isinstance(first, Hole) and first.kind == "parameter":
        same = canonical(actual)
        if any(canonical(value) == same for value in values_at(given, first.name, first.path)):
            return True
    if not isinstance(actual, str):
        return False
    ends, is_whole = _ends(alternative, actual, given, is_chosen=False, takes_numbers=takes_numbers)
    return is_whole and len(actual) in ends


def _gives_host(template: tuple[Part, ...], url: str, given: Mapping[str, Any], is_chosen: bool) -> bool:
    """Whether the fixed parts at the beginning of a template give the beginning of a URL up to its host."""
    authority = _AUTHORITY.match(url)
    if authority is None:
        return False
    ends, is_whole = _ends(template, url, given, is_chosen)
    # The character after the host must be fixed, too, or else the host could be longer.
    return len(url) in ends if is_whole else any(end > authority.end() for end in ends)


def _ends(
    template: tuple[Part, ...], text: str, given: Mapping[str, Any], is_chosen: bool, takes_numbers: bool = False
) -> tuple[set[int], bool]:
    """Where the fixed parts at the beginning of a template can end in a text, and whether these are all its parts. With
    `is_chosen`, one of many texts is not fixed. With `takes_numbers`, any number is."""
    ends = {0}
    for part in template:
        if takes_numbers and part == _NUMBER:
            ends = {start + n for start in ends for n in range(_digits(text, start) + 1)}
            continue
        texts = None if is_chosen and _choices((part,)) else _texts_of(part, given)
        if texts is None:
            return ends, False
        ends = {end + len(piece) for end in ends for piece in texts if text.startswith(piece, end)}
    return ends, True


def _digits(text: str, start: int) -> int:
    """The most characters of a number that begins there."""
    return len(text) - start - len(text[start:].lstrip("0123456789.+-"))


def _texts_of(part: Part, given: Mapping[str, Any]) -> set[str] | None:
    """The texts that a part of a template can be; None if it is not fixed."""
    if isinstance(part, str):
        return {part}
    if part.kind == "parameter":
        return {str(value) for value in values_at(given, part.name, part.path)}
    if part.kind not in _FORMS or not part.of:
        return None
    wholes = {""}
    for inner in part.of:
        texts = _texts_of(inner, given)
        if texts is None or len(wholes) * len(texts) > _MAX_TEXTS:
            return None
        wholes = {whole + text for whole in wholes for text in texts}
    return {_FORMS[part.kind](whole) for whole in wholes}


def _choices(template: tuple[Part, ...]) -> int:
    """How many parts of a template are one of many texts of a parameter."""
    holes = [part for part in template if isinstance(part, Hole)]
    return sum(_is_one_of_many(hole) if hole.kind == "parameter" else _choices(hole.of) for hole in holes)


def _is_one_of_many(hole: Hole) -> bool:
    """Whether a parameter has many texts at the place of a hole."""
    return "*" in hole.path or hole.path.endswith("~")
