"""The content store: stores values by the hash of their content.

Large outputs are stored here. Records refer to them by `b3:` and the BLAKE3 hash of the bytes. Each read computes the hash again
and rejects a changed value. The file is `<first two hex digits>/<the other sixty-two>`. Each two-digit folder has its own lock.

There are no reference counts. `collect` deletes the values that no record refers to. A value is stored before the record that
refers to it is written, so recent values are not deleted either. Storing and collecting use the lock of the folder. So if a value
is stored again during a collection, the collection sees it as recent, or it is written again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import matcher
from albert_tools.engine.model.record_types import Matches
from albert_tools.engine.model.replace_file import sync_folder
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.contents.line_matches import matching
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private, make_private

REF = re.compile(r"b3:([0-9a-f]{2})([0-9a-f]{62})\Z")
_SHARD = re.compile(r"[0-9a-f]{2}\Z")
_REST = re.compile(r"[0-9a-f]{62}\Z")
#: Bytes that are read and hashed at once.
BLOCK = 1024 * 1024
#: Seconds for which a value without a reference is retained. A call writes its record within its timeout, which is at most an
#: hour. A day is also enough for suspended runs.
KEPT_SECONDS = 24 * 3600.0


def ref_of(content: bytes) -> str:
    """The reference of `content`."""
    return f"b3:{blake3(content).hexdigest()}"


class Collected(NamedTuple):
    """Result of `collect`: the number of deleted values, their total bytes, and the number of remaining values."""

    taken: int
    taken_bytes: int
    left: int


class Contents:
    """A `ContentStore` in files under `folder`, which need not exist. Safe to use from any number of threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))

    def put(self, content: bytes) -> str:
        """Store `content` durably and return its reference. Storing it again resets its age.

        Raises:
            Failure: `io_error`.
        """
        ref = ref_of(content)
        path = self._path(ref)
        make_private(self.folder, "the contents")
        with writing(path.parent):
            try:
                if _same(path, content):
                    os.utime(path)
                    sync_folder(
                        path.parent
                    )  # the process that wrote the file may have died before it synced the folder
                else:
                    write_atomic(path.parent, path, content)
            except OSError as error:
                raise io_failure("store a value at", path, error) from error
        return ref

    def get(self, ref: str) -> bytes:
        """The whole value.

        Raises:
            Failure: `not_found`; `damaged` if the value was changed; `invalid_arguments` if `ref` is not a reference; `io_error`.
        """
        return b"".join(self._verified(ref))

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; empty after the end of the value.

        The whole value is read and verified each time (about a second for a gigabyte), but only the slice is in memory.

        Raises:
            Failure: as `get`; `invalid_arguments` also for a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"a slice can't begin at {offset} and have {limit} bytes")
        parts: list[bytes] = []
        position = 0
        for block in self._verified(ref):
            parts.append(block[max(0, offset - position) : max(0, offset + limit - position)])
            position += len(block)
        return b"".join(parts)

    def matching(self, ref: str, pattern: str, offset: int = 0, limit: int = BLOCK) -> Matches:
        """The lines from byte `offset` on that match `pattern` (`line_patterns.matcher`).

        The result has at most `limit` bytes, but at least one line. Bytes that are not UTF-8 are replaced. The time is linear in
        the size of the value, for any pattern. The memory is proportional to `limit`.

        Raises:
            Failure: as `get`; `invalid_arguments` also for an invalid pattern and a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"can't search from {offset} for {limit} bytes: neither may be negative")
        return matching(self._verified(ref), matcher(pattern), offset, limit)

    def size(self, ref: str) -> int:
        """The size of the file in bytes. The content is not verified.

        Raises:
            Failure: as `get`, except `damaged`.
        """
        with self._open(ref) as file:
            return os.fstat(file).st_size

    def renew(self, ref: str) -> int:
        """Verify a value and reset its age. Returns its size in bytes.

        Raises:
            Failure: as `get`.
        """
        path = self._path(ref)
        self.slice(ref, 0, 0)
        with writing(path.parent):
            try:
                os.utime(path, follow_symlinks=False)
                return os.stat(path, follow_symlinks=False).st_size
            except FileNotFoundError:
                # A collection deleted the value after it was verified.
                raise Failure("not_found", f"there is no value {ref}", hint="put it again") from None
            except OSError as error:
                raise io_failure("store a value at", path, error) from error

    def collect(
        self, keep: Callable[[str], bool] | AbstractSet[str], older_than_seconds: float = KEPT_SECONDS
    ) -> Collected:
        """Delete the values that were last stored more than `older_than_seconds` ago, except the references in `keep`.

        If `keep` is a function, it is called with each reference. If it raises, the collection stops. Files that are not values
        of this store are ignored.

        Raises:
            Failure: `io_error`; `invalid_arguments` for a negative age.
        """
        if not older_than_seconds >= 0:
            raise Failure("invalid_arguments", f"{older_than_seconds} is not an age in seconds")
        named = keep if callable(keep) else keep.__contains__
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
                        found = os.stat(folder / name, follow_symlinks=False)
                        old = found.st_mtime < time.time() - older_than_seconds
                        if old and stat.S_ISREG(found.st_mode) and not named(f"b3:{shard}{name}"):
                            os.unlink(folder / name)
                            taken, taken_bytes = taken + 1, taken_bytes + found.st_size
                        else:
                            left += 1
        except OSError as error:
            raise io_failure("delete unused values in", self.folder, error) from error
        return Collected(taken, taken_bytes, left)

    def _path(self, ref: str) -> Path:
        match = REF.match(ref) if isinstance(ref, str) else None
        if match is None:
            raise Failure(
                "invalid_arguments",
                f"{str(ref)[:80]!r} is not a reference to a value",
                hint="a reference is b3: and 64 hex digits; give it exactly as you got it",
            )
        return self.folder / match[1] / match[2]

    def _verified(self, ref: str) -> Iterator[bytes]:
        """The blocks of a value. After the last one, raises `damaged` if the value was changed."""
        hasher = blake3()
        with self._open(ref) as file:
            for block in _blocks(file):
                hasher.update(block)
                yield block
        if f"b3:{hasher.hexdigest()}" != ref:
            raise self._damaged(ref)

    @contextmanager
    def _open(self, ref: str) -> Iterator[int]:
        path = self._path(ref)
        check_private(self.folder, "the contents")
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Failure(
                "not_found", f"there is no value {ref}", hint="it was never stored here, or deleted as unused"
            ) from None
        except OSError as error:
            raise io_failure("read the value", path, error) from error
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise self._damaged(ref)
            yield handle
        except OSError as error:
            raise io_failure("read the value", path, error) from error
        finally:
            os.close(handle)

    def _damaged(self, ref: str) -> Failure:
        path = self._path(ref)
        return Failure(
            "damaged",
            f"the value {ref} was changed after it was stored",
            hint=f"store it again, or move {path} away",
            details={"path": str(path)},
        )


def _blocks(handle: int) -> Iterator[bytes]:
    while block := os.read(handle, BLOCK):
        yield block


def _same(path: Path, content: bytes) -> bool:
    """Whether the file at `path` contains exactly `content`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size != len(content):
            return False
        position = 0
        for block in _blocks(handle):
            if block != content[position : position + len(block)]:
                return False
            position += len(block)
        return position == len(content)
    finally:
        os.close(handle)
