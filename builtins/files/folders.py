"""Lists a folder, makes a folder, and describes a path."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from typing import TypedDict

from albert_tools.engine.model.parameter_types import FilePath
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.workspace.files import EntryType
from albert_tools.engine.workspace.workspace import MAX_ENTRIES


class Entry(TypedDict):
    """An entry of the result of `list_directory`."""

    path: str
    type: EntryType
    size_bytes: int


class FolderMade(TypedDict):
    """The result of `make_directory`."""

    path: str
    created: bool


class FileInfo(TypedDict):
    """The result of `file_info`."""

    path: str
    type: EntryType
    size_bytes: int
    sha256: str | None
    modified: str
    accessed: str
    changed: str
    mode: str
    link_target: str | None


@primitive(
    effects=["read"],
    idempotent=True,
    family="files",
    paths={"path": "read"},
    outputs={
        "": f"at most {MAX_ENTRIES} items",
        "[*].path": "below path",
        "[*].type": "little",
        "[*].size_bytes": "little",
    },
    source="file",
)
def list_directory(context: CallContext, path: FilePath = ".", recursive: bool = False) -> list[Entry]:
    """List what is in a folder, hidden files included, sorted by path.

    Each entry is {"path", "type", "size_bytes"}: the path relative to the workspace, with "/", as read_file accepts it; the
    type "file", "directory", "symlink" or "other" (FIFO, socket, device); the size in bytes, 0 for every type but "file". The
    folder itself is not in the list. With recursive, the list includes the content of all subfolders, except those that are links,
    that the rules forbid or that can't be opened. A list has at most 10000 entries; find_files searches larger folders.

    Fails with `not_found`, `not_a_directory`, `too_large` (more entries, or folders more than 200 deep: list a subfolder
    instead), `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace).

    Args:
        path: The folder to list, relative to the workspace; "." is the workspace itself.
        recursive: Whether to list the subfolders as well.
    """
    entries = context.workspace.listing(path, recursive)
    context.effect("read", path=context.workspace.recorded(path), entries=len(entries))
    return [{"path": e.path, "type": e.type, "size_bytes": e.size} for e in entries]


@primitive(
    effects=["write"],
    idempotent=True,
    family="files",
    paths={"path": "write"},
    outputs={".path": "same as path", ".created": "little"},
    source="file",
)
def make_directory(context: CallContext, path: FilePath, parents: bool = True) -> FolderMade:
    """Make a folder and its missing parent folders. A folder that exists already is not changed.

    The path is relative to the workspace (an absolute path inside it works too; `..` is refused).

    Returns {"path", "created"}: the path relative to the workspace, and whether the folder was made by this call.

    Fails with `exists` (the path is not a folder), `not_a_directory` (a part of the path is a file), `not_found` (a parent
    folder is missing, without parents), `invalid_arguments`, `io_error`, or `permission_denied` (outside the
    workspace, through a symbolic link, or Albert's own folder and git's).

    Args:
        path: The folder to make, for example "reports/2025".
        parents: Whether to make the missing parent folders as well.
    """
    made = context.workspace.make_folder(path, parents=parents)
    for each in made:
        context.effect("write", path=each, size_bytes=0, type="directory")
    return {"path": context.workspace.spell(path), "created": bool(made)}


@primitive(
    effects=["read"],
    idempotent=True,
    family="files",
    paths={"path": "read"},
    # The links before the last part of the path are resolved, so the path is not always that of the call.
    outputs={
        **{".type": "little", ".size_bytes": "little", ".sha256": "word", ".mode": "number"},
        **dict.fromkeys((".modified", ".accessed", ".changed"), "time"),
    },
    source="file",
)
def file_info(context: CallContext, path: FilePath) -> FileInfo:
    """Return the facts of a file, folder or symbolic link.

    A link at the end of the path is not followed. The path is relative to the workspace (an absolute path inside it works
    too; `..` is refused).

    Returns {"path", "type", "size_bytes", "sha256", "modified", "accessed", "changed", "mode", "link_target"}: the path
    relative to the workspace, with links before its last part resolved; the type "file", "directory", "symlink" or "other"
    (FIFO, socket, device); the size in bytes, 0 for every type but "file"; the content's sha256 as 64 hex digits, null for other
    types, for a file of more than 1 GiB, and for a file that may not be opened. The times are ISO 8601 in UTC: the last change of
    the content, the last access, and the last change of content, name or permissions. "mode" is the permissions as octal digits,
    "0644". "link_target" is the text of a link, null for other types.

    Fails with `not_found`, `not_a_directory` (a part of the path is a file), `invalid_arguments`, `io_error`, or
    `permission_denied` (outside the workspace).

    Args:
        path: The file, folder or link, for example "notes/today.md".
    """
    info = context.workspace.info(path)
    facts = info.facts
    size = facts.st_size if info.type == "file" else 0
    content = {} if info.sha256 is None else {"size_bytes": size, "sha256": info.sha256}
    context.effect("read", path=context.workspace.recorded(info.path), **content)
    return {
        "path": info.path,
        "type": info.type,
        "size_bytes": size,
        "sha256": info.sha256,
        "modified": _time(facts.st_mtime_ns),
        "accessed": _time(facts.st_atime_ns),
        "changed": _time(facts.st_ctime_ns),
        "mode": f"{stat.S_IMODE(facts.st_mode):04o}",
        "link_target": info.link,
    }


def _time(nanoseconds: int) -> str:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError, OSError):
        # The time of a file can be any number, but the calendar ends in the year 9999.
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="microseconds")
