"""Walks through a folder and all its subfolders, in the order of their paths, with limits on names, entries and depth."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import openat
from albert_tools.engine.workspace.files import LISTED, EntryType, spoken
from albert_tools.engine.workspace.path_syntax import show

#: Limits: names of one folder, which are sorted in memory; entries of a whole walk; depth of nested folders.
MAX_NAMES = 100_000
MAX_WALKED = 1_000_000
MAX_DEPTH = 200


class Met(NamedTuple):
    """An entry that a walk finds. `path` is for messages, `absolute` for rules. `folder` stays open until the walk continues."""

    path: str
    type: EntryType
    absolute: str
    folder: int
    name: str


class _Level(NamedTuple):
    """A folder that the walk is in: its descriptor, its path with a slash, its absolute path, and its remaining entries."""

    handle: int
    prefix: str
    absolute: str
    entries: Iterator[tuple[EntryType | None, str]]


def walk_folder(
    handle: int, shown: str, absolute: str, closed: set[tuple[int, int]], enter: Callable[[Met], bool]
) -> Generator[Met, None, None]:
    """Everything under an open folder, sorted by path.

    The walk enters a folder if `enter` returns true, and the folder stays open until the walk leaves it. Links are reported but
    not followed. The walk doesn't enter folders in `closed`, folders that can't be opened, and folders that were deleted
    meanwhile.

    Args:
        handle: The folder, open for reading. It is closed at the end.
        shown: Its path for messages; ``.`` for the working directory.
        absolute: Its absolute path.
        closed: The identities of the folders that are never entered.
        enter: Returns whether to enter a folder.

    Raises:
        Failure: `too_large` beyond `MAX_NAMES`, `MAX_WALKED` or `MAX_DEPTH`.
    """
    levels: list[_Level] = []
    walked = 0

    def begin(handle: int, path: str, absolute: str) -> None:
        # Append the level before sorting, so that the descriptor is closed if sorting fails.
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
                    # Without an error, the content would seem not to exist.
                    raise _too_many(shown, f"folders more than {MAX_DEPTH} deep")
                inner = _opened(met, closed)
                if inner is not None:
                    begin(inner, path, absolute)
    finally:
        for level in levels:
            os.close(level.handle)


def _opened(met: Met, closed: set[tuple[int, int]]) -> int | None:
    """A descriptor of a folder, open for reading; None if it is in `closed` or can't be opened."""
    try:
        handle = os.open(met.name, LISTED | os.O_NOFOLLOW, dir_fd=met.folder)
    except OSError:
        return None
    if openat.identity(os.fstat(handle)) in closed:
        os.close(handle)
        return None
    return handle


def _sorted(folder: int, path: str) -> list[tuple[EntryType | None, str]]:
    """The entries of an open folder, in the sort order of all paths beneath it.

    A folder occurs twice: first as an entry, then with type None at the position of its content, after names like ``folder.old``.
    """
    lines: list[tuple[bytes, EntryType | None, str]] = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count == MAX_NAMES:
                raise _too_many(path, f"more than {MAX_NAMES:,} names in one folder")
            key = os.fsencode(entry.name)
            if entry.is_symlink():
                lines.append((key, "symlink", entry.name))
            elif entry.is_dir(follow_symlinks=False):
                lines += [(key, "directory", entry.name), (key + b"/", None, entry.name)]
            else:
                lines.append((key, "file" if entry.is_file(follow_symlinks=False) else "other", entry.name))
    lines.sort(key=lambda line: line[0])
    return [(kind, name) for _, kind, name in lines]


def _too_many(path: str, what: str) -> Failure:
    return Failure("too_large", f"{show(path)} has {what}", hint="look in one of its folders")
