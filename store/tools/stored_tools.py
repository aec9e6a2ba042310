"""The versions of tools: what every tool store does, whatever it stores them in.

A version is stored as a document, and returned only after its hash was verified. Deleting a tool sets a flag. Runs and tools that
use a version still find it by its hash. A damaged tool is never deleted; saving it again repairs it.
"""

from __future__ import annotations

import builtins
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import NAME
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.store.tools.entry import Damaged, Entry, prove
from albert_tools.store.tools.names import PREFIX, VERSION

#: The most verified versions in a cache. If there are more, the cache is cleared.
CACHED = 512
#: The number of hash digits that messages show.
SHOWN = 12


class StoredTools(ToolStore, ABC):
    """A `ToolStore`. Any number of threads and processes may share it."""

    # Reading

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        """The newest version; or the version with this hash or unique prefix, even if the tool is deleted.

        Raises:
            Failure: `unknown_tool`; `damaged` if the version was changed after it was saved; `io_error`.
        """
        if not NAME.match(name):
            raise self._unknown(name)
        if version is None:
            return self._newest(name)
        if VERSION.match(version):
            return self._version(name, version)
        hashes = sorted({h for h in self._hashes(name) if h.startswith(version)}) if PREFIX.match(version) else []
        if not hashes:
            raise self._no_version(name, version)
        if len(hashes) > 1:
            digits = next(n for n in range(len(version) + 1, 65) if len({h[:n] for h in hashes}) == len(hashes))
            shown = [h[:digits] for h in hashes]
            raise Failure(
                "unknown_tool",
                f"{len(hashes):,} versions of {name!r} begin with {version!r}: {', '.join(shown)}",
                hint="give more digits",
                tool=name,
            )
        return self._version(name, hashes[0])

    @abstractmethod
    def verify(self) -> builtins.list[tuple[str, str]]:
        """The places of damaged versions, each with the reason. Reads all versions. Raises as `list`."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open. The next question opens it again."""

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
        name, document = version.name, _checked(version)
        with self._changing(name, f"save the tool {name!r} to"):
            entry: Entry | None = None
            try:
                entry = self._entry(name)
                _demand_newest(name, entry, over)
                if entry is not None and not _is_news(entry, document):
                    self._confirm(name)
                    return False
            except Damaged as error:
                if error.other_layout or over is not None:
                    raise self._damaged(name, error) from error
                self._repair(name, entry, document)
            else:
                self._add(name, entry, document)
        return True

    def renew(self, version: ToolVersion) -> None:
        """Replace the manifest of a stored version by that of `version`, durably. Nothing else changes.

        Raises:
            Failure: `unknown_tool` if the version is not stored; `damaged`, `io_error`, `invalid_arguments`.
        """
        name, document = version.name, _checked(version)
        with self._changing(name, f"save the tool {name!r} to"):
            try:
                found = self._renew(name, document)
            except Damaged as error:
                raise self._damaged(name, error) from error
        if not found:
            raise self._no_version(name, version.version)

    def delete(self, name: str, over: str | None = None) -> None:
        """Remove the tool from the list. Its versions are retained, and saving the tool again restores it. For `over` see `save`.

        Raises:
            Failure: `unknown_tool`; `damaged` if the entry can't be read; `io_error`; `exists`.
        """
        if not self.has(name):
            raise self._unknown(name)
        with self._changing(name, f"delete the tool {name!r} from"):
            try:
                entry = self._entry(name)
            except Damaged as error:
                raise self._damaged(name, error) from error
            if entry is not None and entry.deleted:
                raise _removed(name, entry)
            if entry is not None:
                _demand_newest(name, entry, over)
                self._mark_deleted(name, entry)
                return
        raise self._unknown(name)

    # What a subclass stores

    @abstractmethod
    def _newest(self, name: str) -> ToolVersion:
        """The newest version. Raises as `load`."""

    @abstractmethod
    def _version(self, name: str, version: str) -> ToolVersion:
        """The version with this whole hash. Raises as `load`."""

    @abstractmethod
    def _hashes(self, name: str) -> Iterable[str]:
        """The hashes of all versions."""

    @abstractmethod
    def _changing(self, name: str, action: str) -> AbstractContextManager[None]:
        """Keep other threads and processes from changing the tool. `action` is for messages: "save the tool 'x' to".

        Raises:
            Failure: `io_error`.
        """

    @abstractmethod
    def _entry(self, name: str) -> Entry | None:
        """The entry with at least its newest version; None if there is none. Raises Damaged."""

    @abstractmethod
    def _confirm(self, name: str) -> None:
        """Make durable what another process has written, if it may not be yet."""

    @abstractmethod
    def _add(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        """Store a document as the newest version."""

    @abstractmethod
    def _repair(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        """The same if the entry is damaged. `entry` is None if it can't be read."""

    @abstractmethod
    def _renew(self, name: str, document: dict[str, Any]) -> bool:
        """Replace the manifest of a stored version. Returns False if it is not stored. Raises Damaged."""

    @abstractmethod
    def _mark_deleted(self, name: str, entry: Entry) -> None:
        """Mark the tool as deleted."""

    @abstractmethod
    def _damaged(self, name: str, error: Damaged) -> Failure:
        """The failure of a damaged entry."""

    def _unknown(self, name: str) -> Failure:
        try:
            near = did_you_mean(name, self.names())
        except Failure:
            near = ""
        return Failure(
            "unknown_tool", f"no tool named {name!r}{near}", hint="`search_tools` finds saved tools", tool=name
        )

    def _no_version(self, name: str, version: str) -> Failure:
        saved, total = self.history(name, 1)
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
            hint=f"`describe_tool` lists its versions; the last one is {saved[0].version[:SHOWN]}; six digits are enough",
            tool=name,
            details={"last": saved[0].version, "versions": total},
        )


def newest_of(name: str, entry: Entry) -> ToolVersion:
    """The newest version of an entry. Raises Failure `unknown_tool` if the tool is deleted; Damaged."""
    if entry.deleted:
        raise _removed(name, entry)
    return entry.newest()


def renewed(stored: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """A stored document with another manifest."""
    return {**stored, "manifest": document["manifest"]}


def _is_news(entry: Entry, document: dict[str, Any]) -> bool:
    """Whether a document changes an entry. If it has only another manifest, it becomes the newest document with that manifest."""
    newest = entry.newest()
    if newest.version == document["version"] and not entry.deleted:
        manifest = document["manifest"]
        if Manifest.from_dict(manifest) == newest.manifest:
            return False
        document.clear()
        document.update(newest.to_document(), manifest=manifest)
    return True


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


def _removed(name: str, entry: Entry) -> Failure:
    return Failure(
        "unknown_tool",
        f"the tool {name!r} was removed",
        hint=f"its versions are kept: name the last one, {entry.head[:SHOWN]}, or save the tool again",
        tool=name,
        details={"removed": True, "last": entry.head},
    )
