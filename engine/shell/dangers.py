"""Named dangers (`dangers.toml`): they explain why a command that is not ordinary asks, and allow nothing."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

#: Characters of a command that are searched. Some patterns take quadratic time.
MAX_SEARCHED = 2000


class Danger(NamedTuple):
    """`pattern` is searched in a command, or if it is `wide` in the whole text; `example` is a command that it matches."""

    name: str
    why: str
    instead: str
    example: str
    pattern: re.Pattern[str]
    wide: bool


@cache
def dangers() -> dict[str, Danger]:
    """All dangers by name, in the order in which they are searched."""
    rows = tomllib.loads(files("albert_tools.engine.shell").joinpath("dangers.toml").read_text("utf-8"))
    return {
        name: Danger(
            name,
            row["why"],
            row["instead"],
            row["example"],
            re.compile(row["pattern"], re.DOTALL),
            row.get("wide", False),
        )
        for name, row in rows.items()
    }


def danger_in(command: str, text: str) -> Danger | None:
    """The first danger that a command matches, or else the whole text that it stands in; None for neither."""
    command, text = command[:MAX_SEARCHED], text[:MAX_SEARCHED]
    wide = _wide_in(text)
    for danger in dangers().values():
        if danger.name in wide if danger.wide else danger.pattern.search(command):
            return danger
    return None


@lru_cache(maxsize=4)
def _wide_in(text: str) -> frozenset[str]:
    """The names of the wide dangers in a text, which is searched once for all its commands."""
    return frozenset(danger.name for danger in dangers().values() if danger.wide and danger.pattern.search(text))
