"""Reading, writing and listing files, all of it through the contained workspace.

Text goes in and out exactly as it is: no newline is translated, no mark at the start dropped, no encoding
guessed, so that reading a file and writing it back leaves every byte where it was.
"""

from __future__ import annotations

import hashlib
from typing import TypedDict

from albert_tools.builtins.text import decode, encode, known_encoding
from albert_tools.engine.govern.contain import EntryType
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.kinds import FilePath, WriteContent
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.settling import InterruptedCall, Settled

#: Bytes of one file, read or written: what a program can hold in its memory several times over.
MAX_FILE = 10 * MiB


class FileWritten(TypedDict):
    """What `write_file` answers."""

    path: str
    size_bytes: int
    sha256: str


class Entry(TypedDict):
    """A line of what `list_directory` answers."""

    path: str
    type: EntryType
    size_bytes: int


@primitive(effects=["read"], idempotent=True, paths={"path": "read"})
def read_file(context: CallContext, path: FilePath, encoding: str = "utf-8") -> str:
    """Read a text file and return its whole content as a string.

    The path is relative to the workspace (an absolute path inside it works too; `..` is refused). The text is
    exact: newlines are not translated, and a UTF-8 byte order mark stays as "\\ufeff" unless the encoding is
    "utf-8-sig". Links that stay inside the workspace are followed. A file may have 10 MiB at most.

    Fails with `not_found`, `not_a_file` (a folder, FIFO or device), `not_a_directory` (a part of the path is
    a file), `encoding_error` (bytes that are not text in the encoding, with their offset, or an unknown
    encoding), `too_large`, `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace).

    Args:
        path: The file to read, for example "notes/today.md".
        encoding: How its bytes are to be read, for example "utf-8", "utf-16", "latin-1", "cp1252".
    """
    known_encoding(encoding)
    # Read and recorded by the path that has no link in it, so that the record says which file it was.
    real = context.workspace.locate(path)
    data = context.workspace.read(real, MAX_FILE, follow=False)
    context.effect(
        "read", path=context.workspace.recorded(real), size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
    )
    return decode(data, encoding, repr(path))


def _written(call: InterruptedCall) -> Settled:
    """Whether the file has the content already; where it is neither that nor the old one, somebody else has been at it since."""
    path, data = call.arguments["path"], encode(call.arguments["content"], "the content")
    try:
        there = call.workspace.read(call.workspace.spell(path), len(data), follow=False)
    except Failure:
        there = None
    if there != data:
        return Settled("not applied" if call.unchanged else "unknown")
    facts = {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    call.effect("write", path=call.workspace.recorded(path), **facts)
    return Settled("applied", {"path": call.workspace.spell(path), **facts})


@primitive(effects=["write"], idempotent=True, paths={"path": "write"}, settle=_written)
def write_file(context: CallContext, path: FilePath, content: WriteContent) -> FileWritten:
    """Write a text file as UTF-8, creating it or replacing all of its content.

    Returns {"path", "size_bytes", "sha256"}: the path relative to the workspace, the size in bytes, and the
    content's sha256 as 64 hex digits. The path is relative to the workspace (an absolute path inside it works
    too; `..` is refused). The folder must exist. The content is written exactly: newlines are not translated,
    nothing is appended.
    Atomic: on failure the old content stays. A file may have 10 MiB at most.

    Fails with `not_found` (the folder does not exist), `not_a_file` (a folder is there), `not_a_directory` (a
    part of the path is a file), `too_large`, `encoding_error` (half a surrogate pair in the content),
    `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace, through a symbolic link,
    or Albert's own files).

    Args:
        path: The file to write, for example "notes/today.md".
        content: The whole new content.
    """
    data = encode(content, "the content")
    if len(data) > MAX_FILE:
        raise Failure("too_large", f"the content has {len(data)} bytes, and {MAX_FILE} is the most that can be written")
    facts = context.workspace.replace(path, data)
    context.effect("write", path=context.workspace.recorded(facts.path), size_bytes=facts.size, sha256=facts.sha256)
    return {"path": facts.path, "size_bytes": facts.size, "sha256": facts.sha256}


@primitive(effects=["read"], idempotent=True, paths={"path": "read"})
def list_directory(context: CallContext, path: FilePath = ".", recursive: bool = False) -> list[Entry]:
    """List what is in a folder, hidden files included, as a list sorted by path.

    Each entry is {"path", "type", "size_bytes"}: the path relative to the workspace, with "/" (so it can be
    given to read_file as it is); the type is "file", "directory", "symlink" or "other" (FIFO, socket,
    device); the size in bytes, 0 for anything but a file. The folder itself is not in the list. With
    recursive, the content of all folders under it is in the list too; linked folders are not entered. A list
    has 10000 entries at most.

    Fails with `not_found`, `not_a_directory`, `too_large` (more entries: list a folder further down),
    `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace).

    Args:
        path: The folder to list, relative to the workspace; "." is the workspace itself.
        recursive: Whether to go into the folders under it as well.
    """
    entries = context.workspace.listing(path, recursive)
    context.effect("read", path=context.workspace.recorded(path), entries=len(entries))
    return [{"path": e.path, "type": e.type, "size_bytes": e.size} for e in entries]
