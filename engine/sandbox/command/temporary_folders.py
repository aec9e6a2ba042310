"""Private folders on disk, for commands that can't have one in memory. They are removed after the command.

A command may have created deeply nested folders, or folders that their owner can't read. So a folder is emptied level by level,
without recursion. Each folder is locked during its use. So the next service can recognize the folders that a killed service left.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import suppress

from albert_tools.engine.model.file_lock import lock
from albert_tools.engine.sandbox.command.view import HOME_NAME

_PREFIX = "albert-command-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds. A younger folder may not be locked yet.
_YOUNG = 60.0


class Temporary:
    """A private folder that contains a home folder."""

    def __init__(self) -> None:
        """
        Raises:
            OSError: the folder can't be made.
        """
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        self._handle = os.open(self.path, _FOLDER)
        lock(self._handle)
        os.mkdir(f"{self.path}/{HOME_NAME}", 0o700)

    def remove(self) -> None:
        """Remove both folders. All processes of the command must have ended."""
        clear(self._handle)
        os.close(self._handle)
        with suppress(OSError):
            os.rmdir(self.path)


def clear(folder: int) -> None:
    """Empty an open folder. No other process may change it. Entries that can't be removed stay."""
    before = None
    # Stop when a round removes nothing, because further rounds would fail too.
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
    """Whether `name` is a folder. If so, its mode is changed to 0700, so that its owner can read it."""
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
        lock(handle)
        clear(handle)
        os.rmdir(path)
    finally:
        os.close(handle)
