"""Locks on open files and folders, by the kernel (`flock`).

The kernel releases a lock when its process ends, even if it is killed. A lock file is not deleted while another process may wait
for it, because the next one would lock another file of that name.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

#: Seconds between two attempts: at first, and at most.
_PAUSES = (0.00002, 0.002)


def open_lock(path: Path) -> int:
    """Open a lock file, which is created if it is missing. Returns its descriptor. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def lock(handle: int, seconds: float = 0.0, *, shared: bool = False) -> None:
    """Lock an open file. A shared lock excludes only exclusive ones.

    Args:
        handle: The descriptor.
        seconds: How long to wait for others.
        shared: Whether the lock is shared.

    Raises:
        BlockingIOError: another process has the lock.
        OSError: the file can't be locked.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline, pause = time.monotonic() + seconds, _PAUSES[0]
    while True:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _PAUSES[1])


def unlock(handle: int) -> None:
    """Release the lock. Closing the file would not suffice while a forked child has it open."""
    fcntl.flock(handle, fcntl.LOCK_UN)


def open_locked(path: Path, seconds: float = 0.0) -> int:
    """Open and lock a lock file, exclusively. Raises the same errors as `open_lock` and `lock`."""
    handle = open_lock(path)
    try:
        lock(handle, seconds)
    except BaseException:
        os.close(handle)
        raise
    return handle


def release(handle: int) -> None:
    """Unlock and close the file."""
    try:
        unlock(handle)
    finally:
        os.close(handle)
