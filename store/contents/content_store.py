"""The content store in files. The file of a value is `<first two hex digits>/<the other sixty-two>`.

Each two-digit folder has its own lock. Storing and collecting use it. So if a value is stored again during a collection, the
collection sees it as recent, or it is written again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.replace_file import sync_folder
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.contents.stored_contents import BLOCK, Collected, StoredContents, not_found, parts_of, ref_of
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private, make_private

_SHARD = re.compile(r"[0-9a-f]{2}\Z")
_REST = re.compile(r"[0-9a-f]{62}\Z")


class Contents(StoredContents):
    """The values in files under `folder`, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))

    def put(self, content: bytes) -> str:
        """See `ContentStore`."""
        ref = ref_of(content)
        path = self._path(ref)
        make_private(self.folder, "the contents")
        with writing(path.parent):
            try:
                if self._is_stored(ref):
                    os.utime(path)
                    # The process that wrote the file may have died before it synced the folder.
                    sync_folder(path.parent)
                else:
                    write_atomic(path.parent, path, content)
            except OSError as error:
                raise io_failure("store a value at", path, error) from error
        return ref

    def _is_stored(self, ref: str) -> bool:
        """Whether the value is there and undamaged."""
        try:
            self.slice(ref, 0, 0)
        except Failure:
            return False
        return True

    def size(self, ref: str) -> int:
        """See `ContentStore`."""
        handle = self._open(ref)
        try:
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def _touch(self, ref: str) -> int | None:
        path = self._path(ref)
        with writing(path.parent):
            try:
                os.utime(path, follow_symlinks=False)
                return os.stat(path, follow_symlinks=False).st_size
            except FileNotFoundError:
                return None
            except OSError as error:
                raise io_failure("store a value at", path, error) from error

    def _collect(self, keep: Callable[[str], bool], older_than_seconds: float) -> Collected:
        taken = taken_bytes = left = 0
        if not check_private(self.folder, "the contents"):
            return Collected(0, 0, 0)
        try:
            for shard in sorted(os.listdir(self.folder)):
                folder = self.folder / shard
                if not _SHARD.match(shard) or folder.is_symlink() or not folder.is_dir():
                    continue
                with writing(folder):
                    for name in sorted(os.listdir(folder)):
                        if not _REST.match(name):
                            continue
                        facts = os.stat(folder / name, follow_symlinks=False)
                        old = facts.st_mtime < time.time() - older_than_seconds
                        if old and stat.S_ISREG(facts.st_mode) and not keep(f"b3:{shard}{name}"):
                            os.unlink(folder / name)
                            taken, taken_bytes = taken + 1, taken_bytes + facts.st_size
                        else:
                            left += 1
        except OSError as error:
            raise io_failure("delete unused values in", self.folder, error) from error
        return Collected(taken, taken_bytes, left)

    def _path(self, ref: str) -> Path:
        return self.folder.joinpath(*parts_of(ref))

    def _place(self, ref: str) -> str:
        return str(self._path(ref))

    def _blocks(self, ref: str) -> Iterator[bytes]:
        handle = self._open(ref)
        try:
            while block := os.read(handle, BLOCK):
                yield block
        except OSError as error:
            raise io_failure("read the value", self._path(ref), error) from error
        finally:
            os.close(handle)

    def _open(self, ref: str) -> int:
        path = self._path(ref)
        check_private(self.folder, "the contents")
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise not_found(ref) from None
        except OSError as error:
            raise io_failure("read the value", path, error) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise self._damaged(ref)
        return handle
