"""The versions of a tool in files: lists their hashes and the history, and verifies all files.

The hashes are taken from the entry and from the file names in its archive. So only requested versions are read and verified, and
the archive is usable even if the entry is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from albert_tools.engine.model.protocols import Saved
from albert_tools.store.tools.entry import VERSIONS, Damaged, Entry, prove, read_entry
from albert_tools.store.tools.names import ENTRY_SUFFIX, VERSION, Place, name_at
from albert_tools.store.tools.scan import entries_of, shards_of


def hashes(place: Place, name: str) -> Iterator[str]:
    """The hashes of all versions."""
    yield from _versions_in(_entry(place, name))
    yield from _archived(place)


def history(place: Place, name: str, limit: int) -> tuple[list[Saved], int]:
    """At most `limit` versions, newest first, and the total number of versions."""
    entry = _entry(place, name)
    stored = [_facts(d) for d in _documents_of(entry)]
    head = None if entry is None or entry.deleted else entry.head
    saved = [Saved(version, created, version == head, author) for version, created, author in stored]
    hashes = {version for version, _, _ in stored}
    archived = [h for h in _archived(place) if h not in hashes]
    if len(saved) < limit:
        # Each archive file is written once, so the file times have the order of saving.
        archived.sort(key=lambda h: _time(place.archived(h)), reverse=True)
        for version in archived[: limit - len(saved)]:
            _, created, author = _facts(next(iter(_documents(place.archived(version), name)), {}))
            saved.append(Saved(version, created, author=author))
    return saved[:limit], len(stored) + len(archived)


def verify(folder: Path) -> list[tuple[Path, str]]:
    """The damaged files, each with the reason. Checks all versions, including archived and removed ones.

    Raises:
        Failure: `io_error` if the folder can't be read.
    """
    damaged: list[tuple[Path, str]] = []
    for shard in sorted(shards_of(folder)):
        for file in sorted(entries_of(folder / shard)):
            path = folder / shard / file
            name, misplaced = name_at(shard, file)
            if misplaced is not None:
                damaged.append((path, misplaced))
                continue
            place = Place.of(folder, name)
            files = [path, *(place.archived(version) for version in sorted(_archived(place)))]
            damaged += [(each, why) for each in files if (why := _damage(each, name))]
    return damaged


def _damage(path: Path, name: str) -> str | None:
    try:
        entry = read_entry(path, name)
        if entry is None:
            return "it is a broken link"
        for document in entry.tables[VERSIONS].values():
            prove(document, name)
        if entry.head not in _versions_in(entry):
            return "its newest version is missing"
        if path.parent.suffix != ".archive":
            return None
        return (
            None if entry.head == path.name.removesuffix(ENTRY_SUFFIX) else "it has another version than its name says"
        )
    except Damaged as error:
        return str(error)
    except OSError as error:
        return f"it can't be read: {error.strerror}"


def _entry(place: Place, name: str) -> Entry | None:
    try:
        return read_entry(place.entry, name)
    except (Damaged, OSError):
        return None


def _documents_of(entry: Entry | None) -> list[dict[str, Any]]:
    """The versions in an entry file, newest first."""
    rows = [] if entry is None else sorted(entry.tables[VERSIONS].items(), key=lambda row: int(row[0]), reverse=True)
    return [document for _, document in rows]


def _versions_in(entry: Entry | None) -> set[str]:
    return {document["version"] for document in _documents_of(entry)}


def _facts(document: dict[str, Any]) -> tuple[str, str, str]:
    """The version, its time of saving and its author."""
    version, created, author = (str(document.get(name, "")) for name in ("version", "created", "author"))
    return version, created, author


def _archived(place: Place) -> list[str]:
    try:
        files = os.listdir(place.archive)
    except OSError:
        return []
    return [h for file in files if VERSION.match(h := file.removesuffix(ENTRY_SUFFIX)) and h != file]


def _documents(path: Path, name: str) -> Iterator[dict[str, Any]]:
    with suppress(Damaged, OSError):
        entry = read_entry(path, name)
        if entry is not None:
            yield from entry.tables[VERSIONS].values()


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
