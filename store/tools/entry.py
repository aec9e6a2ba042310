"""Reading one entry: the hot path of running a saved tool.

TinyDB's file format is plain JSON, `{table: {id: document}}`, so a reader needs only `json`; TinyDB itself,
which takes as long to import as a tool takes to run, is for writers. A reader takes no lock: writers replace
whole files, so whatever is opened is one complete entry, old or new.

Nothing read here is believed. What is not in the layout is `Damaged` with a reason, and a version is handed
out only after `ToolVersion.from_document` has proved that it hashes to its name.
"""

from __future__ import annotations

import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.store.tools.migrate import META, VERSIONS, NewerSchema, Tables, migrate
from albert_tools.store.tools.names import VERSION

#: Bytes. Twenty versions of a tool are some hundred kilobytes; a file this large is not an entry.
MAX_ENTRY = 64 * 1024 * 1024

#: More archived versions than anyone will save; a larger count is not a count.
MAX_ARCHIVED = 2**31

#: Nanoseconds. Two writes within one tick of a coarse file system's clock (2 s on the worst in use) leave the
#: same times, so a stamp proves a file unchanged only when it was older than this when it was taken.
SETTLING = 2_000_000_000

#: What tells one content of a path from another: modification and change time (ns), size (bytes), inode.
Stamp = tuple[int, int, int, int]


class Damaged(Exception):
    """An entry that is not what was saved; the text says why. `newer`: it is from a later release."""

    def __init__(self, why: str, newer: bool = False) -> None:
        super().__init__(why)
        self.newer = newer


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, in the present layout. `settled` says that `stamp` can be compared with later ones."""

    tables: Tables
    stamp: Stamp
    settled: bool

    @property
    def meta(self) -> dict[str, Any]:
        """The row about the whole entry."""
        row: dict[str, Any] = self.tables[META]["1"]
        return row

    @property
    def head(self) -> str:
        """The newest version's hash."""
        return str(self.meta["head"])

    @property
    def deleted(self) -> bool:
        """Whether the tool has been taken off the list."""
        return self.meta["deleted"] is True

    @property
    def count(self) -> int:
        """How many versions there are, archived ones included."""
        return len(self.tables[VERSIONS]) + int(self.meta["archived"])

    def version(self, version: str) -> ToolVersion | None:
        """The version of that hash, proved; None when it is not in this file.

        Raises:
            Damaged: it is here but is not what was saved.
        """
        for document in self.tables[VERSIONS].values():
            if document["version"] == version:
                return prove(document, self.meta["name"])
        return None

    def newest(self) -> ToolVersion:
        """The newest version, proved.

        Raises:
            Damaged: it is not what was saved.
        """
        found = self.version(self.head)
        if found is None:
            raise Damaged("its newest version is missing")
        return found


def prove(document: Any, name: str) -> ToolVersion:
    """The version that a stored document holds.

    Raises:
        Damaged: it does not hash to its name, or belongs to another tool.
    """
    try:
        found = ToolVersion.from_document(document)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from error
    if not isinstance(found.created, str) or not isinstance(found.definition.description, str):
        raise Damaged("its date or its description is not text")
    if found.name != name:
        raise Damaged(f"it holds a version of {found.name!r}")
    return found


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file's status."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def is_settled(stamp: Stamp, now: int) -> bool:
    """Whether a stamp taken at `now` (ns since the epoch) is old enough to prove anything."""
    return max(stamp[0], stamp[1]) < now - SETTLING


def read_entry(path: Path, name: str) -> Entry | None:
    """The entry of `name` at `path`; None when there is none.

    Raises:
        Damaged: there is something else.
        OSError: it can't be read.
    """
    now = time.time_ns()
    try:
        # Non-blocking, lest a pipe that somebody put there holds us up for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Damaged("it is not a regular file")
        if status.st_size > MAX_ENTRY:
            raise Damaged(f"it has {status.st_size:,} bytes; an entry has at most {MAX_ENTRY:,}")
        with open(handle, "rb", closefd=False) as file:
            content = file.read()
    finally:
        os.close(handle)
    stamp = stamp_of(status)
    return Entry(_tables(content, name), stamp, is_settled(stamp, now))


def _tables(content: bytes, name: str) -> Tables:
    try:
        tables = migrate(json.loads(content))
        meta = tables[META]["1"]
        typed = (
            isinstance(meta["name"], str)
            and isinstance(meta["head"], str)
            and isinstance(meta["deleted"], bool)
            and type(meta["archived"]) is int
            and 0 <= meta["archived"] <= MAX_ARCHIVED
            and tables[META].keys() == {"1"}
            and all(VERSION.match(d["version"]) and str(int(i)) == i for i, d in tables[VERSIONS].items())
        )
    except NewerSchema as error:
        raise Damaged(str(error), newer=True) from error
    except UnicodeDecodeError as error:
        raise Damaged("it is not text") from error
    except json.JSONDecodeError as error:
        raise Damaged(f"it is not JSON ({error})") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"it is not laid out as an entry ({error!r})") from error
    if not typed:
        raise Damaged("it is not laid out as an entry (a value of the wrong type)")
    if meta["name"] != name:
        raise Damaged(f"it is the entry of {meta['name']!r}")
    return tables
