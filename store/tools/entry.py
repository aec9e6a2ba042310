"""Reads one entry of the tool store. This code must be fast, because every run of a saved tool uses it.

TinyDB's file format is plain JSON, `{table: {id: document}}`, so a reader needs only `json`. Only writers import TinyDB, because
the import takes as long as a run of a tool. A reader takes no lock: writers replace whole files, so an open file is a complete
entry, old or new.

Every file contains the number of its layout. A file of another layout is neither read nor replaced. This one is number 1::

    {"meta": {"1": {"schema": 1, "name": …, "head": <version>, "deleted": false, "archived": <count>}},
     "versions": {"<id>": <ToolVersion document>, …}}

The content is not trusted. If a file doesn't have the layout of an entry, `Damaged` is raised with the reason. A version is
returned only after `ToolVersion.from_document` has verified its hash.
"""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.store.tools.names import VERSION

Tables = dict[str, dict[str, Any]]

SCHEMA = 1
META = "meta"
VERSIONS = "versions"

#: The most bytes of an entry. Usual entries have some hundred kilobytes.
MAX_ENTRY = 64 * 1024 * 1024

#: The most archived versions of a plausible entry.
MAX_ARCHIVED = 2**31

#: Nanoseconds. Two writes within one tick of a file system's clock leave the same times. So an equal time proves that nothing has
#: changed only if the time was older than this when it was read. A file system that stores whole seconds has ticks of up to 2 s.
#: One that stores fractions has ticks of at most 10 ms; the rest is for a server whose clock differs.
SETTLING, SETTLING_FRACTIONS = 2_000_000_000, 100_000_000

#: Changes with every change of a file: modification time and change time (ns), size (bytes), inode.
Stamp = tuple[int, int, int, int]


class Damaged(Exception):
    """An entry that can't be used; the text contains the reason. With `other_layout`, another release has written it."""

    def __init__(self, why: str, other_layout: bool = False) -> None:
        super().__init__(why)
        self.other_layout = other_layout


class Entry(Struct, frozen=True):
    """One file. If `settled` is true, a later equal stamp proves that the file is unchanged."""

    tables: Tables
    stamp: Stamp
    settled: bool

    @property
    def meta(self) -> dict[str, Any]:
        """The row with data about the whole entry."""
        row: dict[str, Any] = self.tables[META]["1"]
        return row

    @property
    def head(self) -> str:
        """The newest version's hash."""
        return str(self.meta["head"])

    @property
    def deleted(self) -> bool:
        """Whether the tool was removed."""
        return self.meta["deleted"] is True

    @property
    def count(self) -> int:
        """The number of versions, archived ones included."""
        return len(self.tables[VERSIONS]) + int(self.meta["archived"])

    def version(self, version: str) -> ToolVersion | None:
        """The version with this hash, verified; None if this file does not contain it.

        Raises:
            Damaged: the version was changed after it was saved.
        """
        for document in self.tables[VERSIONS].values():
            if document["version"] == version:
                return prove(document, self.meta["name"])
        return None

    def newest(self) -> ToolVersion:
        """The newest version, verified.

        Raises:
            Damaged: the version is missing, or was changed after it was saved.
        """
        version = self.version(self.head)
        if version is None:
            raise Damaged("its newest version is missing")
        return version


def prove(document: Any, name: str) -> ToolVersion:
    """The version in a stored document, verified.

    Raises:
        Damaged: the hash is wrong, or the version belongs to another tool.
    """
    try:
        version = ToolVersion.from_document(document)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from error
    if not isinstance(version.created, str) or not isinstance(version.definition.description, str):
        raise Damaged("its date or its description is not text")
    if version.name != name:
        raise Damaged(f"it has a version of {version.name!r}")
    return version


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp in a `stat` result."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def is_settled(changed: int, now: int) -> bool:
    """Whether a time of change that was read at `now` (ns since 1970) is old enough to be compared with later times."""
    return changed < now - (SETTLING_FRACTIONS if changed % SETTLING_FRACTIONS else SETTLING)


def read_entry(path: Path, name: str) -> Entry | None:
    """The entry of `name` at `path`; None if there is no file.

    Raises:
        Damaged: the file is not an entry of this tool.
        OSError: the file can't be read.
    """
    now = time.time_ns()
    try:
        # Non-blocking, because opening a named pipe could block for ever.
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
    return Entry(_tables(content, name), stamp, is_settled(max(stamp[:2]), now))


def _tables(content: bytes, name: str) -> Tables:
    try:
        tables: Tables = json.loads(content)
        # The first layout had no number.
        schema = tables[META]["1"]["schema"] if META in tables or VERSIONS not in tables else 0
        if type(schema) is int and schema >= 0 and schema != SCHEMA:
            why = f"it has layout {schema}, and this version of Albert Tools reads {SCHEMA}"
            raise Damaged(why, other_layout=True)
        meta = tables[META]["1"]
        typed = (
            type(schema) is int
            and schema == SCHEMA
            and isinstance(meta["name"], str)
            and isinstance(meta["head"], str)
            and isinstance(meta["deleted"], bool)
            and type(meta["archived"]) is int
            and 0 <= meta["archived"] <= MAX_ARCHIVED
            and tables[META].keys() == {"1"}
            and all(VERSION.match(d["version"]) and str(int(i)) == i for i, d in tables[VERSIONS].items())
        )
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
