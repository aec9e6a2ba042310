"""The workspace: the one folder whose files tools can reach.

It is held as an open folder, not as a path, and every file in it is reached as (open folder, name): first the
folder that holds it (see `beneath`: no link is followed, nothing leads out), then the name in it, again
without following a link. Once the folder is open it can be renamed or replaced by a link as often as anyone
likes; what is read or written is in the folder that was judged. Reads may go through links that stay in the
workspace: where they lead is found out first, and that path, which has no link in it, is what is opened.
Writes go through none, so that a rule about a path can't be got around by another name for it.

Albert's own files, and git's, are told by identity, not by name: the folder is asked for the folders above it, so that no
spelling of a path hides where it is.

What this can't tell: a hard link made by somebody else to a file outside is a file of the workspace like any
other. It can be read; writing replaces the name, so the other file stays as it was.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from albert_tools.engine.govern import beneath
from albert_tools.engine.govern.pathrules import (
    ALBERT_FOLDER,
    GIT_FOLDER,
    albert_own,
    failure_of,
    kept,
    kept_folder,
    outside,
    parts_of,
    show,
)
from albert_tools.engine.model.failure import Failure

#: Entries of one listing: more than this helps no one, and a listing is held in memory whole.
MAX_ENTRIES = 10_000

#: Names of a folder that are looked through for the nearest one when a name is not found.
_NAMES_LOOKED_AT = 1_000

EntryType = Literal["file", "directory", "symlink", "other"]


class FileFacts(NamedTuple):
    """What was written: `path` relative to the workspace, `size` in bytes, `sha256` in 64 hex digits."""

    path: str
    size: int
    sha256: str


class Entry(NamedTuple):
    """A line of a listing: `path` relative to the workspace; `size` in bytes, 0 for what is not a file."""

    path: str
    type: EntryType
    size: int


class Workspace:
    """The open workspace. Safe to use from any thread.

    `root` is its canonical path, for showing; `sealed` are folders in it that tools can neither read nor
    change (where Albert keeps its state, should that be inside).
    """

    def __init__(self, root: Path, sealed: Iterable[Path] = ()) -> None:
        """Open `root`, a canonical path.

        Raises:
            OSError: it is not a folder, or its last part is a symbolic link.
        """
        self.root = root
        self.sealed = tuple(sealed)
        self._fd = os.open(root, beneath.FOLDER)
        self.identity = beneath.identity(os.fstat(self._fd))

    def close(self) -> None:
        """Let go of the folder; further calls fail."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    def locate(self, path: str) -> str:
        """Where `path` really is: relative to the workspace, links resolved, ``.`` for the workspace itself.

        The spelling for policy to judge and for records to keep. What it names exists, or did a moment ago.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `not_found`, `not_a_directory`, `io_error`.
        """
        parts = parts_of(path, str(self.root))
        with self._reporting(path, parts):
            return "/".join(beneath.follow(self._fd, parts)) or "."

    def spell(self, path: str) -> str:
        """The plain relative form of `path`, from its text alone; nothing needs to be there.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return "/".join(parts_of(path, str(self.root))) or "."

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """The content of the file at `path`, if it has `limit` bytes or fewer.

        Links that stay in the workspace are followed unless `follow` is false (for a path that `locate`
        gave).

        Raises:
            Failure: `not_found`, `not_a_file`, `not_a_directory`, `too_large`, `io_error`,
                `invalid_arguments`, `permission_denied` (rules `path_traversal`, `outside_workspace`,
                `albert_own`).
        """
        parts = parts_of(path, str(self.root))
        with self._reporting(path, parts):
            if not parts:
                raise IsADirectoryError(errno.EISDIR, "")
            real = beneath.follow(self._fd, parts) if follow else parts
            with self._folder(real[:-1], path) as folder:
                return _read(folder, real[-1], path, limit)

    def replace(self, path: str, data: bytes) -> FileFacts:
        """Make `data` the content of the file at `path`, which need not exist; its folder must.

        Atomic and durable: readers see the old content or the new one, and a failure leaves the old. The
        file's permission bits (and its owner, as far as we may) stay; other names for the same file keep the
        old content.

        Raises:
            Failure: as `read`, and `permission_denied` with rule `symbolic_link` where `path` goes through a
            link.
        """
        parts = parts_of(path, str(self.root))
        for part in parts:
            folder_name = kept_folder(part)
            if folder_name is not None:
                raise kept(path, folder_name)
        with self._reporting(path, parts):
            if not parts or path.endswith("/"):
                raise IsADirectoryError(errno.EISDIR, "")
            try:
                with self._folder(parts[:-1], path, writing=True) as folder:
                    self._refuse_future_home(parts, path)
                    return _replace(folder, parts[-1], "/".join(parts), path, data)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._through_link(path, parts) from None

    def listing(self, path: str, recursive: bool = False, *, real: str | None = None) -> list[Entry]:
        """What is in the folder at `path`, sorted by path; with `recursive` in all folders under it as well.

        Linked folders are listed as links and not entered; neither are sealed ones. `real` is where `path` leads, if that was
        found out (and judged) before: it is opened without following a link.

        Raises:
            Failure: `not_found`, `not_a_directory`, `too_large` past `MAX_ENTRIES`, and as `read`.
        """
        parts = parts_of(path, str(self.root))
        found: list[Entry] = []
        with self._reporting(path, parts):
            top = beneath.follow(self._fd, parts) if real is None else parts_of(real, str(self.root))
            ahead: list[tuple[beneath.Parts, beneath.Parts]] = [(parts, top)]
            while ahead:
                shown, here = ahead.pop()
                try:
                    with self._folder(here, path) as folder:
                        inner = _entries(folder, shown, MAX_ENTRIES - len(found), path)
                except (FileNotFoundError, NotADirectoryError):
                    if here == top:
                        raise
                    continue  # It went away while we were looking; so it isn't there.
                except Failure as failure:
                    if here == top or failure.rule != "albert_own":
                        raise
                    continue
                found.extend(entry for _, entry in inner)
                if recursive:
                    ahead.extend(
                        (tuple(entry.path.split("/")), (*here, name))
                        for name, entry in inner
                        if entry.type == "directory"
                    )
        return sorted(found)

    @contextmanager
    def folder(self, path: str, *, follow: bool = True) -> Iterator[int]:
        """The folder at `path` as a descriptor, for a command to start in; closed at the end. `follow` as in `read`.

        Raises:
            Failure: as `listing`.
        """
        parts = parts_of(path, str(self.root))
        with self._reporting(path, parts):
            real = beneath.follow(self._fd, parts) if follow else parts
            opened = beneath.open_folder(self._fd, real)
        try:
            with self._reporting(path, parts):
                self._judge(opened, path, writing=False)
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _folder(self, parts: beneath.Parts, path: str, writing: bool = False) -> Iterator[int]:
        opened = beneath.open_folder(self._fd, parts)
        try:
            self._judge(opened, path, writing)
            yield opened
        finally:
            os.close(opened)

    def _judge(self, folder: int, path: str, writing: bool) -> None:
        """Refuse an open folder that is not in the workspace after all, or is in Albert's own."""
        above = beneath.chain(self._fd, folder)
        if above is None:
            raise outside(path, "its folder is no longer in it")
        if any(i in above for i in self._sealed_now()):
            raise albert_own(path, sealed=True)
        if writing:
            for name in (ALBERT_FOLDER, GIT_FOLDER):
                with suppress(OSError):
                    # Through a link too: what `.albert` leads to is Albert's, whatever it is called.
                    own = beneath.identity(os.stat(name, dir_fd=self._fd))
                    if own in above and own != self.identity:
                        raise kept(path, name)

    def _sealed_now(self) -> Iterator[tuple[int, int]]:
        for place in self.sealed:
            with suppress(OSError):
                yield beneath.identity(os.stat(place))

    def _refuse_future_home(self, parts: beneath.Parts, path: str) -> None:
        """A sealed folder that doesn't exist yet has no identity; its name must not be taken either."""
        full = os.path.join(self.root, *parts).casefold()
        for place in self.sealed:
            if f"{full}/".startswith(f"{place}/".casefold()) or f"{place}/".casefold().startswith(f"{full}/"):
                raise albert_own(path, sealed=True)

    def _through_link(self, path: str, parts: beneath.Parts) -> Failure:
        try:
            real = "/".join(beneath.follow(self._fd, parts))
            hint = f"write to {real!r}, where it leads"
        except OSError as error:
            if error.errno == errno.EXDEV:
                return failure_of(error, path)
            hint = "write to a path without a link in it"
        return Failure(
            "permission_denied",
            f"{show(path)} goes through a symbolic link, and files are written at their real path only",
            rule="symbolic_link",
            hint=hint,
        )

    @contextmanager
    def _reporting(self, path: str, parts: beneath.Parts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failure = failure_of(error, path)
            if failure.code == "not_found":
                failure.hint = self._hint(parts)
            raise failure from None

    def _hint(self, parts: beneath.Parts) -> str | None:
        """What to do about a path that isn't there: the nearest name, or that the folder is missing."""
        from albert_tools.engine.model.naming import nearest

        try:
            with self._folder(beneath.follow(self._fd, parts[:-1]), "") as folder:
                names = _names(folder, files="." in parts[-1])
        except FileNotFoundError:
            return f"its folder {'/'.join(parts[:-1])!r} does not exist"
        except (OSError, Failure):
            return None
        near = nearest(parts[-1], names)
        return f"did you mean {'/'.join((*parts[:-1], near))!r}?" if near else None


def _names(folder: int, files: bool) -> list[str]:
    """The names in a folder; only those of `files`, where a name with an ending was asked for."""
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(listed) as entries:
            looked_at = (entry for entry, _ in zip(entries, range(_NAMES_LOOKED_AT), strict=False))
            return [entry.name for entry in looked_at if not (files and entry.is_dir())]
    finally:
        os.close(listed)


def _read(folder: int, name: str, path: str, limit: int) -> bytes:
    # Look before opening: opening a FIFO or a device is already an effect.
    _demand_file(os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False), path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(os.open(os.fsencode(name), flags, dir_fd=folder), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        _demand_file(facts, path)
        if facts.st_size > limit:
            raise _too_large(path, f"has {facts.st_size:,} bytes", limit)
        pieces: list[bytes] = []
        size = 0
        while piece := file.read(min(limit + 1 - size, 1 << 20)):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise _too_large(path, "grew while it was read", limit)
        return b"".join(pieces)


def _too_large(path: str, what: str, limit: int) -> Failure:
    return Failure("too_large", f"{show(path)} {what}, and {limit:,} is the most that can be read")


def _demand_file(facts: os.stat_result, path: str) -> None:
    mode = facts.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(mode):
        raise Failure("not_a_file", f"{show(path)} is a folder, not a file", hint="list it with list_directory")
    kind = "a FIFO" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise Failure("not_a_file", f"{show(path)} is {kind}, not a file")


def _replace(folder: int, name: str, relative: str, path: str, data: bytes) -> FileFacts:
    old: os.stat_result | None = None
    with suppress(FileNotFoundError):
        old = os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False)
    if old is not None:
        _demand_file(old, path)
        if not old.st_mode & 0o222:
            # A rename would replace it all the same; who took the write permission away meant it.
            raise Failure("io_error", f"{show(path)} is read-only")
    temporary = f".albert-write-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # A new file gets what the umask leaves; one that replaces another is private until it has the other's
    # mode.
    opened = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(PermissionError):
                    os.fchown(opened, old.st_uid, old.st_gid)
                os.fchmod(opened, old.st_mode & 0o777)
            os.fsync(opened)
        os.rename(temporary, os.fsencode(name), src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    _sync(folder)
    return FileFacts(relative, len(data), hashlib.sha256(data).hexdigest())


def _sync(folder: int) -> None:
    """Make the new name durable; a folder that can't be read can't be synced, and the file stands all the
    same."""
    with suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _entries(folder: int, shown: beneath.Parts, room: int, path: str) -> list[tuple[str, Entry]]:
    """Name and entry of everything in an open folder, at most `room` of them."""
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    found: list[tuple[str, Entry]] = []
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                if len(found) == room:
                    raise Failure(
                        "too_large",
                        f"{show(path)} holds more than {MAX_ENTRIES:,} entries, the most a listing can have",
                        hint="list one of its folders, or without recursive",
                    )
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                # A name that is not UTF-8 can't be passed on; it is shown with escapes, so that it is seen at
                # least.
                name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                line = Entry("/".join((*shown, name)), _type(facts.st_mode), _size(facts))
                found.append((entry.name, line))
    finally:
        os.close(handle)
    return found


def _type(mode: int) -> EntryType:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def _size(facts: os.stat_result) -> int:
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0
