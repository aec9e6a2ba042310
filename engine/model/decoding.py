"""Decodes texts that are a value in an encoding: where such a text can end, and what it says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

#: Whether a decoded value is the one that is looked for.
Fits = Callable[[Any], bool]

_JSON = json.JSONDecoder()
_RUNS = {
    "base64": re.compile(r"[A-Za-z0-9+/=_-]*"),
    "percent": re.compile(r"[A-Za-z0-9_.~/%+-]*"),
    "query": re.compile(r"[A-Za-z0-9_.~%+=&-]*"),
}


def ends_of(kind: str, text: str, start: int, fits: Fits) -> Iterator[int]:
    """The places at which a text of this kind that begins at `start` can end, if its value fits.

    Where something can follow that looks as if it belonged to it, ends before the last one are possible with any value.
    """
    if kind == "json":
        yield from _ends_of_json(text, start, fits)
        return
    run = _RUNS[kind].match(text, start)
    assert run is not None
    yield from range(start, run.end())
    try:
        value = _DECODERS[kind](run[0])
    except ValueError:
        return
    if fits(value):
        yield run.end()


def _ends_of_json(text: str, start: int, fits: Fits) -> Iterator[int]:
    try:
        value, end = _JSON.raw_decode(text, start)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict | list | str) or end == len(text):
        if fits(value):
            yield end
    if not isinstance(value, dict | list | str):
        yield from range(start, end + (end < len(text)))


def _from_base64(text: str) -> str:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True).decode()


def _from_query(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True)


_DECODERS: Mapping[str, Callable[[str], Any]] = {"base64": _from_base64, "percent": unquote_plus, "query": _from_query}
