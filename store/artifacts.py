"""The artifact store: one small file for each artifact. A file is written once and never changed.

The file is `artifacts/<first two hex digits>/<the other sixty-two>`. Its name is the BLAKE3 hash of the workspace and the id. So
any text can be an id, and a workspace can't see artifacts of other workspaces. The file refers to the content in the content
store. The content store never deletes this content, because `contents.references` also searches the artifacts. The file contains
its own hash, so a changed file is detected as damaged.

Reading and writing use the lock of the two-digit folder. So if two processes publish under one id, the second finds the artifact
of the first. Writing is atomic: if a process is killed, the file is complete or doesn't exist.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from blake3 import blake3

from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Artifact, ContentStore
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.contents.content_store import REF
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private, make_private

#: The most bytes that are read of one file. An artifact has at most a megabyte of metadata, before escaping.
MAX_RECORD = 16 * 1024 * 1024


class Artifacts:
    """An `ArtifactStore` in files under `folder`, which need not exist. Safe to use from any number of threads and processes."""

    def __init__(self, folder: Path, contents: ContentStore) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._contents = contents

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """As `ArtifactStore`. Two artifacts are equal if they differ only in the time of creation.

        Raises:
            Failure: `exists`, `not_found`, `damaged`, `io_error`; `invalid_arguments` if the content is not a reference.
        """
        path = self._path(workspace, artifact.id)
        # A running collection may have searched the artifacts before this one was written. `renew` protects the content from it.
        self._contents.renew(artifact.content)
        make_private(self.folder, "the artifacts")
        with writing(path.parent):
            there = self._read(workspace, artifact.id, path)
            if there is None:
                try:
                    write_atomic(path.parent, path, _record(workspace, artifact))
                except OSError as error:
                    raise io_failure("write the record of an artifact at", path, error) from error
                return artifact, True
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
        path = self._path(workspace, id)
        check_private(self.folder, "the artifacts")
        found = self._read(workspace, id, path)
        if found is None:
            raise Failure(
                "not_found",
                f"no artifact {id[:100]!r} was published in this workspace",
                hint="give the id exactly as it was published; publish_artifact publishes one",
            )
        return found

    def _path(self, workspace: str, id: str) -> Path:
        name = blake3(canonical([workspace, id])).hexdigest()
        return self.folder / name[:2] / name[2:]

    def _read(self, workspace: str, id: str, path: Path) -> Artifact | None:
        """The artifact at `path`, verified to have this id; None if there is no file."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise io_failure("read the record of an artifact at", path, error) from error
        try:
            with open(handle, "rb") as file:
                found = os.fstat(handle)
                data = file.read(MAX_RECORD + 1) if stat.S_ISREG(found.st_mode) else b""
        except OSError as error:
            raise io_failure("read the record of an artifact at", path, error) from error
        artifact = _artifact(data, workspace, id)
        if artifact is None:
            raise Failure(
                "damaged",
                f"the record of the artifact {id[:100]!r} was changed after it was written",
                hint=f"move {path} away and publish the artifact again",
                details={"path": str(path)},
            )
        return artifact


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
