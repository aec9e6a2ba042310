"""Scans the folder of a store in two steps: `entries_of` lists the files of a shard with their stamps; `describe` reads one file.

For ten thousand files, the first step takes some hundredths of a second, but reading all of them takes seconds.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.definition import Callee
from albert_tools.engine.model.protocols import Summary
from albert_tools.store.os_errors import io_failure
from albert_tools.store.tools.entry import Damaged, Stamp, is_settled, read_entry, stamp_of
from albert_tools.store.tools.names import ENTRY_SUFFIX, SHARD, name_at


class Described(NamedTuple):
    """One entry: its summary for a listing, its source for searching, the composites that it calls, and its stamp.

    `stamp` is None if the file is too new for its stamp to be compared with later ones.
    """

    summary: Summary
    source: str = ""
    calls: tuple[Callee, ...] = ()
    deleted: bool = False
    stamp: Stamp | None = None


def shards_of(folder: Path) -> dict[str, int]:
    """The shards, each with its modification time (ns). Empty if the folder is missing.

    Raises:
        Failure: `io_error`.
    """
    try:
        with os.scandir(folder) as listing:
            return {e.name: e.stat().st_mtime_ns for e in listing if SHARD.match(e.name) and e.is_dir()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise io_failure("read the folder", folder, error) from error


def entries_of(shard: Path) -> dict[str, Stamp]:
    """The entry files of a shard, each with its stamp. Other files are skipped.

    Raises:
        Failure: `io_error`.
    """
    entries: dict[str, Stamp] = {}
    try:
        with os.scandir(shard) as listing:
            for entry in listing:
                if entry.name.endswith(ENTRY_SUFFIX) and entry.name.isprintable() and entry.name[0] != ".":
                    try:
                        entries[entry.name] = stamp_of(entry.stat())
                    except OSError:
                        entries[entry.name] = (0, 0, 0, 0)  # for example a broken link; `describe` reports it
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise io_failure("read the folder", shard, error) from error
    return entries


def describe(shard: Path, file: str) -> Described | None:
    """Read one entry; None if the file was deleted. Damage is reported in the summary, not raised."""
    name, misplaced = name_at(shard.name, file)
    path = shard / file
    if misplaced is not None:
        return Described(Summary(name, problem=misplaced), stamp=_stamp(path))
    try:
        entry = read_entry(path, name)
        if entry is None:
            return Described(Summary(name, problem="it is a broken link")) if path.is_symlink() else None
        # The content of a removed tool is not shown, so it is not verified.
        newest = None if entry.deleted else entry.newest()
    except Damaged as error:
        return Described(Summary(name, problem=str(error)), stamp=_stamp(path))
    except OSError as error:
        return Described(Summary(name, problem=f"it can't be read: {os.strerror(error.errno or 0)}"))
    stamp = entry.stamp if entry.settled else None
    if newest is None:
        return Described(Summary(name), deleted=True, stamp=stamp)
    summary = Summary(
        name, newest.version, newest.definition.description, newest.created, entry.count, author=newest.author
    )
    calls = tuple(c for c in newest.calls if c.kind == "composite")
    return Described(summary, newest.source, calls, stamp=stamp)


def _stamp(path: Path) -> Stamp | None:
    now = time.time_ns()
    try:
        stamp = stamp_of(os.stat(path))
    except OSError:
        return None
    return stamp if is_settled(max(stamp[:2]), now) else None
