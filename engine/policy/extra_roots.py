"""Extra roots: folders outside the workspace that the owner's rules open.

An absolute pattern under `allowed_paths` opens the folder at its beginning, up to the first wildcard. ``/data/shared/**`` opens
``/data/shared``, and ``$HOME/notes/*.md`` opens ``$HOME/notes``. Links in this path are resolved once, when the rules are read.
Afterwards, no link in it is followed. The root is the folder through which files are reached. The pattern decides which files in
it a tool may use.

The root of the file system, folders that contain the home folder, and forbidden folders are never opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from albert_tools.engine.model.folders import within
from albert_tools.engine.policy.path_patterns import PathPatterns, is_wild, literal
from albert_tools.engine.policy.shipped import SHIPPED_FORBIDDEN_PATHS


class Root(NamedTuple):
    """A folder that a pattern opens. `written` is its path in the rules, `real` its path without links.

    `pattern` matches the real paths of the files. `problem` is the reason why the folder isn't opened.
    """

    written: str
    real: str
    pattern: str
    problem: str | None = None


def root_of(pattern: str, workspace: str, home: str) -> Root | None:
    """The folder that a pattern of `allowed_paths` opens; None if the pattern applies only to the workspace.

    `workspace` and `home` are absolute; `workspace` is canonical.
    """
    if not pattern.startswith(("/", "~", "$HOME")) or within(pattern, workspace):
        return None
    top, parts = "", [p for p in pattern.split("/") if p not in ("", ".")]
    if parts and parts[0] in ("~", "$HOME"):
        top, parts = home.rstrip("/"), parts[1:]
    wild = next((i for i, p in enumerate(parts) if is_wild(p)), len(parts))
    written = "/".join((top, *parts[:wild])) or "/"
    rest = parts[wild:]
    real = os.path.realpath(written)
    if not rest and os.path.lexists(real) and not os.path.isdir(real):
        # A single file is reached through its parent folder.
        rest = [literal(os.path.basename(real))]
        written, real = os.path.dirname(written), os.path.dirname(real)
    if within(real, workspace):
        return None
    # A pattern for the whole content of a folder also matches the folder itself, so that the folder can be listed.
    covered = "/".join((literal(real.rstrip("/")), *([] if rest == ["**"] else rest)))
    return Root(written, real, covered or "/", _problem(real, os.path.realpath(home)))


def roots_of(roots: Iterable[Root | None]) -> tuple[Root, ...]:
    """Remove duplicate roots, and roots with a problem."""
    unique_roots = {(root.written, root.real): root for root in roots if root is not None and root.problem is None}
    return tuple(unique_roots.values())


def _problem(real: str, home: str) -> str | None:
    if real == "/":
        return "it would open the whole file system; name a folder"
    if real == home:
        return "it would open your home folder; name a folder in it"
    if within(home, real):
        return "it contains your home folder; name a folder further down"
    hit = _forbidden(home).match(real)
    return f"{hit[0]!r} is always forbidden" if hit else None


@cache
def _forbidden(home: str) -> PathPatterns:
    return PathPatterns([(p, p) for p in SHIPPED_FORBIDDEN_PATHS], "/", home)
