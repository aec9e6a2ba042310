"""What a command sees of the workspace: as far as the rules let the tool go that runs it, and none of Albert's own.

Rules judge paths one by one, a command sees folders; so where rules speak of paths in the workspace, it is looked through once
before the command starts, and what they forbid isn't there for it. Git's hooks and configuration, and what shells read when they
start, stay as they are: what a command writes there would be run outside, by whoever uses the folder next.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.bubblewrap import open_beneath
from albert_tools.engine.sandbox.command.view import View, programs
from albert_tools.engine.workspace.guarded import GuardedWorkspace
from albert_tools.engine.workspace.path_syntax import ALBERT_FOLDER, GIT_FOLDER, kept_folder

#: Entries that are looked through for what rules forbid; a workspace with more is not shown to commands while there are such rules.
MAX_ENTRIES = 50_000
#: Folders of the workspace whose repositories are looked for, besides those on the way to where the command starts.
_MAX_FOLDERS = 500

#: What is run, or read as settings that name what is run, by a shell, git or an editor that is started there.
_START_UP = frozenset(
    (
        ".bash_login .bash_logout .bash_profile .bashrc .profile .zlogin .zprofile .zshenv .zshrc .envrc .exrc .gitconfig .inputrc "
        ".npmrc .nvimrc .pdbrc .pypirc .vimrc .nvim.lua .dir-locals.el .gdbinit .lldbinit .irbrc .pryrc .yarnrc .yarnrc.yml .cargo "
        ".vscode .idea .devcontainer .devcontainer.json"
    ).split()
)
#: What names commands in a git folder, or says where another lies that does.
_OF_GIT = ("config", "config.worktree", "commondir", "hooks")
_CONFIGURATION = ("config", "config.worktree")
#: Those of them that a folder needn't have, and that must not come to be there. Of the first an empty one means nothing, so it is
#: made, and can be kept; of the other it would mean that git finds nothing, so it is taken away.
_MADE_EMPTY, _TAKEN_AWAY = "config.worktree", "commondir"
_OF_WORKTREES = (_MADE_EMPTY, _TAKEN_AWAY)
#: What of git's configuration names further configuration, or a folder of hooks.
_NAMING = re.compile(r"^\s*(?:\[[^\]\n]*\]\s*)?(?:path|hookspath)\s*=\s*\"?([^\"\n]*)", re.IGNORECASE | re.MULTILINE)
#: Bytes of a configuration that are looked through for that; and how deep folders of submodules are.
_MAX_CONFIG, _MAX_DEPTH = 1024 * 1024, 6


#: What git itself may change that other commands may not: what its repository tracks, its configuration too, or all of its folder
#: (where one with a protected part takes no new files, and git has to make some).
Git = Literal["tree", "configuration", "all"]

_FREE: dict[Git, tuple[str, ...]] = {"tree": (), "configuration": _CONFIGURATION, "all": _OF_GIT}


@contextmanager
def exposed(workspace: Any, cwd: str, *, git: Git | None = None) -> Iterator[tuple[View, int]]:
    """What a command that starts in `cwd` sees, and the workspace's open folder.

    `workspace` is a `GuardedWorkspace`, or a `Workspace` where nothing is judged. With `git`, the command is git's own, for the
    repository that it starts in: it can change what that tracks, hooks included, or its configuration, too. Not others', which
    such a repository may have been made to harm.

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
        folders = _git_folders(root, start)
        for folder in folders:
            if _prepare(opened, root, folder):
                held.callback(_unmake, opened, root, folder)
        own = _own_folder(root, start) if git else None
        sealed = list(dict.fromkeys(_kept(root, start, folders, own, _FREE[git or "tree"])))
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


def _kept(root: str, start: str, folders: Iterable[str], own: str | None, free: Collection[str]) -> Iterator[str]:
    """What of the workspace stays as it is, as far as it exists; all but what is `free` in the folder that is git's `own`."""
    for name in _names(root):
        if name in _START_UP or kept_folder(name) == ALBERT_FOLDER:
            yield f"{root}/{name}"
    # The Python that judges these very calls, where it stands in the workspace.
    yield from (path for path in programs() if path != root and _within(path, root))
    for place in _places(root, start):
        git = f"{place}/{GIT_FOLDER}"
        if os.path.isfile(git) and not os.path.islink(git):
            # It says where the real one is.
            yield git
    for folder in folders:
        kept = [name for name in _OF_GIT if folder != own or name not in free]
        yield from (f"{folder}/{name}" for name in kept if os.path.lexists(f"{folder}/{name}"))
        for name in _names(f"{folder}/worktrees"):
            inner = f"{folder}/worktrees/{name}"
            yield from (f"{inner}/{part}" for part in _OF_WORKTREES if os.path.lexists(f"{inner}/{part}"))
        if folder != own:
            yield from _named(root, folder)


