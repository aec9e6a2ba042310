"""Whether a path lies in a folder, by its text alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def within(path: str, *tops: str) -> bool:
    """Whether a path is one of `tops`, or below one. Slashes at their ends don't matter."""
    below = f"{path.rstrip('/')}/"
    return any(below.startswith(f"{top.rstrip('/')}/") for top in tops)


def around(path: str) -> Iterator[str]:
    """The folders around a path, the nearest one first, without ``/``."""
    while path := path.rpartition("/")[0]:
        yield path


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that are not below another one of them. They have no slash at their ends."""
    every = dict.fromkeys(paths)
    return [each for each in every if every.keys().isdisjoint(around(each))]
