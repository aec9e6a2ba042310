"""Files with several names (hard links): does one of the names lie in a forbidden place?

A hard link does not lead to a file: it *is* the file, under one more name, and doesn't say where the other names are. Refusing all
such files would refuse much of what version control and package caches hold. So a file with several names is searched for, by
identity, in the known forbidden places (keys, profiles, Albert's own). Files with one name, which are nearly all, cost nothing.

What a folder of such a place holds is cached until its inode changes; a new name in it changes the inode. A folder that changed
just now may change again without a new time, so it isn't cached; nor is one with symbolic links, whose targets may change.
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

#: Files of forbidden places that are compared; a browser's profile has some ten thousand.
MAX_FILES = 200_000

#: Nanoseconds in which two changes of a folder may have the same time.
_MOMENT_NS = 50_000_000

Identity = tuple[int, int]


class _Folder(NamedTuple):
    """What a folder held at its time of change (ns): the identities of its files, the names of its folders."""

    changed: int
    files: frozenset[Identity]
    folders: tuple[str, ...]


class TooMany(Exception):
    """There are more than `MAX_FILES` to compare."""


class LinkIndex:
    """The files in some places, by identity. Safe to use from any thread."""

    def __init__(self, places: Iterable[Path]) -> None:
        """`places` are files and folders; they need not exist."""
        self.places = tuple(places)
        self._folders: dict[tuple[str, Identity], _Folder] = {}
        self._lock = Lock()

    def place_of(self, facts: os.stat_result) -> Path | None:
        """The place in which, at any depth, a file with these facts has a name; None if in none.

        Raises:
            TooMany: the places hold too many files.
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
        # Folders on another device are searched as well: an overlay gives its files other devices than its folders.
        return self._below(str(place), wanted)

    def _below(self, top: str, wanted: Identity) -> bool:
        ahead = [top]
        while ahead:
            path = ahead.pop()
            try:
                here = self._folder(path, os.stat(path))
            except OSError:
                # Deleted, or closed to us; then no tool of ours made a link to a file in it.
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
        cached = self._folders.get(key)
        if cached is not None and cached.changed == facts.st_ctime_ns:
            return cached
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
                    continue  # A link to nothing, or deleted meanwhile.
                if len(files) > MAX_FILES:
                    raise TooMany
        found = _Folder(facts.st_ctime_ns, frozenset(files), tuple(folders))
        if not linked and facts.st_ctime_ns < now - _MOMENT_NS:
            self._folders[key] = found
        else:
            self._folders.pop(key, None)
        return found
