"""Replaces a file, and creates folders. After a crash at any time, it has its complete old content or its complete new content.

The new content is written to a temporary file, through a buffered file object, because a bare `os.write` may write only a part. The
temporary file is synced and then renamed to the name of the old file. Then the folder is synced, which makes the new name durable.
If a process dies before the rename, the old file and the temporary file remain.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(target: Path, content: bytes, temporary: Path, mode: int = 0o600) -> None:
    """Replace `target`, durably. `temporary` is a new name on the same file system; `mode` is the mode of the new file.

    Raises:
        OSError: usually the file has its old content. If only the last step (syncing the folder) failed, the file has its new
            content, which may be lost in a power failure.
    """
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Sync `folder`, so that new and renamed files in it survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folder: Path, mode: int = 0o700) -> None:
    """Create `folder` and its missing parents, durably and with this mode. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folders(folder.parent, mode)
    try:
        folder.mkdir(mode)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return  # another process has created the folder meanwhile
    sync_folder(folder.parent)
