"""Whether a path lies in a folder, by its text alone."""

from __future__ import annotations


def within(path: str, *tops: str) -> bool:
    """Whether a path is one of `tops`, or below one. Slashes at their ends don't matter."""
    below = f"{path.rstrip('/')}/"
    return any(below.startswith(f"{top.rstrip('/')}/") for top in tops)
