"""Searches files for lines that match a pattern, in folders of any size, in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypedDict

from albert_tools.builtins.files.files import MAX_FILE
from albert_tools.builtins.files.find_files import Glob, below, entering
from albert_tools.builtins.files.globs import Globs
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import MAX_PATTERN, LinePattern
from albert_tools.engine.model.parameter_types import FilePath, ItemList
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound
from albert_tools.engine.workspace.walk import Met
from albert_tools.engine.workspace.workspace import Workspace

#: The most lines of one result.
MAX_MATCHES = 1_000
#: Characters of a line that are returned.
MAX_SHOWN = 500


class Match(TypedDict):
    """A matching line."""

    path: str
    line: int
    text: str


class Matches(TypedDict):
    """The result of `search_text`."""

    matches: list[Match]
    truncated: bool
    files: int
    skipped: int


@primitive(
    effects=["read"],
    idempotent=True,
    family="files",
    paths={"path": "read"},
    outputs={
        ".matches": "at most limit items",
        ".matches[*].path": "below path",
        ".matches[*].line": "little",
        ".truncated": "little",
        ".files": "little",
        ".skipped": "little",
    },
    source="file",
    timeout=60,
)
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

    Returns {"matches", "truncated", "files", "skipped"}. Each match is {"path", "line", "text"}: the path relative to the
    workspace, the number of the line counted from 1 (as read_file's offset accepts it), and the line without its "\\n", shortened
    to 500 characters. Matches are sorted by path and line. "truncated" is true if there are more than `limit` matches; then the
    list has the first ones. "files" is the number of files that were searched up to that point. "skipped" is the number of files
    that are binary (not UTF-8 text, or with a NUL), are too large (see read_file), or may not be read. An empty result is not a
    failure.

    The pattern has RE2's syntax and is matched against each line separately. "^" and "$" match the ends of a line, "\\d", "\\w",
    "\\s", "\\b" are ASCII, and there are no backreferences and no lookaround. To find a text with special characters, put a
    backslash before each of them. Hidden files are searched too; ignore files have no effect. Links are not followed. Folders
    named .git, and folders that the rules forbid, are not searched.

    Fails with `invalid_arguments` (an invalid pattern), `not_found`, `not_a_directory`, `too_large` (a folder with more than
    100000 names, more than 1000000 names in all, folders more than 200 deep; use `exclude` to skip them), `io_error`, `timeout`,
    or `permission_denied` (outside the workspace).

    Args:
        pattern: A regular expression, for example "def \\w+_test\\(" or "TODO".
        path: The folder or file to search, relative to the workspace; "." is the workspace itself.
        include: Patterns of the files to search, in the syntax of find_files, for example ["*.py"]; empty for all files.
        exclude: Patterns of the files and folders to skip, for example ["node_modules", "*.lock"].
        ignore_case: Whether to ignore case.
        limit: The largest number of matches to return.
    """
    expression = LinePattern(pattern, ignore_case)
    wanted, excluded = Globs(include, "include"), Globs(exclude, "exclude")
    workspace = context.workspace
    matches: list[Match] = []
    files = skipped = size = 0
    truncated = False
    for name, text in _files(workspace, path, wanted, excluded):
        if text is None:
            skipped += 1
            continue
        files += 1
        size += len(text)
        for n, line in expression.lines(text):
            if len(matches) == limit:
                truncated = True
                break
            # A character has at most four bytes, so no character that is shown is incomplete.
            shown = line[: 4 * MAX_SHOWN].decode("utf-8", "ignore")[:MAX_SHOWN]
            matches.append({"path": name, "line": n, "text": shown})
        if truncated:
            break
    context.effect("read", path=workspace.recorded(path), size_bytes=size, entries=files)
    return {"matches": matches, "truncated": truncated, "files": files, "skipped": skipped}


def _files(workspace: Workspace, path: str, wanted: Globs, excluded: Globs) -> Iterator[tuple[str, bytes | None]]:
    """The path and the text of each file to search. The text is None for a file that is skipped."""
    relative = below(path, workspace.spell(path))
    for met in workspace.walk(path, entering(excluded, relative)):
        if met.type != "file":
            continue
        name = relative(met)
        if (wanted and not wanted.matches(name)) or (excluded and excluded.matches(name)):
            continue
        yield met.path, _text(workspace, met)


def _text(workspace: Workspace, met: Met) -> bytes | None:
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
