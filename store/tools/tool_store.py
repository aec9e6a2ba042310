"""The tool store: one TinyDB file per tool. A file is always replaced as a whole, and each shard has one writer at a time.

With one file per tool, the cost of a save does not depend on the number of tools, damage is limited to one tool, and version
control shows useful diffs. The file contains the newest `KEEP` versions. Each older version moves to an immutable file of its
own, named by its hash, in a folder next to the entry. So a save does not get slower when a tool has many versions.

Deleting a tool sets a flag. Runs and tools that use a version still find it by its hash. A damaged file is never deleted. It is
listed with its problem. A later save of the same tool preserves the damaged file under another name.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.nearest_name import did_you_mean
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
from albert_tools.store.tools.history import completed, history, verify
from albert_tools.store.tools.names import VERSION, Place

if TYPE_CHECKING:
    from albert_tools.store.tools.search_index import Index

#: The most versions in a tool's own file. Every load reads all of them, and every save writes them: 0.03 ms and 0.15 ms for each.
KEEP = 10
#: The most verified versions in the cache. If there are more, the cache is cleared.
CACHED = 512
#: The number of hash digits that messages show.
SHOWN = 12


class TinyToolStore:
    """A `ToolStore` in files under `folder`.

    `cache` is the folder for the search index, or a function that returns it (called at the first listing), or None for an index
    in memory. The folders need not exist. Any number of threads and processes may share them.
    """

    def __init__(self, folder: Path, cache: Path | Callable[[], Path] | None = None) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._cache = cache
        self._loaded: dict[tuple[Path, str | None], tuple[Stamp, ToolVersion]] = {}
        self._index: Index | None = None

    # Reading

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        """The newest version; or the version with this hash or unique prefix, even if it is archived or deleted.

        Raises:
            Failure: `unknown_tool`; `damaged` if the version was changed after it was saved; `io_error`.
        """
        if not NAME.match(name):
            raise self._unknown(name)
        place = Place.of(self.folder, name)
        if version is None:
            return self._load(place.entry, name, None)
        whole = completed(place, name, version)
        if whole is None:
            raise _no_version(name, version, place)
        version = whole
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
            if version is None and entry.deleted:
                raise _removed(name, entry)
            found = entry.newest() if version is None else entry.version(version)
        except FileNotFoundError:
            raise (
                self._unknown(name) if version is None else _no_version(name, version, Place.of(self.folder, name))
            ) from None
        except Damaged as error:
            raise _damaged(name, path, error) from error
        except OSError as error:
            raise io_failure("read", path, error) from error
        if found is None:
            raise _no_version(name, str(version), Place.of(self.folder, name))
        if entry.settled:
            if len(self._loaded) >= CACHED:
                self._loaded = {}
            self._loaded[path, version] = entry.stamp, found
        return found

    def has(self, name: str) -> bool:
        """Whether there is an entry of the tool. It may be deleted or damaged."""
        return NAME.match(name) is not None and os.path.lexists(Place.of(self.folder, name).entry)

    def list(self) -> builtins.list[Summary]:
        """The tools that are not deleted, sorted by name. Damaged entries have a `problem`.

        The list includes the saves of all processes. Only changed files are read.

        Raises:
            Failure: `io_error` if the folder can't be read.
        """
        return self._opened_index().list()

    def page(self, after: str, limit: int) -> builtins.list[Summary]:
        """At most `limit` tools whose names follow `after`, like a part of `list`.

        Raises:
            Failure: `io_error` if the folder can't be read.
        """
        return self._opened_index().page(after, limit)

    def names(self) -> builtins.list[str]:
        """The names of the tools that are neither deleted nor damaged, in order. Raises as `page`."""
        return self._opened_index().names()

    def alike(self, name: str) -> builtins.list[str]:
        """Those of `names` that could look like `name`, see `look_key`. Raises as `page`."""
        return self._opened_index().alike(name)

    def callers(self, name: str) -> builtins.list[tuple[str, str]]:
        """The tools that call a saved tool, each with the version of it that it calls. Raises as `page`."""
        return self._opened_index().callers(name)

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """At most `limit` versions of a tool, newest first, and the total number. The tool may be deleted. Never raises."""
        return history(Place.of(self.folder, name), name, limit) if NAME.match(name) else ([], 0)

    def verify(self) -> builtins.list[tuple[Path, str]]:
        """The damaged files in the store, each with the reason. Reads all files, including old versions.

        Raises:
            Failure: `io_error` if the folder can't be read.
        """
        return verify(self.folder)

    def search(self, text: str, limit: int = 20, any_word: bool = False) -> builtins.list[Summary]:
        """At most `limit` tools whose name, description or source contain the words of `text`, best match first.

        If no tool contains all words, or with `any_word`, a tool needs to contain only one of them.
        A text without letters and digits has no results. For a blank text, the results are the first tools by name.

        Raises:
            Failure: `io_error` if the folder can't be read.
        """
        return self._opened_index().search(text, limit, any_word)

    def close(self) -> None:
        """Close the index. The next list or search opens it again."""
        if self._index is not None:
            self._index.close()

    def _opened_index(self) -> Index:
        if self._index is None:
            from albert_tools.store.tools.search_index import Index

            self._index = Index(self.folder, self._cache() if callable(self._cache) else self._cache)
        return self._index

    def _unknown(self, name: str) -> Failure:
        try:
            near = did_you_mean(name, self.names())
        except Failure:
            near = ""
        return Failure(
            "unknown_tool", f"no tool named {name!r}{near}", hint="`search_tools` finds saved tools", tool=name
        )

    # Writing

    def save(self, version: ToolVersion, over: str | None = None) -> bool:
        """Store `version` durably as the newest of its name. Returns False if it already is the newest and not deleted.

        If it is the newest with another manifest, only its manifest is replaced: its author and its date remain.

        With `over`, the newest version must still have this hash, and not be deleted. If `over` is empty, there must be no version
        that is not deleted.

        Raises:
            Failure: `invalid_arguments` for an invalid name, or a version whose hash doesn't match its content (`named()`);
                `io_error` if it can't be written; `damaged` if the entry has another layout, or if the entry is damaged and
                `over` is given; `exists` if the newest version is not `over`.
        """
        name = version.name
        document = _checked(version)
        place = Place.of(self.folder, name)
        with writing(place.shard):
            try:
                tables = self._extensible(place, name, document, over)
                if tables is None:
                    # The process that wrote the file may have died before it synced the folder.
                    sync_folder(place.shard)
                    return False
                self._write(place, tables, document)
            except OSError as error:
                raise io_failure(f"save the tool {name!r} to", place.entry, error) from error
        return True

    def renew(self, version: ToolVersion) -> None:
        """Replace the manifest of a stored version by that of `version`, durably. Nothing else changes.

        Raises:
            Failure: `unknown_tool` if the version is not stored; `damaged`, `io_error`, `invalid_arguments`.
        """
        name = version.name
        document = _checked(version)
        place = Place.of(self.folder, name)
        with writing(place.shard):
            try:
                found = [_renew(place, path, document) for path in (place.entry, place.archived(version.version))]
            except Damaged as error:
                raise _damaged(name, place.entry, error) from error
            except OSError as error:
                raise io_failure(f"save the tool {name!r} to", place.entry, error) from error
        if not any(found):
            raise _no_version(name, version.version, place)

    def delete(self, name: str, over: str | None = None) -> None:
        """Remove the tool from the list. Its versions are retained, and saving the tool again restores it. For `over` see `save`.

        Raises:
            Failure: `unknown_tool`; `damaged` if the entry can't be read; `io_error`; `exists`.
        """
        if not NAME.match(name):
            raise self._unknown(name)
        place = Place.of(self.folder, name)
        if not place.shard.is_dir():
            raise self._unknown(name)
        with writing(place.shard):
            try:
                entry = read_entry(place.entry, name)
                if entry is not None and entry.deleted:
                    raise _removed(name, entry)
                if entry is not None:
                    _demand_newest(name, entry, over)
                    _commit(place, entry.tables, {**entry.meta, "deleted": True}, None, ())
                    return
            except Damaged as error:
                raise _damaged(name, place.entry, error) from error
            except OSError as error:
                raise io_failure(f"delete the tool {name!r} from", place.entry, error) from error
        raise self._unknown(name)

    def _extensible(self, place: Place, name: str, document: dict[str, Any], over: str | None) -> Tables | None:
        """The tables to which the document of a version is added; None if the version already is the newest."""
        entry: Entry | None = None
        try:
            entry = read_entry(place.entry, name)
            _demand_newest(name, entry, over)
            if entry is None:
                return _fresh(place, name, {})
            newest = entry.newest()
            if newest.version == document["version"] and not entry.deleted:
                manifest = document.get("manifest")
                if manifest is None or Manifest.from_dict(manifest) == newest.definition.manifest:
                    return None
                document.clear()
                document.update(newest.to_document(), manifest=manifest)
            return entry.tables
        except Damaged as error:
            if error.other_layout or over is not None:
                raise _damaged(name, place.entry, error) from error
            set_aside(place.entry)
            return _fresh(place, name, _sound(entry, name))

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


def _demand_newest(name: str, entry: Entry | None, over: str | None) -> None:
    """Require that the newest version is still `over`, unless that is None. Raises Failure `exists`."""
    if over is not None and over != (entry.head if entry is not None and not entry.deleted else ""):
        raise Failure(
            "exists",
            f"the tool {name!r} was changed in the meantime",
            hint="look at its present version, then make the request again",
            retryable=True,
            tool=name,
        )


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
    stored["manifest"] = document["manifest"]
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


def _checked(version: ToolVersion) -> dict[str, Any]:
    """The document of `version`, after checking that it can be read back and verified."""
    name = version.name
    if not NAME.match(name):
        raise Failure(
            "invalid_arguments",
            f"{name!r} can't be a tool's name",
            hint="use letters, digits and _, at most 128",
        )
    try:
        # Convert to JSON and back, to verify exactly what a reader will get.
        text = json.dumps(version.to_document(), allow_nan=False, ensure_ascii=False)
        document: dict[str, Any] = json.loads(text.encode())
        prove(document, name)
    except (Damaged, ValueError, TypeError, RecursionError) as error:
        raise Failure(
            "invalid_arguments",
            f"the version of {name!r} can't be saved: {error}",
            hint="use only JSON values and text that UTF-8 can encode; name the version with `named()`",
        ) from error
    return document


def _damaged(name: str, path: Path, error: Damaged) -> Failure:
    return Failure(
        "damaged",
        f"the entry of the tool {name!r} can't be used: {error}",
        hint=f"use the version that wrote it, or move {path} away"
        if error.other_layout
        else f"save the tool again (the damaged file is kept beside it), or repair or move away {path}",
        tool=name,
        details={"path": str(path)},
    )


def _no_version(name: str, version: str, place: Place) -> Failure:
    saved, total = history(place, name, 1)
    if not saved:
        return Failure(
            "unknown_tool",
            f"no tool named {name!r} was ever saved",
            hint="`search_tools` finds saved tools",
            tool=name,
        )
    return Failure(
        "unknown_tool",
        f"the tool {name!r} has no version {version!r}",
        hint=f"`show` lists its versions; the last one is {saved[0].version[:SHOWN]}; six digits are enough",
        tool=name,
        details={"last": saved[0].version, "versions": total},
    )


def _removed(name: str, entry: Entry) -> Failure:
    return Failure(
        "unknown_tool",
        f"the tool {name!r} was removed",
        hint=f"its versions are kept: name the last one, {entry.head[:SHOWN]}, or save the tool again",
        tool=name,
        details={"removed": True, "last": entry.head, "versions": entry.count},
    )