def _places(root: str, start: str) -> list[str]:
    """The folders whose repositories are kept as they are: from where the command starts up to the workspace, and those in it."""
    found = []
    while start.startswith(f"{root}/"):
        found.append(start)
        start = os.path.dirname(start)
    found.append(root)
    with suppress(OSError), os.scandir(root) as entries:
        found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:_MAX_FOLDERS]
    return list(dict.fromkeys(found))


def _git_folders(root: str, start: str) -> list[str]:
    """The folders in the workspace that git takes for those of these repositories, and of their submodules."""
    found: list[str] = []
    for place in _places(root, start):
        folder = _git_folder(root, place)
        if folder is not None and folder not in found:
            found.append(folder)
            found += (inner for inner in _of_submodules(f"{folder}/modules", _MAX_DEPTH) if inner not in found)
    return found


def _git_folder(root: str, place: str) -> str | None:
    """Where git keeps what belongs to the repository at `place`, through a link or a file that says so."""
    git = f"{place}/{GIT_FOLDER}"
    if os.path.isfile(git):
        with suppress(OSError, ValueError), open(git) as file:
            says = file.read(_MAX_CONFIG)
            if says.startswith("gitdir:"):
                git = os.path.join(place, says.removeprefix("gitdir:").strip())
    real = os.path.realpath(git)
    return real if _within(real, root) and os.path.isdir(real) else None


def _of_submodules(folder: str, depth: int) -> Iterator[str]:
    for name in _names(folder) if depth else ():
        inner = f"{folder}/{name}"
        if os.path.islink(inner) or not os.path.isdir(inner):
            continue
        if os.path.lexists(f"{inner}/config"):
            yield inner
            yield from _of_submodules(f"{inner}/modules", depth - 1)
        else:
            # A submodule's name may have slashes in it.
            yield from _of_submodules(inner, depth - 1)


def _named(root: str, folder: str) -> Iterator[str]:
    """What a configuration names in the workspace that is configuration, too, or holds hooks."""
    for config in _CONFIGURATION:
        with suppress(OSError), open(f"{folder}/{config}", encoding="utf-8", errors="replace") as file:
            for value in _NAMING.findall(file.read(_MAX_CONFIG)):
                # From the folder of the configuration; a folder of hooks from the top of the working tree.
                for base in (folder, os.path.dirname(folder)):
                    path = os.path.normpath(os.path.join(base, value.strip()))
                    if path != root and _within(path, root) and path == os.path.realpath(path) and os.path.exists(path):
                        yield path


def _own_folder(root: str, start: str) -> str | None:
    """The git folder of the repository that a command which starts there is about, if that is a plain one: one that a link or a
    file names may be anybody's, and what starts in a git folder may take that for its working tree."""
    while _within(start, root):
        git = f"{start}/{GIT_FOLDER}"
        if os.path.lexists(git):
            plain = os.path.isdir(git) and not os.path.islink(git) and GIT_FOLDER not in start.split("/")
            return git if plain else None
        start = os.path.dirname(start)
    return None


def _prepare(opened: int, root: str, folder: str) -> bool:
    """Make what a git folder hasn't got and what can be kept empty: a folder for hooks, a working tree's own configuration. Whether
    what can't be kept so isn't there, and so must not be there afterwards."""
    with suppress(OSError):
        handle = open_beneath(opened, folder[len(root) + 1 :])
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


def _unmake(opened: int, root: str, folder: str) -> None:
    """Take away what a command has put there so that git reads something else."""
    with suppress(OSError):
        handle = open_beneath(opened, folder[len(root) + 1 :])
        try:
            os.unlink(_TAKEN_AWAY, dir_fd=handle)
        finally:
            os.close(handle)


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
