"""Private folders on the disk, for commands that can't have one in memory; they are removed whatever a command did in them.

A command may have made deep folders, and folders that their owner can't read. So a folder is emptied level by level, without
recursion. Each is locked while it is in use, so that the next service can tell those that a killed one left.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import suppress

_PREFIX = "albert-command-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds; a younger folder may not be locked yet.
_YOUNG = 60.0


class Temporary:
    """A folder with a home folder in it."""

    def __init__(self) -> None:
        """
        Raises:
            OSError: the folder can't be made.
        """
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        self._handle = os.open(self.path, _FOLDER)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(f"{self.path}/home", 0o700)

    def remove(self) -> None:
        """Remove both folders. Nothing of the command may run any more."""
        clear(self._handle)
        os.close(self._handle)
        with suppress(OSError):
            os.rmdir(self.path)


def clear(folder: int) -> None:
    """Empty an open folder in which nobody else changes anything; what can't be removed stays."""
    before = None
    # What couldn't be removed once can't be the next time.
    while (names := os.listdir(folder)) and names != before:
        before = names
        for name in names:
            with suppress(OSError):
                if not _open_folder(folder, name):
                    os.unlink(name, dir_fd=folder)
                    continue
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    for each in os.listdir(inner):
                        if _open_folder(inner, each):
                            os.rename(each, f"albert-{os.urandom(8).hex()}", src_dir_fd=inner, dst_dir_fd=folder)
                        else:
                            os.unlink(each, dir_fd=inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=folder)


def _open_folder(folder: int, name: str) -> bool:
    """Whether `name` is a folder; if so, its owner can read it afterwards."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.chmod(name, 0o700, dir_fd=folder)
    return True


def sweep() -> None:
    """Remove the folders of services that have ended."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _sweep(entry.path)


def _sweep(path: str) -> None:
    handle = os.open(path, _FOLDER)
    try:
        facts = os.fstat(handle)
        if facts.st_uid != os.getuid() or time.time() - facts.st_ctime < _YOUNG:
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        clear(handle)
        os.rmdir(path)
    finally:
        os.close(handle)
