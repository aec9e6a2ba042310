"""Reading and writing files of any bytes. JSON has no bytes, so the content is a stored value, and its handle is passed.

The value is in the content store, like large results: `read_result` and `publish_artifact` accept the handle too. The text files
of `files` need no handle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from blake3 import blake3

from albert_tools.builtins.files.files import MAX_FILE, OF_WRITTEN, FileWritten, settled_write, written
from albert_tools.engine.model.bounds import MAX_READ
from albert_tools.engine.model.definition import excludes
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import InterruptedCall, Settled
from albert_tools.engine.model.parameter_types import FilePath, Hash, ReadLimit
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext, ContentStore
from albert_tools.engine.model.schema import Bound

Offset = Annotated[int, Bound(minimum=0)]
#: Characters of the beginning of a content that the question to a person shows.
_SHOWN = 60


class BytesRead(TypedDict):
    """The result of `read_bytes`."""

    handle: str
    size_bytes: int
    next_offset: int | None


@primitive(
    effects=["read"],
    family="files",
    idempotent=True,
    paths={"path": "read"},
    outputs={".size_bytes": "little", ".next_offset": "little"},
    source="file",
)
def read_bytes(context: CallContext, path: FilePath, offset: Offset = 0, limit: ReadLimit | None = None) -> BytesRead:
    """Read a file of any bytes, or a part of it, into the content store.

    Returns {"handle", "size_bytes", "next_offset"}: "handle" is "b3:" and 64 hex digits; write_bytes, read_result and
    publish_artifact accept it. "size_bytes" is the number of bytes that were read, and "next_offset" the offset of the
    next part, null at the end of the file. read_file returns a text itself.

    Without limit, the tool reads to the end of the file. One call reads at most 10 MiB (the rule max_file_size_mb sets
    another size, up to 1 GiB). The path is relative to the workspace, as for read_file.

    Fails with `not_found`, `not_a_file` (a folder, FIFO or device), `not_a_directory` (a part of the path is a file),
    `too_large`, `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace).

    Args:
        path: The file to read, for example "images/logo.png".
        offset: The first byte to read, counted from 0.
        limit: The largest number of bytes to read; by default all following bytes.
    """
    contents = _contents(context)
    with context.workspace.open(path) as file:
        size, most = max(0, file.facts.st_size - offset), file.most(MAX_READ)
        wanted = size if limit is None else min(limit, size)
        if wanted > most:
            raise Failure(
                "too_large",
                f"{wanted:,} bytes of {path!r} are more than the {most:,} that can be read at once",
                hint="ask for fewer bytes, with limit",
                rule="max_file_size_mb" if most < MAX_READ else None,
            )
        data = file.part(offset, wanted)
        handle = contents.put(data)
        digest = hashlib.sha256(data).hexdigest()
        part = {"offset": offset} if len(data) < file.facts.st_size else {}
        context.effect("read", path=file.path, size_bytes=len(data), sha256=digest, handle=handle, **part)
        end = offset + len(data)
        return {"handle": handle, "size_bytes": len(data), "next_offset": end if end < file.facts.st_size else None}


def _written(call: InterruptedCall) -> Settled:
    # The value itself may be gone: the wire protocol does not store the bytes of a request.
    ref = _ref(call.arguments["handle"])
    return settled_write(call, lambda there: f"b3:{blake3(there).hexdigest()}" == ref, MAX_FILE)


async def _preview(context: CallContext, arguments: Mapping[str, Any]) -> str:
    """The size and the beginning of the content. The question itself has only its hash."""
    data = _value(context, arguments["handle"])
    start = data[:_SHOWN].decode("utf-8", "replace")
    return f"it writes {len(data):,} bytes, which begin with {start!r}"


@primitive(
    effects=["write"],
    family="files",
    idempotent=True,
    once=["create_only", "append"],
    paths={"path": "write"},
    uses={"handle": "payload"},
    outputs=OF_WRITTEN,
    source="file",
    invariants=[excludes("create_only", "append")],
    settle=_written,
    preview=_preview,
)
def write_bytes(
    context: CallContext, path: FilePath, handle: Hash, create_only: bool = False, append: bool = False
) -> FileWritten:
    """Write a stored value to a file, byte by byte: create the file, replace its content, or append to it.

    The value is named by its handle: from read_bytes, from a large result, or the content of an artifact. Everything
    else is as for write_file: the folder must exist, the write is atomic, the whole file may have at most 10 MiB (the
    rule max_file_size_mb sets another size, up to 100 MiB), and its size is charged to the budget of bytes written.

    Returns {"path", "size_bytes", "sha256"} of the written file: the path relative to the workspace, the size in
    bytes, and the content's sha256 as 64 hex digits.

    Fails with `not_found` (no value has this handle, or the folder does not exist), `damaged` (the stored value has
    changed), `exists` (with create_only), `not_a_file` (the path is a folder), `not_a_directory` (a part of the path is a
    file), `too_large`, `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace, through a symbolic
    link, or Albert's own files and git's).

    Args:
        path: The file to write, for example "images/logo.png".
        handle: The handle of the content, "b3:" and 64 hex digits.
        create_only: Whether to fail if the file exists already.
        append: Whether to add the content to the end of the file; a missing file is created.
    """
    return written(context, path, _value(context, handle), create_only, append, handle=_ref(handle))


def _contents(context: CallContext) -> ContentStore:
    if context.contents is None:
        raise Failure("not_found", "this service has no content store, so bytes can't be passed")
    return context.contents


def _value(context: CallContext, handle: str) -> bytes:
    contents, ref = _contents(context), _ref(handle)
    if contents.size(ref) > MAX_FILE:
        raise Failure("too_large", f"the value {ref} has more than the {MAX_FILE:,} bytes that a file may have")
    return contents.get(ref)


def _ref(handle: str) -> str:
    return handle if handle.startswith("b3:") else f"b3:{handle}"
