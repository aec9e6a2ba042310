"""Finds the git folders in a workspace, and the paths inside of one.

A git folder is known by its name, ``.git``, or by its structure: bare repositories, those of `git init --separate-git-dir` and the
parts of working trees and submodules have other names, and git opens them too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.folders import within
from albert_tools.engine.workspace.path_syntax import GIT_FOLDER, protected_folder, show

#: The parts of a git folder that contain neither names nor content of tracked files.
_PLAIN = frozenset("HEAD FETCH_HEAD MERGE_HEAD ORIG_HEAD config description hooks info logs packed-refs refs".split())
#: The folders that git, its large files and its bridges make in a git folder. No working tree is inside of them, whatever code of
#: the project has put there.
_OWN = frozenset(
    (
        "annex branches common hooks info lfs logs lost-found modules notes_merge_worktree objects rebase-apply rebase-merge refs "
        "reftable remotes rr-cache sequencer svn worktrees"
    ).split()
)
#: The names in a folder of objects, and the objects in its folder ``pack``.
_OF_STORE, _PACK = re.compile("[0-9a-f]{2}|pack|info"), re.compile(r"pack-[0-9a-f]+\.pack")
#: The most entries that are searched for git folders, also in folders that the rules hide.
_MAX_SEARCHED = 500_000
#: The most levels of folders that are searched. No project has so many, and with some more a command does not even begin.
_MAX_DEPTH = 500
#: The most bytes of a file that names git folders.
_MAX_NAMING = 4096


class Repositories(NamedTuple):
    """The repositories in a workspace: the top folders of their working trees, also of those that only a git folder names, and all
    git folders."""

    tops: list[str]
    git_folders: list[str]


def is_git_folder(folder: str) -> bool:
    """Whether git takes a folder for a repository, or for the part of one that belongs to one working tree."""
    if not os.path.lexists(f"{folder}/HEAD"):
        return False
    return os.path.lexists(f"{folder}/commondir") or _has(folder, "objects", "refs")


def _has(folder: str, *names: str) -> bool:
    return all(os.path.lexists(f"{folder}/{name}") for name in names)


def _has_objects(folder: str) -> bool:
    """Whether a folder has the objects of a repository, also of one that only a `commondir` names. Code can have folders of these
    names, with other things in them."""
    with suppress(OSError):
        return _has(folder, "refs") and any(map(_OF_STORE.fullmatch, os.listdir(f"{folder}/objects")))
    # Nobody knows what is in a folder that can't be listed.
    return _has(folder, "objects", "refs")


def _is_store(folder: str) -> bool:
    """Whether a folder has objects and nothing else, so that repositories can borrow them."""
    if not os.path.isdir(f"{folder}/pack"):
        return False
    with suppress(OSError):
        names = {*os.listdir(folder)}
        has_objects = names > {"pack", "info"} or any(map(_PACK.fullmatch, os.listdir(f"{folder}/pack")))
        return has_objects and all(map(_OF_STORE.fullmatch, names))
    return True


def objects_in(store: str) -> list[str]:
    """The folders with the objects of a borrowed store. Any folder can be named as one, also the workspace, so its other files are
    left out."""
    if _is_store(store):
        return [store]
    with suppress(OSError):
        return [f"{store}/{name}" for name in os.listdir(store) if name != "info" and _OF_STORE.fullmatch(name)]
    return [store]


def in_git_folder(path: str, top: str = "") -> bool:
    """Whether an absolute path leads into a git folder. If it leads into the folder `top`, the folders above are not looked at."""
    return next(_inner_parts(path, top), None) is not None


def git_content(path: str) -> bool:
    """Whether an absolute path leads to a part of a git folder that may contain names or content of tracked files."""
    return any(parts[0] not in _PLAIN for parts in _inner_parts(path))


def _inner_parts(path: str, top: str = "") -> Iterator[list[str]]:
    """The parts of a path behind each git folder in it, from the folder `top` on."""
    parts = path.split("/")
    first = top.count("/") if path.startswith(f"{top}/") else 1
    for n in range(max(first, 1), len(parts) - 1):
        folder, inner = "/".join(parts[: n + 1]), parts[n + 1 :]
        is_known = protected_folder(parts[n]) == GIT_FOLDER or _is_store(folder)
        if is_known or ((_has_objects(folder) or is_git_folder(folder)) and not _in_working_tree(folder, inner)):
            yield inner


def _in_working_tree(folder: str, inner: list[str]) -> bool:
    """Whether a path leads to a working tree inside of its bare repository."""
    tops = ("/".join((folder, *inner[: n + 1])) for n in range(len(inner)))
    return inner[0].casefold() not in _OWN and any(os.path.lexists(f"{top}/{GIT_FOLDER}") for top in tops)


def repositories(root: str) -> Repositories:
    """The repositories in the workspace.

    Raises:
        Failure: `too_large`.
    """
    repositories, left = Repositories([], []), _MAX_SEARCHED
    # Not `os.walk`: in Python 3.11 it calls itself for each level, and a command can make any number of levels.
    ahead = [root]
    while ahead:
        place = ahead.pop()
        if place.count("/") - root.count("/") > _MAX_DEPTH:
            raise Failure(
                "too_large",
                f"the workspace has folders more than {_MAX_DEPTH} deep, too deep to find all its git folders",
                hint=f"delete them: they are in {show(place[len(root) + 1 :].partition('/')[0])}",
                rule="exposed",
            )
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(place) as listed:
            entries = list(islice(listed, left + 1))
        ahead += [entry.path for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
        left -= len(entries)
        if left < 0:
            raise Failure(
                "too_large",
                f"the workspace has more than {_MAX_SEARCHED:,} entries, too many to find all its git folders",
                hint="work in a smaller workspace",
                rule="exposed",
            )
        if os.path.lexists(f"{place}/{GIT_FOLDER}"):
            repositories.tops.append(place)
        if os.path.basename(place) == GIT_FOLDER or is_git_folder(place):
            repositories.git_folders.append(place)
            repositories.tops.extend(top for top in named_tops(place) if within(top, root))
    return repositories


def named_tops(folder: str) -> Iterator[str]:
    """Where the working tree of a git folder is or was, by the folder itself: a submodule's by its name, which usually is its path;
    that of a further working tree by a file."""
    above, modules, name = folder.partition(f"/{GIT_FOLDER}/modules/")
    if modules:
        # Submodules can be in submodules, and in folders named `modules`.
        yield from (f"{above}/{name}", f"{above}/{name.replace('/modules/', '/')}")
    if named := beginning(f"{folder}/gitdir", _MAX_NAMING):
        yield os.path.dirname(os.path.normpath(_named(folder, named)))


def git_folder_of(root: str, place: str) -> str | None:
    """The git folder of the repository at `place`, if it is in the workspace. Follows a link, and a file that names the folder."""
    if not os.path.lexists(f"{place}/{GIT_FOLDER}") and is_git_folder(place):
        return place
    git = f"{place}/{GIT_FOLDER}"
    if os.path.isfile(git):
        kind, space, text = beginning(git, _MAX_NAMING).partition(" ")
        git = _named(place, text) if kind + space == "gitdir: " else ""
    real = os.path.realpath(git)
    return real if within(real, root) and os.path.isdir(real) else None


def family(root: str, folder: str) -> list[str]:
    """A git folder, and the main one that has its objects if it belongs to a further working tree."""
    common = os.path.realpath(_named(folder, beginning(f"{folder}/commondir", _MAX_NAMING)))
    return [folder, common] if common != folder and within(common, root) else [folder]


def _named(folder: str, text: str) -> str:
    """The path that the text of a file in a git folder names, exactly as git reads it; `folder` if that is not clear."""
    clear = "\0" not in text and len(os.fsencode(text)) < _MAX_NAMING
    return os.path.join(folder, text.rstrip("\r\n")) if clear else folder


def beginning(file: str, most: int) -> str:
    """The first `most` bytes of a file in a git folder; "" without one. A pipe of that name must not let the service wait."""

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)

    with suppress(OSError, ValueError), open(file, "rb", buffering=0, opener=opener) as opened:
        return os.fsdecode(opened.read(most) or b"")
    return ""
