"""Private folders on the disk, for commands that can't be given one in memory; taken away whatever a command made of them.

A command may have gone deep, and may have closed folders to their owner: so a folder is emptied level by level, never by going
down.
Each is locked for as long as it is used, so that those of a service that was killed are known, whatever its number was.
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
#: Seconds; one that is younger may not have been locked yet.
_YOUNG = 60.0


class Temporary:
    """A folder with a home folder in it; `remove` takes both away."""

    def __init__(self) -> None:
        """
        Raises:
            OSError: it can't be made.
        """
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        self._handle = os.open(self.path, _FOLDER)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(f"{self.path}/home", 0o700)

    def remove(self) -> None:
        """Nothing of the command runs any more."""
        clear(self._handle)
        os.close(self._handle)
        with suppress(OSError):
            os.rmdir(self.path)


def clear(folder: int) -> None:
    """Empty an open folder in which nothing changes meanwhile, as far as the system lets it."""
    left = None
    # What couldn't be taken away once won't be the next time.
    while (names := os.listdir(folder)) and names != left:
        left = names
        for name in names:
            with suppress(OSError):
                if not _opened(folder, name):
                    os.unlink(name, dir_fd=folder)
                    continue
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    for each in os.listdir(inner):
                        if _opened(inner, each):
                            os.rename(each, f"albert-{os.urandom(8).hex()}", src_dir_fd=inner, dst_dir_fd=folder)
                        else:
                            os.unlink(each, dir_fd=inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=folder)


def _opened(folder: int, name: str) -> bool:
    """Whether it is a folder, which is open to its owner then."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.chmod(name, 0o700, dir_fd=folder)
    return True


def sweep() -> None:
    """Take away what services that are gone have left."""
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
