"""The content store: values under the hash of their content.

Large outputs go here and records name them. The name is a promise, `b3:` and the BLAKE3 of the bytes, so whatever is read is
hashed again, and what doesn't keep the promise is not handed on. A value lies in
`<first two hex digits>/<the other sixty-two>`; the folder of two digits is the unit of locking.

Nobody counts references. `collect` takes what no record names; but a value is put before the record that names it is
written, so what was put (or put again) a short while ago stays as well. Putting and collecting take turns by the
folder's lock: a value that is put again in the very moment of collecting is either seen as new or written anew.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import matcher
from albert_tools.engine.model.record_types import Matches
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.contents.line_matches import matching
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import sync_folder
from albert_tools.store.private_folder import check_private, make_private

REF = re.compile(r"b3:([0-9a-f]{2})([0-9a-f]{62})\Z")
_SHARD = re.compile(r"[0-9a-f]{2}\Z")
_REST = re.compile(r"[0-9a-f]{62}\Z")
#: Bytes hashed at once when only a slice is asked for.
BLOCK = 1024 * 1024
#: Seconds that a value stays though no record names it yet. A call that puts one writes its record within its
#: own time, which is an hour at most; a day leaves room for whatever was suspended in between.
KEPT_SECONDS = 24 * 3600.0


def ref_of(content: bytes) -> str:
    """The reference that names `content`."""
    return f"b3:{blake3(content).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Collected:
    """What `collect` did: values taken with their size in bytes, and values left."""

    taken: int
    taken_bytes: int
    left: int


class Contents:
    """`ContentStore` on files under `folder`, which need not exist. Any number of threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))

    def put(self, content: bytes) -> str:
        """Keep `content`; returns its reference when it is on the disk. Putting it again only makes it young again.

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
                    sync_folder(path.parent)  # who wrote it may have died before this
                else:
                    write_atomic(path.parent, path, content)
            except OSError as error:
                raise io_failure("keep a value at", path, error) from error
        return ref

    def get(self, ref: str) -> bytes:
        """The whole value.

        Raises:
            Failure: `not_found`; `damaged` when it isn't what was put; `invalid_arguments` for what is no reference; `io_error`.
        """
        with self._open(ref) as file:
            content = b"".join(_blocks(file))
        if ref_of(content) != ref:
            raise self._damaged(ref)
        return content

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; none beyond the end.

        The whole value is read and proved each time (a gigabyte takes about a second), in memory only what is asked for.

        Raises:
            Failure: as `get`; `invalid_arguments` also for a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"a slice can't begin at {offset} and have {limit} bytes")
        hasher = blake3()
        parts: list[bytes] = []
        position = 0
        with self._open(ref) as file:
            for block in _blocks(file):
                hasher.update(block)
                parts.append(block[max(0, offset - position) : max(0, offset + limit - position)])
                position += len(block)
        if f"b3:{hasher.hexdigest()}" != ref:
            raise self._damaged(ref)
        return b"".join(parts)

    def matching(self, ref: str, pattern: str, offset: int = 0, limit: int = BLOCK) -> Matches:
        """The lines that hold a match of `pattern` (`matching.matcher`) and begin at or behind byte `offset`.

        Until they have `limit` bytes together, but at least one. What isn't UTF-8 is replaced. Takes time in proportion
        to the value's size, however the pattern is made, and memory for `limit` bytes.

        Raises:
            Failure: as `get`; `invalid_arguments` also for what is no pattern, and a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"lines can't be searched for from {offset} on within {limit} bytes")
        matches = matcher(pattern)
        hasher = blake3()

        def hashed(file: int) -> Iterator[bytes]:
            for block in _blocks(file):
                hasher.update(block)
                yield block

        with self._open(ref) as file:
            found = matching(hashed(file), matches, offset, limit)
        if f"b3:{hasher.hexdigest()}" != ref:
            raise self._damaged(ref)
        return found

    def size(self, ref: str) -> int:
        """The value's size in bytes, as the file says: it is not proved.

        Raises:
            Failure: as `get`, but for `damaged`.
        """
        with self._open(ref) as file:
            return os.fstat(file).st_size

    def renew(self, ref: str) -> int:
        """Prove a value and make it as young as if it had just been put; its size in bytes.

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
                # Collected in between.
                raise Failure("not_found", f"there is no value {ref}", hint="put it again") from None
            except OSError as error:
                raise io_failure("keep a value at", path, error) from error

    def collect(
        self, keep: Callable[[str], bool] | AbstractSet[str], older_than_seconds: float = KEPT_SECONDS
    ) -> Collected:
        """Take the values that `keep` doesn't name and that were last put more than `older_than_seconds` ago.

        `keep` is asked with each reference. What is no value of this store's is left alone, and so is everything
        from the moment that `keep` raises.

        Raises:
            Failure: `io_error`; `invalid_arguments` for a negative age.
        """
        if not older_than_seconds >= 0:
            raise Failure("invalid_arguments", f"{older_than_seconds} is no age in seconds")
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
            raise io_failure("collect what is no longer named in", self.folder, error) from error
        return Collected(taken, taken_bytes, left)

    def _path(self, ref: str) -> Path:
        match = REF.match(ref) if isinstance(ref, str) else None
        if match is None:
            raise Failure(
                "invalid_arguments",
                f"{str(ref)[:80]!r} is no reference to a value",
                hint="it is b3: and 64 hex digits, exactly as it was handed over",
            )
        return self.folder / match[1] / match[2]

    @contextmanager
    def _open(self, ref: str) -> Iterator[int]:
        path = self._path(ref)
        check_private(self.folder, "the contents")
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Failure("not_found", f"there is no value {ref}", hint="it was collected, or never put here") from None
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
            f"the value {ref} is not what was put",
            hint=f"put it again, or move away {path}",
            details={"path": str(path)},
        )


def _blocks(handle: int) -> Iterator[bytes]:
    while block := os.read(handle, BLOCK):
        yield block


def _same(path: Path, content: bytes) -> bool:
    """Whether `path` holds exactly `content`."""
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
