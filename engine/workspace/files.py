"""Operations on one name in an open folder: get its facts, read, replace, delete.

The caller has opened and checked the folder. A name is one part of a path. These functions never follow a symbolic link. They
check the type of a file before they open it, because opening a FIFO or a device already has an effect. Paths are used in messages
only.

In this module, *facts* are the result of `stat`. A function that changes a file gets the facts immediately before the change and
passes them to `demand`. Then it makes the one system call that changes the file. If `demand` raises, nothing is changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import openat
from albert_tools.engine.workspace.hard_links import LinkIndex, TooMany
from albert_tools.engine.workspace.path_syntax import forbidden, show

#: Bytes per read.
BLOCK = 1 << 20

#: The most bytes of a file that are read at once.
_SMALL = 1 << 16
#: The flag of a read that fails instead of waiting for a disk; None if the system has none.
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)

#: Flags to open a folder in order to list it.
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

#: Flags to open a file whose type was checked.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

EntryType = Literal["file", "directory", "symlink", "other"]

#: Takes the facts of the file at a name (None: no file) immediately before the change. May raise.
Demand = Callable[[os.stat_result | None], object]


class FileFacts(NamedTuple):
    """Result of a write: `path` relative to the workspace, `size` in bytes, `sha256` in 64 hex digits."""

    path: str
    size: int
    sha256: str


class Entry(NamedTuple):
    """One line of a listing. `path` is relative to the workspace. `size` is in bytes; it is 0 unless the entry is a file."""

    path: str
    type: EntryType
    size: int


def type_of(mode: int) -> EntryType:
    """The file type in a `stat` mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def facts_of(folder: int, name: str) -> os.stat_result | None:
    """The facts of a name, or None if it doesn't exist. For a link, these are the facts of the link itself."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether two facts belong to the same file with the same content, as far as `stat` shows."""
    if one is None or other is None:
        return one is other
    first, second = ((f.st_dev, f.st_ino, f.st_mode, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for f in (one, other))
    return first == second


def demand_file(facts: os.stat_result, path: str) -> None:
    """Refuse everything except a regular file.

    Raises:
        OSError: ``ELOOP`` for a link.
        Failure: `not_a_file`.
    """
    mode = facts.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(mode):
        raise Failure("not_a_file", f"{show(path)} is a folder, not a file", hint="list it with list_directory")
    kind = "a FIFO" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise Failure("not_a_file", f"{show(path)} is {kind}, not a file")


def demand_writable(facts: os.stat_result, path: str) -> None:
    """Refuse a file without any write permission. The system would allow renaming or deleting it, but its owner has protected it.

    Raises:
        Failure: `io_error`.
    """
    if not facts.st_mode & 0o222:
        raise Failure("io_error", f"{show(path)} is read-only")


def open_file(
    folder: int, name: str, path: str, links: LinkIndex, seen: os.stat_result | None = None, *, at_once: bool = False
) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, and return the descriptor and its facts.

    A file that has another name (a hard link) in one of the forbidden places of `links` is refused. `seen` are the facts of the
    name, if the caller has just read them.

    Raises:
        BlockingIOError: with `at_once`: the file has other names, which take long to check.
        OSError: as `demand_file`, or the error of the system.
        Failure: `not_a_file`, or `permission_denied` with rule `hard_link`.
    """
    demand_file(seen or os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    opened = os.open(name, _READ, dir_fd=folder)
    try:
        facts = os.fstat(opened)
        demand_file(facts, path)
        if facts.st_nlink > 1:
            if at_once:
                raise BlockingIOError
            _demand_harmless_names(facts, path, links)
    except BaseException:
        os.close(opened)
        raise
    return opened, facts


def _demand_harmless_names(facts: os.stat_result, path: str, links: LinkIndex) -> None:
    try:
        if links.place_of(facts) is None:
            return
        why = "it is another name (a hard link) of a file that no tool can reach"
    except TooMany:
        why = "it has other names, and there are too many forbidden files to compare it with"
    failure = forbidden(path, why)
    failure.rule = "hard_link"
    raise failure


def read_all(opened: int, facts: os.stat_result, path: str, limit: int) -> bytes:
    """The content of an open file, if it has at most `limit` bytes.

    Raises:
        Failure: `too_large`.
    """
    if facts.st_size > limit:
        raise _too_large(path, f"has {facts.st_size:,} bytes", limit)
    # Read one byte more than expected. If the read returns it, the file has grown.
    data = os.read(opened, min(facts.st_size, limit) + 1)
    if len(data) == facts.st_size:
        return data
    pieces, size = [data], len(data)
    while size <= limit and (data := os.read(opened, min(limit + 1 - size, BLOCK))):
        pieces.append(data)
        size += len(data)
    if size > limit:
        raise _too_large(path, "grew while it was read", limit)
    return b"".join(pieces)


def read_at_once(opened: int, facts: os.stat_result) -> bytes:
    """The content of an open small file, if the system has it in memory.

    Raises:
        BlockingIOError: the read would take longer.
    """
    if facts.st_size > _SMALL or _NOWAIT is None:
        raise BlockingIOError
    data = bytearray(facts.st_size + 1)
    try:
        size = os.preadv(opened, [data], 0, _NOWAIT)
    except OSError:
        # Some file systems can't tell.
        raise BlockingIOError from None
    if size != facts.st_size:
        raise BlockingIOError
    return bytes(data[:size])


def _too_large(path: str, what: str, limit: int) -> Failure:
    return Failure(
        "too_large",
        f"{show(path)} {what}, and {limit:,} is the most that can be read",
        hint="read a part of it, with a tool that has offset and limit",
    )


def blocks(opened: int, demand_going: Callable[[], object]) -> Iterator[bytes]:
    """The content of an open file in blocks. Calls `demand_going` before each block; it may raise."""
    while True:
        demand_going()
        block = os.read(opened, BLOCK)
        if not block:
            return
        yield block


def digest(content: Iterable[bytes]) -> str:
    """The sha256 of a sequence of blocks, in 64 hex digits."""
    hasher = hashlib.sha256()
    for block in content:
        hasher.update(block)
    return hasher.hexdigest()


def replace(
    folder: int, name: str, path: str, data: bytes, demand: Demand, *, new: bool = False, mode: int = 0o666
) -> None:
    """Write `data` to the file `name`, atomically and durably. With `new`, fail if the name exists.

    A new file gets `mode` without the bits of the umask. A replaced file keeps its permissions.

    Raises:
        OSError: ``EEXIST`` with `new`; ``ELOOP`` if the name is a link.
        Failure: `not_a_file`, `io_error`, or the failure that `demand` raises.
    """
    old = facts_of(folder, name)
    if old is not None:
        if new:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        demand_file(old, path)
        demand_writable(old, path)
    temporary = f".albert-write-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # The temporary file stays private until it gets the mode of the replaced file.
    opened = os.open(temporary, flags, mode & 0o777 if old is None else 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(PermissionError):
                    os.fchown(opened, old.st_uid, old.st_gid)
                os.fchmod(opened, old.st_mode & 0o777)
            os.fsync(opened)
        demand(facts_of(folder, name))
        if new:
            openat.rename_new(folder, temporary, folder, name)
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    sync(folder)


def remove(folder: int, name: str, facts: os.stat_result) -> None:
    """Delete a name: an empty folder, or a file, link or other entry. `facts` say which.

    Raises:
        OSError: ``ENOTEMPTY``, or the error of the system.
    """
    if stat.S_ISDIR(facts.st_mode):
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
    sync(folder)


def sync(folder: int) -> None:
    """Make changes of names durable. Ignores a folder that can't be read, because such a folder can't be synced."""
    with suppress(OSError):
        handle = os.open(".", LISTED, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def names(folder: int, most: int, files: bool) -> list[str]:
    """Names of the first `most` entries of a folder. With `files`, the names of folders are left out."""
    handle = os.open(".", LISTED, dir_fd=folder)
    try:
        with os.scandir(handle) as entries:
            first = (entry for entry, _ in zip(entries, range(most), strict=False))
            return [entry.name for entry in first if not (files and entry.is_dir())]
    finally:
        os.close(handle)


def spoken(name: str) -> str:
    """A name as text. Bytes that are not UTF-8 are shown as escapes. No method accepts such an escaped name."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")
