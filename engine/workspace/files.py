"""Operations on a name in a folder that is open and was checked: looking, reading, replacing, deleting.

A name is one part of a path. It is never followed when it is a link, and it is looked at before it is opened: opening a FIFO or a
device is already an effect. Paths are for messages only.

A function that changes something looks a last time, passes what it found to `demand`, and then makes the one system call that
changes it. If `demand` raises, nothing was changed.
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

#: Bytes that are read at once.
BLOCK = 1 << 20

#: How a folder is opened whose names are read.
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

#: How a file is opened that was looked at.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

EntryType = Literal["file", "directory", "symlink", "other"]

#: Takes what is at a name, None for nothing, in the moment before it is changed; may raise.
Demand = Callable[[os.stat_result | None], object]


class FileFacts(NamedTuple):
    """What was written: `path` relative to the workspace, `size` in bytes, `sha256` in 64 hex digits."""

    path: str
    size: int
    sha256: str


class Entry(NamedTuple):
    """A line of a listing: `path` relative to the workspace; `size` in bytes, 0 for anything but a file."""

    path: str
    type: EntryType
    size: int


def type_of(mode: int) -> EntryType:
    """The type that a mode says."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def facts_of(folder: int, name: str) -> os.stat_result | None:
    """The facts of what is at a name, of a link itself; None where there is nothing."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether two looks found the same thing with the same content, as far as its facts show."""
    if one is None or other is None:
        return one is other
    first, second = ((f.st_dev, f.st_ino, f.st_mode, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for f in (one, other))
    return first == second


def demand_file(facts: os.stat_result, path: str) -> None:
    """Refuse anything but a regular file.

    Raises:
        OSError: ``ELOOP``: it is a link.
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
    """Refuse a file that nobody may write. The system would let it be renamed and deleted, but its owner has protected it.

    Raises:
        Failure: `io_error`.
    """
    if not facts.st_mode & 0o222:
        raise Failure("io_error", f"{show(path)} is read-only")


def open_file(
    folder: int, name: str, path: str, links: LinkIndex, seen: os.stat_result | None = None
) -> tuple[int, os.stat_result]:
    """A regular file, open for reading, and its facts; not one that has a name in a place of `links`.

    `seen` are the facts of the name if the caller has just looked at it.

    Raises:
        OSError: as `demand_file`, or what the system says.
        Failure: `not_a_file`, or `permission_denied` with rule `hard_link`.
    """
    demand_file(seen or os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    opened = os.open(name, _READ, dir_fd=folder)
    try:
        facts = os.fstat(opened)
        demand_file(facts, path)
        if facts.st_nlink > 1:
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
    """The content of an open file, if it has `limit` bytes or fewer.

    Raises:
        Failure: `too_large`.
    """
    if facts.st_size > limit:
        raise _too_large(path, f"has {facts.st_size:,} bytes", limit)
    # One byte more than expected: if it is there, the file has grown.
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


def _too_large(path: str, what: str, limit: int) -> Failure:
    return Failure(
        "too_large",
        f"{show(path)} {what}, and {limit:,} is the most that can be read",
        hint="read a part of it, with offset and limit",
    )


def blocks(opened: int, demand_going: Callable[[], object]) -> Iterator[bytes]:
    """The content of an open file in blocks; calls `demand_going`, which may raise, before each."""
    while True:
        demand_going()
        block = os.read(opened, BLOCK)
        if not block:
            return
        yield block


def digest(content: Iterable[bytes]) -> str:
    """The sha256 of a content in blocks, in 64 hex digits."""
    found = hashlib.sha256()
    for block in content:
        found.update(block)
    return found.hexdigest()


def replace(
    folder: int, name: str, path: str, data: bytes, demand: Demand, *, new: bool = False, mode: int = 0o666
) -> None:
    """Give `name` this content, atomically and durably; with `new`, only where nothing is.

    A new file gets `mode`, less the umask. A file that replaces another gets that one's permissions.

    Raises:
        OSError: ``EEXIST`` with `new`; ``ELOOP`` where a link is.
        Failure: `not_a_file`, `io_error`, or what `demand` raises.
    """
    old = facts_of(folder, name)
    if old is not None:
        if new:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        demand_file(old, path)
        demand_writable(old, path)
    temporary = f".albert-write-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # A file that replaces another is private until it has the other's mode.
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
    """Delete what `facts` were found of: an empty folder, or anything else that is not a folder.

    Raises:
        OSError: ``ENOTEMPTY``, or what the system says.
    """
    if stat.S_ISDIR(facts.st_mode):
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
    sync(folder)


def sync(folder: int) -> None:
    """Make changes of names durable. A folder that can't be read can't be synced; that is no failure."""
    with suppress(OSError):
        handle = os.open(".", LISTED, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def names(folder: int, most: int, files: bool) -> list[str]:
    """Names in a folder, of its first `most` entries; with `files`, not those of folders."""
    handle = os.open(".", LISTED, dir_fd=folder)
    try:
        with os.scandir(handle) as entries:
            first = (entry for entry, _ in zip(entries, range(most), strict=False))
            return [entry.name for entry in first if not (files and entry.is_dir())]
    finally:
        os.close(handle)


def entries_of(folder: int, shown: openat.Parts, room: int, most: int, path: str) -> list[tuple[str, Entry]]:
    """Name and entry of everything in an open folder, at most `room` of them.

    Raises:
        Failure: `too_large`; the message names `most`.
    """
    handle = os.open(".", LISTED, dir_fd=folder)
    found: list[tuple[str, Entry]] = []
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                if len(found) == room:
                    raise Failure(
                        "too_large",
                        f"{show(path)} holds more than {most:,} entries, the most a listing can have",
                        hint="list one of its folders, or without recursive, or use find_files",
                    )
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0
                line = Entry("/".join((*shown, spoken(entry.name))), type_of(facts.st_mode), size)
                found.append((entry.name, line))
    finally:
        os.close(handle)
    return found


def spoken(name: str) -> str:
    """A name as text. Bytes that are not UTF-8 are shown as escapes; no method takes such a name again."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")
