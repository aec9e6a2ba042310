"""Files with several names, and whether one of the names is in a forbidden place.

A hard link is not a way to a file: it *is* the file, under one more name, and nothing about it says where the other names are.
To refuse every such file would refuse what version control and package caches are full of. So a file with several names is
looked for in the places that are known and forbidden (keys, profiles, Albert's own), by identity. Files with one name, which
is nearly all, cost nothing.

What a place holds is kept per folder until the folder changes, as its inode says: a new name in it is such a change. A folder
that changed just now may change again without a new time, so it is not kept; nor is one with symbolic links, whose targets may
change alone.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from albert_tools.engine.workspace.openat import identity

#: Files of forbidden places that are looked at; a browser's profile has some ten thousand. With more, nothing is certain.
MAX_FILES = 200_000

#: Nanoseconds in which two changes of a folder may bear the same time.
_MOMENT_NS = 50_000_000

Identity = tuple[int, int]


class _Folder(NamedTuple):
    """What a folder held at its time of change (ns): the identities of its files, the names of its folders."""

    changed: int
    files: frozenset[Identity]
    folders: tuple[str, ...]


class TooMany(Exception):
    """There are more than `MAX_FILES`."""


class LinkIndex:
    """The files in some places, by identity. Safe to use from any thread."""

    def __init__(self, places: Iterable[Path]) -> None:
        """`places` are files and folders; they need not exist."""
        self.places = tuple(places)
        self._folders: dict[tuple[str, Identity], _Folder] = {}
        self._lock = Lock()

    def place_of(self, facts: os.stat_result) -> Path | None:
        """The place that a file, known by its `facts`, has a name in, itself or further down; None when there is none.

        Raises:
            TooMany: that can't be told.
        """
        wanted = identity(facts)
        with self._lock:
            self._left = MAX_FILES
            return next((place for place in self.places if self._holds(place, wanted)), None)

    def _holds(self, place: Path, wanted: Identity) -> bool:
        try:
            top = os.stat(place)
        except OSError:
            return False
        if not stat.S_ISDIR(top.st_mode):
            return identity(top) == wanted
        # Folders on another device are looked through as well: an overlay gives its files other devices than its folders.
        return self._below(str(place), wanted)

    def _below(self, top: str, wanted: Identity) -> bool:
        ahead = [top]
        while ahead:
            path = ahead.pop()
            try:
                here = self._folder(path, os.stat(path))
            except OSError:
                # Gone, or closed to us; then no name in it was given away by us either.
                continue
            if wanted in here.files:
                return True
            self._left -= len(here.files) + 1
            if self._left < 0:
                raise TooMany
            ahead.extend(f"{path}/{name}" for name in here.folders)
        return False

    def _folder(self, path: str, facts: os.stat_result) -> _Folder:
        key = path, identity(facts)
        kept = self._folders.get(key)
        if kept is not None and kept.changed == facts.st_ctime_ns:
            return kept
        now = time.time_ns()
        files, folders, linked = set(), [], False
        with os.scandir(path) as entries:
            for entry in entries:
                linked = linked or entry.is_symlink()
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                    continue
                try:
                    files.add(identity(os.stat(entry.path)))
                except OSError:
                    continue  # A link to nothing, or gone meanwhile.
                if len(files) > MAX_FILES:
                    raise TooMany
        found = _Folder(facts.st_ctime_ns, frozenset(files), tuple(folders))
        if not linked and facts.st_ctime_ns < now - _MOMENT_NS:
            self._folders[key] = found
        else:
            self._folders.pop(key, None)
        return found
