"""Opens a folder beneath an open folder. The opened folder is never outside the starting folder.

The target of a path can change between a check and the opening. So nothing is opened by a path from the root of the file system.
Every step starts at an open folder and follows no symbolic link. On Linux with `openat2`, the kernel takes all steps at once and
refuses links and escapes itself. On other systems, each step is an `openat` with ``O_NOFOLLOW``.

Links are resolved separately: `follow` reads the links and returns the real path. This path is then opened like any other. If
somebody puts a link into the path meanwhile, the opening fails.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

Parts = tuple[str, ...]

#: The most links in one path, as in Linux. A path with more links is treated as a loop.
MAX_LINKS = 40

#: Flags to open a folder on the way to another one. This needs search permission, not read permission.
FOLDER = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: The number of the system call `openat2`, the same on every architecture.
_OPENAT2 = 437
_RESOLVE_NO_XDEV, _RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH, _RESOLVE_CACHED = 1, 2, 4, 8, 32

#: The types of file systems on this machine's own disks and in its memory, as `statfs` names them: ext4, XFS, Btrfs, F2FS, ZFS,
#: tmpfs, overlay.
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, 0x01021994, 0x794C7630}

KernelOpen = Callable[[int, bytes, bool], int]


@cache
def kernel_open() -> KernelOpen | None:
    """Returns a function that opens folders with `openat2`; None if the system has no `openat2` or a filter forbids it.

    With `at_once`, the function fails if the path leads into another file system, or if a folder is not in the system's memory.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pointer = ctypes.POINTER(OpenHow)
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, pointer, ctypes.c_size_t)
    syscall.restype = ctypes.c_long
    # Without O_NOFOLLOW: it would report a link at the end as ENOTDIR. `resolve` reports it as ELOOP.
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    how = OpenHow(FOLDER & ~os.O_NOFOLLOW, 0, resolve)
    quick = OpenHow(FOLDER & ~os.O_NOFOLLOW, 0, resolve | _RESOLVE_NO_XDEV | _RESOLVE_CACHED)

    def open_at(folder: int, path: bytes, at_once: bool) -> int:
        opened = syscall(_OPENAT2, folder, path, ctypes.byref(quick if at_once else how), ctypes.sizeof(how))
        if opened < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return int(opened)

    try:
        here = os.open("/", FOLDER)
        try:
            os.close(open_at(here, b".", False))
        finally:
            os.close(here)
    except OSError:
        return None
    return open_at


def is_local(folder: int) -> bool:
    """Whether an open folder is known to be on this machine. A look into the file system of a server can wait for ever."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    # The structure begins with the type, and has less than 256 bytes on every architecture.
    facts = (ctypes.c_long * 32)()
    return ctypes.CDLL(None).fstatfs(folder, facts) == 0 and facts[0] & 0xFFFFFFFF in _LOCAL


def open_folder(root: int, parts: Sequence[str], *, at_once: bool = False) -> int:
    """A descriptor of the folder at `parts` beneath the open folder `root`. No part may be a link or ``..``.

    Raises:
        BlockingIOError: with `at_once`: the system can't open it without waiting for a disk or a server, or can't tell.
        OSError: ``ELOOP`` if a part is a link, ``ENOTDIR`` if it is not a folder, ``ENOENT``, …
    """
    kernel = kernel_open()
    if kernel is not None and ".." not in parts:
        return kernel(root, os.fsencode("/".join(parts)) or b".", at_once)
    if at_once:
        raise BlockingIOError
    return _walk(root, parts)


def _walk(root: int, parts: Sequence[str]) -> int:
    folder = os.open(".", FOLDER, dir_fd=root)
    try:
        for name in parts:
            if name == "..":
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            inner = _step(folder, name)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


def _step(folder: int, name: str) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=folder)
    except NotADirectoryError:
        # Systems report different errors for a link in the place of a folder. This function always reports ELOOP.
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def follow(root: int, parts: Sequence[str]) -> Parts:
    """Resolve the links in `parts`. Returns the real path as parts without a link.

    Raises:
        OSError: ``EXDEV`` if a link is absolute or leads above `root`, ``ELOOP`` for more than `MAX_LINKS` links,
            ``ENOENT`` and ``ENOTDIR`` as for any path.
    """
    done: list[str] = []
    ahead = list(reversed(parts))
    links = 0
    while ahead:
        name = ahead.pop()
        if name == "..":
            # Only links contain `..` here. `done` contains no link, so its last part is in the real parent.
            if not done:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            done.pop()
            continue
        folder = open_folder(root, done)
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(facts.st_mode) else None
        finally:
            os.close(folder)
        if target is None:
            if ahead and not stat.S_ISDIR(facts.st_mode):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            done.append(name)
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        ahead.extend(reversed([p for p in target.split("/") if p not in ("", ".")]))
    return tuple(done)


def identity(facts: os.stat_result) -> tuple[int, int]:
    """Device and inode. They are equal for two names of the same file."""
    return facts.st_dev, facts.st_ino


def chain(root: int, folder: int) -> list[tuple[int, int]] | None:
    """The identities of `folder` and its parent folders up to `root`; None if `root` is not a parent.

    The parents are found through the open folder, not through a path. So the spelling of a path (case, Unicode form, bind mount)
    has no effect.
    """
    top = identity(os.fstat(root))
    here = os.dup(folder)
    identities: list[tuple[int, int]] = []
    try:
        while True:
            current = identity(os.fstat(here))
            if identities and current == identities[-1]:
                return None
            identities.append(current)
            if current == top:
                return identities
            above = os.open("..", FOLDER, dir_fd=here)
            os.close(here)
            here = above
    finally:
        os.close(here)


def rename_new(from_folder: int, source: str, folder: int, target: str) -> None:
    """Rename a file in the open folder `from_folder` to a name that must not exist.

    This is one atomic step if the system supports it. Otherwise the file has both names for a moment.

    Raises:
        OSError: ``EEXIST``, ``EXDEV``, …
    """
    old, new = os.fsencode(source), os.fsencode(target)
    rename = _rename_new()
    if rename is not None:
        try:
            rename(from_folder, old, folder, new)
        except OSError as error:
            # These errors mean that the file system doesn't support the call.
            if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
                raise
        else:
            return
    os.link(old, new, src_dir_fd=from_folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(old, dir_fd=from_folder)


@cache
def _rename_new() -> Callable[[int, bytes, int, bytes], None] | None:
    """The system call that renames without replacing a file; None if the system has no such call."""
    import ctypes

    # The flag that forbids replacing: RENAME_NOREPLACE on Linux, RENAME_EXCL on macOS.
    name, flag = ("renameat2", 1) if sys.platform.startswith("linux") else ("renameatx_np", 4)
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int

    def rename(from_folder: int, old: bytes, folder: int, new: bytes) -> None:
        if function(from_folder, old, folder, new, flag) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return rename
