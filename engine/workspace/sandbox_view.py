"""Computes which files a command sees in the workspace: the files that the rules allow, without Albert's own files.

Rules decide about single paths, but a command sees whole folders. So if rules name paths in the workspace, the workspace is
searched once before the command starts, and the forbidden paths are hidden. Folders in which all paths are alike are left out.

The command also can't change git's hooks and configuration and the start-up files of shells. Otherwise, the next person who works
in the folder would execute the changed files outside the sandbox.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Literal

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.folders import around, outermost, within
from albert_tools.engine.model.marked_paths import START_UP
from albert_tools.engine.policy.writable_paths import writable_in_workspace
from albert_tools.engine.sandbox.command.bubblewrap import open_beneath
from albert_tools.engine.sandbox.command.view import View, own_python
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.git_folders import git_folder_of, is_git_folder
from albert_tools.engine.workspace.path_syntax import ALBERT_FOLDER, GIT_FOLDER, protected_folder
from albert_tools.engine.workspace.workspace import Workspace

#: The most entries that are searched for forbidden paths. If the rules name paths, commands can't run in a larger workspace.
MAX_ENTRIES = 50_000
#: The most subfolders of the workspace that are checked for repositories. The folders above the working directory are checked too.
_MAX_FOLDERS = 500

#: Files and folders in a git folder that name commands, or that name another git folder.
_OF_GIT = ("config", "config.worktree", "commondir", "hooks")
_CONFIGURATION = ("config", "config.worktree")
#: Two of these files are often missing, and a command must not create them. An empty `config.worktree` has no effect, so it is
#: created and protected. An empty `commondir` would break the repository, so it is deleted after the command.
_MADE_EMPTY, _TAKEN_AWAY = "config.worktree", "commondir"
_OF_WORKTREES = (_MADE_EMPTY, _TAKEN_AWAY)
#: A line of git's configuration that names another configuration file or a folder of hooks.
_NAMING = re.compile(r"^\s*(?:\[[^\]\n]*\]\s*)?(?:path|hookspath)\s*=\s*\"?([^\"\n]*)", re.IGNORECASE | re.MULTILINE)
#: The most bytes of a configuration that are searched, and the greatest depth of nested submodules.
_MAX_CONFIG, _MAX_DEPTH = 1024 * 1024, 6


#: What git itself may change, and other commands may not. ``tree``: the files that its repository tracks. ``configuration``: also
#: its configuration. ``all``: its whole folder, for a sandbox that can't create files in a folder with a protected part.
Git = Literal["tree", "configuration", "all"]

_FREE: dict[Git, tuple[str, ...]] = {"tree": (), "configuration": _CONFIGURATION, "all": _OF_GIT}


@contextmanager
def command_view(
    workspace: Workspace,
    cwd: str,
    *,
    git: Git | None = None,
    hide: Sequence[str] = (),
    only_git: bool = False,
) -> Iterator[tuple[View, int]]:
    """Yields the view for a command that starts in `cwd`, and a descriptor of the workspace's folder.

    `git` is given if the command is git itself. Then the command can change the tracked files of its repository, including hooks,
    and maybe its configuration. Other repositories stay protected, because the present repository may have been manipulated to
    harm them. `hide` are further hidden paths. With `only_git`, only git's own programs run. They can change git's folders although
    no rule lists them as writable.

    Raises:
        Failure: `not_found`, `not_a_directory`, `permission_denied`, `too_large`, `io_error`, `governance_unavailable`.
    """
    root = str(workspace.root)
    with ExitStack() as stack:
        handle = stack.enter_context(workspace.at_root())
        start = workspace.absolute(workspace.locate(cwd or "."))
        if cwd:
            stack.enter_context(workspace.folder(cwd))
        hidden = [str(path) for path in workspace.sealed if str(path).startswith(f"{root}/")]
        for path in hidden:
            # Only what exists can be hidden. In a missing folder, a command could write the owner's rules.
            if not _exists_or_made(handle, root, f"{path}/", 0o700):
                message = f"Albert's own folder {os.path.relpath(path, root)!r} can't be made, so no command can run"
                raise Failure("governance_unavailable", message, hint="the owner can make it, as a plain folder")
        # They may be a file of the project, so they are shown: git must not take it for a changed one.
        rules = [str(path) for path in [workspace.rules] if path is not None and path.is_relative_to(root)]
        if rules and not os.path.lexists(rules[0]):
            # Only what exists can be protected. A command could write the rules of the next call.
            message = f"the rules {os.path.relpath(rules[0], root)!r} are missing, so no command can run"
            raise Failure("governance_unavailable", message, hint="the owner can bring them back")
        folders = _git_folders(root, start)
        for folder in folders:
            if _prepare(handle, root, folder):
                stack.callback(_clean_up, handle, root, folder)
        own = _own_folder(root, start) if git else None
        sealed = list(dict.fromkeys((*rules, *_protected(root, start, folders, own, _FREE[git or "tree"]))))
        shown: list[str] | None = None
        if workspace.judge.selective:
            shown, denied = shown_and_hidden(workspace.judge, root)
            hidden += denied
        hidden = outermost([*hidden, *hide])
        # There can be thousands of hidden paths, so each other path is looked up by the folders around it.
        invisible = frozenset(hidden)
        sealed = [path for path in sealed if invisible.isdisjoint((path, *around(path)))]
        readable = tuple(path for path in workspace.extra_roots if _wholly_readable(workspace, path))
        if shown is not None:
            # Hidden paths need no protection, and protecting them would make them visible.
            hidden, sealed = ([p for p in paths if within(p, *shown)] for paths in (hidden, sealed))
            if not within(start, *shown):
                start = root
        tops = None if shown is None else tuple(shown)
        own_folders = filter(is_git_folder, folders if only_git else ())
        writable = writable_parts(workspace.judge, root, shown, hidden, sealed, own_folders)
        changeable: tuple[str, ...] | None = None
        if writable is not None:
            changeable = tuple(path.rstrip("/") for path in writable if _exists_or_made(handle, root, path))
            # All else is read-only anyway.
            sealed = [path for path in sealed if within(path, *changeable)]
        yield View(root, start, tops, tuple(hidden), tuple(sealed), readable, changeable), handle


def writable_parts(
    judge: CallJudge,
    root: str,
    shown: Sequence[str] | None,
    hidden: Iterable[str],
    sealed: Iterable[str] = (),
    git_folders: Iterable[str] = (),
) -> list[str] | None:
    """The only paths that a command may change, outermost ones only; None if no rule lists them.

    A path that is a link, or that leads through one, is left out. As in `CallJudge.writable`, a folder can end with a slash.
    """
    listed = judge.writable()
    if listed is None:
        return None
    closed = (*hidden, *sealed)
    paths: dict[str, str] = {}
    for path in sorted(writable_in_workspace([[root] if shown is None else shown, [*listed, *git_folders]], root)):
        plain = path.rstrip("/")
        if os.path.realpath(plain) == plain and judge.allows(plain) and not within(plain, *closed):
            paths[plain] = path
    return [path for plain, path in paths.items() if not within(os.path.dirname(plain), *paths)]


def _exists_or_made(workspace: int, root: str, path: str, mode: int = 0o777) -> bool:
    """Whether a path exists. A missing folder is made: a sandbox gives rights only to what exists, and hides only that."""
    here = os.dup(workspace)
    try:
        for part in path[len(root) :].strip("/").split("/") if path.rstrip("/") != root else ():
            if path.endswith("/"):
                with suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=here)
            inner = open_beneath(here, part)
            os.close(here)
            here = inner
        return True
    except OSError:
        return False
    finally:
        os.close(here)


def _protected(root: str, start: str, folders: Iterable[str], own: str | None, free: Collection[str]) -> Iterator[str]:
    """The existing files and folders that the command can't change, except the `free` ones in git's `own` folder."""
    for name in _names(root):
        if name in START_UP or protected_folder(name) == ALBERT_FOLDER:
            yield f"{root}/{name}"
    yield from own_python(root)
    for place in _places(root, start):
        git = f"{place}/{GIT_FOLDER}"
        if os.path.isfile(git) and not os.path.islink(git):
            # This file names the real git folder.
            yield git
    for folder in folders:
        names = [name for name in _OF_GIT if folder != own or name not in free]
        yield from (f"{folder}/{name}" for name in names if os.path.lexists(f"{folder}/{name}"))
        for name in _names(f"{folder}/worktrees"):
            inner = f"{folder}/worktrees/{name}"
            yield from (f"{inner}/{part}" for part in _OF_WORKTREES if os.path.lexists(f"{inner}/{part}"))
        if folder != own:
            yield from _configured(root, folder)


def _places(root: str, start: str) -> list[str]:
    """The folders whose repositories are protected: `start` and its parents up to the workspace, and the workspace's subfolders."""
    places = []
    while start.startswith(f"{root}/"):
        places.append(start)
        start = os.path.dirname(start)
    places.append(root)
    with suppress(OSError), os.scandir(root) as entries:
        places += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:_MAX_FOLDERS]
    return list(dict.fromkeys(places))


