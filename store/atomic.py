"""Writing a file so that no instant, however unlucky, leaves half of it.

The new content goes to a temporary file in the same shard, through a buffered file object (a bare `os.write`
may write less than it was given), is synced, and only then takes the old one's name; syncing the folder makes
the new name durable. A process that dies in between leaves the old file whole and a stale temporary behind.

Writers of one shard take turns by a lock on its `.lock` file. Whoever holds it knows that no temporary in the
shard has a living owner, and sweeps them all.
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

#: Seconds. A save takes milliseconds, so a lock that is held for this long is held by a stopped process.
LOCK_PATIENCE = 10.0


def write_atomic(shard: Path, target: Path, content: bytes) -> None:
    """Replace `target` (in `shard` or a folder in it), durably. The shard's lock must be held.

    Raises:
        OSError: as the system says. The old content is still there, unless the very last step failed, syncing
            the folder: then the new content is there, whole, and may not survive a power cut.
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
    """Hold the shard's lock, making the folder if need be; stale temporaries are gone on entry.

    Raises:
        Failure: `io_error`; retryable when somebody else holds the lock for too long.
    """
    make_folder(shard)
    path = shard / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise io_failure("open the lock", path, error) from error
    try:
        late = f"another process has been writing here for {LOCK_PATIENCE:.0f} s: {path}"
        lock(handle, path, LOCK_PATIENCE, late, "end the process that holds the lock (`fuser` names it) and try again")
        try:
            _sweep(shard)
            yield
        finally:
            # Closing would do, but for children forked meanwhile: they share the lock until it is let go of.
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
    """Keep what is at `path` under `<path>.damaged-<n>` as well; return that place.

    The shard's lock must be held. It is a second name, so that the entry's place is never empty, even if the
    save that needs it fails.

    Raises:
        OSError: as the system says.
    """
    n = 1
    while (aside := path.with_name(f"{path.name}.damaged-{n}")).exists():
        if aside.samefile(path):
            return aside  # an earlier save that failed has done it
        n += 1
    try:
        os.link(path, aside, follow_symlinks=False)
    except OSError:
        # A folder, or a file system without links: then moved it is.
        os.rename(path, aside)
    return aside
