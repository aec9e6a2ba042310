"""Folders beyond the workspace that the owner's rules open: an absolute pattern under `allowed_paths` opens where it begins.

``/data/shared/**`` opens ``/data/shared``, ``$HOME/notes/*.md`` opens ``$HOME/notes``: the longest part that is literal. Where
that leads is found out once, when the rules are read, and from then on no link is followed on the way there. The root says
where files are reached; which of them a tool may touch says the pattern.

Some folders are never opened: the root of the file system and whatever holds the home folder, for then everything would be
open, and what is forbidden as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from albert_tools.engine.policy.path_patterns import PathPatterns, is_wild, literal
from albert_tools.engine.policy.shipped import SHIPPED_FORBIDDEN_PATHS


class Root(NamedTuple):
    """A folder that a pattern opens. `written` is its path as the rules have it, `real` the same without links; `pattern` covers
    files by their real paths; `problem` says why it isn't opened after all."""

    written: str
    real: str
    pattern: str
    problem: str | None = None


def root_of(pattern: str, workspace: str, home: str) -> Root | None:
    """What a pattern of `allowed_paths` opens beyond the workspace; None when it speaks of the workspace only.

    `workspace` and `home` are absolute; `workspace` is canonical.
    """
    if not pattern.startswith(("/", "~", "$HOME")) or _in(pattern, workspace):
        return None
    top, parts = "", [p for p in pattern.split("/") if p not in ("", ".")]
    if parts and parts[0] in ("~", "$HOME"):
        top, parts = home.rstrip("/"), parts[1:]
    wild = next((i for i, p in enumerate(parts) if is_wild(p)), len(parts))
    written = "/".join((top, *parts[:wild])) or "/"
    rest = parts[wild:]
    real = os.path.realpath(written)
    if not rest and os.path.lexists(real) and not os.path.isdir(real):
        # One file: its folder is where it is reached.
        rest = [literal(os.path.basename(real))]
        written, real = os.path.dirname(written), os.path.dirname(real)
    if _in(real, workspace):
        return None
    # A pattern for all that is in a folder means the folder, too: who may read everything may see what there is.
    covered = "/".join((literal(real.rstrip("/")), *([] if rest == ["**"] else rest)))
    return Root(written, real, covered or "/", _unfit(real, os.path.realpath(home)))


def roots_of(roots: Iterable[Root | None]) -> tuple[Root, ...]:
    """One for each folder; not those that have a problem."""
    found = {(root.written, root.real): root for root in roots if root is not None and root.problem is None}
    return tuple(found.values())


def _unfit(real: str, home: str) -> str | None:
    if real == "/":
        return "it would open the whole file system; name a folder"
    if real == home:
        return "it would open your home folder; name a folder in it"
    if _in(home, real):
        return "your home folder is in it; name a folder further down"
    hit = _forbidden(home).match(real)
    return f"{hit[0]!r} is always forbidden" if hit else None


@cache
def _forbidden(home: str) -> PathPatterns:
    return PathPatterns([(p, p) for p in SHIPPED_FORBIDDEN_PATHS], "/", home)


def _in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
