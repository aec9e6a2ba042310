"""Whether a path lies in a folder, by its text alone."""

from __future__ import annotations

from collections.abc import Iterable


def within(path: str, *tops: str) -> bool:
    """Whether a path is one of `tops`, or below one. Slashes at their ends don't matter."""
    below = f"{path.rstrip('/')}/"
    return any(below.startswith(f"{top.rstrip('/')}/") for top in tops)


def outermost(folders: Iterable[str]) -> list[str]:
    """The folders that are not within another one of them."""
    every = list(dict.fromkeys(folders))
    return [each for each in every if not any(each != other and within(each, other) for other in every)]
