"""The workspace: the folder whose files tools can reach, and what the owner's rules open beside it.

It is held as an open folder, not as a path, and every file in it is reached as (open folder, name): first the
folder that holds it (see `beneath`: no link is followed, nothing leads out), then the name in it, again
without following a link. Once the folder is open it can be renamed or replaced by a link as often as anyone
likes; what is read or written is in the folder that was judged. Reads may go through links that stay in the
workspace: where they lead is found out first, and that path, which has no link in it, is what is opened.
Writes go through none, so that a rule about a path can't be got around by another name for it.

Albert's own files, and git's, are told by identity, not by name: the folder is asked for the folders above it, so that no
spelling of a path hides where it is.

A folder beyond the workspace (`roots`) is reached in the same way, from the root of the file system down, each time anew:
whatever stands at its path then, no link on the way there is followed either, and every folder above is looked at for what is
forbidden.

A file with several names (hard links) is read unless one of them is in a place that no tool reaches (`hardlinks`). Other names
it may have can't be known. Writing replaces the name, so what the other names stand for stays as it was.

Three forms of a path: as it is *written*, relative to the working directory or absolute; *spelled*, the plain form that can be
written again; and *absolute*, which is what rules judge.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Literal, NamedTuple

from albert_tools.engine.govern import beneath
from albert_tools.engine.govern.hardlinks import LinkIndex, TooMany
from albert_tools.engine.govern.pathrules import (
    ALBERT_FOLDER,
    GIT_FOLDER,
    albert_own,
    failure_of,
    forbidden,
    kept,
    kept_folder,
    outside,
    plain_parts,
    show,
)
from albert_tools.engine.govern.roots import Root
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


class _Tree:
    """What files are reached beneath: the open workspace. `top` is its absolute path, `parts` the same in parts."""

    def __init__(self, top: str, fd: int = -1) -> None:
        self.top = top
        self.parts = tuple(p for p in top.split("/") if p)
        self.fd = fd

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """The top as a descriptor, and the folder up to which folders above are asked for."""
        yield self.fd, self.fd


class _Beyond(_Tree):
    """A folder beyond the workspace. Of the folders above it all are asked for."""

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        slash = os.open("/", beneath.FOLDER)
        try:
            try:
                top = beneath.open_folder(slash, self.parts)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                raise outside(self.top, "it is no longer the folder that the owner's rules opened") from None
            try:
                yield top, slash
            finally:
                os.close(top)
        finally:
            os.close(slash)


class Workspace:
    """The open workspace. Safe to use from any thread.

    `root` is its canonical path, for showing; `sealed` are folders that tools can neither read nor change (where Albert keeps its
    state), in it or in what is opened beside it; `secret` are files and folders that no tool reaches by any name.
    """

    def __init__(self, root: Path, sealed: Iterable[Path] = (), secret: Iterable[Path] = ()) -> None:
        """Open `root`, a canonical path.

        Raises:
            OSError: it is not a folder, or its last part is a symbolic link.
        """
        self.root = root
        self.sealed = tuple(sealed)
        self.secret = tuple(secret)
        self._tree = _Tree(str(root), os.open(root, beneath.FOLDER))
        self._beyond: list[tuple[tuple[beneath.Parts, ...], _Tree]] = []
        self._base: beneath.Parts = ()
        self._view = False
        # What isn't beneath the top can't be met there, and needn't be looked at for each file.
        self._sealed_inside = tuple(place for place in self.sealed if place.is_relative_to(root))
        self._links = LinkIndex([*self.sealed, *self.secret])
        self.identity = beneath.identity(os.fstat(self._tree.fd))

    def close(self) -> None:
        """Let go of the folder; further calls fail, also of what `at` and `reaching` gave. Of those it does nothing."""
        if self._view:
            return
        fd, self._tree.fd = self._tree.fd, -1
        if fd >= 0:
            os.close(fd)

    def at(self, folder: str) -> Workspace:
        """The same workspace, with `folder`, which must be in it, as the working directory: relative paths begin there.

        It holds as much as before: absolute paths are what they were, and ``..`` stays refused.

        Raises:
            Failure: as `listing`.
        """
        tree, parts = self._find(folder)
        if tree is not self._tree:
            raise outside(folder, "a working directory is in the workspace")
        with self._reporting(folder, tree, parts):
            real = beneath.follow(tree.fd, parts)
            with self._folder(tree, real, folder):
                pass
        found = copy(self)
        found._base, found._view = real, True
        return found

    def reaching(self, roots: Iterable[Root]) -> Workspace:
        """The same workspace, with these folders beyond it. What tools may do there is for the rules to say."""
        found = copy(self)
        found._view = True
        found._beyond = []
        for root in roots:
            tree = _Beyond(root.real)
            starts = (tree.parts, tuple(p for p in root.written.split("/") if p))
            found._beyond.append((starts, tree))
        # The innermost first: it is the one that contains most.
        found._beyond.sort(key=lambda pair: -len(pair[1].parts))
        return found

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    def _find(self, path: str) -> tuple[_Tree, beneath.Parts]:
        """Which tree a path, as it is written, leads into, and its parts beneath the top; from its text alone.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        parts = plain_parts(path)
        if not path.startswith("/"):
            return self._tree, self._base + parts
        top = self._tree.parts
        if parts[: len(top)] == top:
            return self._tree, parts[len(top) :]
        for starts, tree in self._beyond:
            for start in starts:
                if parts[: len(start)] == start:
                    return tree, parts[len(start) :]
        raise outside(path, f"it is not under {self.root}" + (", nor in what is opened beside it" * bool(self._beyond)))

    def _spelled(self, tree: _Tree, parts: beneath.Parts) -> str:
        if tree is not self._tree:
            whole, top = tree.parts + parts, self._tree.parts
            if whole[: len(top)] != top:
                return "/" + "/".join(whole)
            parts = whole[len(top) :]
        if parts[: len(self._base)] == self._base:
            return "/".join(parts[len(self._base) :]) or "."
        return "/".join((self._tree.top, *parts))

    def absolute(self, path: str) -> str:
        """The canonical absolute form of `path`, for rules to judge; from its text alone, links are not looked for.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        tree, parts = self._find(path)
        return "/".join((tree.top, *parts))

    def recorded(self, path: str) -> str:
        """`path` as records keep it: relative to the workspace, whatever the working directory; else absolute.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        tree, parts = self._find(path)
        return self.absolute(path) if tree is not self._tree else "/".join(parts) or "."

    def locate(self, path: str) -> str:
        """Where `path` really is, spelled: relative to the working directory (else absolute), links resolved, ``.`` for itself.

        The spelling for policy to judge and for records to keep. What it names exists, or did a moment ago.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `not_found`, `not_a_directory`, `io_error`.
        """
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts), tree.opened() as (top, _):
            return self._spelled(tree, beneath.follow(top, parts))

    def spell(self, path: str) -> str:
        """The plain form of `path`, from its text alone; nothing needs to be there. It can be given to any method again.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._spelled(*self._find(path))

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """The content of the file at `path`, if it has `limit` bytes or fewer.

        Links that stay in the workspace are followed unless `follow` is false (for a path that `locate`
        gave).

        Raises:
            Failure: `not_found`, `not_a_file`, `not_a_directory`, `too_large`, `io_error`,
                `invalid_arguments`, `permission_denied` (rules `path_traversal`, `outside_workspace`,
                `albert_own`).
        """
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts):
            if not parts:
                raise IsADirectoryError(errno.EISDIR, "")
            if follow:
                with tree.opened() as (top, _):
                    parts = beneath.follow(top, parts)
            with self._folder(tree, parts[:-1], path) as folder:
                return _read(folder, parts[-1], path, limit, self._links)

    def replace(
        self, path: str, data: bytes, demand: Callable[[os.stat_result | None], object] = lambda facts: None
    ) -> FileFacts:
        """Make `data` the content of the file at `path`, which need not exist; its folder must.

        Atomic and durable: readers see the old content or the new one, and a failure leaves the old. The
        file's permission bits (and its owner, as far as we may) stay; other names for the same file keep the
        old content. `demand` is told what stands there at the very last, and may raise.

        Raises:
            Failure: as `read`, and `permission_denied` with rule `symbolic_link` where `path` goes through a
            link.
        """
        tree, parts = self._find(path)
        for part in parts if tree is self._tree else tree.parts + parts:
            folder_name = kept_folder(part)
            if folder_name is not None:
                raise kept(path, folder_name)
        with self._reporting(path, tree, parts):
            if not parts or path.endswith("/"):
                raise IsADirectoryError(errno.EISDIR, "")
            try:
                with self._folder(tree, parts[:-1], path, writing=True) as folder:
                    self._refuse_future_home(tree, parts, path)
                    return _replace(folder, parts[-1], self._spelled(tree, parts), path, data, demand)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._through_link(path, tree, parts) from None

    def listing(self, path: str, recursive: bool = False, *, real: str | None = None) -> list[Entry]:
        """What is in the folder at `path`, sorted by path; with `recursive` in all folders under it as well.

        Linked folders are listed as links and not entered; neither are sealed ones. `real` is where `path` leads, if that was
        found out (and judged) before: it is opened without following a link.

        Raises:
            Failure: `not_found`, `not_a_directory`, `too_large` past `MAX_ENTRIES`, and as `read`.
        """
        tree, parts = self._find(path)
        spelled = self._spelled(tree, parts)
        found: list[Entry] = []
        with self._reporting(path, tree, parts):
            if real is None:
                with tree.opened() as (opened, _):
                    top = beneath.follow(opened, parts)
            else:
                tree, top = self._find(real)
            as_shown = () if spelled == "." else tuple(spelled.split("/"))
            ahead: list[tuple[beneath.Parts, beneath.Parts]] = [(as_shown, top)]
            while ahead:
                shown, here = ahead.pop()
                try:
                    with self._folder(tree, here, path) as folder:
                        inner = _entries(folder, shown, MAX_ENTRIES - len(found), path)
                except (FileNotFoundError, NotADirectoryError):
                    if here == top:
                        raise
                    continue  # It went away while we were looking; so it isn't there.
                except Failure as failure:
                    if here == top or failure.rule not in ("albert_own", "shipped.forbidden_paths"):
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
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts), tree.opened() as (top, ceiling):
            real = beneath.follow(top, parts) if follow else parts
            opened = beneath.open_folder(top, real)
            try:
                self._judge(tree, top, ceiling, opened, path, writing=False)
            except BaseException:
                os.close(opened)
                raise
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _folder(self, tree: _Tree, parts: beneath.Parts, path: str, writing: bool = False) -> Iterator[int]:
        with tree.opened() as (top, ceiling):
            opened = beneath.open_folder(top, parts)
            try:
                self._judge(tree, top, ceiling, opened, path, writing)
                yield opened
            finally:
                os.close(opened)

    def _judge(self, tree: _Tree, top: int, ceiling: int, folder: int, path: str, writing: bool) -> None:
        """Refuse an open folder that is not beneath the top after all, or is in Albert's own or another place no tool reaches."""
        above = beneath.chain(ceiling, folder)
        if above is None:
            raise outside(path, "its folder is no longer in it")
        sealed = self._sealed_inside if tree is self._tree else self.sealed
        if any(i in above for i in _identities(sealed)):
            raise albert_own(path, sealed=True)
        tops = [(self._tree.fd, self.identity)]
        if tree is not self._tree:
            own_top = beneath.identity(os.fstat(top))
            if own_top not in above:
                raise outside(path, "its folder is no longer in it")
            if any(i in above for i in _identities(self.secret)):
                raise forbidden(path, "no tool reaches what is there")
            tops.append((top, own_top))
        if writing:
            for name in (ALBERT_FOLDER, GIT_FOLDER):
                for place, identity in tops:
                    with suppress(OSError):
                        # Through a link too: what `.albert` leads to is Albert's, whatever it is called.
                        own = beneath.identity(os.stat(name, dir_fd=place))
                        if own in above and own != identity:
                            raise kept(path, name)

    def _refuse_future_home(self, tree: _Tree, parts: beneath.Parts, path: str) -> None:
        """A sealed folder that doesn't exist yet has no identity; its name must not be taken either."""
        full = os.path.join(tree.top, *parts).casefold()
        for place in self.sealed:
            if f"{full}/".startswith(f"{place}/".casefold()) or f"{place}/".casefold().startswith(f"{full}/"):
                raise albert_own(path, sealed=True)

    def _through_link(self, path: str, tree: _Tree, parts: beneath.Parts) -> Failure:
        try:
            with tree.opened() as (top, _):
                real = self._spelled(tree, beneath.follow(top, parts))
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
    def _reporting(self, path: str, tree: _Tree, parts: beneath.Parts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failure = failure_of(error, path)
            if failure.code == "not_found":
                failure.hint = self._hint(tree, parts)
            raise failure from None

    def _hint(self, tree: _Tree, parts: beneath.Parts) -> str | None:
        """What to do about a path that isn't there: the nearest name, or that the folder is missing."""
        from albert_tools.engine.model.naming import nearest

        if not parts:
            return None
        try:
            with tree.opened() as (top, _):
                above = beneath.follow(top, parts[:-1])
            with self._folder(tree, above, "") as folder:
                names = _names(folder, files="." in parts[-1])
        except FileNotFoundError:
            return f"its folder {self._spelled(tree, parts[:-1])!r} does not exist"
        except (OSError, Failure):
            return None
        near = nearest(parts[-1], names)
        return f"did you mean {self._spelled(tree, (*parts[:-1], near))!r}?" if near else None


def _identities(places: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for place in places:
        with suppress(OSError):
            yield beneath.identity(os.stat(place))


def _names(folder: int, files: bool) -> list[str]:
    """The names in a folder; only those of `files`, where a name with an ending was asked for."""
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(listed) as entries:
            looked_at = (entry for entry, _ in zip(entries, range(_NAMES_LOOKED_AT), strict=False))
            return [entry.name for entry in looked_at if not (files and entry.is_dir())]
    finally:
        os.close(listed)


def _read(folder: int, name: str, path: str, limit: int, links: LinkIndex) -> bytes:
    # Look before opening: opening a FIFO or a device is already an effect.
    _demand_file(os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False), path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(os.open(os.fsencode(name), flags, dir_fd=folder), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        _demand_file(facts, path)
        if facts.st_nlink > 1:
            _demand_harmless_names(facts, path, links)
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


def _demand_harmless_names(facts: os.stat_result, path: str, links: LinkIndex) -> None:
    try:
        place = links.place_of(facts)
    except TooMany:
        failure = forbidden(path, "it has other names, and whether one of them is forbidden can't be told")
        failure.rule = "hard_link"
        raise failure from None
    if place is not None:
        failure = forbidden(path, "it is another name (a hard link) of a file that no tool reaches")
        failure.rule = "hard_link"
        raise failure


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


def _replace(
    folder: int,
    name: str,
    relative: str,
    path: str,
    data: bytes,
    demand: Callable[[os.stat_result | None], object],
) -> FileFacts:
    old = _looked(folder, name)
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
        demand(_looked(folder, name))
        os.rename(temporary, os.fsencode(name), src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    _sync(folder)
    return FileFacts(relative, len(data), hashlib.sha256(data).hexdigest())


def _looked(folder: int, name: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False)
    return None


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
