"""Atomic writes: after a crash at any time, the file has its complete old content or its complete new content.

The new content is written to a temporary file in the same shard, through a buffered file object, because a bare `os.write` may
write only a part. The temporary file is synced and then renamed to the name of the old file. Then the folder is synced, which
makes the new name durable. If a process dies before the rename, the old file and a stale temporary file remain.

Each shard has a lock, on its `.lock` file, and only one process can write at a time. So the process with the lock knows that all
temporary files in the shard are stale, and deletes them.
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

#: Seconds to wait for the lock. A save takes milliseconds, so a process that locks for longer has probably stopped.
LOCK_PATIENCE = 10.0


def write_atomic(shard: Path, target: Path, content: bytes) -> None:
    """Replace `target` (in `shard` or a subfolder), durably. The caller must have the lock of the shard.

    Raises:
        OSError: usually the file has its old content. If only the last step (syncing the folder) failed, the file has its new
            content, which may be lost in a power failure.
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
    """Lock the shard. Creates a missing folder and deletes stale temporary files.

    Raises:
        Failure: `io_error`; retryable if it timed out waiting for the lock.
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
            # Unlock explicitly. If a child process was forked meanwhile, it shares the lock, and closing the file would not
            # release it.
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
    """Preserve the file at `path` under `<path>.damaged-<n>`, and return that path. The caller must have the lock of the shard.

    The new name is a second hard link. So `path` exists all the time, even if the following save fails.

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
        # `path` is a folder, or the file system has no hard links.
        os.rename(path, aside)
    return aside