def _git_folders(root: str, start: str) -> list[str]:
    """The git folders of these repositories and of their submodules, if they are in the workspace."""
    git_folders: list[str] = []
    for place in _places(root, start):
        folder = git_folder_of(root, place)
        if folder is not None and folder not in git_folders:
            git_folders.append(folder)
            git_folders += (inner for inner in _submodules(f"{folder}/modules", _MAX_DEPTH) if inner not in git_folders)
    return git_folders


def _submodules(folder: str, depth: int) -> Iterator[str]:
    for name in _names(folder) if depth else ():
        inner = f"{folder}/{name}"
        if os.path.islink(inner) or not os.path.isdir(inner):
            continue
        if os.path.lexists(f"{inner}/config"):
            yield inner
            yield from _submodules(f"{inner}/modules", depth - 1)
        else:
            # A submodule's name may have slashes in it.
            yield from _submodules(inner, depth - 1)


def _configured(root: str, folder: str) -> Iterator[str]:
    """The files and folders in the workspace that the configuration of a git folder names as configuration or hooks."""
    for config in _CONFIGURATION:
        with suppress(OSError), open(f"{folder}/{config}", encoding="utf-8", errors="replace") as file:
            for value in _NAMING.findall(file.read(_MAX_CONFIG)):
                # A path is relative to the folder of the configuration; a hooks path is relative to the top of the working tree.
                for base in (folder, os.path.dirname(folder)):
                    path = os.path.normpath(os.path.join(base, value.strip()))
                    if path != root and within(path, root) and path == os.path.realpath(path) and os.path.exists(path):
                        yield path


