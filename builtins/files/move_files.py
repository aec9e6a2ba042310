"""Deletes, moves and copies files, one at a time, so every effect names the content of its file.

To move or copy a folder, a caller moves or copies each file (`find_files` lists them). Only an empty folder can be deleted. An
approval is bound to the content that a call deletes or overwrites. For a whole folder, a person could not know which content they
approve.
"""

from __future__ import annotations

import hashlib
import posixpath
from typing import TypedDict

from albert_tools.builtins.files.existing_target import occupied
from albert_tools.builtins.files.files import MAX_FILE, OF_WRITTEN, FileWritten
from albert_tools.engine.model.parameter_types import FilePath
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.workspace.files import EntryType


class Deleted(TypedDict):
    """The result of `delete_file`."""

    path: str
    type: EntryType
    size_bytes: int
    sha256: str | None


#: What is true of the result of a move or a copy.
_OF_TARGET = {**OF_WRITTEN, ".path": "same as target"}


@primitive(
    effects=["delete"],
    family="files",
    paths={"path": "delete"},
    outputs={**OF_WRITTEN, ".type": "little"},
    source="file",
)
def delete_file(context: CallContext, path: FilePath) -> Deleted:
    """Delete a file, a symbolic link, or an empty folder. This can't be undone.

    If the path is a link, only the link is deleted. Delete the content of a folder first (find_files lists it). The path is
    relative to the workspace (an absolute path inside it works too; `..` is refused).

    Returns {"path", "type", "size_bytes", "sha256"} of the deleted file: the path relative to the workspace; the type
    "file", "directory", "symlink" or "other"; the size in bytes, 0 for every type but "file"; the content's sha256 as 64 hex
    digits, null for other types, for a file of more than 1 GiB, and for a file that may not be read.

    Fails with `not_found`, `not_a_file` (a folder that is not empty), `not_a_directory` (a part of the path is a file),
    `invalid_arguments`, `io_error` (also a file that is read-only), or `permission_denied` (outside the workspace, through a
    symbolic link, the workspace itself, or Albert's own files and git's).

    Args:
        path: The file, link or folder to delete, for example "notes/old.md".
    """
    deleted = context.workspace.remove(path)
    context.effect("delete", path=deleted.path, size_bytes=deleted.size, sha256=deleted.sha256, type=deleted.type)
    spelled = context.workspace.spell(path)
    return {"path": spelled, "type": deleted.type, "size_bytes": deleted.size, "sha256": deleted.sha256}


@primitive(
    effects=["write", "delete"],
    family="files",
    paths={"source": "delete", "target": "write"},
    outputs=_OF_TARGET,
    source="file",
)
def move_file(context: CallContext, source: FilePath, target: FilePath, overwrite: bool = False) -> FileWritten:
    """Move a file to another path, or rename it. Folders and links are not moved.

    The target is the complete new path with the file name, not a folder. Its folder must exist (see make_directory). Both
    paths are relative to the workspace (absolute paths inside it work too; `..` is refused). The move is one step: at any
    time the file is at one of the two paths. The size of the file is charged to the budget of bytes written.

    Returns {"path", "size_bytes", "sha256"}: the new path relative to the workspace, the size in bytes, and the content's
    sha256 as 64 hex digits.

    Fails with `not_found` (the file, or the target's folder), `exists` (the target exists, without overwrite),
    `not_a_file` (one of the paths is a folder), `not_a_directory`, `too_large` (more than read_file accepts, from one file system
    to another), `invalid_arguments` (both are the same path), `io_error` (also a file that is read-only), or
    `permission_denied` (outside the workspace, through a symbolic link, or Albert's own files and git's).

    Args:
        source: The file to move, for example "draft.md".
        target: Its new path, for example "published/first.md".
        overwrite: Whether a file at the target may be replaced.
    """
    with occupied(context, target, "overwrite=True replaces it", posixpath.basename(source)):
        moved = context.workspace.move(source, target, MAX_FILE, new=not overwrite)
    facts = {"size_bytes": moved.size, "sha256": moved.sha256}
    context.effect("delete", path=moved.source, moved_to=moved.target, **facts)
    context.effect("write", path=moved.target, moved_from=moved.source, **facts)
    return {"path": moved.shown, "size_bytes": moved.size, "sha256": moved.sha256}


@primitive(
    effects=["write"],
    family="files",
    paths={"source": "read", "target": "write"},
    outputs=_OF_TARGET,
    source="file",
)
def copy_file(context: CallContext, source: FilePath, target: FilePath, overwrite: bool = False) -> FileWritten:
    """Copy a file, text or binary, to another path.

    The target is the complete path of the copy with the file name, not a folder. Its folder must exist (see make_directory).
    A new file gets the permissions of the source; a replaced file keeps its own permissions. Both paths are relative to the
    workspace (absolute paths inside it work too; `..` is refused). If the source is a link that stays inside the workspace,
    it is followed. Atomic: on failure the target is unchanged. A file may have as many bytes as write_file accepts.

    Returns {"path", "size_bytes", "sha256"} of the copy: its path relative to the workspace, the size in bytes, and the
    content's sha256 as 64 hex digits.

    Fails with `not_found` (the source, or the target's folder), `exists` (the target exists, without overwrite),
    `not_a_file` (one of the paths is a folder), `not_a_directory`, `too_large`, `invalid_arguments`, `io_error`, or
    `permission_denied` (outside the workspace, the target through a symbolic link, or in Albert's own files and git's).

    Args:
        source: The file to copy, for example "template.md".
        target: The path of the copy, for example "notes/today.md".
        overwrite: Whether a file at the target may be replaced.
    """
    with context.workspace.open(source) as file:
        data = file.read(MAX_FILE)
    digest = hashlib.sha256(data).hexdigest()
    context.effect("read", path=file.path, size_bytes=len(data), sha256=digest)
    with occupied(context, target, "overwrite=True replaces it", posixpath.basename(source)):
        facts = context.workspace.replace(target, data, new=not overwrite, mode=file.facts.st_mode)
    context.effect("write", path=context.workspace.recorded(facts.path), size_bytes=facts.size, sha256=facts.sha256)
    return {"path": facts.path, "size_bytes": facts.size, "sha256": facts.sha256}
