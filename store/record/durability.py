"""Makes committed entries survive a crash of the machine. All calls that wait share one sync. The gate is open during a sync.

With SQLite, a commit survives the end of its process, because it is in the write-ahead log (`synchronous=NORMAL`). One `fdatasync`
of that file makes all commits before it survive a power failure. SQLite itself syncs the file before it moves commits into the
database. After a failed sync nobody knows what is on the disk, and a second sync may succeed without having written the pages. So
the first failure is final: this process appends no more.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.replace_file import sync_folder
from albert_tools.store.os_errors import io_failure

#: macOS has no fdatasync; its fsync covers more and costs more.
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class Durability(ABC):
    """Waits for syncs. A subclass makes them.

    `number` gives `Database.connection_number`. If it changes while a call waits, the call's entry may be lost, and another entry
    have its place.
    """

    def __init__(self, number: Callable[[], int] = lambda: 0) -> None:
        self._number = number
        self._synced = 0
        #: Why this process appends no more.
        self.broken: Failure | None = None
        self._turn = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None

    def wait(self, n: int) -> None:
        """Wait until entry `n` is on the disk. Raises Failure `io_error`."""
        if n > self._synced:
            self._sync(n, self._number())

    async def wait_async(self, n: int) -> None:
        """`wait`, without blocking the event loop. Raises Failure `io_error`."""
        if n > self._synced:
            await self._sync_async(n, self._number())

    async def _sync_async(self, n: int, number: int) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "record-sync")
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._thread, self._sync, n, number)
        except RuntimeError:  # No thread can be started.
            self._sync(n, number)
        else:
            await waiting

    def _sync(self, n: int, number: int) -> None:
        with self._turn:
            if self.broken is not None:
                raise self.broken.copy()
            if number != self._number():
                raise lost(n)
            if n <= self._synced:
                return  # Another thread's sync has covered it.
            self._synced = self._write()
            if n > self._synced:
                raise lost(n)

    @abstractmethod
    def _write(self) -> int:
        """Write to the disk what is committed. Returns the number of an entry that it covers."""

    def close(self) -> None:
        """Wait for the thread."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


def lost(n: int) -> Failure:
    """The failure of entry `n`, which was committed and may not have survived."""
    return Failure("io_error", f"entry {n} may be lost, because the connection to the record was lost", retryable=True)


class FileDurability(Durability):
    """Syncs the write-ahead log at `path`. `last` gives the number of the last committed entry."""

    def __init__(self, path: Path, last: Callable[[], int]) -> None:
        super().__init__()
        self._path = path
        self._last = last
        self._handle = -1

    def _write(self) -> int:
        covered = self._last()
        try:
            if self._handle < 0:
                self._handle = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                sync_folder(self._path.parent)
            _sync(self._handle)
        except OSError as error:
            self.broken = io_failure("sync the record at", self._path, error)
            raise self.broken.copy() from error
        return covered

    def close(self) -> None:
        """Also close the file."""
        super().close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
