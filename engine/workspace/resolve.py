"""Reaching what a path names: the folder whose files tools can reach, and what the owner's rules open beside it.

It is held as an open folder, not as a path, and every file in it is reached as (open folder, name): first the
folder that holds it (see `beneath`: no link is followed, nothing leads out), then the name in it, again
without following a link. Once the folder is open it can be renamed or replaced by a link as often as anyone
likes; what is read or written is in the folder that was judged.

Albert's own files, and git's, are told by identity, not by name: the folder is asked for the folders above it, so that no
spelling of a path hides where it is.

A folder beyond the workspace (`roots`) is reached in the same way, from the root of the file system down, each time anew: whatever
stands at its path then, no link on the way there is followed either, and every folder above is looked at for what is forbidden.

Three forms of a path: as it is *written*, relative to the working directory or absolute; *spelled*, the plain form that can be
written again; and *absolute*, which is what rules judge.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Self

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
    kept,
    outside,
    plain_parts,
    show,
)

#: Names of a folder that are looked through for the nearest one when a name is not found.
_NAMES_LOOKED_AT = 1_000


class Tree:
    """What files are reached beneath: the open workspace. `top` is its absolute path, `parts` the same in parts."""

    def __init__(self, top: str, fd: int = -1) -> None:
        self.top = top
        self.parts = tuple(p for p in top.split("/") if p)
        self.fd = fd

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """The top as a descriptor, and the folder up to which folders above are asked for."""
        yield self.fd, self.fd


class _Beyond(Tree):
    """A folder beyond the workspace. Of the folders above it all are asked for."""

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


class Reach:
    """The open workspace, and what is reached in it. Safe to use from any thread.

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
        self._tree = Tree(str(root), os.open(root, openat.FOLDER))
        self._beyond: list[tuple[tuple[openat.Parts, ...], Tree]] = []
        self._base: openat.Parts = ()
        self._view = False
        # What isn't beneath the top can't be met there, and needn't be looked at for each file.
        self._sealed_inside = tuple(place for place in self.sealed if place.is_relative_to(root))
        self._links = LinkIndex([*self.sealed, *self.secret])
        self.identity = openat.identity(os.fstat(self._tree.fd))

    def close(self) -> None:
        """Let go of the folder; further calls fail, also of what `at` and `reaching` gave. Of those it does nothing."""
        if self._view:
            return
        fd, self._tree.fd = self._tree.fd, -1
        if fd >= 0:
            os.close(fd)

    def at(self, folder: str) -> Self:
        """The same workspace, with `folder`, which must be in it, as the working directory: relative paths begin there.

        It holds as much as before: absolute paths are what they were, and ``..`` stays refused.

        Raises:
            Failure: as `listing`.
        """
        tree, parts = self._find(folder)
        if tree is not self._tree:
            raise outside(folder, "a working directory is in the workspace")
        with self._reporting(folder, tree, parts):
            real = openat.follow(tree.fd, parts)
            with self._folder(tree, real, folder):
                pass
        found = copy(self)
        found._base, found._view = real, True
        return found

    def reaching(self, roots: Iterable[Root]) -> Self:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    def _find(self, path: str) -> tuple[Tree, openat.Parts]:
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

    def _spelled(self, tree: Tree, parts: openat.Parts) -> str:
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
        return self._recorded(*self._find(path))

    def _recorded(self, tree: Tree, parts: openat.Parts) -> str:
        return "/".join((tree.top, *parts)) if tree is not self._tree else "/".join(parts) or "."

    def locate(self, path: str) -> str:
        """Where `path` really is, spelled: relative to the working directory (else absolute), links resolved, ``.`` for itself.

        The spelling for policy to judge and for records to keep. What it names exists, or did a moment ago.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `not_found`, `not_a_directory`, `io_error`.
        """
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts), tree.opened() as (top, _):
            return self._spelled(tree, openat.follow(top, parts))

    def spell(self, path: str) -> str:
        """The plain form of `path`, from its text alone; nothing needs to be there. It can be given to any method again.

        Raises:
            Failure: `invalid_arguments` or `permission_denied`.
        """
        return self._spelled(*self._find(path))

    @contextmanager
    def folder(self, path: str, *, follow: bool = True) -> Iterator[int]:
        """The folder at `path` as a descriptor, for a command to start in; closed at the end. `follow` as in `read`.

        Raises:
            Failure: as `listing`.
        """
        tree, parts = self._find(path)
        with self._reporting(path, tree, parts), tree.opened() as (top, ceiling):
            real = openat.follow(top, parts) if follow else parts
            opened = openat.open_folder(top, real)
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
    def _folder(self, tree: Tree, parts: openat.Parts, path: str, writing: bool = False) -> Iterator[int]:
        with tree.opened() as (top, ceiling):
            opened = openat.open_folder(top, parts)
            try:
                self._judge(tree, top, ceiling, opened, path, writing)
                yield opened
            finally:
                os.close(opened)

    def _judge(self, tree: Tree, top: int, ceiling: int, folder: int, path: str, writing: bool) -> None:
        """Refuse an open folder that is not beneath the top after all, or is in Albert's own or another place no tool reaches."""
        if not writing and tree is self._tree and not self._sealed_inside and openat.kernel_open() is not None:
            # The kernel has led us there from the top by real folders only, and nothing beneath the top is closed to readers.
            return
        above = openat.chain(ceiling, folder)
        if above is None:
            raise outside(path, "its folder is no longer in it")
        sealed = self._sealed_inside if tree is self._tree else self.sealed
        if any(i in above for i in identities(sealed)):
            raise albert_own(path, sealed=True)
        tops = [(self._tree.fd, self.identity)]
        if tree is not self._tree:
            own_top = openat.identity(os.fstat(top))
            if own_top not in above:
                raise outside(path, "its folder is no longer in it")
            if any(i in above for i in identities(self.secret)):
                raise forbidden(path, "no tool reaches what is there")
            tops.append((top, own_top))
        if writing:
            for name in (ALBERT_FOLDER, GIT_FOLDER):
                for place, identity in tops:
                    with suppress(OSError):
                        # Through a link too: what `.albert` leads to is Albert's, whatever it is called.
                        own = openat.identity(os.stat(name, dir_fd=place))
                        if own in above and own != identity:
                            raise kept(path, name)

    def _refuse_future_home(self, tree: Tree, parts: openat.Parts, path: str) -> None:
        """A sealed folder that doesn't exist yet has no identity; its name must not be taken either."""
        full = os.path.join(tree.top, *parts).casefold()
        for place in self.sealed:
            if f"{full}/".startswith(f"{place}/".casefold()) or f"{place}/".casefold().startswith(f"{full}/"):
                raise albert_own(path, sealed=True)

    def _through_link(self, path: str, tree: Tree, parts: openat.Parts) -> Failure:
        try:
            with tree.opened() as (top, _):
                real = self._spelled(tree, openat.follow(top, parts))
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
    def _reporting(self, path: str, tree: Tree, parts: openat.Parts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._reported(error, path, tree, parts) from None

    def _reported(self, error: OSError, path: str, tree: Tree, parts: openat.Parts) -> Failure:
        failure = failure_of(error, path)
        if failure.code == "not_found":
            failure.hint = self._hint(tree, parts)
        return failure

    def _hint(self, tree: Tree, parts: openat.Parts) -> str | None:
        """What to do about a path that isn't there: the nearest name, or that the folder is missing."""
        from albert_tools.engine.model.nearest_name import nearest

        if not parts:
            return None
        try:
            with tree.opened() as (top, _):
                above = openat.follow(top, parts[:-1])
            with self._folder(tree, above, "") as folder:
                names = files.names(folder, _NAMES_LOOKED_AT, files="." in parts[-1])
        except FileNotFoundError:
            return f"its folder {self._spelled(tree, parts[:-1])!r} does not exist: make_directory makes it"
        except (OSError, Failure):
            return None
        near = nearest(parts[-1], names)
        return f"did you mean {self._spelled(tree, (*parts[:-1], near))!r}?" if near else None


def identities(places: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """The identities of those places that exist."""
    for place in places:
        with suppress(OSError):
            yield openat.identity(os.stat(place))
