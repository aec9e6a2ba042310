"""Whether a path lies in a folder, by its text alone; variables without such paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping


def within(path: str, *tops: str) -> bool:
    """Whether a path is one of `tops`, or below one. Slashes at their ends don't matter."""
    below = f"{path.rstrip('/')}/"
    return any(below.startswith(f"{top.rstrip('/')}/") for top in tops)


def outside(environ: Mapping[str, str], *tops: str) -> dict[str, str]:
    """The variables without the parts that name a path in one of the folders `tops`, where tools could write programs and modules,
    and without variables that are then empty. Relative paths stay, so start a program outside of `tops`."""

    def stays(part: str) -> bool:
        names = any(f"{top}/" in f"{part}/" for top in tops)
        return not (names or (part.startswith("/") and within(os.path.realpath(part), *tops)))

    left = {name: ":".join(filter(stays, value.split(":"))) for name, value in environ.items()}
    return {name: value for name, value in left.items() if value or not environ[name]}


def around(path: str) -> Iterator[str]:
    """The folders around a path, the nearest one first, without ``/``."""
    while path := path.rpartition("/")[0]:
        yield path


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that are not below another one of them. They have no slash at their ends."""
    every = dict.fromkeys(paths)
    return [each for each in every if every.keys().isdisjoint(around(each))]
