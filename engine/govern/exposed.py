"""What a command sees of the workspace: as far as the rules let the tool go that runs it, and none of Albert's own.

Rules judge paths one by one, a command sees folders; so where rules speak of paths in the workspace, it is looked through once
before the command starts, and what they forbid isn't there for it. Git's hooks and configuration, and what shells read when they
start, stay as they are: what a command writes there would be run outside, by whoever uses the folder next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from albert_tools.engine.govern.guarded import GuardedWorkspace
from albert_tools.engine.govern.pathrules import ALBERT_FOLDER, GIT_FOLDER, kept_folder
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.view import View

#: What git may change of its own repository besides objects and references: nothing, its settings, or everything (where a folder
#: with a protected part takes no new files, and git has to make some).
Git = Literal["", "settings", "all"]

#: Entries that are looked through for what rules forbid; a workspace with more is not shown to commands while there are such rules.
MAX_ENTRIES = 50_000
#: Folders of the workspace whose repositories are looked for, besides those on the way to where the command starts.
_MAX_FOLDERS = 500

#: What is run, or read as settings that name what is run, by a shell, git or an editor that is started there.
_START_UP = frozenset(
    (
        ".bash_login .bash_logout .bash_profile .bashrc .profile .zlogin .zprofile .zshenv .zshrc .envrc .exrc .gitconfig .inputrc "
        ".npmrc .nvimrc .pdbrc .pypirc .vimrc"
    ).split()
)
#: What names commands in a git folder.
_OF_GIT = ("config", "config.worktree", "hooks")


@contextmanager
def exposed(workspace: Any, cwd: str, *, git: Git = "") -> Iterator[tuple[View, int]]:
    """What a command that starts in `cwd` sees, and the workspace's open folder.

    `workspace` is a `GuardedWorkspace`, or a `Workspace` where nothing is judged. `git` is for git itself.

    Raises:
        Failure: `not_found`, `not_a_directory`, `permission_denied`, `too_large`, `io_error`.
    """
    root = str(workspace.root)
    guarded = workspace if isinstance(workspace, GuardedWorkspace) else None
    with ExitStack() as held:
        opened = held.enter_context(guarded.at_root() if guarded else workspace.folder(root))
        start = workspace.absolute(workspace.locate(cwd or "."))
        if cwd:
            held.enter_context(workspace.folder(cwd))
        hidden = [str(path) for path in workspace.sealed if str(path).startswith(f"{root}/")]
        sealed = [path for path in _kept(root, start) if not _gits(path, git, start)]
        readable: list[str] = []
        shown: list[str] | None = None
        if guarded is not None:
            if guarded.selective:
                shown, denied = _judged(guarded, root)
                hidden += denied
            readable = [path for path in guarded.beyond if _wholly(guarded, path)]
        if shown is not None:
            # What isn't there needs no protection, and must not be brought in by it.
            hidden, sealed = ([p for p in paths if any(_within(p, top) for top in shown)] for paths in (hidden, sealed))
        if shown is not None and start not in shown and not any(start.startswith(f"{path}/") for path in shown):
            start = root
        yield (
            View(root, start, None if shown is None else tuple(shown), tuple(hidden), tuple(sealed), tuple(readable)),
            opened,
        )


def _gits(path: str, git: Git, start: str) -> bool:
    """Whether git itself may change what is otherwise kept as it is."""
    repository, found, below = path.partition(f"/{GIT_FOLDER}/")
    if not git or not found or not _within(start, repository):
        return False
    # Of its own repository only: another one's may be named by what its own settings say.
    own = not any(os.path.lexists(f"{folder}/{GIT_FOLDER}") for folder in _between(start, repository))
    return own and (git == "all" or below != "hooks")


def _between(start: str, top: str) -> Iterator[str]:
    """The folders from `start` up to `top`, that one not."""
    while start != top:
        yield start
        start = os.path.dirname(start)


def _kept(root: str, start: str) -> Iterator[str]:
    """What of the workspace stays as it is, as far as it exists."""
    for name in _names(root):
        if name in _START_UP or kept_folder(name) == ALBERT_FOLDER:
            yield f"{root}/{name}"
    folders = [root]
    while start.startswith(f"{root}/"):
        folders.append(start)
        start = os.path.dirname(start)
    with suppress(OSError), os.scandir(root) as entries:
        folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:_MAX_FOLDERS]
    for folder in dict.fromkeys(folders):
        yield from _of_repository(f"{folder}/{GIT_FOLDER}")


def _of_repository(git: str) -> Iterator[str]:
    if os.path.islink(git) or not os.path.exists(git):
        return
    if not os.path.isdir(git):
        # It says where the real one is.
        yield git
        return
    yield from (f"{git}/{name}" for name in _OF_GIT if os.path.lexists(f"{git}/{name}"))
    for name in _names(f"{git}/modules"):
        yield from _of_repository(f"{git}/modules/{name}")


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


def _judged(workspace: GuardedWorkspace, root: str) -> tuple[list[str] | None, list[str]]:
    """What of the workspace the rules show, the outermost of it (None: the workspace itself), and what of that they hide.

    Raises:
        Failure: `too_large`.
    """
    whole = workspace.allows(root)
    shown: list[str] = []
    hidden: list[str] = []
    left = MAX_ENTRIES
    ahead = [(root, whole)]
    while ahead:
        folder, seen = ahead.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        if left < 0:
            raise Failure(
                "too_large",
                f"rules about paths hold here, and the workspace has more than the {MAX_ENTRIES:,} entries that are looked"
                " through for them before a command is run",
                hint="run the command in a smaller workspace, or use other tools",
                rule="exposed",
            )
        for entry in entries:
            allowed = workspace.allows(entry.path)
            if seen and not allowed:
                hidden.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                if allowed and not seen:
                    shown.append(entry.path)
                ahead.append((entry.path, seen or allowed))
            elif allowed and not seen and not entry.is_symlink():
                shown.append(entry.path)
    return None if whole else shown, hidden


def _wholly(workspace: GuardedWorkspace, top: str) -> bool:
    """Whether the rules let a folder beyond the workspace be read, and all that is in it."""
    own = [str(path) for path in (*workspace.sealed, *workspace.secret)]
    if not workspace.allows(top) or any(_within(path, top) or _within(top, path) for path in own):
        return False
    left = MAX_ENTRIES
    for folder, folders, files in os.walk(top):
        left -= len(folders) + len(files)
        if left < 0 or not all(workspace.allows(f"{folder}/{name}") for name in (*folders, *files)):
            return False
    return True


def _within(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top.rstrip('/')}/")
