"""Tells which processes that use the record are alive.

A process that holds something for a while, a run or a dedupe key, has an *owner*: a file that it keeps locked. The kernel releases
the lock when the process ends, however it ends. So others can tell whether the owner that a row names is still alive.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import make_private

_OWNER = re.compile(r"[0-9a-f]{16}\Z")


class Owners:
    """The owners of a home, in `folder`. The first use of `own` creates the folder and this process's file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = ""
        self._handle = -1
        self._pid = 0

    def own(self) -> str:
        """The id of this process's owner: 16 hex digits. A forked child gets an id of its own.

        Raises:
            Failure: `io_error`.
        """
        if self._own and self._pid == os.getpid():
            return self._own
        name = os.urandom(8).hex()
        path = self._folder / name
        make_private(self._folder, "the record's processes")
        self._sweep()
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise io_failure("create the owner's file", path, error) from error
        self._own, self._handle, self._pid = name, handle, os.getpid()
        return name

    def alive(self, owner: str) -> bool:
        """Whether the process of an owner still runs and has not closed its record.

        Raises:
            Failure: `invalid_arguments` if `owner` is not an id; `io_error`.
        """
        if owner == self._own and self._pid == os.getpid():
            return True
        if not _OWNER.match(owner):
            raise Failure("invalid_arguments", f"{owner[:80]!r} is not the id of an owner")
        path = self._folder / owner
        try:
            return _locked(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise io_failure("examine the owner's file", path, error) from error

    def close(self) -> None:
        """State that this process has ended its work."""
        if self._handle >= 0 and self._pid == os.getpid():
            with suppress(OSError):
                os.unlink(self._folder / self._own)
            # A child that was forked meanwhile shares the lock until it is released.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
        self._own, self._handle = "", -1

    def _sweep(self) -> None:
        """Delete the files of processes that were killed."""
        for name in os.listdir(self._folder):
            path = self._folder / name
            with suppress(OSError):
                if _OWNER.match(name) and not _locked(path):
                    path.unlink()


def _locked(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
