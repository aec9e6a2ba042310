"""Finds out which processes that use the record are alive.

A process that executes a run, or a request with a dedupe key, has an *owner*: a file that it keeps locked. Rows of the record name
the owner. The kernel releases the lock when the process ends, even if it is killed. So other processes can see whether it is alive.

A new file has the suffix ``.new`` until it is locked. A file without the suffix and without a lock belongs to a dead process, and
any process may delete it.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from contextlib import suppress
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import lock, release
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import make_private

_OWNER = re.compile(r"[0-9a-f]{16}\Z")
#: The suffix of a file that its process has not locked yet.
_NEW = ".new"


class Owners:
    """The owners of a home, in `folder`. The first use of `own` creates the folder and this process's file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = ""
        self._handle = -1
        self._lock = threading.Lock()
        _all.add(self)

    def own(self) -> str:
        """The id of this process's owner: 16 hex digits. A forked child gets an id of its own.

        Raises:
            Failure: `io_error`.
        """
        if self._own:
            return self._own
        with self._lock:
            if not self._own:
                make_private(self._folder, "the record's processes")
                try:
                    self._sweep()
                    while not self._own:
                        self._create()
                except OSError as error:
                    raise io_failure("create a file in", self._folder, error) from error
            return self._own

    def is_own(self, owner: str) -> bool:
        """Whether this process is the owner."""
        return owner == self._own != ""

    def alive(self, owner: str) -> bool:
        """Whether the process of an owner still runs and has not closed its record.

        Raises:
            Failure: `invalid_arguments` if `owner` is not an id; `io_error`.
        """
        check_owner(owner)
        if self.is_own(owner):
            return True
        path = self._folder / owner
        try:
            return _locked(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise io_failure("examine the owner's file", path, error) from error

    def evict(self, owner: str) -> bool:
        """False: a process that has the file locked can only be ended on its machine."""
        return False

    def close(self) -> None:
        """Delete the file of this process. It then counts as dead."""
        with self._lock:
            if self._handle < 0:
                return
            with suppress(OSError):
                os.unlink(self._folder / self._own)
            release(self._handle)
            self._own, self._handle = "", -1

    def _create(self) -> None:
        """Create the file, unless another process deletes it before it is locked."""
        name = os.urandom(8).hex()
        path = self._folder / name
        new = path.with_suffix(_NEW)
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            lock(handle)
            os.rename(new, path)
        except (BlockingIOError, FileNotFoundError):
            os.close(handle)
            with suppress(FileNotFoundError):
                new.unlink()
        except OSError:
            os.close(handle)
            raise
        else:
            self._handle, self._own = handle, name

    def _sweep(self) -> None:
        """Delete the files of processes that were killed."""
        for name in os.listdir(self._folder):
            path = self._folder / name
            with suppress(FileNotFoundError):
                if _OWNER.match(name.removesuffix(_NEW)) and not _locked(path):
                    path.unlink()

    def _forked(self) -> None:
        """In a forked child: the owner is the parent. The child must not keep the parent's lock after the parent has ended."""
        if self._handle >= 0:
            os.close(self._handle)
        self._own, self._handle = "", -1
        self._lock = threading.Lock()


def check_owner(owner: str) -> None:
    """Raises Failure `invalid_arguments` if `owner` is not an id."""
    if not _OWNER.match(owner):
        raise Failure("invalid_arguments", f"{owner[:80]!r} is not the id of an owner")


def _locked(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # A shared lock, so that several processes can examine the file of a dead process at the same time.
        lock(handle, shared=True)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


_all: weakref.WeakSet[Owners] = weakref.WeakSet()


def _after_fork() -> None:
    for owners in list(_all):
        owners._forked()


os.register_at_fork(after_in_child=_after_fork)
