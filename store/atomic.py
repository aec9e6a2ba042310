"""Atomic writes into a shard, with `replace_file`. The temporary files are in the shard.

Each shard has a lock, on its `.lock` file, and only one process can write at a time. So the process with the lock knows that all
temporary files in the shard are stale, and deletes them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import open_locked, release
from albert_tools.engine.model.replace_file import replace_file
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import make_folder

TEMPORARY = ".new-"
LOCK = ".lock"

#: Seconds to wait for the lock. A save takes milliseconds, so a process that locks for longer has probably stopped.
LOCK_PATIENCE = 10.0


def write_atomic(shard: Path, target: Path, content: bytes) -> None:
    """Replace `target` (in `shard` or a subfolder), durably. The caller must have the lock of the shard.

    Raises the same errors as `replace_file`.
    """
    replace_file(target, content, shard / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")


@contextmanager
def writing(shard: Path) -> Iterator[None]:
    """Lock the shard. Creates a missing folder and deletes stale temporary files.

    Raises:
        Failure: `io_error`; retryable if it timed out waiting for the lock.
    """
    make_folder(shard)
    path = shard / LOCK
    try:
        handle = open_locked(path, LOCK_PATIENCE)
    except BlockingIOError as error:
        raise Failure(
            "io_error",
            f"timed out after {LOCK_PATIENCE:.0f} s waiting for another process that writes here: {path}",
            hint="end the process that holds the lock (`fuser` names it) and try again",
            retryable=True,
            details={"path": str(path)},
        ) from error
    except OSError as error:
        raise io_failure("lock", path, error) from error
    try:
        _sweep(shard)
        yield
    finally:
        release(handle)


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
