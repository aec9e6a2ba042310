"""Checks files with several names (hard links): is one of the names in a forbidden place?

A hard link is not a reference to a file. It is one more name of the same file, and the file doesn't know its other names. Version
control and package caches use many hard links, so refusing all such files would be too strict. Instead, a file with several names
is searched by its identity (device and inode) in the known forbidden places: keys, browser profiles, Albert's own folders. Nearly
all files have only one name and need no search.

The content of each searched folder is cached until the change time of its inode changes; a new name in the folder changes this
time. A folder that changed a moment ago isn't cached, because a second change could get the same time. A folder with symbolic
links isn't cached either, because their targets may change.
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

#: The most files in forbidden places that are compared. A browser's profile has about ten thousand.
MAX_FILES = 200_000

#: Two changes of a folder within this many nanoseconds may get the same change time.
_MOMENT_NS = 50_000_000

Identity = tuple[int, int]


class _Folder(NamedTuple):
    """Content of a folder at its change time (ns): the identities of its files and the names of its subfolders."""

    changed: int
    files: frozenset[Identity]
    folders: tuple[str, ...]


class TooMany(Exception):
    """The places contain more than `MAX_FILES` files."""


class LinkIndex:
    """Finds files in certain places by their identity. Safe to use from any thread."""

    def __init__(self, places: Iterable[Path]) -> None:
        """`places` are files and folders. They need not exist."""
        self.places = tuple(places)
        self._folders: dict[tuple[str, Identity], _Folder] = {}
        self._lock = Lock()

    def place_of(self, facts: os.stat_result) -> Path | None:
        """The place that contains a name of this file, at any depth; None if no place contains one.

        Raises:
            TooMany: the places contain too many files.
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
        # Also search folders on other devices: in an overlay, files and folders have different device numbers.
        return self._below(str(place), wanted)

    def _below(self, top: str, wanted: Identity) -> bool:
        ahead = [top]
        while ahead:
            path = ahead.pop()
            try:
                here = self._folder(path, os.stat(path))
            except OSError:
                # The folder is deleted or not readable for us. Then no tool could create a link to a file in it.
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
                    continue  # A broken link, or a file that was deleted meanwhile.
                if len(files) > MAX_FILES:
                    raise TooMany
        snapshot = _Folder(facts.st_ctime_ns, frozenset(files), tuple(folders))
        if not linked and facts.st_ctime_ns < now - _MOMENT_NS:
            self._folders[key] = snapshot
        else:
            self._folders.pop(key, None)
        return snapshot
