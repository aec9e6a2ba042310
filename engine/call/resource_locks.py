"""Locks on the resources that calls change. Two calls that write the same file run one after the other.

Files are replaced atomically, so readers need no lock. A writer keeps its locks during the whole call. An `asyncio.Lock` excludes
other calls of the same service. An `flock` on one of 256 files excludes other processes. The kernel releases an `flock` when its
process dies.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import lock, open_lock, release
from albert_tools.engine.model.replace_file import make_folders

#: Seconds between two attempts to lock a file that another process has locked.
_POLL_SECONDS = 0.02


class ResourceLocks:
    """Locks on resources. Any text can name a resource. `folder` contains the lock files; None locks within this process only."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, resources: Iterable[str]) -> AsyncIterator[None]:
        """Lock all `resources` during the block. The locks are taken in a fixed order, so calls can't deadlock.

        Raises:
            Failure: `io_error` if the lock files can't be opened.
        """
        names = sorted({blake2b(r.encode("utf-8", "surrogatepass"), digest_size=1).hexdigest() for r in resources})
        held: list[asyncio.Lock] = []
        handles: list[int] = []
        try:
            for name in names:
                own, users = self._locks.get(name, (None, 0))
                own = own or asyncio.Lock()
                self._locks[name] = own, users + 1
                try:
                    await own.acquire()
                except BaseException:
                    self._drop(name)
                    raise
                held.append(own)
                if self._folder is not None:
                    handles.append(await self._lock_file(self._folder, name))
            yield
        finally:
            for handle in handles:
                release(handle)
            for own, name in zip(held, names, strict=False):
                own.release()
                self._drop(name)

    def _drop(self, name: str) -> None:
        own, users = self._locks[name]
        if users == 1:
            del self._locks[name]
        else:
            self._locks[name] = own, users - 1

    @staticmethod
    async def _lock_file(folder: Path, name: str) -> int:
        try:
            try:
                handle = open_lock(folder / name)
            except FileNotFoundError:
                make_folders(folder)
                handle = open_lock(folder / name)
        except OSError as error:
            raise Failure(
                "io_error",
                f"can't open a lock file in {str(folder)!r}: {error.strerror}",
                hint="make the folder writable; `albert doctor` shows where the state is",
            ) from None
        try:
            while True:
                with suppress(BlockingIOError):
                    lock(handle)
                    return handle
                await asyncio.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(handle)
            raise