def _own_folder(root: str, start: str) -> str | None:
    """The git folder of the repository that a command starts in, if it is a plain folder.

    If a link or a file names the git folder, it may belong to another user. If the command starts inside a git folder, git may
    treat that folder as its working tree. Returns None in both cases.
    """
    while within(start, root):
        git = f"{start}/{GIT_FOLDER}"
        if os.path.lexists(git):
            plain = os.path.isdir(git) and not os.path.islink(git) and GIT_FOLDER not in start.split("/")
            return git if plain else None
        start = os.path.dirname(start)
    return None


def _prepare(workspace: int, root: str, folder: str) -> bool:
    """Create the protected parts that a git folder lacks and that may be empty: the hooks, and the configuration of each worktree.

    Returns whether `commondir` is missing. It must not be empty, so it can't be created here; `_clean_up` deletes it after the
    command.
    """
    with suppress(OSError):
        handle = open_beneath(workspace, folder[len(root) + 1 :])
        try:
            os.stat("config", dir_fd=handle, follow_symlinks=False)
            with suppress(FileExistsError):
                os.mkdir("hooks", dir_fd=handle)
            for name in ("", *(f"worktrees/{name}/" for name in _names(f"{folder}/worktrees"))):
                _make_empty(handle, f"{name}{_MADE_EMPTY}")
        finally:
            os.close(handle)
    return not os.path.lexists(f"{folder}/{_TAKEN_AWAY}")


def _make_empty(folder: int, path: str) -> None:
    inner, _, name = path.rpartition("/")
    with suppress(OSError):
        handle = open_beneath(folder, inner) if inner else os.dup(folder)
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=handle))
        finally:
            os.close(handle)


def _clean_up(workspace: int, root: str, folder: str) -> None:
    """Delete a `commondir` that the command added to make git read another folder."""
    with suppress(OSError):
        handle = open_beneath(workspace, folder[len(root) + 1 :])
        try:
            os.unlink(_TAKEN_AWAY, dir_fd=handle)
        finally:
            os.close(handle)


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


def shown_and_hidden(judge: CallJudge, root: str) -> tuple[list[str] | None, list[str]]:
    """The outermost paths that the rules show (None: the whole workspace), and the paths in them that the rules hide.

    Nothing is remembered between two commands, because no time stamp tells certainly that a folder is unchanged. Folders are not
    searched if the rules can't tell apart what is below them.

    Raises:
        Failure: `too_large`.
    """
    whole = judge.allows(root)
    shown: list[str] = []
    hidden: list[str] = []
    left = MAX_ENTRIES
    ahead = [(root, whole)]
    while ahead:
        folder, seen = ahead.pop()
        if not judge.divides(folder):
            continue
        try:
            with os.scandir(folder) as listing:
                entries = list(islice(listing, left + 1))
        except OSError as error:
            if isinstance(error, PermissionError):
                # The command could make the folder readable.
                hidden.append(folder)
            continue
        left -= len(entries)
        if left < 0:
            raise Failure(
                "too_large",
                f"the workspace has more than {MAX_ENTRIES:,} entries, too many to hide what the rules forbid from a command",
                hint="run the command in a smaller workspace, or use other tools",
                rule="exposed",
            )
        unreadable = judge.unreadable(folder, [entry.name for entry in entries])
        for entry in entries:
            if entry.name in unreadable:
                if seen:
                    hidden.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    ahead.append((entry.path, False))
            elif entry.is_dir(follow_symlinks=False):
                if not seen:
                    shown.append(entry.path)
                ahead.append((entry.path, True))
            elif not seen and not entry.is_symlink():
                shown.append(entry.path)
    return None if whole else sorted(shown), sorted(hidden)


def _wholly_readable(workspace: Workspace, top: str) -> bool:
    """Whether the rules allow reading a folder outside the workspace with its whole content."""
    judge = workspace.judge
    own = [str(path) for path in workspace.own_places]
    if not judge.allows(top) or any(within(path, top) or within(top, path) for path in own):
        return False
    left = MAX_ENTRIES
    for folder, folders, files in os.walk(top) if judge.divides(top) else ():
        left -= len(folders) + len(files)
        if left < 0 or judge.unreadable(folder, [*folders, *files]):
            return False
    return True
