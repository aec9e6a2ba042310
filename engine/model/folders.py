"""Whether a path lies in a folder, by its text alone; variables without such paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

#: A path in an option or a list. Bash also looks for programs below `~`.
_PATH = re.compile(r"~?/[^\s=,;'\"()]*")


def within(path: str, *tops: str) -> bool:
    """Whether a path is one of `tops`, or below one. Slashes at their ends don't matter."""
    below = f"{path.rstrip('/')}/"
    return any(below.startswith(f"{top.rstrip('/')}/") for top in tops)


def outside(environ: Mapping[str, str], *tops: str) -> dict[str, str]:
    """The variables without what names a path in one of the folders `tops`, where tools could write programs and modules. Relative
    paths stay, so start a program outside of `tops`."""

    def stays(part: str) -> bool:
        # A path may have spaces.
        paths = [path for found in _PATH.finditer(part) for path in (found[0], part[found.start() :])]
        return not any(
            within(path, *tops) or within(os.path.realpath(os.path.expanduser(path)), *tops) for path in paths
        )

    left = dict(environ)
    for name, value in environ.items():
        parts = value.split(":")
        staying = [part for part in parts if stays(part)]
        if len(staying) < len(parts):
            # Only of a list of folders, a part can be left out.
            left[name] = ":".join(staying) if all(part[:1] in ("", "/", "~") for part in parts) else ""
            if not left[name]:
                del left[name]
    return left


def around(path: str) -> Iterator[str]:
    """The folders around a path, the nearest one first, without ``/``."""
    while path := path.rpartition("/")[0]:
        yield path


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that are not below another one of them. They have no slash at their ends."""
    every = dict.fromkeys(paths)
    return [each for each in every if every.keys().isdisjoint(around(each))]
