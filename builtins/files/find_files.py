"""Finds files by a pattern of their path, in folders of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypedDict

from albert_tools.builtins.files.globs import MAX_PATTERN, Globs
from albert_tools.engine.model.parameter_types import FilePath, ItemList
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound
from albert_tools.engine.workspace.walk import Met

#: The most paths of one result.
MAX_FOUND = 10_000

#: A pattern of paths.
Glob = Annotated[str, Bound(minLength=1, maxLength=MAX_PATTERN)]

#: Folders that are not searched. Git's folder contains thousands of files that nobody searches for.
_SKIPPED = frozenset({".git"})


class Found(TypedDict):
    """The result of `find_files`."""

    paths: list[str]
    truncated: bool


def below(path: str, spelled: str) -> Callable[[Met], str]:
    """Returns a function that gives the path of an entry relative to the folder of a walk.

    Patterns are matched against this path.
    """
    prefix = "" if spelled == "." else f"{spelled.rstrip('/')}/"
    return lambda met: met.path.removeprefix(prefix) if met.path != spelled else met.name


def entering(excluded: Globs, relative: Callable[[Met], str]) -> Callable[[Met], bool]:
    """Returns a function that says whether a walk enters a folder."""
    return lambda met: met.name not in _SKIPPED and not (excluded and excluded.matches(relative(met)))


@primitive(
    effects=["read"],
    idempotent=True,
    family="files",
    paths={"path": "read"},
    outputs={".paths": "at most limit items", ".paths[*]": "below path", ".truncated": "little"},
    source="file",
    timeout=60,
)
def find_files(
    context: CallContext,
    pattern: Glob,
    path: FilePath = ".",
    type: Literal["file", "directory", "any"] = "file",
    exclude: ItemList[Glob] = [],  # noqa: B006
    limit: Annotated[int, Bound(minimum=1, maximum=MAX_FOUND)] = 1000,
) -> Found:
    """Find files whose path matches a pattern, in a folder and all folders under it.

    Returns {"paths", "truncated"}. "paths" has the paths relative to the workspace, sorted, as read_file accepts them. "truncated"
    is true if there are more than `limit` paths; then the list has the first ones.

    An empty result is not a failure. Hidden files are included. Links are not followed, and are listed only with type "any".
    Folders named .git, and folders that the rules forbid, are not searched.

    In a pattern "*", "?" and "[abc]" or "[!abc]" match characters of one name, "**" matches any number of folders, and "{a,b}"
    matches a or b. A backslash makes the next character an ordinary one. A pattern without "/" is matched against the name, at any
    depth ("*.py"). A pattern with "/" is matched against the whole path below `path` ("src/*.py", "**/tests/*.py"). Upper and lower
    case differ.

    Fails with `not_found`, `not_a_directory`, `too_large` (a folder with more than 100000 names, more than 1000000 names in
    all, folders more than 200 deep; use `exclude` to skip them), `invalid_arguments` (also an invalid pattern), `io_error`,
    `timeout`, or `permission_denied` (outside the workspace).

    Args:
        pattern: The pattern of the path, for example "*.py" or "docs/**/*.{md,rst}".
        path: The folder to look in, relative to the workspace; "." is the workspace itself.
        type: Whether to find files, folders, or anything.
        exclude: Patterns of files and folders to skip, for example ["node_modules", "*.min.js"]. An excluded folder is skipped
            with its whole content.
        limit: The largest number of paths to return.
    """
    wanted, excluded = Globs([pattern]), Globs(exclude, "exclude")
    workspace = context.workspace
    relative = below(path, workspace.spell(path))
    matching_paths: list[str] = []
    truncated = False
    for met in workspace.walk(path, entering(excluded, relative)):
        name = relative(met)
        if (type not in (met.type, "any")) or not wanted.matches(name) or (excluded and excluded.matches(name)):
            continue
        if len(matching_paths) == limit:
            truncated = True
            break
        matching_paths.append(met.path)
    context.effect("read", path=workspace.recorded(path), entries=len(matching_paths))
    return {"paths": matching_paths, "truncated": truncated}
