"""One at a time: those who change the same thing wait for one another.

Files are replaced whole, so who reads needs no turn, and reads overlap. Who writes holds the resource for the length of the call:
among the calls of one service by a lock of its loop, among processes by the kernel's lock on one of 256 files, which ends with the
process that holds it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from albert_tools.engine.model.failure import Failure

#: Seconds between two looks whether another process is done.
_PAUSE = 0.02


class Turns:
    """Turns at resources, named by any text. `folder` holds the locks among processes; None is for one process alone."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, resources: Iterable[str]) -> AsyncIterator[None]:
        """Hold all of `resources`, which end with the block. In one order, so that no two wait for each other.

        Raises:
            Failure: `io_error`: the folder of the locks can't be used.
        """
        names = sorted({blake2b(r.encode("utf-8", "surrogatepass"), digest_size=1).hexdigest() for r in resources})
        held: list[asyncio.Lock] = []
        handles: list[int] = []
        try:
            for name in names:
                lock, users = self._locks.get(name, (None, 0))
                lock = lock or asyncio.Lock()
                self._locks[name] = lock, users + 1
                try:
                    await lock.acquire()
                except BaseException:
                    self._leave(name)
                    raise
                held.append(lock)
                if self._folder is not None:
                    handles.append(await self._among_processes(self._folder, name))
            yield
        finally:
            for handle in handles:
                os.close(handle)
            for lock, name in zip(held, names, strict=False):
                lock.release()
                self._leave(name)

    def _leave(self, name: str) -> None:
        lock, users = self._locks[name]
        if users == 1:
            del self._locks[name]
        else:
            self._locks[name] = lock, users - 1

    @staticmethod
    async def _among_processes(folder: Path, name: str) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            try:
                handle = os.open(folder / name, flags, 0o600)
            except FileNotFoundError:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                handle = os.open(folder / name, flags, 0o600)
        except OSError as error:
            raise Failure(
                "io_error",
                f"no turn can be had in {str(folder)!r}: {error.strerror}",
                hint="`albert doctor` says where the state is",
            ) from None
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return handle
                await asyncio.sleep(_PAUSE)
        except BaseException:
            os.close(handle)
            raise
