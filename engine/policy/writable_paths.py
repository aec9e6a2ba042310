"""The paths that `writable_paths` names: fixed folders with everything below them, and fixed files.

Tools and commands are held to the same paths. The kernel holds a command to them, and it knows no patterns. So a pattern with
another form is refused, and the message says how to write it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from albert_tools.engine.model.folders import within
from albert_tools.engine.policy.path_patterns import expanded, is_wild

#: The patterns without a slash that name one folder.
_TOPS = (".", "~", "$HOME", "$WORKSPACE")


def read_writable(text: str) -> str:
    """A pattern of `writable_paths`, unchanged.

    Raises:
        ValueError: the pattern is invalid, or names neither a fixed folder nor a fixed file.
    """
    expanded(text, "/", "/")
    name = text.rstrip("/")
    if is_wild(text.removesuffix("/**")):
        raise ValueError("the kernel can't hold commands to such a pattern; write a whole folder, such as docs/**")
    if name and "/" not in name and name not in _TOPS:
        raise ValueError(f"it matches at any depth; write {name}/** for the folder, or ./{name} for the file")
    return text


def writable_path(pattern: str, workspace: str, home: str) -> str:
    """The absolute path that a pattern names. A path that is certainly a folder ends with a slash.

    A path outside the workspace is returned without links. Inside, a tool may have made the link, so it is not followed.
    """
    written = os.path.join(workspace, expanded(pattern.removesuffix("/**") or "/", home, workspace))
    path = "/" + "/".join(part for part in written.split("/") if part not in ("", "."))
    if not within(path, workspace):
        path = os.path.realpath(path)
    return f"{path.rstrip('/')}/" if pattern.endswith(("/", "/**")) else path


def writable_in_workspace(lists: Sequence[Sequence[str]], workspace: str) -> list[str]:
    """The paths in the workspace that lie within a path of every list."""
    paths = dict.fromkeys((f"{workspace}/", *chain(*lists)))
    return [path for path in paths if all(within(path, *tops) for tops in ((workspace,), *lists))]


def links(patterns: Iterable[str], workspace: str, home: str) -> Iterator[tuple[str, str]]:
    """The patterns whose paths lead through a link in the workspace, with the real paths. They permit nothing."""
    for pattern in patterns:
        path = writable_path(pattern, workspace, home).rstrip("/")
        if within(path, workspace) and (real := os.path.realpath(path)) != path:
            yield pattern, real
