"""The workspace: what tools do to the files that `reach` leads to.

Reads may go through links that stay in the workspace: where they lead is found out first, and that path, which has no link in it,
is what is opened. Writes go through none, so that a rule about a path can't be got around by another name for it.

A file with several names (hard links) is read unless one of them is in a place that no tool reaches (`hardlinks`). Other names it
may have can't be known. Writing replaces the name, so what the other names stand for stays as it was; that is why appending and
editing replace as well, and don't write into the file that is there.

Files are moved, folders aren't: with a folder everything in it would get another path at once, unseen by rules that speak of paths.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from albert_tools.engine.model.bounds import MAX_READ
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import files, openat
from albert_tools.engine.workspace.files import Demand, Entry, EntryType, FileFacts
from albert_tools.engine.workspace.path_syntax import kept, kept_folder, show
from albert_tools.engine.workspace.resolve import Reach, Tree, identities

__all__ = ["Entry", "EntryType", "FileFacts", "Info", "Met", "Moved", "Opened", "Removed", "Workspace"]

#: Entries of one listing: more than this helps no one, and a listing is held in memory whole.
MAX_ENTRIES = 10_000

#: Names of one folder that a walk sorts, and so holds; names that it looks at in all; folders within folders that it enters.
MAX_NAMES = 100_000
MAX_WALKED = 1_000_000
MAX_DEPTH = 200

#: Told an absolute path without a link in it; may raise.
Judge = Callable[[str], object]


def _nothing(_: object = None) -> None:
    """Has nothing against it."""


class Removed(NamedTuple):
    """What was deleted. `size` in bytes and `sha256` are those of a file; None where it could not be read."""

    path: str
    type: EntryType
    size: int
    sha256: str | None


class Moved(NamedTuple):
    """What was moved, its old path and its new one, both for records; `shown` is the new one spelled."""

    source: str
    target: str
    shown: str
    size: int
    sha256: str


class Info(NamedTuple):
    """What stands at a path. `path` is spelled, without a link before its last part; `link` is what a link says."""

    path: str
    type: EntryType
    facts: os.stat_result
    sha256: str | None
    link: str | None


class Met(NamedTuple):
    """Something that a walk meets. `path` is to be shown, `absolute` for rules; `folder` is open until the walk goes on."""

    path: str
    type: EntryType
    absolute: str
    folder: int
    name: str


class Opened:
    """A file that is open for reading; `path` is where it really is, for records. Closed by leaving its block."""

    __slots__ = ("_going", "_handle", "_most", "_rule", "_shown", "facts", "path")

    def __init__(self, handle: int, facts: os.stat_result, path: str, shown: str) -> None:
        self._handle = handle
        self.facts = facts
        self.path = path
        self._shown = shown
        self._most: int | None = None
        self._rule: str | None = None
        self._going: Callable[[], object] = _nothing

    def bound(self, most: int, rule: str, going: Callable[[], object]) -> None:
        """At most so many bytes are read at once, because of a rule; `going` is asked now and then, and may raise."""
        self._most, self._rule, self._going = most, rule, going

    def most(self, limit: int) -> int:
        """`limit`, or what the rules have instead."""
        return limit if self._most is None else min(limit, self._most)

    def read(self, limit: int) -> bytes:
        """The whole content, if it has `limit` bytes or fewer.

        Raises:
            Failure: `too_large`, `io_error`.
        """
        try:
            return files.read_all(self._handle, self.facts, self._shown, self.most(limit))
        except Failure as failure:
            if failure.code == "too_large" and self._most is not None and self._most < limit:
                failure.rule = self._rule
            raise

    def blocks(self) -> Iterator[bytes]:
        """The content in pieces.

        Raises:
            Failure: `cancelled`: the call is over.
        """
        return files.blocks(self._handle, self._going)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._handle)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Workspace(Reach):
    """The open workspace. Safe to use from any thread."""

    # Reading.

    def open(self, path: str, *, follow: bool = True, judge: Judge | None = None) -> Opened:
        """The file at `path`. Links that stay in the workspace are followed unless `follow` is false (for a path that `locate`
        gave). `judge` is told where the file really is before it is opened.

        Raises:
            Failure: `not_found`, `not_a_file`, `not_a_directory`, `io_error`, `invalid_arguments`, `permission_denied` (rules
                `path_traversal`, `outside_workspace`, `albert_own`, `hard_link`).
        """
        tree, parts = self._find(path)
        try:
            if not parts:
                raise IsADirectoryError(errno.EISDIR, "")
            with tree.opened() as (top, ceiling):
                folder, parts, seen = _plainly(top, parts, follow)
                try:
                    if judge is not None:
                        judge("/".join((tree.top, *parts)))
                    self._judge(tree, top, ceiling, folder, path, writing=False)
                    handle, facts = files.open_file(folder, parts[-1], path, self._links, seen)
                finally:
                    os.close(folder)
        except OSError as error:
            raise self._reported(error, path, tree, parts) from None
        return Opened(handle, facts, self._recorded(tree, parts), path)

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """The content of the file at `path`, if it has `limit` bytes or fewer. `follow` as in `open`.

        Raises:
            Failure: as `open`, and `too_large`.
        """
        with self.open(path, follow=follow) as opened:
            return opened.read(limit)

    def info(self, path: str, judge: Judge = _nothing, going: Callable[[], object] = _nothing) -> Info:
        """What stands at `path`, a link itself. Of a file of 1 GiB or less with its sha256.

        Raises:
            Failure: as `open`, but for `not_a_file`.
        """
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts), tree.opened() as (top, _):
            real = (*openat.follow(top, parts[:-1]), *parts[-1:])
            judge("/".join((tree.top, *real)))
            with self._folder(tree, real[:-1], path) as folder:
                name = real[-1] if real else "."
                facts = os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False)
                kind, found, link = files.type_of(facts.st_mode), None, None
                if kind == "symlink":
                    link = files.spoken(os.readlink(name, dir_fd=folder))
                elif kind == "directory":
                    with self._folder(tree, real, path):
                        pass
                elif kind == "file":
                    facts, found = self._digested(folder, name, path, going)
            return Info(self._spelled(tree, real), kind, facts, found, link)

    def _digested(
        self, folder: int, name: str, path: str, going: Callable[[], object]
    ) -> tuple[os.stat_result, str | None]:
        """The facts of a file and the sha256 of its content; none of one that is too large, or closed to us."""
        try:
            handle, facts = files.open_file(folder, name, path, self._links)
        except PermissionError:
            return os.stat(os.fsencode(name), dir_fd=folder, follow_symlinks=False), None
        try:
            return facts, files.digest(handle, going) if facts.st_size <= MAX_READ else None
        finally:
            os.close(handle)

    # Changing.

    def replace(
        self, path: str, data: bytes, demand: Demand = _nothing, *, new: bool = False, mode: int = 0o666
    ) -> FileFacts:
        """Make `data` the content of the file at `path`, which need not exist, and must not with `new`; its folder must.

        Atomic and durable: readers see the old content or the new one, and a failure leaves the old. The
        file's permission bits (and its owner, as far as we may) stay, a new one has those of `mode` that the umask leaves; other
        names for the same file keep the old content. `demand` is told what stands there at the very last, and may raise.

        Raises:
            Failure: as `open`, `exists`, and `permission_denied` with rule `symbolic_link` where `path` goes through a
                link, `git_own` or `albert_own`.
        """
        with self._changing(path) as (tree, parts, folder):
            files.replace(folder, parts[-1], path, data, demand, new=new, mode=mode)
            return FileFacts(self._spelled(tree, parts), len(data), hashlib.sha256(data).hexdigest())

    def rewrite(
        self,
        path: str,
        change: Callable[[bytes | None], bytes],
        limit: int,
        demand: Demand = _nothing,
        *,
        missing: bool = False,
    ) -> FileFacts:
        """Make of the content of the file at `path`, of `limit` bytes or fewer, what `change` says; what it raises changes nothing.

        As `replace`, and only if nobody has changed the file meanwhile. With `missing` it need not be there, and then `change` is
        given None.

        Raises:
            Failure: as `replace`, `not_found`, `too_large`; retryable `io_error` where somebody has changed it meanwhile.
        """
        with self._changing(path) as (tree, parts, folder):
            old, facts = None, None
            try:
                handle, facts = files.open_file(folder, parts[-1], path, self._links)
            except FileNotFoundError:
                if not missing:
                    raise
            else:
                try:
                    old = files.read_all(handle, facts, path, limit)
                finally:
                    os.close(handle)
            data = change(old)

            def last(now: os.stat_result | None) -> None:
                if not files.same(facts, now):
                    raise _changed(path)
                demand(now)

            files.replace(folder, parts[-1], path, data, last, new=facts is None)
            return FileFacts(self._spelled(tree, parts), len(data), hashlib.sha256(data).hexdigest())

    def remove(self, path: str, demand: Demand = _nothing, going: Callable[[], object] = _nothing) -> Removed:
        """Delete the file, the link or the empty folder at `path`.

        Raises:
            Failure: as `replace`; `not_a_file` for a folder that isn't empty; `io_error` for a file that is read-only.
        """
        with self._changing(path, folders=True) as (tree, parts, folder):
            facts = os.stat(os.fsencode(parts[-1]), dir_fd=folder, follow_symlinks=False)
            kind, found = files.type_of(facts.st_mode), None
            if kind == "directory":
                with self._folder(tree, parts, path, writing=True):
                    pass
            elif kind == "file":
                files.demand_writable(facts, path)
                with suppress(Failure):
                    # What it is another name of may be none of a tool's business; the name may go all the same.
                    facts, found = self._digested(folder, parts[-1], path, going)
                going()
            now = files.looked(folder, parts[-1])
            if not files.same(facts, now):
                raise _changed(path)
            demand(now)
            files.unlink(folder, parts[-1], facts)
            return Removed(self._recorded(tree, parts), kind, facts.st_size if kind == "file" else 0, found)

    def move(
        self,
        source: str,
        target: str,
        limit: int,
        demands: tuple[Demand, Demand] = (_nothing, _nothing),
        room: Callable[[int], object] = _nothing,
        going: Callable[[], object] = _nothing,
        *,
        new: bool = True,
    ) -> Moved:
        """Give the file at `source` the path `target`, where nothing may be if `new`, and else at the most a file.

        In one step, so that the file is there under one of its names at any time; from one file system to another it is copied (if
        it has `limit` bytes or fewer) and then deleted. `demands` are told what stands at both, `room` the size.

        Raises:
            Failure: as `replace` and `rewrite`.
        """
        with self._changing(source) as (from_tree, from_parts, from_folder):
            handle, facts = files.open_file(from_folder, from_parts[-1], source, self._links)
            try:
                files.demand_writable(facts, source)
                room(facts.st_size)
                found = files.digest(handle, going)
                with self._changing(target) as (tree, parts, folder):
                    if (from_tree, from_parts) == (tree, parts):
                        raise Failure("invalid_arguments", "source and target are the same path", hint="name another")
                    old = files.looked(folder, parts[-1])
                    again = old is not None and openat.identity(old) == openat.identity(facts)
                    if old is not None and not again:
                        if new:
                            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                        files.demand_file(old, target)
                        files.demand_writable(old, target)
                    if again and facts.st_nlink > 1:
                        raise Failure(
                            "exists",
                            f"{show(target)} is another name of the same file already",
                            hint="delete one of the two",
                        )
                    now = files.looked(from_folder, from_parts[-1])
                    if not files.same(facts, now):
                        raise _changed(source)
                    demands[1](files.looked(folder, parts[-1]))
                    demands[0](now)
                    try:
                        # The same file in another spelling, where case doesn't count, is no other file in the way.
                        _rename(from_folder, from_parts[-1], folder, parts[-1], new and not again)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        os.lseek(handle, 0, os.SEEK_SET)
                        data = files.read_all(handle, facts, source, limit)
                        mode = facts.st_mode
                        files.replace(folder, parts[-1], target, data, demands[1], new=new, mode=mode)
                        os.unlink(os.fsencode(from_parts[-1]), dir_fd=from_folder)
                    files.sync(folder)
                    files.sync(from_folder)
                    old_path, new_path = self._recorded(from_tree, from_parts), self._recorded(tree, parts)
                    return Moved(old_path, new_path, self._spelled(tree, parts), facts.st_size, found)
            finally:
                os.close(handle)

    def make_folder(self, path: str, judge: Judge = _nothing, *, parents: bool = True) -> list[str]:
        """Make the folder at `path`, with `parents` those above it, too; the ones that were made, for records. None if it is there.

        `judge` is told the absolute path of each before it is made.

        Raises:
            Failure: as `replace`; `exists` where something else stands, `not_found` without `parents`.
        """
        tree, parts = self._find(path)
        self._demand_free(tree, parts, path)
        made: list[str] = []
        with self._reporting(path, tree, parts):
            try:
                # Almost always everything above is there.
                start = len(parts)
                while start and not self._is_folder(tree, parts[:start], path):
                    start -= 1
                if len(parts) - start > 1 and not parents:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                for n in range(start, len(parts)):
                    judge("/".join((tree.top, *parts[: n + 1])))
                    self._refuse_future_home(tree, parts[: n + 1], path)
                    with self._folder(tree, parts[:n], path, writing=True) as folder:
                        try:
                            os.mkdir(os.fsencode(parts[n]), dir_fd=folder)
                        except FileExistsError:
                            if self._is_folder(tree, parts[: n + 1], path):
                                continue
                            if n + 1 == len(parts):
                                raise
                            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
                        files.sync(folder)
                        made.append(self._recorded(tree, parts[: n + 1]))
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._through_link(path, tree, parts) from None
        return made

    def _is_folder(self, tree: Tree, parts: openat.Parts, path: str) -> bool:
        try:
            with self._folder(tree, parts, path):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False

    @contextmanager
    def _changing(self, path: str, folders: bool = False) -> Iterator[tuple[Tree, openat.Parts, int]]:
        """The folder in which something is to change, open and judged; with `folders`, it may be a folder that changes."""
        tree, parts = self._find(path)
        self._demand_free(tree, parts, path)
        with self._reporting(path, tree, parts):
            if not parts or (path.endswith("/") and not folders):
                raise IsADirectoryError(errno.EISDIR, "")
            try:
                with self._folder(tree, parts[:-1], path, writing=True) as folder:
                    self._refuse_future_home(tree, parts, path)
                    yield tree, parts, folder
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._through_link(path, tree, parts) from None

    def _demand_free(self, tree: Tree, parts: openat.Parts, path: str) -> None:
        for part in parts if tree is self._tree else tree.parts + parts:
            folder_name = kept_folder(part)
            if folder_name is not None:
                raise kept(path, folder_name)

    # Looking around.

    def listing(self, path: str, recursive: bool = False, *, real: str | None = None) -> list[Entry]:
        """What is in the folder at `path`, sorted by path; with `recursive` in all folders under it as well.

        Linked folders are listed as links and not entered; neither are sealed ones. `real` is where `path` leads, if that was
        found out (and judged) before: it is opened without following a link.

        Raises:
            Failure: `not_found`, `not_a_directory`, `too_large` past `MAX_ENTRIES`, and as `open`.
        """
        tree, parts = self._find(path)
        spelled = self._spelled(tree, parts)
        found: list[Entry] = []
        with self._reporting(path, tree, parts):
            if real is None:
                with tree.opened() as (opened, _):
                    top = openat.follow(opened, parts)
            else:
                tree, top = self._find(real)
            as_shown = () if spelled == "." else tuple(spelled.split("/"))
            ahead: list[tuple[openat.Parts, openat.Parts]] = [(as_shown, top)]
            while ahead:
                shown, here = ahead.pop()
                try:
                    with self._folder(tree, here, path) as folder:
                        inner = files.entries_of(folder, shown, MAX_ENTRIES - len(found), MAX_ENTRIES, path)
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

    def walk(self, path: str, enter: Callable[[Met], bool] = lambda met: True) -> Iterator[Met]:
        """Everything under the folder at `path`, one after the other, sorted by path; a file is met alone.

        Each folder that `enter` says yes to is entered, and held open until all in it was met. Links are met and not followed,
        sealed folders not entered; neither are those that are closed to us, or go away.

        Raises:
            Failure: as `listing`; `too_large` past `MAX_NAMES` in a folder, `MAX_WALKED` in all, or `MAX_DEPTH` levels.
        """
        tree, parts = self._find(path)
        shown = self._spelled(tree, parts)
        levels: list[tuple[int, str, str, Iterator[tuple[EntryType | None, str]]]] = []
        walked = 0
        with self._reporting(path, tree, parts), tree.opened() as (top, ceiling):
            try:
                folder, real, _ = _plainly(top, parts, True) if parts else (openat.open_folder(top, ()), (), None)
                absolute = "/".join((tree.top, *real))
                try:
                    self._judge(tree, top, ceiling, folder, path, writing=False)
                    facts = files.looked(folder, real[-1]) if real else None
                    if facts is not None and stat.S_ISREG(facts.st_mode):
                        yield Met(shown, "file", absolute, folder, real[-1])
                        return
                finally:
                    os.close(folder)
                closed = set(identities([*self.sealed, *self.secret]))
                folder = openat.open_folder(top, real)
                try:
                    self._judge(tree, top, ceiling, folder, path, writing=False)
                    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
                finally:
                    os.close(folder)
                prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
                levels.append((handle, prefix, absolute, iter(())))
                levels[0] = (handle, prefix, absolute, iter(_sorted(handle, path)))
                while levels:
                    handle, prefix, absolute, entries = levels[-1]
                    kind, name = next(entries, ("other", ""))
                    if not name:
                        os.close(handle)
                        levels.pop()
                        continue
                    met = Met(prefix + files.spoken(name), kind or "directory", f"{absolute}/{name}", handle, name)
                    if kind is not None:
                        walked += 1
                        if walked > MAX_WALKED:
                            raise _too_many(path, f"{MAX_WALKED:,} things")
                        yield met
                    elif enter(met):
                        if len(levels) == MAX_DEPTH:
                            # What is passed over unsaid would be taken for what isn't there.
                            raise _too_many(path, f"folders within folders, {MAX_DEPTH} deep")
                        inner = _entered(handle, name, closed)
                        if inner is not None:
                            levels.append((inner, f"{met.path}/", met.absolute, iter(())))
                            levels[-1] = (*levels[-1][:3], iter(_sorted(inner, met.path)))
            finally:
                for level in levels:
                    os.close(level[0])

    def open_met(self, met: Met) -> Opened:
        """The file that a walk has just met.

        Raises:
            Failure: as `open`.
        """
        try:
            handle, facts = files.open_file(met.folder, met.name, met.path, self._links)
        except OSError as error:
            raise self._reported(error, met.path, self._tree, ()) from None
        return Opened(handle, facts, met.path, met.path)

    def demand_going(self) -> None:
        """Whether what is being done is still wanted; here it always is.

        Raises:
            Failure: `cancelled`, in a workspace of one call that is over.
        """


def _plainly(top: int, parts: openat.Parts, follow: bool) -> tuple[int, openat.Parts, os.stat_result | None]:
    """The folder that holds what `parts` lead to, as a descriptor, the parts without a link among them, and what was seen there.

    Most paths have none, and are opened as they are.
    """
    folder = -1
    try:
        folder = openat.open_folder(top, parts[:-1])
        facts = os.stat(os.fsencode(parts[-1]), dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISLNK(facts.st_mode) or not follow:
            return folder, parts, facts
    except OSError as error:
        if folder >= 0:
            os.close(folder)
        if error.errno != errno.ELOOP or not follow:
            raise
    else:
        os.close(folder)
    parts = openat.follow(top, parts)
    return openat.open_folder(top, parts[:-1]), parts, None


def _rename(from_folder: int, source: str, folder: int, target: str, new: bool) -> None:
    if new:
        openat.rename_new(from_folder, source, folder, target)
    else:
        os.rename(os.fsencode(source), os.fsencode(target), src_dir_fd=from_folder, dst_dir_fd=folder)


def _entered(folder: int, name: str, closed: set[tuple[int, int]]) -> int | None:
    """A folder in an open one, to be listed; None of one that is sealed, closed to us, or gone."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(os.fsencode(name), flags, dir_fd=folder)
    except OSError:
        return None
    if openat.identity(os.fstat(handle)) in closed:
        os.close(handle)
        return None
    return handle


def _sorted(folder: int, path: str) -> list[tuple[EntryType | None, str]]:
    """What is in an open folder, in the order in which the paths of everything under it are sorted.

    A folder is there twice: itself, and, as None, where what is in it has its place, behind names like ``folder.old``.
    """
    found: list[tuple[bytes, EntryType | None, str]] = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count == MAX_NAMES:
                raise _too_many(path, f"{MAX_NAMES:,} names in one folder")
            key = os.fsencode(entry.name)
            if entry.is_symlink():
                found.append((key, "symlink", entry.name))
            elif entry.is_dir(follow_symlinks=False):
                found += [(key, "directory", entry.name), (key + b"/", None, entry.name)]
            else:
                found.append((key, "file" if entry.is_file(follow_symlinks=False) else "other", entry.name))
    found.sort(key=lambda line: line[0])
    return [(kind, name) for _, kind, name in found]


def _too_many(path: str, what: str) -> Failure:
    return Failure(
        "too_large",
        f"{show(path)} holds more than can be looked through, {what}",
        hint="look in one of its folders",
    )


def _changed(path: str) -> Failure:
    return Failure(
        "io_error",
        f"{show(path)} was changed by somebody else meanwhile, so nothing was done",
        hint="look at it again",
        retryable=True,
    )
