"""Reading, writing and editing text files.

Text is never changed silently: no newline is translated, no byte order mark is dropped, no encoding is guessed. A file that is
read and written back has the same bytes. Parts of a file are selected by lines, because searches return line numbers. A line ends
with "\\n" only.

Every change replaces the whole file, so readers never see half a change, and other names of the file (hard links) keep the old
content.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, TypedDict

from albert_tools.builtins.files.existing_target import occupied
from albert_tools.builtins.text_encoding import decode, demand_text, encode, known_encoding, not_text
from albert_tools.engine.model.bounds import MAX_WRITE
from albert_tools.engine.model.definition import excludes
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import InterruptedCall, Settled
from albert_tools.engine.model.parameter_types import FilePath, NewText, OldText, ReadLimit, WriteContent
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound
from albert_tools.engine.workspace.opened_file import OpenedFile

#: The most bytes of a file that is read as text or changed. The rules can set less; by default 10 MiB.
MAX_FILE = MAX_WRITE

#: What is true of the result of a write. A write follows no link, so the path of the file is that of the call.
OF_WRITTEN = {".path": "same as path", ".size_bytes": "little", ".sha256": "word"}

#: The number of a line; the first is 1.
LineNumber = Annotated[int, Bound(minimum=1)]

#: The hint for a file that is not UTF-8.
_ENCODING = "name its encoding"


class FileWritten(TypedDict):
    """The result of `write_file`."""

    path: str
    size_bytes: int
    sha256: str


class FileEdited(TypedDict):
    """The result of `edit_file`."""

    path: str
    size_bytes: int
    sha256: str
    line: int


@primitive(effects=["read"], idempotent=True, paths={"path": "read"}, source="file")
async def read_file(
    context: CallContext,
    path: FilePath,
    offset: LineNumber = 1,
    limit: ReadLimit | None = None,
    encoding: str = "utf-8",
) -> str:
    """Read a text file, or some of its lines, and return the text as a string.

    The path is relative to the workspace (an absolute path inside it works too; `..` is refused). The text is
    exact: newlines are not translated, and a UTF-8 byte order mark stays as "\\ufeff" unless the encoding is
    "utf-8-sig". Links that stay inside the workspace are followed.

    Without offset and limit, the tool returns the whole file, which may have at most 10 MiB (the rule max_file_size_mb sets
    another size, up to 100 MiB). With offset or limit, it returns at most `limit` lines from line `offset` on, each with its
    "\\n". If the file ends earlier, there are fewer lines; after its end the result is "". Lines are counted from 1 and end with
    "\\n" only, as in search_text. The file may then have any size, but the result only the size of a whole file.

    Fails with `not_found`, `not_a_file` (a folder, FIFO or device), `not_a_directory` (a part of the path is
    a file), `encoding_error` (bytes that are not text in the encoding, with their offset; a NUL, which means that the
    file is binary; an unknown encoding), `too_large`, `invalid_arguments`, `io_error`, or `permission_denied` (outside
    the workspace).

    Args:
        path: The file to read, for example "notes/today.md".
        offset: The number of the first line to return, counted from 1.
        limit: The largest number of lines (not bytes) to return; by default all following lines.
        encoding: The encoding of the file, for example "utf-8", "utf-16", "cp1252"; "latin-1" reads any bytes, one character
            for each, NUL included.
    """
    import asyncio

    from albert_tools.engine.model.threads import in_thread

    read = partial(_part, context, path, offset, limit, encoding)
    if offset == 1 and limit is None:
        read = partial(_whole, context, path, encoding)
        with suppress(BlockingIOError):
            # The way to a thread and back takes longer than the read.
            text = read(at_once=True)
            # Otherwise a task that reads file after file would hold up all others.
            await asyncio.sleep(0)
            return text
    return await in_thread(read, "read_file")


def _whole(context: CallContext, path: str, encoding: str, *, at_once: bool = False) -> str:
    name = known_encoding(encoding)
    with context.workspace.open(path, at_once=at_once) as file:
        data = file.read_at_once(MAX_FILE) if at_once else file.read(MAX_FILE)
        context.effect("read", path=file.path, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        text = decode(data, encoding, repr(path), hint=_ENCODING)
        demand_text(text, name, repr(path))
        return text


def _part(context: CallContext, path: str, offset: int, limit: int | None, encoding: str) -> str:
    name = known_encoding(encoding)
    with context.workspace.open(path) as file:
        part = _lines(file, path, offset, limit, name)
        data = part.encode()
        digest = hashlib.sha256(data).hexdigest()
        # The size and the hash are those of the returned text as UTF-8. `line` marks the text as a part of the file.
        context.effect("read", path=file.path, size_bytes=len(data), sha256=digest, line=offset)
        return part


def _lines(file: OpenedFile, path: str, first: int, count: int | None, encoding: str) -> str:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    before, left = first - 1, count
    pieces: list[str] = []
    size = position = 0
    most = file.most(MAX_FILE)
    blocks = file.blocks()
    while left != 0:
        block = next(blocks, b"")
        incomplete = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, not block)
        except UnicodeDecodeError as error:
            raise not_text(repr(path), encoding, position - incomplete + error.start, _ENCODING) from None
        except UnicodeError as error:
            raise Failure("encoding_error", f"{path!r} is not {encoding} text: {error}") from None
        demand_text(text, encoding, repr(path))
        position += len(block)
        start = 0
        while before and (end := text.find("\n", start)) >= 0:
            before, start = before - 1, end + 1
        if not before:
            end = start
            if left is None:
                end = len(text)
            while left and end < len(text):
                newline = text.find("\n", end)
                end, left = (len(text), left) if newline < 0 else (newline + 1, left - 1)
            pieces.append(text[start:end])
            size += len(pieces[-1].encode("utf-8", "surrogatepass"))
            if size > most:
                rule = "max_file_size_mb" if most < MAX_FILE else None
                message = f"these lines of {path!r} have more than the {most:,} bytes that can be read at once"
                raise Failure("too_large", message, hint="ask for fewer lines, with limit", rule=rule)
        if not block:
            break
    return "".join(pieces)


def _written(call: InterruptedCall) -> Settled:
    data = encode(call.arguments["content"], "the content")
    return settled_write(call, lambda there: there == data, len(data))


def settled_write(call: InterruptedCall, is_written: Callable[[bytes], bool], most: int) -> Settled:
    """Returns whether an interrupted call wrote its file. `is_written` compares the file's content, of at most `most` bytes.

    A file with neither the old nor the new content was changed by somebody else.
    """
    path = call.arguments["path"]
    if call.unchanged and (call.arguments.get("append") or call.arguments.get("create_only")):
        return Settled("not applied")
    try:
        # The old file may already have ended with the appended text.
        there = (
            None
            if call.arguments.get("append")
            else call.workspace.read(call.workspace.spell(path), most, follow=False)
        )
    except Failure:
        there = None
    if there is None or not is_written(there):
        return Settled("not applied" if call.unchanged else "unknown")
    facts = {"size_bytes": len(there), "sha256": hashlib.sha256(there).hexdigest()}
    call.effect("write", path=call.workspace.recorded(path), **facts)
    return Settled("applied", {"path": call.workspace.spell(path), **facts})


@primitive(
    effects=["write"],
    idempotent=True,
    once=["create_only", "append"],
    paths={"path": "write"},
    uses={"content": "payload"},
    outputs=OF_WRITTEN,
    source="file",
    invariants=[excludes("create_only", "append")],
    settle=_written,
)
def write_file(
    context: CallContext, path: FilePath, content: WriteContent, create_only: bool = False, append: bool = False
) -> FileWritten:
    """Write a text file as UTF-8: create it, replace its content, or append to it.

    The folder must exist (see make_directory). The path is relative to the workspace (an absolute path inside it works
    too; `..` is refused). The content is written exactly: newlines are not translated, and nothing is added. With append,
    the content follows the old content directly. Atomic: on failure the old content stays. The whole file may have at most
    10 MiB (the rule max_file_size_mb sets another size, up to 100 MiB), and its whole size is charged to the budget of bytes
    written.

    Returns {"path", "size_bytes", "sha256"} of the written file: the path relative to the workspace, the size in
    bytes, and the content's sha256 as 64 hex digits.

    Fails with `not_found` (the folder does not exist), `exists` (with create_only), `not_a_file` (the path is a folder),
    `not_a_directory` (a part of the path is a file), `too_large`, `encoding_error` (half a surrogate pair in the
    content), `invalid_arguments`, `io_error`, or `permission_denied` (outside the workspace, through a symbolic link,
    or Albert's own files and git's).

    Args:
        path: The file to write, for example "notes/today.md".
        content: The whole new content, or the text to append.
        create_only: Whether to fail if the file exists already.
        append: Whether to add the content to the end of the file; a missing file is created.
    """
    return written(context, path, encode(content, "the content"), create_only, append)


def written(
    context: CallContext, path: str, data: bytes, create_only: bool, append: bool, **more: object
) -> FileWritten:
    """Write `data` to a file, as `write_file`. `more` are further facts for the record."""
    if append:
        facts = context.workspace.rewrite(path, lambda old: (old or b"") + data, MAX_FILE, missing=True)
    else:
        with occupied(context, path, "leave out create_only to replace it, or use another path"):
            facts = context.workspace.replace(path, data, new=create_only)
    recorded = context.workspace.recorded(facts.path)
    context.effect("write", path=recorded, size_bytes=facts.size, sha256=facts.sha256, **more)
    return {"path": facts.path, "size_bytes": facts.size, "sha256": facts.sha256}


@primitive(
    effects=["write"],
    paths={"path": "write"},
    uses={"new_text": "payload"},
    outputs={**OF_WRITTEN, ".line": "little"},
    source="file",
)
def edit_file(context: CallContext, path: FilePath, old_text: OldText, new_text: NewText) -> FileEdited:
    """Replace a text that occurs exactly once in a UTF-8 file by another.

    The old text is compared exactly, with all its spaces and newlines. Copy it from read_file, with enough of the surrounding
    text to make it unique. Atomic: on failure the tool changes nothing. It fails if another process changes the file at
    the same time. A file may have as many bytes as write_file accepts.

    Returns {"path", "size_bytes", "sha256", "line"}: path, size and hash of the changed file, and the line (counted from 1)
    at which the new text begins.

    Fails with `invalid_arguments` (the old text does not occur, or occurs more than once: `details` has `occurrences` and
    `lines`, and the hint says what to do; or both texts are the same), `not_found`, `not_a_file`, `not_a_directory`,
    `too_large`, `encoding_error` (the file is not UTF-8 text, or the new text has half a surrogate pair), `io_error`, or
    `permission_denied` (outside the workspace, through a symbolic link, or Albert's own files and git's).

    Args:
        path: The file to change.
        old_text: The text to replace; it must occur exactly once.
        new_text: The text to put in its place; empty to delete the old text.
    """
    from albert_tools.builtins.files.edit_text import edited

    encode(old_text, "the old text")
    encode(new_text, "the new text")
    line = 0

    def change(old: bytes | None) -> bytes:
        nonlocal line
        text = decode(old or b"", "utf-8", repr(path))
        demand_text(text, "utf-8", repr(path))
        result, line = edited(text, old_text, new_text, path)
        return encode(result, "the file")

    facts = context.workspace.rewrite(path, change, MAX_FILE)
    context.effect("write", path=context.workspace.recorded(facts.path), size_bytes=facts.size, sha256=facts.sha256)
    return {"path": facts.path, "size_bytes": facts.size, "sha256": facts.sha256, "line": line}
