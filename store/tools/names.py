"""Converts a tool's name to its path on disk, and back.

An entry is `<shard>/<stem>.json`. The shard is two hex digits of the name's sha256. Shards keep the folders small, and each shard
has its own lock. The stem is the name itself, so that a person finds the file. `readfile` and `readFile` are two tools, but they
would be one file on a case-insensitive disk. So a name with capitals gets a suffix with one bit for each letter: `readFile`
becomes `readFile-10`, with bit 4 set. A tool's name contains no `-` or `.`, so the suffix is unambiguous.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.primitive import NAME

#: The hash of a version. It is checked before it becomes part of a path.
VERSION = re.compile(r"[0-9a-f]{64}\Z")
#: A prefix of such a hash, long enough to be unique in practice.
PREFIX = re.compile(r"[0-9a-f]{6,63}\Z")
SHARD = re.compile(r"[0-9a-f]{2}\Z")
ENTRY_SUFFIX = ".json"
#: The most places that are cached. Each call of a saved tool needs the place of its file.
_MAX_PLACES = 1000


def stem_of(name: str) -> str:
    """The file name for `name`, without the ending `.json`."""
    capitals = sum(1 << i for i, letter in enumerate(name) if letter.isupper())
    return f"{name}-{capitals:x}" if capitals else name


def shard_of(name: str) -> str:
    """The folder for `name`: two hex digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:2]


def name_at(shard: str, file: str) -> tuple[str, str | None]:
    """Returns the tool's name for an entry file, and the mistake in the file's path, or None."""
    stem = file.removesuffix(ENTRY_SUFFIX)
    name = stem.partition("-")[0]
    if not NAME.match(name):
        return stem, f"{stem!r} is not a tool's name"
    if stem_of(name) != stem:
        return name, f"the file of {name!r} should be called {stem_of(name) + ENTRY_SUFFIX}"
    if shard_of(name) != shard:
        return name, f"the file of {name!r} belongs in the folder {shard_of(name)}, not in {shard}"
    return name, None


class Place(NamedTuple):
    """The paths of one tool's files. `name` must have been checked against `NAME`."""

    shard: Path
    entry: Path
    archive: Path

    @classmethod
    @lru_cache(_MAX_PLACES)
    def of(cls, folder: Path, name: str) -> Place:
        """The place of `name` in the store at `folder`."""
        shard = folder / shard_of(name)
        stem = stem_of(name)
        return cls(shard, shard / (stem + ENTRY_SUFFIX), shard / (stem + ".archive"))

    def archived(self, version: str) -> Path:
        """The file of one archived version. `version` must have been checked against `VERSION`."""
        return self.archive / (version + ENTRY_SUFFIX)
