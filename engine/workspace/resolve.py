"""From a path, as a tool writes it, to an open folder and the names beneath it.

The workspace is held as an open folder, not as a path. Every file in it is reached as (open folder, name): first the folder that
holds it (`openat`: no link is followed, nothing leads out), then the name in it, again without following a link. Once the folder
is open, renaming it or replacing it by a link changes nothing: what is read or written is in the folder that was checked.

Albert's own folders, and git's, are known by identity, not by name. The open folder is asked for the folders above it, so no
spelling of a path hides where it is.

A folder beyond the workspace that the owner's rules open (an extra root) is reached in the same way, from the root of the file
system down, anew for each call.

A path has three forms: *written*, relative to the working directory or absolute; *spelled*, the plain form of the same, which
any method takes again; *absolute*, which rules judge.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import NamedTuple, Self

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.extra_roots import Root
from albert_tools.engine.workspace import files, openat
from albert_tools.engine.workspace.hard_links import LinkIndex
from albert_tools.engine.workspace.path_syntax import (
    ALBERT_FOLDER,
    GIT_FOLDER,
    albert_own,
    failure_of,
    forbidden,
    outside,
    plain_parts,
    protected,
    protected_folder,
    show,
)

#: Names of a folder that are compared for the nearest one when a name is not found.
_MAX_NAMES_COMPARED = 1_000


class Tree:
    """The open workspace. `top` is its absolute path, `parts` the same in parts."""

    def __init__(self, top: str, fd: int = -1) -> None:
        self.top = top
        self.parts = tuple(p for p in top.split("/") if p)
        self.fd = fd

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """The top as a descriptor, and the folder at which asking for the folders above ends."""
        yield self.fd, self.fd


class _ExtraRoot(Tree):
    """A folder beyond the workspace. All folders above it are asked for."""

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        slash = os.open("/", openat.FOLDER)
        try:
            try:
                top = openat.open_folder(slash, self.parts)
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


class Place(NamedTuple):
    """What a path names: `parts` beneath the top of `tree`. `path` is the path as it was written, for messages."""

    path: str
    tree: Tree
    parts: openat.Parts

    @property
    def absolute(self) -> str:
        """The absolute path."""
        return "/".join((self.tree.top, *self.parts))

    def at(self, parts: openat.Parts) -> Place:
        """Other parts beneath the same top."""
        return Place(self.path, self.tree, parts)


class Resolver:
    """The open workspace: finds where paths lead. Safe to use from any thread.

    `root` is its canonical path, for showing; `sealed` are folders that tools can neither read nor change (where Albert keeps its
    state); `secret` are files and folders that no tool reaches by any name.
    """

    def __init__(self, root: Path, sealed: Iterable[Path] = (), secret: Iterable[Path] = ()) -> None:
        """Open `root`, a canonical path.

        Raises:
            OSError: it is not a folder, or its last part is a symbolic link.
        """
        self.root = root
        self.sealed = tuple(sealed)
        self.secret = tuple(secret)
        self._tree = Tree(str(root), os.open(root, openat.FOLDER))
        self._extra_roots: list[tuple[tuple[openat.Parts, ...], Tree]] = []
        self._base: openat.Parts = ()
        self._view = False
        # A sealed folder that isn't beneath the top can't be met there, so it isn't compared for each file.
        self._sealed_inside = tuple(place for place in self.sealed if place.is_relative_to(root))
        self._links = LinkIndex([*self.sealed, *self.secret])
        self.identity = openat.identity(os.fstat(self._tree.fd))

    def close(self) -> None:
        """Close the folder. Further calls fail, also of views (`at`, `reaching`); closing a view does nothing."""
        if self._view:
            return
        fd, self._tree.fd = self._tree.fd, -1
        if fd >= 0:
            os.close(fd)

    def at(self, folder: str) -> Self:
        """A view with `folder`, which must be in the workspace, as the working directory: relative paths begin there.

        Absolute paths mean what they meant, and ``..`` stays refused.

        Raises:
            Failure: as `listing`.
        """
        place = self._find(folder)
        if place.tree is not self._tree:
            raise outside(folder, "a working directory is in the workspace")
        with self._reporting(place):
            real = place.at(openat.follow(place.tree.fd, place.parts))
            with self._folder(real):
                pass
        found = self._as_view()
        found._base = real.parts
        return found

    def reaching(self, roots: Iterable[Root]) -> Self:
        """A view with these folders beyond the workspace. The rules say what tools may do there."""
        found = self._as_view()
        found._extra_roots = []
        for root in roots:
            tree = _ExtraRoot(root.real)
            starts = (tree.parts, tuple(p for p in root.written.split("/") if p))
            found._extra_roots.append((starts, tree))
        # The innermost first: a path in it is in the outer one as well.
        found._extra_roots.sort(key=lambda pair: -len(pair[1].parts))
        return found

    def _as_view(self) -> Self:
        found = copy(self)
        found._view = True
        return found

    @property
    def extra_roots(self) -> tuple[str, ...]:
        """The real paths of the folders beyond the workspace."""
        return tuple(tree.top for _, tree in self._extra_roots)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    # Paths as text.

    def absolute(self, path: str) -> str:
        """The canonical absolute form of `path`, for rules to judge; from its text alone, links are not resolved.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._find(path).absolute

    def recorded(self, path: str) -> str:
        """`path` for the record: relative to the workspace, also with a working directory; else absolute.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._recorded(self._find(path))

    def spell(self, path: str) -> str:
        """The plain form of `path`, from its text alone; it need not exist. Any method takes it again.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._spelled(self._find(path))

    def locate(self, path: str) -> str:
        """The spelled path of what `path` leads to, without a link in it.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `not_found`, `not_a_directory`, `io_error`.
        """
        place = self._find(path)
        with self._reporting(place):
            return self._spelled(self._real(place))

    def _find(self, path: str) -> Place:
        """The place that a written path names, from its text alone.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        parts = plain_parts(path)
        if not path.startswith("/"):
            return Place(path, self._tree, self._base + parts)
        top = self._tree.parts
        if parts[: len(top)] == top:
            return Place(path, self._tree, parts[len(top) :])
        for starts, tree in self._extra_roots:
            for start in starts:
                if parts[: len(start)] == start:
                    return Place(path, tree, parts[len(start) :])
        also = ", nor under a folder that the owner's rules open" if self._extra_roots else ""
        raise outside(path, f"it is not under {self.root}{also}")

    def _spelled(self, place: Place) -> str:
        parts = place.parts
        if place.tree is not self._tree:
            whole, top = place.tree.parts + parts, self._tree.parts
            if whole[: len(top)] != top:
                return "/" + "/".join(whole)
            parts = whole[len(top) :]
        if parts[: len(self._base)] == self._base:
            return "/".join(parts[len(self._base) :]) or "."
        return "/".join((self._tree.top, *parts))

    def _recorded(self, place: Place) -> str:
        return "/".join(place.parts) or "." if place.tree is self._tree else place.absolute

    # Open folders.

    def _real(self, place: Place) -> Place:
        """Where a place leads, without a link in it."""
        with place.tree.opened() as (top, _):
            return place.at(openat.follow(top, place.parts))

    @contextmanager
    def _folder(self, place: Place, *, writing: bool = False) -> Iterator[int]:
        """The folder at a place without a link in it, as a descriptor."""
        with place.tree.opened() as (top, ceiling):
            opened = openat.open_folder(top, place.parts)
            try:
                self._check(place, top, ceiling, opened, writing=writing)
                yield opened
            finally:
                os.close(opened)

    def _check(self, place: Place, top: int, ceiling: int, folder: int, *, writing: bool = False) -> None:
        """Refuse an open folder that is not beneath the top after all, or that no tool may read (or change)."""
        in_workspace = place.tree is self._tree
        if not writing and in_workspace and not self._sealed_inside and openat.kernel_open() is not None:
            # The kernel came here from the top through real folders only, and nothing beneath the top is closed to readers.
            return
        above = openat.chain(ceiling, folder)
        if above is None:
            raise outside(place.path, "its folder is no longer in it")
        if any(i in above for i in identities(self._sealed_inside if in_workspace else self.sealed)):
            raise albert_own(place.path, sealed=True)
        tops = [(self._tree.fd, self.identity)]
        if not in_workspace:
            own_top = openat.identity(os.fstat(top))
            if own_top not in above:
                raise outside(place.path, "its folder is no longer in it")
            if any(i in above for i in identities(self.secret)):
                raise forbidden(place.path, "no tool can reach what is there")
            tops.append((top, own_top))
        if writing:
            for name in (ALBERT_FOLDER, GIT_FOLDER):
                for handle, identity in tops:
                    with suppress(OSError):
                        # Also through a link: what `.albert` leads to is Albert's, under any name.
                        own = openat.identity(os.stat(name, dir_fd=handle))
                        if own in above and own != identity:
                            raise protected(place.path, name)

    def _demand_unprotected(self, place: Place) -> None:
        """Refuse a change of what is Albert's or git's by its name."""
        for part in place.parts if place.tree is self._tree else place.tree.parts + place.parts:
            folder_name = protected_folder(part)
            if folder_name is not None:
                raise protected(place.path, folder_name)

    def _demand_unsealed(self, place: Place) -> None:
        """Refuse the name of a sealed folder: one that doesn't exist yet has no identity."""
        full = f"{place.absolute}/".casefold()
        for sealed in self.sealed:
            own = f"{sealed}/".casefold()
            if full.startswith(own) or own.startswith(full):
                raise albert_own(place.path, sealed=True)

    # Failures.

    def _through_link(self, place: Place) -> Failure:
        try:
            hint = f"write to {self._spelled(self._real(place))!r}, where it leads"
        except OSError as error:
            if error.errno == errno.EXDEV:
                return failure_of(error, place.path)
            hint = "write to a path without a link in it"
        return Failure(
            "permission_denied",
            f"{show(place.path)} goes through a symbolic link, and files are written at their real path only",
            rule="symbolic_link",
            hint=hint,
        )

    @contextmanager
    def _reporting(self, place: Place) -> Iterator[None]:
        """Turn errors of the operating system into failures."""
        try:
            yield
        except OSError as error:
            raise self._reported(error, place) from None

    def _reported(self, error: OSError, place: Place) -> Failure:
        failure = failure_of(error, place.path)
        if failure.code == "not_found":
            failure.hint = self._hint(place)
        return failure

    def _hint(self, place: Place) -> str | None:
        """What to do about a path that doesn't exist: the nearest name, or that its folder is missing."""
        from albert_tools.engine.model.nearest_name import nearest

        *above, name = place.parts or ("",)
        if not name:
            return None
        parent = place.at(tuple(above))
        try:
            with self._folder(self._real(parent)) as folder:
                names = files.names(folder, _MAX_NAMES_COMPARED, files="." in name)
        except FileNotFoundError:
            return f"its folder {self._spelled(parent)!r} does not exist: make_directory makes it"
        except (OSError, Failure):
            return None
        near = nearest(name, names)
        return f"did you mean {self._spelled(place.at((*above, near)))!r}?" if near else None


def open_parent(top: int, parts: openat.Parts, follow: bool) -> tuple[int, openat.Parts, os.stat_result | None]:
    """The folder that holds what `parts` lead to, as a descriptor; the parts without a link; and the facts of the name.

    Most paths have no link in them and are opened at once, with facts. If one is found and `follow`, links are resolved first,
    and the facts are None.

    Raises:
        OSError: as `openat.open_folder` and `openat.follow`.
    """
    folder = -1
    try:
        folder = openat.open_folder(top, parts[:-1])
        facts = os.stat(parts[-1] if parts else ".", dir_fd=folder, follow_symlinks=False)
        if not follow or not stat.S_ISLNK(facts.st_mode):
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


def identities(places: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """The identities of those places that exist."""
    for place in places:
        with suppress(OSError):
            yield openat.identity(os.stat(place))
