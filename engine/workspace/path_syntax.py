"""Checks whether a path is valid, and creates the failures for refused paths.

These checks read only the text of the path. They don't confine a tool to the workspace (`openat` does this). They explain common
mistakes, and they give rules one normal form of each path: parts without ``.``, ``..`` or double slashes.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from collections.abc import Iterable

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace.openat import Parts

#: The most bytes of a path, as in Linux (PATH_MAX).
MAX_PATH = 4096

#: Albert's own folder in a project. Tools may read its files but not change them.
ALBERT_FOLDER = ".albert"

#: Git's folder. Its files name commands that git runs, so tools may read them but not change them.
GIT_FOLDER = ".git"


def plain_parts(path: str) -> Parts:
    """The parts of a path, without ``.`` and empty parts.

    Raises:
        Failure: `invalid_arguments` for an invalid path; `permission_denied` with rule `path_traversal` for ``..``.
    """
    if not path:
        raise refused_argument("path", "the path is empty", hint="write '.' for the workspace itself")
    if "\0" in path:
        raise refused_argument("path", "a path can't hold a NUL character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        message = "a path must be valid Unicode; this one holds half a surrogate pair"
        raise refused_argument("path", message) from None
    if size > MAX_PATH:
        raise refused_argument("path", f"the path is longer than {MAX_PATH:,} bytes", hint="use a shorter path")
    parts = tuple([p for p in path.split("/") if p not in ("", ".")])
    if ".." in parts:
        raise Failure(
            "permission_denied",
            f"{show(path)} has '..' in it, which is not allowed",
            rule="path_traversal",
            hint="write the path relative to the workspace, without '..'",
        )
    return parts


def protected_folder(name: str) -> str | None:
    """``.albert`` or ``.git``, if some file system treats `name` as equal to it: ignoring case, width or invisible characters."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    plain = plain.casefold().rstrip(". ")
    if plain == "git~1":
        return GIT_FOLDER
    return plain if plain in (ALBERT_FOLDER, GIT_FOLDER) else None


def protected(path: str, folder: str) -> Failure:
    """The denial of a change in `folder`, ``.albert`` or ``.git``."""
    if folder == ALBERT_FOLDER:
        return albert_own(path, sealed=False)
    return Failure(
        "permission_denied",
        f"{show(path)} belongs to git, which runs commands that its files name, so tools can't change it",
        rule="git_own",
        hint="let git change it, or use another path",
    )


def show(path: str) -> str:
    """The path as the agent wrote it, quoted and shortened."""
    return repr(path if len(path) <= 200 else path[:120] + "…" + path[-60:])


def outside(path: str, why: str) -> Failure:
    """The denial of a path that leads out of the workspace."""
    return Failure(
        "permission_denied",
        f"{show(path)} is outside the workspace: {why}",
        rule="outside_workspace",
        hint="only files in the workspace can be reached; give the path relative to it",
    )


def forbidden(path: str, what: str) -> Failure:
    """The denial of a path that no tool can reach."""
    return Failure(
        "permission_denied",
        f"{show(path)} is forbidden: {what}",
        rule="shipped.forbidden_paths",
        hint="use another path",
    )


def albert_own(path: str, sealed: bool) -> Failure:
    """The denial of a path in Albert's own files."""
    what = "can't be reached by tools" if sealed else "can't be changed by tools"
    return Failure(
        "permission_denied",
        f"{show(path)} belongs to Albert itself and {what}",
        rule="albert_own",
        hint="ask a person to change it, or use another path",
    )


#: The failure code and the message for each error of the operating system.
_SENTENCES: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("not_found", "there is nothing at {path}"),
    errno.ENOTDIR: ("not_a_directory", "{path} goes through something that is not a folder"),
    errno.EISDIR: ("not_a_file", "{path} is a folder, not a file"),
    errno.ELOOP: ("io_error", "{path} goes through too many symbolic links"),
    errno.ENOTEMPTY: ("not_a_file", "{path} is a folder that is not empty"),
    errno.EEXIST: ("exists", "something is at {path} already"),
    errno.EACCES: ("io_error", "the operating system does not permit access to {path}"),
    errno.EPERM: ("io_error", "the operating system does not permit access to {path}"),
    errno.EROFS: ("io_error", "{path} is on a file system that can only be read"),
    errno.ENOSPC: ("io_error", "there is no space left for {path}"),
    errno.EDQUOT: ("io_error", "the disk quota has no room left for {path}"),
    errno.EFBIG: ("too_large", "{path} would be larger than the file system allows"),
    errno.ENXIO: ("not_a_file", "{path} is a device or socket, not a file"),
    errno.ENODEV: ("not_a_file", "{path} is a device or socket, not a file"),
}

#: Errors that may disappear at the next attempt.
_TRANSIENT: Iterable[int] = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def failure_of(error: OSError, path: str) -> Failure:
    """Convert an error of the operating system to a failure. The message contains the path as the call wrote it."""
    code = error.errno or 0
    if code == errno.EXDEV:
        return outside(path, "a symbolic link leads out of it, or is absolute")
    if code == errno.ENAMETOOLONG:
        return refused_argument(
            "path", f"{show(path)} has a name longer than the file system takes", hint="use a shorter name"
        )
    kind, sentence = _SENTENCES.get(code, ("io_error", f"{{path}} failed: {os.strerror(code)}"))
    # Not str.format: a path may contain braces.
    return Failure(kind, sentence.replace("{path}", show(path)), retryable=code in _TRANSIENT)
