"""The workspace: operations on files for tools. Before a file is opened or changed, the judge checks its real path.

A read may follow links that stay in the workspace. The links are resolved first; the path without links is checked and opened. A
write follows no link. Otherwise, a link could give a file a second path that no rule covers.

A file with several names (hard links) can be read unless one of the names is in a forbidden place (`hard_links`). A write creates
a new file for one name; the other names keep the old content. Appending and editing work in the same way.

Files can be moved, folders can't. A moved folder would give new paths to all its files at once, and the rules on paths would not
be applied to each of them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from albert_tools.engine.model.bounds import MAX_READ, MAX_WRITE
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import files, openat
from albert_tools.engine.workspace.call_judge import NO_RULES, CallJudge, Use
from albert_tools.engine.workspace.files import Demand, Entry, EntryType, FileFacts
from albert_tools.engine.workspace.git_folders import git_content
from albert_tools.engine.workspace.opened_file import MAX_FILE_RULE, OpenedFile
from albert_tools.engine.workspace.path_syntax import show
from albert_tools.engine.workspace.resolve import Place, Resolver, identities, open_parent
from albert_tools.engine.workspace.walk import Met, walk_folder

#: The most entries of one listing, which is built in memory.
MAX_ENTRIES = 10_000


class Removed(NamedTuple):
    """A deleted entry. `size` in bytes and `sha256` belong to a file; `sha256` is None if the file could not be read."""

    path: str
    type: EntryType
    size: int
    sha256: str | None


class Moved(NamedTuple):
    """A moved file: its old and new path for records; `shown` is the new path in its normal form."""

    source: str
    target: str
    shown: str
    size: int
    sha256: str


class Info(NamedTuple):
    """A file, folder or link. `path` is in normal form; only its last part can be a link. `link` is the text of the link."""

    path: str
    type: EntryType
    facts: os.stat_result
    sha256: str | None
    link: str | None


class Workspace(Resolver):
    """The open workspace. Safe to use from any thread."""

    def __init__(
        self, root: Path, sealed: Iterable[Path] = (), secret: Iterable[Path] = (), rules: Path | None = None
    ) -> None:
        """As `Resolver`. The workspace starts with a judge that allows everything."""
        super().__init__(root, sealed, secret, rules)
        self.judge = CallJudge(NO_RULES)

    def judged_by(self, judge: CallJudge) -> Self:
        """A view for one call, with the judge of this call."""
        view = self._as_view()
        view.judge = judge
        return view

    def demand_going(self) -> None:
        """Refuse if the call has ended.

        Raises:
            Failure: `cancelled`.
        """
        self.judge.demand_going()

    # Reading.

    def open(self, path: str, *, follow: bool = True, at_once: bool = False) -> OpenedFile:
        """Open the file at `path`. Links that stay in the workspace are followed unless `follow` is false.

        Raises:
            BlockingIOError: with `at_once`: the file can't be opened without waiting, or at all.
            Failure: `not_found`, `not_a_file`, `not_a_directory`, `io_error`, `invalid_arguments`, `permission_denied` (rules
                `path_traversal`, `outside_workspace`, `albert_own`, `hard_link`, or a rule of the judge).
        """
        place = self._find(path)
        if at_once and not (self._is_local and place.tree is self._tree):
            raise BlockingIOError
        try:
            if not place.parts:
                raise IsADirectoryError(errno.EISDIR, "")
            with place.tree.opened() as (top, ceiling):
                folder, parts, seen = open_parent(top, place.parts, follow and not at_once, at_once=at_once)
                try:
                    real = place.at(parts)
                    self.judge.demand(real.absolute, "read")
                    self._check(place, top, ceiling, folder)
                    handle, facts = files.open_file(folder, parts[-1], path, self._links, seen, at_once=at_once)
                finally:
                    os.close(folder)
        except OSError as error:
            if at_once:
                raise BlockingIOError from None
            raise self._reported(error, place) from None
        return OpenedFile(handle, facts, self._recorded(real), path, self.judge)

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """The content of the file at `path`, if it has at most `limit` bytes. `follow` as in `open`.

        Raises:
            Failure: as `open`, and `too_large`.
        """
        with self.open(path, follow=follow) as opened:
            return opened.read(limit)

    def info(self, path: str) -> Info:
        """Information about `path`; a link is not followed. For a file of at most 1 GiB, it includes the sha256.

        Raises:
            Failure: as `open`, except `not_a_file`.
        """
        place = self._find(path)
        with self._reporting(place):
            folder_place = self._real(place.at(place.parts[:-1]))
            real = place.at((*folder_place.parts, *place.parts[-1:]))
            self.judge.demand(real.absolute, "read")
            with self._folder(folder_place) as folder:
                name = real.parts[-1] if real.parts else "."
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                kind, sha256, link = files.type_of(facts.st_mode), None, None
                if kind == "symlink":
                    link = files.spoken(os.readlink(name, dir_fd=folder))
                elif kind == "directory":
                    with self._folder(real):
                        pass
                elif kind == "file":
                    facts, sha256 = self._digested(folder, name, real)
            return Info(self._spelled(real), kind, facts, sha256, link)

    def _digested(self, folder: int, name: str, place: Place) -> tuple[os.stat_result, str | None]:
        """The facts of a file and the sha256 of its content. The sha256 is None if the file is too large or can't be opened."""
        try:
            opened = self._open_name(folder, name, place)
        except PermissionError:
            return os.stat(name, dir_fd=folder, follow_symlinks=False), None
        with opened:
            return opened.facts, opened.digest() if opened.facts.st_size <= MAX_READ else None

    def _open_name(self, folder: int, name: str, place: Place) -> OpenedFile:
        """Open a file in an open folder. `place` is its place."""
        handle, facts = files.open_file(folder, name, place.path, self._links)
        self.judge.note_opened(place.absolute)
        return OpenedFile(handle, facts, place.path, place.path, self.judge)

    # Changing.

    def replace(self, path: str, data: bytes, *, new: bool = False, mode: int = 0o666) -> FileFacts:
        """Write `data` to the file at `path`. With `new`, fail if the path exists. The folder of the file must exist.

        The write is atomic and durable: readers see the old content or the new content, and after a failure the file has the old
        content. The file keeps its permission bits, and its owner if the process may set the owner. A new file gets `mode`
        without the bits of the umask. Other names of the file keep the old content.

        Raises:
            Failure: as `open`; `exists`; `too_large`; `budget_exceeded`; and `permission_denied` with rule `symbolic_link` if
                `path` goes through a link, `git_own` or `albert_own`.
        """
        place = self._demand(path, "write")
        self._demand_size(len(data))
        with self._counted(len(data)), self._changing(place) as folder:
            files.replace(folder, place.parts[-1], path, data, self._last_look(place), new=new, mode=mode)
        return self._written(place, data)

    def rewrite(
        self, path: str, change: Callable[[bytes | None], bytes], limit: int, *, missing: bool = False
    ) -> FileFacts:
        """Replace the content of the file at `path`. `change` gets the old content, of at most `limit` bytes, and returns the new
        one.

        Works as `replace`, but fails if another process has changed the file meanwhile. If `change` raises, nothing is changed.
        With `missing`, the file need not exist; then `change` gets None.

        Raises:
            Failure: as `replace`; `not_found`; `too_large`; retryable `io_error` if another process has changed the file meanwhile.
        """
        place = self._demand(path, "write")
        last_look = self._last_look(place)
        with self._changing(place) as folder:
            old, facts = None, None
            try:
                with self._open_name(folder, place.parts[-1], place) as opened:
                    old, facts = opened.read(limit), opened.facts
            except FileNotFoundError:
                if not missing:
                    raise
            data = change(old)
            self._demand_size(len(data))

            def demand(now: os.stat_result | None) -> None:
                if not files.same(facts, now):
                    raise _changed_meanwhile(path)
                last_look(now)

            with self._counted(len(data)):
                files.replace(folder, place.parts[-1], path, data, demand, new=facts is None)
        return self._written(place, data)

    def _written(self, place: Place, data: bytes) -> FileFacts:
        self.judge.changed(place.absolute)
        return FileFacts(self._spelled(place), len(data), hashlib.sha256(data).hexdigest())

    def remove(self, path: str) -> Removed:
        """Delete the file, the link or the empty folder at `path`.

        Raises:
            Failure: as `replace`; `not_a_file` for a folder that isn't empty; `io_error` for a read-only file.
        """
        place = self._demand(path, "delete")
        with self._changing(place, folders=True) as folder:
            name = place.parts[-1]
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            kind, sha256 = files.type_of(facts.st_mode), None
            if kind == "directory":
                with self._folder(place, writing=True):
                    pass
            elif kind == "file":
                files.demand_writable(facts, path)
                # A hard link to a forbidden file may be deleted, but the content isn't read.
                with suppress(Failure):
                    facts, sha256 = self._digested(folder, name, place)
            now = files.facts_of(folder, name)
            if not files.same(facts, now):
                raise _changed_meanwhile(path)
            self._last_look(place)(now)
            files.remove(folder, name, facts)
        self.judge.changed(place.absolute)
        return Removed(self._recorded(place), kind, facts.st_size if kind == "file" else 0, sha256)

    def move(self, source: str, target: str, limit: int, *, new: bool = True) -> Moved:
        """Move the file at `source` to `target`. With `new`, `target` must not exist; otherwise, a file there is replaced.

        The move is one step, so the file has exactly one of the two paths at any time. Between two file systems, the file is
        copied and then deleted; this requires at most `limit` bytes. The size of the file counts as written.

        Raises:
            Failure: as `replace` and `rewrite`.
        """
        old_place, place = self._demand(source, "delete"), self._demand(target, "write")
        with (
            self._changing(old_place) as old_folder,
            self._open_name(old_folder, old_place.parts[-1], old_place) as opened,
        ):
            facts = opened.facts
            files.demand_writable(facts, source)
            with self._counted(facts.st_size):
                sha256 = opened.digest()
                with self._changing(place) as folder:
                    if old_place.absolute == place.absolute:
                        raise Failure("invalid_arguments", "source and target are the same path", hint="name another")
                    new = self._demand_replaceable(place, folder, facts, new=new)
                    self._rename(old_place, old_folder, place, folder, opened, limit, new=new)
                    files.sync(folder)
                    files.sync(old_folder)
        for changed in (old_place, place):
            self.judge.changed(changed.absolute)
        return Moved(self._recorded(old_place), self._recorded(place), self._spelled(place), facts.st_size, sha256)

    def _demand_replaceable(self, place: Place, folder: int, facts: os.stat_result, *, new: bool) -> bool:
        """Refuse a target that may not be replaced. Returns whether the rename must fail if the target exists."""
        there = files.facts_of(folder, place.parts[-1])
        if there is None:
            return new
        if openat.identity(there) == openat.identity(facts):
            if facts.st_nlink > 1:
                raise _same_file(place.path)
            # On a file system that ignores case, this is the same file in another spelling.
            return False
        if new:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        files.demand_file(there, place.path)
        files.demand_writable(there, place.path)
        return False

    def _rename(
        self, source: Place, old_folder: int, target: Place, folder: int, opened: OpenedFile, limit: int, *, new: bool
    ) -> None:
        old_name, name, facts = source.parts[-1], target.parts[-1], opened.facts
        now = files.facts_of(old_folder, old_name)
        if not files.same(facts, now):
            raise _changed_meanwhile(source.path)
        demand = self._last_look(target)
        demand(files.facts_of(folder, name))
        self._last_look(source)(now)
        try:
            if new:
                openat.rename_new(old_folder, old_name, folder, name)
            else:
                os.rename(old_name, name, src_dir_fd=old_folder, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            there = files.facts_of(folder, name)
            if there is not None and openat.identity(there) == openat.identity(facts):
                # The same file system is mounted twice. Deleting the source would also delete the copy.
                raise _same_file(target.path) from None
            data = opened.reread(limit)
            files.replace(folder, name, target.path, data, demand, new=new, mode=facts.st_mode)
            os.unlink(old_name, dir_fd=old_folder)

    def make_folder(self, path: str, *, parents: bool = True) -> list[str]:
        """Create the folder at `path`; with `parents`, also its missing parents. Returns the paths of the new folders, for records.

        Raises:
            Failure: as `replace`; `exists` if `path` is not a folder, `not_found` without `parents`.
        """
        place = self._demand(path, "write")
        self._demand_unprotected(place)
        parts = place.parts
        made: list[str] = []
        with self._reporting_links(place):
            # Search from the end, because in most cases all parents exist.
            start = len(parts)
            while start and not self._is_folder(place.at(parts[:start])):
                start -= 1
            if len(parts) - start > 1 and not parents:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            for n in range(start, len(parts)):
                each = place.at(parts[: n + 1])
                # Where `path` may be made, so may the folders above it. The person approved the state in which it doesn't exist.
                self.judge.demand_approved(place.absolute, path, None)
                self._demand_unsealed(each)
                with self._folder(place.at(parts[:n]), writing=True) as folder:
                    try:
                        os.mkdir(parts[n], dir_fd=folder)
                    except FileExistsError:
                        if self._is_folder(each):
                            continue
                        if n + 1 == len(parts):
                            raise
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
                    files.sync(folder)
                    made.append(self._recorded(each))
        self.judge.changed(place.absolute)
        return made

    def _is_folder(self, place: Place) -> bool:
        try:
            with self._folder(place):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _demand(self, path: str, use: Use) -> Place:
        """The place of a path, after the judge has allowed its use. A change follows no link, so this is the real place."""
        place = self._find(path)
        self.judge.demand(place.absolute, use)
        return place

    def _demand_size(self, size: int) -> None:
        most = min(self.judge.max_file_bytes, MAX_WRITE)
        if size > most:
            rule = MAX_FILE_RULE if most == self.judge.max_file_bytes else None
            raise Failure(
                "too_large",
                f"{size:,} bytes are more than the {most:,} that a file may have",
                hint="write several files" + (f", or ask the owner to raise {MAX_FILE_RULE}" if rule else ""),
                rule=rule,
            )

    def _last_look(self, place: Place) -> Demand:
        return partial(self.judge.demand_approved, place.absolute, place.path)

    @contextmanager
    def _counted(self, size: int) -> Iterator[None]:
        """Count bytes as written. If writing them fails, take them back."""
        self.judge.count(size)
        try:
            yield
        except BaseException:
            self.judge.count(-size)
            raise

    @contextmanager
    def _changing(self, place: Place, folders: bool = False) -> Iterator[int]:
        """The parent folder of a place, opened and checked for a change. With `folders`, the place itself may be a folder."""
        self._demand_unprotected(place)
        with self._reporting_links(place):
            if not place.parts or (place.path.endswith("/") and not folders):
                raise IsADirectoryError(errno.EISDIR, "")
            with self._folder(place.at(place.parts[:-1]), writing=True) as folder:
                self._demand_unsealed(place)
                yield folder

    @contextmanager
    def _reporting_links(self, place: Place) -> Iterator[None]:
        """As `_reporting`, for changes. It reports a link in the path, because changes follow no link."""
        with self._reporting(place):
            try:
                yield
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._through_link(place) from None

    # Folders.

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A descriptor of the folder at `path`, which is closed at the end. Links are followed.

        Raises:
            Failure: as `listing`.
        """
        place = self._find(path)
        with self._reporting(place):
            real = self._real(place)
        self.judge.demand(real.absolute, "read")
        with self._handle(real) as handle:
            yield handle

    def at_root(self) -> AbstractContextManager[int]:
        """A descriptor of the workspace's folder, without a check by the judge. For commands, whose view is already limited."""
        return self._handle(Place(".", self._tree, ()))

    @contextmanager
    def _handle(self, place: Place) -> Iterator[int]:
        with ExitStack() as stack:
            with self._reporting(place):
                handle = stack.enter_context(self._folder(place))
            yield handle

    def listing(self, path: str, recursive: bool = False) -> list[Entry]:
        """The entries of the folder at `path`, sorted by path; with `recursive`, also the entries of all subfolders.

        A link to a folder, a sealed folder, a folder that the judge does not allow, and one that can't be opened are listed without
        their content.

        Raises:
            Failure: `not_found`, `not_a_directory`, `too_large` beyond `MAX_ENTRIES` and as `walk_folder`, and as `open`.
        """
        with self.folder(path):
            pass  # `walk` would also take a file.
        entries: list[Entry] = []
        for met in self.walk(path, lambda _: recursive):
            if len(entries) == MAX_ENTRIES:
                raise Failure(
                    "too_large",
                    f"{show(path)} holds more than {MAX_ENTRIES:,} entries, the most a listing can have",
                    hint="list one of its folders, or without recursive, or use find_files",
                )
            facts = files.facts_of(met.folder, met.name)
            if facts is not None:
                entries.append(Entry(met.path, met.type, facts.st_size if met.type == "file" else 0))
        return sorted(entries)

    def _enters(self, path: str) -> bool:
        """Whether a listing or a walk enters a folder."""
        return self.judge.allows(path) and not (self.judge.selective and git_content(path))

    def walk(self, path: str, enter: Callable[[Met], bool] = lambda met: True) -> Iterator[Met]:
        """Everything under the folder at `path`, sorted by path. If `path` is a file, yields only this file.

        The walk doesn't enter folders that `enter` refuses, links, sealed folders, and folders that the judge does not allow.

        Raises:
            Failure: as `listing`; `too_large` as `walk_folder`.
        """
        place = self._find(path)
        shown = self._spelled(place)
        with self._reporting(place):
            with place.tree.opened() as (top, ceiling):
                folder, parts, _ = open_parent(top, place.parts, follow=True)
                try:
                    real = place.at(parts)
                    self.judge.demand(real.absolute, "read")
                    self._check(place, top, ceiling, folder)
                    facts = files.facts_of(folder, parts[-1]) if parts else None
                    if facts is not None and stat.S_ISREG(facts.st_mode):
                        self.judge.demand_going()
                        yield Met(shown, "file", real.absolute, folder, parts[-1])
                        return
                finally:
                    os.close(folder)
            closed = set(identities([*self.sealed, *self.secret]))
            with self._folder(real) as folder:
                handle = os.open(".", files.LISTED, dir_fd=folder)

            def allowed(met: Met) -> bool:
                return enter(met) and self._enters(met.absolute)

            with closing(walk_folder(handle, shown, real.absolute, closed, allowed)) as entries:
                for met in entries:
                    self.judge.demand_going()
                    yield met

    def open_met(self, met: Met) -> OpenedFile:
        """Open the file that the walk has just yielded.

        Raises:
            Failure: as `open`.
        """
        self.judge.demand(met.absolute, "read")
        try:
            handle, facts = files.open_file(met.folder, met.name, met.path, self._links)
        except OSError as error:
            raise self._reported(error, Place(met.path, self._tree, ())) from None
        return OpenedFile(handle, facts, met.path, met.path, self.judge)


def _changed_meanwhile(path: str) -> Failure:
    return Failure(
        "io_error",
        f"{show(path)} was changed by somebody else meanwhile, so nothing was done",
        hint="look at it again",
        retryable=True,
    )


def _same_file(path: str) -> Failure:
    return Failure("exists", f"{show(path)} is another name of the same file already", hint="delete one of the two")
