"""Finds out whether a command can see a file with private data.

Whole folders are searched, so the cheap question comes first: the rules on paths are asked only about names that are private.
Nothing is remembered between two calls: files appear, rules change, and no time stamp tells certainly that a folder is unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from albert_tools.engine.model.folders import within
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.workspace.path_syntax import GIT_FOLDER

#: The most entries that are searched for a private file, and links that are followed from one path.
MAX_SEARCHED, _MAX_LINKS = 50_000, 40


def private_file(
    paths: Iterable[str], roots: Sequence[str], patterns: PathPatterns, allows: Callable[[str], bool]
) -> str | None:
    """The first private file among `paths` and below them that the rules allow; None if there is none.

    Paths are absolute, and are searched as far as they lie in `roots`: the folders that the command sees. Links are followed. A
    folder that can't be searched counts as private: one with too many entries, or one that the command could make readable.
    """
    named = [*paths]
    for path in map(os.path.normpath, named):
        if patterns.match(path) and allows(path):
            return path
    tops = dict.fromkeys(top for path in named for top in _visible(path, roots))
    # If all is searched that the command sees, links lead to nothing else.
    is_whole = all(root in tops for root in roots)
    pending, left = list(tops), MAX_SEARCHED
    for path in pending:
        is_private = patterns.match(path) is not None
        if is_private and path in tops and allows(path):
            return path
        try:
            with os.scandir(path) as listing:
                entries = list(islice(listing, left + 1))
        except PermissionError:
            if _is_own(path) and allows(path):
                return path
            continue
        except OSError:
            # It is a file, or was deleted.
            continue
        left -= len(entries)
        if left < 0:
            return path
        names = [entry.name for entry in entries]
        private = frozenset(names if is_private else patterns.names_in(path, names))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in private and not is_folder and allows(entry.path):
                return entry.path
            if is_folder and entry.name != GIT_FOLDER:
                pending.append(entry.path)
            elif not is_whole and entry.is_symlink():
                behind = [top for top in _visible(entry.path, roots) if top not in tops]
                tops.update(dict.fromkeys(behind))
                pending += behind
    return None


def _visible(path: str, roots: Iterable[str]) -> Iterator[str]:
    """The part of each root that lies in a path, behind all links.

    A path below ``/proc`` names other files for each process, so all roots lie in it.
    """
    if _leads_to_proc(path):
        return iter(roots)
    real = os.path.realpath(path)
    return (real if within(real, root) else root for root in roots if within(real, root) or within(root, real))


def _leads_to_proc(path: str) -> bool:
    """Whether a path, or a link on its way, leads below ``/proc``."""
    way, names, links = "/", path.split("/")[::-1], 0
    while names and links <= _MAX_LINKS:
        name = names.pop()
        way = os.path.dirname(way) if name == ".." else os.path.join(way, name) if name not in ("", ".") else way
        if within(way, "/proc"):
            return True
        try:
            target = os.readlink(way)
        except OSError:
            continue
        links += 1
        way = "/" if target.startswith("/") else os.path.dirname(way)
        names += target.split("/")[::-1]
    return False


def _is_own(folder: str) -> bool:
    """Whether this user can change the rights of a folder, as far as can be seen."""
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return True
