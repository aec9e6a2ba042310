"""Searching the text of files for a pattern, in folders of any size, in time that is linear in what is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from albert_tools.builtins.files.files import MAX_FILE
from albert_tools.builtins.files.find_files import Glob, below, entering
from albert_tools.builtins.files.globs import MAX_PATTERN, Globs
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.parameter_types import FilePath, ItemList
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound
from albert_tools.engine.workspace.walk import Met

if TYPE_CHECKING:
    from albert_tools.builtins.files.line_search import Searcher

#: Lines that one call gives at the most.
MAX_MATCHES = 1_000
#: Characters of a line that are given.
MAX_SHOWN = 500


class Match(TypedDict):
    """A line that has a match."""

    path: str
    line: int
    text: str


class Matches(TypedDict):
    """What `search_text` answers."""

    matches: list[Match]
    truncated: bool
    files: int
    skipped: int


@primitive(effects=["read"], idempotent=True, family="files", paths={"path": "read"}, timeout=60)
def search_text(
    context: CallContext,
    pattern: Annotated[str, Bound(minLength=1, maxLength=MAX_PATTERN)],
    path: FilePath = ".",
    include: ItemList[Glob] = [],  # noqa: B006
    exclude: ItemList[Glob] = [],  # noqa: B006
    ignore_case: bool = False,
    limit: Annotated[int, Bound(minimum=1, maximum=MAX_MATCHES)] = 200,
) -> Matches:
    """Search the text files in a folder and all folders under it, or one file, for lines that match a regular expression.

    Each match is a line: the path relative to the workspace, the number of the line counted from 1 (as read_file's offset
    takes it), and the line without its "\\n", of a long one the first 500 characters.

    Returns {"matches", "truncated", "files", "skipped"}. The matches are sorted by path and line. `truncated` says whether
    there are more than `limit`, of which the first are in the list. `files` is how many files were searched up to there,
    `skipped` how many were passed over: files that are not UTF-8 text or hold a NUL (binary), that have more than 10 MiB, or
    may not be read. Finding nothing is no failure.

    The pattern is in RE2's syntax, held against each line by itself: "^" and "$" are the ends of a line, "\\d", "\\w", "\\s",
    "\\b" are ASCII; there are no backreferences and no lookaround. To find a text with special characters, put a backslash
    before each of them. Hidden files are searched like others, and ignore files have no say. Links are not followed; folders
    named .git are not entered, nor what the rules forbid.

    Fails with `invalid_arguments` (what is no pattern, or one that needs RE2 where that is not installed), `not_found`,
    `not_a_directory`, `too_large` (a folder with more than 100000 names, more than 1000000 names in all, folders more than
    200 deep; `exclude` passes over them), `io_error`, `timeout`, or `permission_denied` (outside the workspace).

    Args:
        pattern: A regular expression, for example "def \\w+_test\\(" or "TODO".
        path: The folder or file to search, relative to the workspace; "." is the workspace itself.
        include: Patterns of the files to search, as find_files takes them, for example ["*.py"]; all when empty.
        exclude: Patterns of what not to search, for example ["node_modules", "*.lock"].
        ignore_case: Whether upper and lower case are the same.
        limit: The most lines to return.
    """
    from albert_tools.builtins.files.line_search import searcher

    workspace = context.workspace
    engine = searcher(pattern, ignore_case, str(workspace.root))
    wanted, excluded = Globs(include, "include"), Globs(exclude, "exclude")
    matches: list[Match] = []
    files = skipped = size = 0
    truncated = False
    for batch in _batches(_files(workspace, path, wanted, excluded), engine):
        texts = [text for _, text in batch if text is not None]
        # One more than is wanted tells that there are more.
        hits = iter(engine.lines(texts, limit + 1 - len(matches), workspace.demand_going))
        for name, text in batch:
            if text is None:
                skipped += 1
                continue
            files += 1
            size += len(text)
            for n, line in _shown(text, next(hits)):
                if len(matches) == limit:
                    truncated = True
                    break
                matches.append({"path": name, "line": n, "text": line})
            if truncated:
                break
        if truncated:
            break
    context.effect("read", path=workspace.recorded(path), size_bytes=size, entries=files)
    return {"matches": matches, "truncated": truncated, "files": files, "skipped": skipped}


def _files(workspace: Any, path: str, wanted: Globs, excluded: Globs) -> Iterator[tuple[str, bytes | None]]:
    """The files that are to be searched, with their text; None of what has none."""
    relative = below(path, workspace.spell(path))
    for met in workspace.walk(path, entering(excluded, relative)):
        if met.type != "file":
            continue
        name = relative(met)
        if (wanted and not wanted.matches(name)) or (excluded and excluded.matches(name)):
            continue
        yield met.path, _text(workspace, met)


def _text(workspace: Any, met: Met) -> bytes | None:
    try:
        with workspace.open_met(met) as file:
            data: bytes = file.read(MAX_FILE)
    except Failure as failure:
        if failure.code == "cancelled":
            raise
        return None
    if b"\0" in data:
        return None
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
    return data


def _batches(files: Iterator[tuple[str, bytes | None]], engine: Searcher) -> Iterator[list[tuple[str, bytes | None]]]:
    batch: list[tuple[str, bytes | None]] = []
    size = 0
    for name, text in files:
        batch.append((name, text))
        size += len(text or b"")
        if size >= engine.batch_bytes or len(batch) >= engine.batch_texts:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _shown(text: bytes, numbers: list[int]) -> Iterator[tuple[int, str]]:
    """Lines by their numbers, as far as they are shown."""
    if not numbers:
        return
    from albert_tools.builtins.files.line_search import split

    lines = split(text)
    for n in numbers:
        # A character has four bytes at most, so what is cut off first is none that is shown.
        yield n, lines[n - 1][: 4 * MAX_SHOWN].decode("utf-8", "ignore")[:MAX_SHOWN]
