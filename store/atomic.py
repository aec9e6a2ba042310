"""Atomic writes: a crash at any instant leaves the old file or the new one, whole.

The new content goes to a temporary file in the same shard, through a buffered file object (a bare `os.write` may write only a
part). It is synced and then renamed over the old file; syncing the folder makes the new name durable. A process that dies in
between leaves the old file and a stale temporary file.

Writers of one shard exclude each other by a lock on its `.lock` file. The holder knows that no temporary file in the shard has
a living owner, and deletes them all.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from albert_tools.store.locks import lock
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import make_folder, sync_folder

TEMPORARY = ".new-"
LOCK = ".lock"
FILE_MODE = 0o600

#: Seconds to wait for the lock. A save takes milliseconds, so a longer holder is a stopped process.
LOCK_PATIENCE = 10.0


def write_atomic(shard: Path, target: Path, content: bytes) -> None:
    """Replace `target` (in `shard` or a folder in it), durably. The shard's lock must be held.

    Raises:
        OSError: the old content is still there, unless the last step failed, syncing the folder: then the new content is
            there, but may not survive a power cut.
    """
    temporary = shard / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextmanager
def writing(shard: Path) -> Iterator[None]:
    """Hold the shard's lock. Creates a missing folder and deletes stale temporary files.

    Raises:
        Failure: `io_error`; retryable if another process holds the lock for too long.
    """
    make_folder(shard)
    path = shard / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise io_failure("open the lock", path, error) from error
    try:
        late = f"timed out after {LOCK_PATIENCE:.0f} s waiting for another process that writes here: {path}"
        lock(handle, path, LOCK_PATIENCE, late, "end the process that holds the lock (`fuser` names it) and try again")
        try:
            _sweep(shard)
            yield
        finally:
            # Unlock explicitly: a child forked meanwhile shares the lock, and closing would leave it locked.
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _sweep(shard: Path) -> None:
    with suppress(OSError):
        for name in os.listdir(shard):
            if name.startswith(TEMPORARY):
                with suppress(OSError):
                    os.unlink(shard / name)


def set_aside(path: Path) -> Path:
    """Keep the file at `path` also as `<path>.damaged-<n>`, and return that path. The shard's lock must be held.

    It is a second link, so that `path` is never empty, even if the following save fails.

    Raises:
        OSError: the file can be neither linked nor moved.
    """
    n = 1
    while (aside := path.with_name(f"{path.name}.damaged-{n}")).exists():
        if aside.samefile(path):
            return aside  # an earlier save did this and then failed
        n += 1
    try:
        os.link(path, aside, follow_symlinks=False)
    except OSError:
        # A folder, or a file system without links.
        os.rename(path, aside)
    return aside
