"""Walking through a folder and all folders under it, in the order of their paths, with bounds on names, entries and depth."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import openat
from albert_tools.engine.workspace.files import LISTED, EntryType, spoken
from albert_tools.engine.workspace.path_syntax import show

#: Names of one folder, which are held in memory and sorted; entries of a whole walk; folders within folders.
MAX_NAMES = 100_000
MAX_WALKED = 1_000_000
MAX_DEPTH = 200


class Met(NamedTuple):
    """An entry that a walk meets. `path` is for showing, `absolute` for rules; `folder` is open until the walk continues."""

    path: str
    type: EntryType
    absolute: str
    folder: int
    name: str


class _Level(NamedTuple):
    """A folder that the walk is in: its descriptor, its path with a slash, its absolute path, its entries that are left."""

    handle: int
    prefix: str
    absolute: str
    entries: Iterator[tuple[EntryType | None, str]]


def walk_folder(
    handle: int, shown: str, absolute: str, closed: set[tuple[int, int]], enter: Callable[[Met], bool]
) -> Generator[Met, None, None]:
    """Everything under an open folder, sorted by path.

    A folder is entered if `enter` says so, and stays open until the walk has left it. Links are met and not followed. Folders in
    `closed`, those that can't be opened and those that disappear are not entered.

    Args:
        handle: The folder, open for reading; closed at the end.
        shown: Its path, for showing; ``.`` for the working directory.
        absolute: Its absolute path.
        closed: The identities of the folders that are never entered.
        enter: Whether to enter a folder.

    Raises:
        Failure: `too_large` past `MAX_NAMES`, `MAX_WALKED` or `MAX_DEPTH`.
    """
    levels: list[_Level] = []
    walked = 0

    def begin(handle: int, path: str, absolute: str) -> None:
        # The level first, so that the descriptor is closed if sorting fails.
        levels.append(_Level(handle, "" if path == "." else f"{path.rstrip('/')}/", absolute, iter(())))
        levels[-1] = levels[-1]._replace(entries=iter(_sorted(handle, path)))

    try:
        begin(handle, shown, absolute)
        while levels:
            level = levels[-1]
            kind, name = next(level.entries, ("other", ""))
            if not name:
                os.close(levels.pop().handle)
                continue
            path, absolute = level.prefix + spoken(name), f"{level.absolute}/{name}"
            met = Met(path, kind or "directory", absolute, level.handle, name)
            if kind is not None:
                walked += 1
                if walked > MAX_WALKED:
                    raise _too_many(shown, f"more than {MAX_WALKED:,} entries")
                yield met
            elif enter(met):
                if len(levels) == MAX_DEPTH:
                    # Skipped in silence, what is in there would seem not to exist.
                    raise _too_many(shown, f"folders more than {MAX_DEPTH} deep")
                inner = _opened(met, closed)
                if inner is not None:
                    begin(inner, path, absolute)
    finally:
        for level in levels:
            os.close(level.handle)


def _opened(met: Met, closed: set[tuple[int, int]]) -> int | None:
    """A folder, open for reading; None if it is one of `closed`, or can't be opened."""
    try:
        handle = os.open(met.name, LISTED | os.O_NOFOLLOW, dir_fd=met.folder)
    except OSError:
        return None
    if openat.identity(os.fstat(handle)) in closed:
        os.close(handle)
        return None
    return handle


def _sorted(folder: int, path: str) -> list[tuple[EntryType | None, str]]:
    """What is in an open folder, in the order in which the paths of everything under it are sorted.

    A folder occurs twice: itself, and, as None, where its content has its place, behind names like ``folder.old``.
    """
    found: list[tuple[bytes, EntryType | None, str]] = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count == MAX_NAMES:
                raise _too_many(path, f"more than {MAX_NAMES:,} names in one folder")
            key = os.fsencode(entry.name)
            if entry.is_symlink():
                found.append((key, "symlink", entry.name))
            elif entry.is_dir(follow_symlinks=False):
                found += [(key, "directory", entry.name), (key + b"/", None, entry.name)]
            else:
                found.append((key, "file" if entry.is_file(follow_symlinks=False) else "other", entry.name))
    found.sort(key=lambda line: line[0])
    return [(kind, name) for _, kind, name in found]


def _too_many(path: str, what: str) -> Failure:
    return Failure("too_large", f"{show(path)} has {what}", hint="look in one of its folders")
