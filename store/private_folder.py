"""A folder that only its owner can look into.

What the log and the content store hold is for nobody else's eyes, and whoever else could write there could make
up a record. So the folder is made with mode 0700, and one that others can enter is refused rather than mended: somebody
opened it, and what it holds may have been read or changed meanwhile.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import make_folder


def make_private(folder: Path, what: str) -> None:
    """Make `folder` if need be, and see that nobody but its owner can enter it; `what` names it (``the log``).

    Raises:
        Failure: `io_error` when a file stands in its place, it is someone else's or open to others, or the system refuses.
    """
    make_folder(folder)
    check_private(folder, what)


def check_private(folder: Path, what: str, *, follow: bool = True) -> bool:
    """Whether there is `folder`, having seen that it is private. Without `follow` a link in its place is refused, too.

    Raises:
        Failure: `io_error`, as `make_private`.
    """
    try:
        found = os.stat(folder, follow_symlinks=follow)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise io_failure(f"look at the folder of {what},", folder, error) from error
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return True
    details = {"path": str(folder)}
    if stat.S_ISLNK(found.st_mode):
        raise Failure(
            "io_error",
            f"the folder of {what} is a link: {folder}",
            hint="move what it leads to in its place, or set ALBERT_HOME to a folder of your own",
            details=details,
        )
    if not stat.S_ISDIR(found.st_mode):
        raise Failure(
            "io_error",
            f"the folder of {what} is not a folder: {folder}",
            hint="move what is there away",
            details=details,
        )
    if found.st_uid != os.geteuid():
        raise Failure(
            "io_error",
            f"the folder of {what} belongs to another user: {folder}",
            hint="run as that user, or set ALBERT_HOME to a folder of your own",
            details=details,
        )
    mode = stat.S_IMODE(found.st_mode) & 0o077
    raise Failure(
        "io_error",
        f"the folder of {what} is open to others (mode {stat.S_IMODE(found.st_mode):04o}, {mode:03o} too much): {folder}",
        hint=f"see who has been there, then: chmod 700 {folder}",
        details=details,
    )
