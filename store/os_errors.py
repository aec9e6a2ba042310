"""Converts an `OSError` of the store to a `Failure` with the failed action, the path and a hint."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from albert_tools.engine.model.failure import Failure

_ELSEWHERE = "set ALBERT_HOME to a folder that you can write to"

_HINTS: dict[int, str] = {
    errno.ENOSPC: "free some disk space and try again",
    errno.EDQUOT: "free some of your disk quota and try again",
    errno.EACCES: f"check its permissions, or {_ELSEWHERE}",
    errno.EPERM: f"check its permissions, or {_ELSEWHERE}",
    errno.EROFS: _ELSEWHERE,
    errno.ENOENT: _ELSEWHERE,
    errno.ENOTDIR: f"a file is where a folder should be: move it away, or {_ELSEWHERE}",
    errno.EEXIST: f"a file is where a folder should be: move it away, or {_ELSEWHERE}",
}


def io_failure(action: str, path: Path, error: OSError) -> Failure:
    """The failure with the message ``can't <action> <path>`` and a hint for the error number."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return Failure(
        "io_error",
        f"can't {action} {path}: {reason}",
        hint=_HINTS.get(error.errno or 0),
        details={"path": str(path), "errno": error.errno},
    )
