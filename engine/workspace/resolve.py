"""Resolves a path, as a tool writes it, to an open folder and a name in it.

The workspace is an open folder (a descriptor), not a path. Every file is reached in two steps. First the parent folder is opened
with `openat`: no link is followed, and no path leads out. Then the name in this folder is used, again without following a link.
After the folder was opened and checked, an attacker can rename it or replace it by a link without effect, because the descriptor
still refers to the checked folder.

Albert's folders and git's folders are recognized by identity (device and inode), not by name. The check goes up from the open
folder, so another spelling of the path doesn't avoid it.

An *extra root* is a folder outside the workspace that the owner's rules open. Its files are reached in the same way, from the
root of the file system down, and for each call anew.

A path has three forms. *Written*: relative to the working directory, or absolute. *Spelled*: the normal form of the written path,
which every method accepts. *Absolute*: the form that the rules check.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.folders import within
from albert_tools.engine.policy.extra_roots import Root
from albert_tools.engine.sandbox.command.view import own_python
from albert_tools.engine.workspace import files, openat
from albert_tools.engine.workspace.git_folders import in_git_folder
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

#: The most names in a folder that are compared with a missing name, to suggest the nearest one.
_MAX_NAMES_COMPARED = 1_000
#: The most places that are kept.
_MAX_PLACES = 1_000


class Tree:
    """The open workspace. `top` is its absolute path, `parts` are the parts of this path."""

    def __init__(self, top: str, fd: int = -1) -> None:
        self.top = top
        self.parts = tuple(p for p in top.split("/") if p)
        self.fd = fd

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """Descriptors of the top folder, and of the folder where the check of parent folders ends."""
        yield self.fd, self.fd


class _ExtraRoot(Tree):
    """A folder outside the workspace. The check of parent folders goes up to the root of the file system."""

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


class Place:
    """A file or folder at `parts` beneath the top of `tree`, with its absolute path. `path` is the path as the call wrote it, for
    messages. Immutable."""

    __slots__ = ("absolute", "parts", "path", "tree")

    def __init__(self, path: str, tree: Tree, parts: openat.Parts) -> None:
        self.path = path
        self.tree = tree
        self.parts = parts
        self.absolute = "/".join((tree.top, *parts))

    def at(self, parts: openat.Parts) -> Place:
        """Another place beneath the same top."""
        return self if parts == self.parts else Place(self.path, self.tree, parts)


class Resolver:
    """The open workspace: resolves paths. Safe to use from any thread.

    `root` is its canonical path, for messages. `sealed` are the folders where Albert stores its state; tools can neither read nor
    change them. `secret` are files and folders that no tool can reach under any name. `rules` is the file of an application's
    rules; tools can't change it.
    """

    def __init__(
        self, root: Path, sealed: Iterable[Path] = (), secret: Iterable[Path] = (), rules: Path | None = None
    ) -> None:
        """Open `root`, a canonical path.

        Raises:
            OSError: `root` is not a folder, or its last part is a symbolic link.
        """
        self.root = root
        self.sealed = tuple(sealed)
        self.secret = tuple(secret)
        self.rules = rules
        #: What tools can't change, or can't reach at all.
        self.own_places = (*self.sealed, *self.secret, *([] if rules is None else [rules]))
        self._tree = Tree(str(root), os.open(root, openat.FOLDER))
        self._extra_roots: list[tuple[tuple[openat.Parts, ...], Tree]] = []
        self._base: openat.Parts = ()
        #: The places of written paths. The stages of a call, the tool and the record all ask for the same ones.
        self._places: dict[str, Place] = {}
        self._view = False
        # A sealed folder outside `root` can't occur beneath the top, so it isn't compared for each file.
        self._sealed_inside = tuple(place for place in self.sealed if place.is_relative_to(root))
        self._is_local = openat.is_local(self._tree.fd)
        # Some file systems ignore case.
        self._python = [path.casefold() for path in own_python(str(root))]
        self._links = LinkIndex(self.own_places)
        self.identity = openat.identity(os.fstat(self._tree.fd))

    def close(self) -> None:
        """Close the folder. Afterwards all calls fail, also those of views (`at`, `reaching`). Closing a view has no effect."""
        if self._view:
            return
        fd, self._tree.fd = self._tree.fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def start(self) -> str:
        """The folder of the workspace in which relative paths start, see `at`. Empty for the workspace itself."""
        return "/".join(self._base)

    def at(self, folder: str) -> Self:
        """A view with `folder` as its working directory. Relative paths start there; `folder` must be in the workspace.

        Absolute paths keep their meaning, and ``..`` is still refused.

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
        view = self._as_view()
        view._base, view._places = real.parts, {}
        return view

    def reaching(self, roots: Iterable[Root]) -> Self:
        """A view that also contains these folders outside the workspace. The rules decide what tools may do there."""
        view = self._as_view()
        view._extra_roots, view._places = [], {}
        for root in roots:
            tree = _ExtraRoot(root.real)
            starts = (tree.parts, tuple(p for p in root.written.split("/") if p))
            view._extra_roots.append((starts, tree))
        # Innermost first, because a path in the inner folder is in the outer folder too.
        view._extra_roots.sort(key=lambda pair: -len(pair[1].parts))
        return view

    def _as_view(self) -> Self:
        # Each call has a view, and `copy.copy` takes twice as long.
        view = object.__new__(type(self))
        view.__dict__ = {**self.__dict__, "_view": True}
        return view

    @property
    def extra_roots(self) -> tuple[str, ...]:
        """The real paths of the extra roots."""
        return tuple(tree.top for _, tree in self._extra_roots)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    # Paths as text.

    def absolute(self, path: str, changing: bool = False) -> str:
        """The canonical absolute form of `path`, for the rules. It is computed from the text alone; links are not resolved.
        If it is for `changing` the file, its name must not be one of git's or Albert's own.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        place = self._find(path)
        if changing:
            self._demand_unprotected_name(place)
        return place.absolute

    def recorded(self, path: str) -> str:
        """`path` as it is written to records: relative to the workspace (not to the working directory), or absolute if outside.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._recorded(self._find(path))

    def spell(self, path: str) -> str:
        """The normal form of `path`, computed from its text alone. The file need not exist. Every method accepts this form.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._spelled(self._find(path))

    def locate(self, path: str) -> str:
        """The normal form of `path` after resolving its links.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `not_found`, `not_a_directory`, `io_error`.
        """
        place = self._find(path)
        with self._reporting(place):
            return self._spelled(self._real(place))

    def _find(self, path: str) -> Place:
        """The place of a written path, computed from its text alone.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        place = self._places.get(path)
        if place is None:
            if len(self._places) >= _MAX_PLACES:
                self._places.clear()
            place = self._places[path] = self._found(path)
        return place

    def _found(self, path: str) -> Place:
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
        """The place after resolving its links."""
        with place.tree.opened() as (top, _):
            return place.at(openat.follow(top, place.parts))

    @contextmanager
    def _folder(self, place: Place, *, writing: bool = False) -> Iterator[int]:
        """A descriptor of the folder at a place whose path contains no link."""
        with place.tree.opened() as (top, ceiling):
            opened = openat.open_folder(top, place.parts)
            try:
                self._check(place, top, ceiling, opened, writing=writing)
                yield opened
            finally:
                os.close(opened)

    def _check(self, place: Place, top: int, ceiling: int, folder: int, *, writing: bool = False) -> None:
        """Refuse an open folder that has left the top meanwhile, or that tools may not read (with `writing`: not change)."""
        in_workspace = place.tree is self._tree
        if not writing and in_workspace and not self._sealed_inside and openat.kernel_open() is not None:
            # The kernel went from the top through real folders only, and every folder beneath the top is readable.
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
                        # This follows a link: the target of `.albert` belongs to Albert under every name.
                        own = openat.identity(os.stat(name, dir_fd=handle))
                        if own in above and own != identity:
                            raise protected(place.path, name)

    def _demand_unprotected(self, place: Place) -> None:
        """Refuse a change of a path with a part that is named like Albert's or git's folder, or inside of a git folder or of the
        Python that runs this service."""
        self._demand_unprotected_name(place)
        if in_git_folder(place.absolute):
            raise protected(place.path, GIT_FOLDER)
        if within(place.absolute.casefold(), *self._python):
            raise albert_own(place.path, sealed=False)

    def _demand_unprotected_name(self, place: Place) -> None:
        for part in place.parts if place.tree is self._tree else place.tree.parts + place.parts:
            folder_name = protected_folder(part)
            if folder_name is not None:
                raise protected(place.path, folder_name)

    def _demand_unsealed(self, place: Place) -> None:
        """Refuse the path of a sealed folder, or of the rules. This check uses the path, because what doesn't exist yet has no
        identity."""
        full = f"{place.absolute}/".casefold()
        for own in filter(None, (*self.sealed, self.rules)):
            folded = f"{own}/".casefold()
            if full.startswith(folded) or folded.startswith(full):
                raise albert_own(place.path, sealed=own != self.rules)

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
        """Convert errors of the operating system to failures."""
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
        """The hint for a path that doesn't exist: where a link leads, the nearest name, or the missing folder."""
        from albert_tools.engine.model.nearest_name import nearest

        *above, name = place.parts or ("",)
        if not name:
            return None
        parent = place.at(tuple(above))
        try:
            with self._folder(self._real(parent)) as folder:
                with suppress(OSError):
                    return f"it is a link to {show(files.spoken(os.readlink(name, dir_fd=folder)))}, where there is nothing"
                names = files.names(folder, _MAX_NAMES_COMPARED, files="." in name)
        except FileNotFoundError:
            return f"its folder {self._spelled(parent)!r} does not exist: make_directory makes it"
        except (OSError, Failure):
            return None
        near = nearest(name, names)
        return f"did you mean {self._spelled(place.at((*above, near)))!r}?" if near else None


def open_parent(
    top: int, parts: openat.Parts, follow: bool, *, at_once: bool = False
) -> tuple[int, openat.Parts, os.stat_result | None]:
    """Returns a descriptor of the parent folder, the parts after resolving links, and the facts of the last name.

    Most paths contain no link and are opened at once, with facts. If the path contains a link and `follow` is true, the links are
    resolved first, and the returned facts are None.

    Raises:
        OSError: as `openat.open_folder` and `openat.follow`.
    """
    folder = -1
    try:
        folder = openat.open_folder(top, parts[:-1], at_once=at_once)
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
    """The identities of the places that exist."""
    for place in places:
        with suppress(OSError):
            yield openat.identity(os.stat(place))
