"""The tool store in files: one TinyDB file per tool. A file is always replaced as a whole, and each shard has one writer at a time.

With one file per tool, the cost of a save does not depend on the number of tools, damage is limited to one tool, and version
control shows useful diffs. The file contains the newest `KEEP` versions. Each older version moves to an immutable file of its
own, named by its hash, in a folder next to the entry. So a save does not get slower when a tool has many versions.

A damaged file is never deleted. It is listed with its problem. A later save of the same tool preserves the damaged file under
another name.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import NAME
from albert_tools.engine.model.protocols import Saved, Summary
from albert_tools.engine.model.replace_file import sync_folder
from albert_tools.store.atomic import set_aside, write_atomic, writing
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import make_folder
from albert_tools.store.tools.entry import (
    META,
    SCHEMA,
    VERSIONS,
    Damaged,
    Entry,
    Stamp,
    Tables,
    prove,
    read_entry,
    stamp_of,
)
from albert_tools.store.tools.history import hashes, history, verify
from albert_tools.store.tools.names import VERSION, Place
from albert_tools.store.tools.stored_tools import CACHED, StoredTools, newest_of, renewed

if TYPE_CHECKING:
    from albert_tools.store.tools.search_index import Index

#: The most versions in a tool's own file. Every load reads all of them, and every save writes them: 0.03 ms and 0.15 ms for each.
KEEP = 10


class TinyToolStore(StoredTools):
    """The tools in files under `folder`.

    `cache` is the folder for the search index, or a function that returns it (called at the first listing), or None for an index
    in memory. The folders need not exist.
    """

    def __init__(self, folder: Path, cache: Path | Callable[[], Path] | None = None) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._cache = cache
        self._loaded: dict[tuple[Path, str | None], tuple[Stamp, ToolVersion]] = {}
        self._index: Index | None = None

    # Reading

    def _newest(self, name: str) -> ToolVersion:
        return self._load(Place.of(self.folder, name).entry, name, None)

    def _version(self, name: str, version: str) -> ToolVersion:
        place = Place.of(self.folder, name)
        try:
            return self._load(place.entry, name, version)
        except Failure as failure:
            # The archive may contain the version, even if the entry is missing or damaged.
            if failure.code == "io_error":
                raise
            try:
                return self._load(place.archived(version), name, version)
            except Failure as second:
                raise (failure if second.code == "unknown_tool" else second) from None

    def _load(self, path: Path, name: str, version: str | None) -> ToolVersion:
        known = self._loaded.get((path, version))
        try:
            if known is not None and stamp_of(os.stat(path)) == known[0]:
                return known[1]
            entry = read_entry(path, name)
            if entry is None:
                raise FileNotFoundError
            loaded = newest_of(name, entry) if version is None else entry.version(version)
        except FileNotFoundError:
            raise (self._unknown(name) if version is None else self._no_version(name, version)) from None
        except Damaged as error:
            raise self._damaged(name, error, path) from error
        except OSError as error:
            raise io_failure("read", path, error) from error
        if loaded is None:
            raise self._no_version(name, str(version))
        if entry.settled:
            if len(self._loaded) >= CACHED:
                self._loaded = {}
            self._loaded[path, version] = entry.stamp, loaded
        return loaded

    def _hashes(self, name: str) -> Iterable[str]:
        return hashes(Place.of(self.folder, name), name)

    def has(self, name: str) -> bool:
        """See `ToolStore`."""
        return NAME.match(name) is not None and os.path.lexists(Place.of(self.folder, name).entry)

    def list(self) -> builtins.list[Summary]:
        """See `ToolStore`. Only changed files are read."""
        return self._opened_index().list()

    def page(self, after: str, limit: int) -> builtins.list[Summary]:
        """See `ToolStore`."""
        return self._opened_index().page(after, limit)

    def names(self) -> builtins.list[str]:
        """See `ToolStore`."""
        return self._opened_index().names()

    def alike(self, name: str) -> builtins.list[str]:
        """See `ToolStore`."""
        return self._opened_index().alike(name)

    def callers(self, name: str) -> builtins.list[tuple[str, str]]:
        """See `ToolStore`."""
        return self._opened_index().callers(name)

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """See `ToolStore`. Never raises."""
        return history(Place.of(self.folder, name), name, limit) if NAME.match(name) else ([], 0)

    def verify(self) -> builtins.list[tuple[str, str]]:
        """See `StoredTools`. The places are files."""
        return [(str(path), why) for path, why in verify(self.folder)]

    def search(self, text: str, limit: int = 20, any_word: bool = False) -> builtins.list[Summary]:
        """See `ToolStore`."""
        return self._opened_index().search(text, limit, any_word)

    def close(self) -> None:
        """See `StoredTools`."""
        if self._index is not None:
            self._index.close()

    def _opened_index(self) -> Index:
        if self._index is None:
            from albert_tools.store.tools.search_index import Index

            self._index = Index(self.folder, self._cache() if callable(self._cache) else self._cache)
        return self._index

    # Writing

    @contextmanager
    def _changing(self, name: str, action: str) -> Iterator[None]:
        place = Place.of(self.folder, name)
        with writing(place.shard):
            try:
                yield
            except OSError as error:
                raise io_failure(action, place.entry, error) from error

    def _entry(self, name: str) -> Entry | None:
        return read_entry(Place.of(self.folder, name).entry, name)

    def _confirm(self, name: str) -> None:
        # The process that wrote the file may have died before it synced the folder.
        sync_folder(Place.of(self.folder, name).shard)

    def _add(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        place = Place.of(self.folder, name)
        self._write(place, entry.tables if entry is not None else _fresh(place, name, {}), document)

    def _repair(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        place = Place.of(self.folder, name)
        set_aside(place.entry)
        self._write(place, _fresh(place, name, _sound(entry, name)), document)

    def _renew(self, name: str, document: dict[str, Any]) -> bool:
        place = Place.of(self.folder, name)
        renewed = [_renew(place, path, document) for path in (place.entry, place.archived(document["version"]))]
        return any(renewed)

    def _mark_deleted(self, name: str, entry: Entry) -> None:
        _commit(Place.of(self.folder, name), entry.tables, {**entry.meta, "deleted": True}, None, ())

    def _damaged(self, name: str, error: Damaged, path: Path | None = None) -> Failure:
        path = path or Place.of(self.folder, name).entry
        return Failure(
            "damaged",
            f"the entry of the tool {name!r} can't be used: {error}",
            hint=f"use the version that wrote it, or move {path} away"
            if error.other_layout
            else f"save the tool again (the damaged file is kept beside it), or repair or move away {path}",
            tool=name,
            details={"path": str(path)},
        )

    def _write(self, place: Place, tables: Tables, document: dict[str, Any]) -> None:
        meta = dict(tables[META]["1"])
        version = document["version"]
        present = {d["version"]: int(i) for i, d in tables[VERSIONS].items()}
        if version not in present and place.archived(version).exists():
            meta["archived"] -= 1  # the version returns to the entry; its archived copy is retained but not counted
        meta.update(head=version, deleted=False)
        drop = [present.pop(version)] if version in present else []
        surplus = sorted(present.values())[: max(0, len(present) + 1 - KEEP)]
        for i in surplus:
            _archive(place, meta["name"], tables[VERSIONS][str(i)])
            meta["archived"] += 1
        _commit(place, tables, meta, document, [*drop, *surplus])


def _commit(place: Place, tables: Tables, meta: Mapping[str, Any], add: Mapping[str, Any] | None, drop: Any) -> None:
    """Change an entry in one step with TinyDB. Only writers import TinyDB."""
    from tinydb.table import Document

    from albert_tools.store.tools.storage import open_entry

    database, storage = open_entry(place.shard, place.entry, tables)
    versions = database.table(VERSIONS)
    if add is not None:
        # Insert before removing, so that no id is used twice, and the ids have the order of saving.
        versions.insert(add)
    if drop:
        versions.remove(doc_ids=drop)
    database.table(META).upsert(Document(meta, doc_id=1))
    storage.commit()


def _archive(place: Place, name: str, document: Mapping[str, Any]) -> None:
    """Write an old version to its own file, in the layout of an entry, before it is removed from the entry."""
    from albert_tools.store.tools.storage import encode

    target = place.archived(document["version"])
    make_folder(place.archive)
    meta = {"schema": SCHEMA, "name": name, "head": document["version"], "deleted": False, "archived": 0}
    write_atomic(place.shard, target, encode({META: {"1": meta}, VERSIONS: {"1": dict(document)}}))


def _renew(place: Place, path: Path, document: Mapping[str, Any]) -> bool:
    """Replace the manifest of a version in one file. Returns False if the file does not contain the version."""
    from albert_tools.store.tools.storage import encode

    entry = read_entry(path, document["name"])
    if entry is None:
        return False
    stored = next((d for d in entry.tables[VERSIONS].values() if d["version"] == document["version"]), None)
    if stored is None:
        return False
    stored.update(renewed(stored, document))
    write_atomic(place.shard, path, encode(entry.tables))
    # The times of archived files have the order of saving.
    os.utime(path, ns=(entry.stamp[0], entry.stamp[0]))
    return True


def _fresh(place: Place, name: str, versions: dict[str, Any]) -> Tables:
    """The tables of a new entry. Counts the archived versions of an earlier, damaged entry."""
    present = {d["version"] for d in versions.values()}
    archived = 0
    if place.archive.is_dir():
        hashes = (file.partition(".")[0] for file in os.listdir(place.archive))
        archived = sum(1 for h in hashes if VERSION.match(h) and h not in present)
    meta = {"schema": SCHEMA, "name": name, "head": "", "deleted": False, "archived": archived}
    return {META: {"1": meta}, VERSIONS: versions}


def _sound(entry: Entry | None, name: str) -> dict[str, Any]:
    """The undamaged versions of an entry whose newest version is damaged."""
    sound: dict[str, Any] = {}
    for key, document in entry.tables[VERSIONS].items() if entry is not None else ():
        try:
            prove(document, name)
        except Damaged:
            continue
        sound[key] = document
    return sound
