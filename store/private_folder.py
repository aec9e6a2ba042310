"""Folders that only their owner can access.

The record and the content store are private, because a user with write access could forge a record. So their folders are created
with mode 0700. If other users can access an existing folder, it is refused and not repaired: they may have read or changed its
content already.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import make_folder


def make_private(folder: Path, what: str) -> None:
    """Create `folder` if it is missing, and check that only its owner can access it. `what` names it in messages (``the record``).

    Raises:
        Failure: `io_error` if it is a file, belongs to another user or is open to others, or if the system refuses.
    """
    make_folder(folder)
    check_private(folder, what)


def check_private(folder: Path, what: str) -> bool:
    """Returns whether `folder` exists. An existing folder must be private.

    Raises:
        Failure: `io_error`, as `make_private`.
    """
    try:
        facts = os.stat(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise io_failure(f"examine the folder of {what},", folder, error) from error
    if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077:
        return True
    if not stat.S_ISDIR(facts.st_mode):
        problem, hint = "is not a folder", "move the file away"
    elif facts.st_uid != os.geteuid():
        problem = "belongs to another user"
        hint = "run as that user, or set ALBERT_HOME to a folder of your own"
    else:
        mode = stat.S_IMODE(facts.st_mode)
        problem = f"is open to others (mode {mode:04o}, {mode & 0o077:03o} too much)"
        hint = f"check whether others read or changed it, then: chmod 700 {folder}"
    details = {"path": str(folder)}
    raise Failure("io_error", f"the folder of {what} {problem}: {folder}", hint=hint, details=details)
