"""Named dangers (`dangers.toml`): they explain why a command that is not ordinary asks, and allow nothing."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

#: Characters of a command that are searched. A text has up to 500 commands, which are all searched.
MAX_SEARCHED = 2000


class Danger(NamedTuple):
    """`pattern` is searched in a command, or if it is `wide` in the whole text; `example` is a command that it matches."""

    name: str
    why: str
    instead: str
    example: str
    pattern: Any
    wide: bool


@cache
def dangers() -> dict[str, Danger]:
    """All dangers by name, in the order in which they are searched. RE2 takes linear time for any text."""
    import re2

    options = re2.Options()
    options.dot_nl = options.never_capture = True
    rows = tomllib.loads(files("albert_tools.engine.shell").joinpath("dangers.toml").read_text("utf-8"))
    return {
        name: Danger(
            name,
            row["why"],
            row["instead"],
            row["example"],
            re2.compile(row["pattern"].encode(), options),
            row.get("wide", False),
        )
        for name, row in rows.items()
    }


def danger_in(command: str, text: str) -> Danger | None:
    """The first danger that a command matches, or else the whole text that it stands in; None for neither."""
    searched, wide = _searched(command), _wide_in(_searched(text))
    for danger in dangers().values():
        if danger.name in wide if danger.wide else danger.pattern.search(searched):
            return danger
    return None


@lru_cache(maxsize=4)
def _wide_in(text: bytes) -> frozenset[str]:
    """The names of the wide dangers in a text, which is searched once for all its commands."""
    return frozenset(danger.name for danger in dangers().values() if danger.wide and danger.pattern.search(text))


def _searched(text: str) -> bytes:
    return text[:MAX_SEARCHED].encode("utf-8", "replace")
