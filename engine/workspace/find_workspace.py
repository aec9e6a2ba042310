"""Finds the workspace, the folder that tools work in.

The user names the workspace. Otherwise, it is the nearest folder with ``.albert``, starting at the current folder and going up, or
the nearest one with ``.git``, because a command can easily bring a repository.

These folders can't be the workspace:

- the root of the file system, and any folder that contains the user's home: almost everything would be inside the workspace;
- Albert's own folder and its subfolders: tools could write Albert's files;
- the Python that runs Albert Tools (after ``python -m venv .``): tools could write what it imports.

Albert's own folder doesn't count as a marker, not even that of another user (after ``sudo``). It has ``tools`` or ``state``, and no
``governance.yaml``. So ``~/.albert`` does not make the home folder a workspace. If no workspace is found, every call is denied. The
current folder is not used as a fallback.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.path_patterns import expanded
from albert_tools.engine.policy.shipped import SHIPPED_FORBIDDEN_PATHS, SHIPPED_FORBIDDEN_PUBLIC
from albert_tools.engine.workspace.openat import MAX_LINKS, identity
from albert_tools.engine.workspace.path_syntax import ALBERT_FOLDER
from albert_tools.engine.workspace.workspace import Workspace

#: The names that mark a folder as a workspace.
MARKERS = (ALBERT_FOLDER, ".git")

#: What Albert's own folder has. A project's `.albert` may have it too, beside its rules, which Albert's own folder has in `config`.
_OF_HOME = frozenset(("tools", "state"))
_RULES = "governance.yaml"

_HINT = "name a project folder with --workspace, or make this folder one with `mkdir .albert`"


def find_workspace(
    named: Path | None,
    cwd: Path,
    home: Path,
    albert_home: Path,
    albert_places: Iterable[Path] = (),
    rules: Path | None = None,
) -> Workspace:
    """Returns the workspace: `named` (relative to `cwd`), or the nearest folder with a marker at or above `cwd`.

    `home` is the user's home folder. Tools can't reach `albert_home` and the `albert_places`, even if these are inside the
    workspace or an extra root. They can't change the file `rules`, which an application has named.

    Raises:
        Failure: `governance_unavailable`: no workspace was found, or the named folder can't be a workspace.
    """
    try:
        root = _nearest(cwd, home, albert_home) if named is None else _named(cwd / named, home, albert_home)
        # One of these folders may not exist yet. Until it exists, its path seals it; then its identity does.
        places = [albert_home, *albert_places]
        _demand_no_link(root, places)
        own = [Path(os.path.realpath(place)) for place in places]
        return Workspace(root, own, secret_places(home), rules)
    except OSError as error:
        where = "the workspace" if error.filename is None else repr(os.fsdecode(error.filename))
        raise _none(f"{where} can't be opened: {error.strerror}") from None


def secret_places(home: Path) -> list[Path]:
    """The shipped list of files and folders with secrets. No tool can reach them, under any name."""
    top = str(home)
    patterns = (p for p in SHIPPED_FORBIDDEN_PATHS if p not in SHIPPED_FORBIDDEN_PUBLIC)
    return [Path(expanded(pattern, top, "")) for pattern in patterns]


def _named(path: Path, home: Path, albert_home: Path) -> Path:
    if path.is_symlink():
        raise _none(f"the workspace {str(path)!r} is a symbolic link", "name the folder that it leads to")
    if not path.exists():
        raise _none(f"the workspace {str(path)!r} does not exist", "make the folder, or name another")
    if not path.is_dir():
        raise _none(f"the workspace {str(path)!r} is not a folder", "name a folder")
    root = Path(os.path.realpath(path))
    why = _unfit(root, home, albert_home)
    if why:
        raise _none(f"{str(root)!r} can't be the workspace: {why}", "name a project folder")
    return root


def _demand_no_link(root: Path, places: Iterable[Path], left: int = MAX_LINKS) -> None:
    """Refuse a link in the workspace on the way to one of Albert's own folders: a command could put another folder in its place."""
    for place in map(Path.absolute, places):
        for part in (place, *place.parents):
            if not part.is_symlink():
                continue
            real = Path(os.path.realpath(part.parent))
            if real.is_relative_to(root):
                raise _none(f"the link {str(part)!r} leads to a folder of Albert's", "name the folder that it leads to")
            if left:
                # It can lead to another link, even if nothing is there yet.
                _demand_no_link(root, [real / part.readlink()], left - 1)


def _nearest(cwd: Path, home: Path, albert_home: Path) -> Path:
    start = Path(os.path.realpath(cwd))
    owners = {os.geteuid(), 0, start.stat().st_uid}
    passed = ""
    for marker, root in product(MARKERS, (start, *start.parents)):
        if not _marks(root / marker, albert_home, owners):
            continue
        why = _unfit(root, home, albert_home)
        if not why:
            return root
        passed = passed or f" ({str(root)!r} was passed over: {why})"
    raise _none(f"neither {str(start)!r} nor a folder above it is a workspace{passed}")


def _marks(marker: Path, albert_home: Path, owners: set[int]) -> bool:
    """Whether `marker` makes its folder a workspace.

    A marker that belongs to another user doesn't count: with a ``.git`` in ``/tmp``, another user could open all of ``/tmp`` to
    tools.
    """
    try:
        facts = marker.lstat()
        if facts.st_uid not in owners:
            return False
        if marker.name == ALBERT_FOLDER:
            if not stat.S_ISDIR(facts.st_mode):
                return False
            names = os.listdir(marker)
            if not _OF_HOME.isdisjoint(names) and _RULES not in names:
                return False
    except OSError:
        # For example, root's own folder, which this user can't list.
        return False
    with suppress(OSError):
        return identity(facts) != identity(albert_home.stat())
    return True


def _unfit(root: Path, home: Path, albert_home: Path) -> str | None:
    """The reason why `root`, a canonical path, can't be a workspace; None if it can."""
    here = identity(root.stat())
    if root == Path(root.anchor):
        return "it is the root of the file system"
    own_home = Path(os.path.realpath(home))
    if root == own_home or here == next(_chain(own_home), None):
        return "it is your home folder"
    if own_home.is_relative_to(root) or here in _chain(own_home):
        return "your home folder is inside it"
    own = Path(os.path.realpath(albert_home))
    with suppress(OSError):
        if identity(own.stat()) in _chain(root):
            return "it belongs to Albert's own files"
    if root.is_relative_to(own):
        return "it belongs to Albert's own files"
    if str(root) in map(os.path.realpath, (sys.prefix, sys.base_prefix)):
        return "it is the Python that runs Albert Tools; make that in a folder of its own: `python -m venv .venv`"
    return None


def _chain(path: Path) -> Iterator[tuple[int, int]]:
    """The identities of `path` and of all its parent folders that exist."""
    for place in (path, *path.parents):
        with suppress(OSError):
            yield identity(place.stat())


def _none(message: str, hint: str = _HINT) -> Failure:
    return Failure("governance_unavailable", message, hint=hint)
