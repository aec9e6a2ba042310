"""The artifact store: one small record for each artifact. A record is written once and never changed.

Its name is the BLAKE3 hash of the workspace and the id. So any text can be an id, and a workspace can't see artifacts of other
workspaces. The record refers to the content in the content store. The content store never deletes this content, because
`contents.references` also searches the artifacts. The record contains its own hash, so a changed one is detected as damaged.

In a folder, a record is the file `artifacts/<first two hex digits>/<the other sixty-two>`. Reading and writing use the lock of the
two-digit folder. So if two processes publish under one id, the second finds the artifact of the first. Writing is atomic: if a
process is killed, the file is complete or doesn't exist.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from blake3 import blake3

from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Artifact, ArtifactStore, ContentStore
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.contents.references import texts_in
from albert_tools.store.contents.stored_contents import REF
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private, make_private

#: The most bytes that are read of one file. An artifact has at most a megabyte of metadata, before escaping.
MAX_RECORD = 16 * 1024 * 1024


class StoredArtifacts(ArtifactStore, ABC):
    """An `ArtifactStore`. Safe to use from any number of threads and processes."""

    def __init__(self, contents: ContentStore) -> None:
        self._contents = contents

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """As `ArtifactStore`. Two artifacts are equal if they differ only in the time of creation.

        Raises:
            Failure: `exists`, `not_found`, `damaged`, `io_error`; `invalid_arguments` if the content is not a reference.
        """
        # A running collection may have searched the artifacts before this one was written. `renew` protects the content from it.
        self._contents.renew(artifact.content)
        existing_record = self._add(_name(workspace, artifact.id), _record(workspace, artifact))
        if existing_record is None:
            return artifact, True
        there = self._read(existing_record, workspace, artifact.id)
        differs = [
            name.replace("_", " ")
            for name in ("content", "category", "metadata")
            if getattr(there, name) != getattr(artifact, name)
        ]
        if differs:
            raise Failure(
                "exists",
                f"an artifact {artifact.id[:100]!r} was published before, with another {' and another '.join(differs)}",
                hint="artifacts never change: publish it under another id, for example with a version at its end",
                details={"content": there.content, "created": there.created},
            )
        return there, False

    def get(self, workspace: str, id: str) -> Artifact:
        """As `ArtifactStore`."""
        record = self._get(_name(workspace, id))
        if record is None:
            raise Failure(
                "not_found",
                f"no artifact {id[:100]!r} was published in this workspace",
                hint="give the id exactly as it was published; publish_artifact publishes one",
            )
        return self._read(record, workspace, id)

    def _read(self, record: bytes, workspace: str, id: str) -> Artifact:
        """The artifact in a record, verified to have this id."""
        artifact = _artifact(record, workspace, id)
        if artifact is None:
            place = self._place(_name(workspace, id))
            raise Failure(
                "damaged",
                f"the record of the artifact {id[:100]!r} was changed after it was written",
                hint=f"move it away and publish the artifact again: {place}",
                details={"path": place},
            )
        return artifact

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """All records. Raises Failure `io_error`."""

    @abstractmethod
    def _get(self, name: str) -> bytes | None:
        """The record with this name. Raises Failure `io_error`."""

    @abstractmethod
    def _add(self, name: str, record: bytes) -> bytes | None:
        """Store a record durably, unless there is one. Returns the one that was there. Raises Failure `io_error`."""

    @abstractmethod
    def _place(self, name: str) -> str:
        """Where a record is, for messages."""


class Artifacts(StoredArtifacts):
    """The artifacts in files under `folder`, which need not exist."""

    def __init__(self, folder: Path, contents: ContentStore) -> None:
        super().__init__(contents)
        self.folder = Path(os.path.abspath(folder))

    def texts(self) -> Iterable[str]:
        """See `StoredArtifacts`."""
        return texts_in(self.folder)

    def _get(self, name: str) -> bytes | None:
        check_private(self.folder, "the artifacts")
        return _content(self._path(name))

    def _add(self, name: str, record: bytes) -> bytes | None:
        path = self._path(name)
        make_private(self.folder, "the artifacts")
        with writing(path.parent):
            there = _content(path)
            if there is None:
                try:
                    write_atomic(path.parent, path, record)
                except OSError as error:
                    raise io_failure("write the record of an artifact at", path, error) from error
            return there

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name[2:]

    def _place(self, name: str) -> str:
        return str(self._path(name))


def _content(path: Path) -> bytes | None:
    """The content of a file; None if there is none, and empty if it is not a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise io_failure("read the record of an artifact at", path, error) from error
    try:
        with open(handle, "rb") as file:
            facts = os.fstat(handle)
            return file.read(MAX_RECORD + 1) if stat.S_ISREG(facts.st_mode) else b""
    except OSError as error:
        raise io_failure("read the record of an artifact at", path, error) from error


def _name(workspace: str, id: str) -> str:
    return blake3(canonical([workspace, id])).hexdigest()


def _record(workspace: str, artifact: Artifact) -> bytes:
    body = {
        "id": artifact.id,
        "workspace": workspace,
        "content": artifact.content,
        "size_bytes": artifact.size_bytes,
        "category": artifact.category,
        "metadata": list(artifact.metadata),
        "created": artifact.created,
    }
    return canonical({"artifact": body, "check": blake3(canonical(body)).hexdigest()}) + b"\n"


def _artifact(data: bytes, workspace: str, id: str) -> Artifact | None:
    """The artifact in the data; None if the data differs from what this module writes for this id."""
    try:
        document: Any = json.loads(data)
        body = document["artifact"]
        if document["check"] != blake3(canonical(body)).hexdigest():
            return None
        artifact = Artifact(
            id=body["id"],
            content=body["content"],
            size_bytes=body["size_bytes"],
            category=body["category"],
            metadata=tuple(body["metadata"]),
            created=body["created"],
        )
        proper = (
            (artifact.id, body["workspace"]) == (id, workspace)
            and REF.match(artifact.content) is not None
            and type(artifact.size_bytes) is int
            and all(isinstance(text, str) for text in (artifact.category, artifact.created, *artifact.metadata))
        )
        return artifact if proper and data == _record(workspace, artifact) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
