"""One at a time, of all threads and all processes of a home: to read the log, decide, and append, as one step.

Appending needs nobody's leave, but a decision that depends on what others have appended does: that a limit still has room,
that an approval is unused, that nobody else has begun the same work. A lock among the process's threads comes first, then a `flock`
on a file in the log's folder; the system lets go of that when a process dies, however it dies.

Both are held for microseconds, since whoever waits here may hold up an event loop. So a section never awaits, never waits for the
disk, and never enters another: a thread that does is told at once, not after seconds of waiting for itself.

The lock's file may be taken away by somebody who tidies up. Whoever has locked it looks whether it is still the one that
others would lock.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log.segment import FILE_MODE, LOCK
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import make_private

#: Seconds to wait for others. A section takes microseconds, so a lock held for this long is held by a stopped process.
PATIENCE = 5.0
#: Seconds between two tries: at first, and at most.
_PAUSES = (0.00002, 0.002)


class Exclusive:
    """The section of the log at `folder`, as a context manager. Of one process any number of threads may share it."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        self._folder = folder
        self._path = os.fspath(folder / LOCK)
        self._patience = patience
        self._begin()
        _sections.add(self)

    def _begin(self) -> None:
        """The state that a forked child doesn't share with its parent."""
        self._threads = threading.Lock()
        self._holder = 0
        self._handle = -1
        self._inode = 0

    @property
    def inside(self) -> bool:
        """Whether this thread is in the section."""
        return self._holder == threading.get_ident()

    def __enter__(self) -> None:
        me = threading.get_ident()
        if not self._threads.acquire(False):
            if self._holder == me:
                raise RuntimeError("this thread is inside already; code inside must not enter again or await")
            if not self._threads.acquire(timeout=self._patience):
                raise self._late()
        try:
            self._lock()
            self._holder = me
        except BaseException:
            self._threads.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._holder != threading.get_ident():
            return  # a child that was forked inside leaves what its parent holds alone
        self._holder = 0
        try:
            # Explicitly, because a child forked meanwhile shares the lock until it is let go of.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _lock(self) -> None:
        deadline = 0.0
        pause, longest = _PAUSES
        while True:
            if self._handle < 0:
                self._open()
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._current():
                    return
                self.close()  # and so lets go of it
                continue
            except BlockingIOError:
                pass
            except OSError as error:
                raise io_failure("lock", Path(self._path), error) from error
            except BaseException:
                # A signal's handler raised, and whether it is locked is not known.
                self.close()
                raise
            now = time.monotonic()
            deadline = deadline or now + self._patience
            if now > deadline:
                raise self._late()
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def _open(self) -> None:
        make_private(self._folder, "the log")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(self._path, flags, FILE_MODE)
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                os.close(handle)
                raise OSError("not a regular file")
        except OSError as error:
            raise io_failure("open the lock", Path(self._path), error) from error
        self._handle, self._inode = handle, found.st_ino

    def _current(self) -> bool:
        """Whether the file that is open is the one that others would open."""
        try:
            return os.lstat(self._path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _late(self) -> Failure:
        return Failure(
            "io_error",
            f"timed out after {self._patience:g} s waiting for another process that holds the lock {self._path}",
            hint="end that process (`fuser` names it) and try again",
            retryable=True,
            details={"path": self._path},
        )

    def close(self) -> None:
        """Let go of the lock's file; the next section opens it again."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def ended(self) -> None:
        """Let go of the lock's file unless somebody is inside."""
        if self._threads.acquire(False):
            try:
                self.close()
            finally:
                self._threads.release()

    def _forked(self) -> None:
        """In a child: the parent's lock is the parent's. Closing the handle leaves it locked."""
        if self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
        self._begin()

    def __del__(self) -> None:
        # Whoever forgets a log must not leave its handle open.
        handle = getattr(self, "_handle", -1)
        if handle >= 0:
            with suppress(OSError):
                os.close(handle)


_sections: weakref.WeakSet[Exclusive] = weakref.WeakSet()


def _after_fork() -> None:
    for section in list(_sections):
        section._forked()


os.register_at_fork(after_in_child=_after_fork)
