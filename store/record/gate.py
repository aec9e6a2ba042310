"""One writer at a time, among all threads and processes of a home.

SQLite has locks of its own, but a process that waits for them polls with growing pauses: with eight busy writers, one waits for
seconds. A `flock` is fairer. It also keeps two processes from resetting the write-ahead log at the same time. That is a fault of
SQLite 3.7.0 to 3.51.2 that can corrupt the database (fixed in 3.51.3, 3.50.7 and 3.44.6). The kernel releases the lock when its
process ends.

The gate's file contains the number and the hash of the last entry. SQLite silently ignores everything behind a damaged page of its
write-ahead log; the file shows that entries are missing. After a restart of the machine it proves nothing, because a power
failure may have removed the last entries. So it also contains the id of the boot.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import lock, open_lock, release, unlock
from albert_tools.store.os_errors import io_failure

#: Seconds to wait for others. They need microseconds, so a gate that is closed for this long belongs to a stopped process.
PATIENCE = 5.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BYTES = 16
_BYTES = _BOOT_BYTES + 8 + 32


class Tail(NamedTuple):
    """The end of the chain: the number and the hash of the last entry."""

    n: int
    hash: bytes


#: The end of an empty chain.
START = Tail(0, bytes(32))


class Gate:
    """The open gate file at `path`. A process opens it once; its threads take turns before they enter."""

    def __init__(self, path: Path) -> None:
        """Raises Failure `io_error`."""
        self._path = path
        self._boot = _boot()
        try:
            self.handle = open_lock(path)
        except OSError as error:
            raise io_failure("open the record's gate", path, error) from error

    def enter(self) -> None:
        """Wait until no other process is inside.

        Raises:
            Failure: `io_error`; retryable if another process stays inside for too long.
        """
        try:
            lock(self.handle, PATIENCE)
        except BlockingIOError as error:
            raise Failure(
                "io_error",
                f"another process has kept the record locked for {PATIENCE:g} seconds",
                hint="end the stopped process that uses this home, then try again",
                retryable=True,
                details={"path": str(self._path)},
            ) from error
        except OSError as error:
            raise io_failure("lock the record's gate", self._path, error) from error

    def leave(self) -> None:
        """Let others enter."""
        unlock(self.handle)

    def last(self) -> Tail:
        """The end of the chain that a process of this boot has written; `START` if there is none."""
        return _tail(os.pread(self.handle, _BYTES, 0), self._boot)

    def write_last(self, tail: Tail) -> None:
        """State the end of the chain. If the file can't be written, the next check has less to compare."""
        try:
            os.pwrite(self.handle, self._boot + tail.n.to_bytes(8, "big") + tail.hash, 0)
        except OSError:
            pass

    def close(self) -> None:
        """Let others enter, and close the file."""
        release(self.handle)

    def abandon(self) -> None:
        """Close the file in a forked child. The lock is the parent's."""
        os.close(self.handle)


def read_last(path: Path) -> Tail:
    """`Gate.last` of the gate at `path`, which may be missing. Raises Failure `io_error`."""
    try:
        return _tail(path.read_bytes(), _boot())
    except FileNotFoundError:
        return START
    except OSError as error:
        raise io_failure("read the record's gate", path, error) from error


def _tail(content: bytes, boot: bytes) -> Tail:
    if len(content) < _BYTES or not content.startswith(boot):
        return START
    return Tail(int.from_bytes(content[_BOOT_BYTES : _BOOT_BYTES + 8], "big"), content[_BOOT_BYTES + 8 : _BYTES])


def _boot() -> bytes:
    """An id of the machine's present boot; zeros if the system has none."""
    try:
        return blake2b(_BOOT_ID.read_bytes(), digest_size=_BOOT_BYTES).digest()
    except OSError:
        return bytes(_BOOT_BYTES)
