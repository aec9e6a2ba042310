"""Finds out whether a command can see a file with private data.

Whole folders are searched, so the cheap question comes first: the rules on paths are asked only about names that are private.
Nothing is remembered between two calls: files appear, rules change, and no time stamp tells certainly that a folder is unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.workspace.path_syntax import GIT_FOLDER

#: Folders with packages of others, which are not searched. They are large, and have published certificates (`cacert.pem`).
_PACKAGES = ("node_modules", "site-packages")
#: The most entries that are searched for a private file.
MAX_SEARCHED = 50_000


def private_file(
    named: Iterable[str], roots: Sequence[str], patterns: PathPatterns, allows: Callable[[str], bool]
) -> str | None:
    """The first private file that the rules allow among the paths `named`, of files that need not exist, and below the folders
    `roots`; None if there is none. All paths are absolute.

    A folder that can't be searched counts as private: one with too many entries, or one that the command could make readable.
    """
    for path in map(os.path.normpath, named):
        if patterns.match(path) and allows(path):
            return path
    pending, left = list(roots), MAX_SEARCHED
    for folder in pending:
        try:
            with os.scandir(folder) as listing:
                entries = list(islice(listing, left + 1))
        except PermissionError:
            if _is_own(folder) and allows(folder):
                return folder
            continue
        except OSError:
            # It was deleted.
            continue
        left -= len(entries)
        if left < 0:
            return folder
        names = [entry.name for entry in entries]
        private = frozenset(names if patterns.match(folder) else patterns.names_in(folder, names))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                # The objects of git have no names.
                if entry.name not in _PACKAGES and not entry.path.endswith(f"/{GIT_FOLDER}/objects"):
                    pending.append(entry.path)
            elif entry.name in private and allows(entry.path):
                return entry.path
    return None


def _is_own(folder: str) -> bool:
    """Whether this user can change the rights of a folder, as far as can be seen."""
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return True
