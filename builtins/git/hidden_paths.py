"""Finds what the rules hide in a repository: the tracked files that the call may not read.

Git's objects contain the files of all commits, so hiding the files themselves is not enough. Each repository is searched: does
its index, or a commit that a branch, tag, stash or reflog entry leads to, have a path that the rules forbid? If so:

- the tool `git` leaves these paths out of what it prints and changes (`limited_operations`);
- other programs do not see the git folder, because no rule could stop them from reading the objects.

Other repositories are not restricted. A repository is searched again only when the index or a branch has changed, and then only its
new commits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from albert_tools.builtins.git.git_options import ENVIRONMENT, command, programs
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.workspace.path_syntax import GIT_FOLDER, protected_folder
from albert_tools.engine.workspace.sandbox_view import folders_of_git, is_bare, repositories

#: Runs a confined command: `confined_command.run`.
Run = Callable[..., Awaitable[Any]]

#: Seconds for one git command of a search. A repository that needs longer counts as one with hidden files until it changes.
_SEARCH_SECONDS = 30.0
#: The most searches that are cached, and the most branches that a cached search names.
_MAX_SEARCHES, _MAX_TIPS = 256, 2_000

#: Names of commits to which perhaps no branch and no reflog entry leads.
_HEADS = ("FETCH_HEAD", "MERGE_HEAD", "ORIG_HEAD")

_MAGIC = "top,glob,icase" if sys.platform == "darwin" else "top,glob"


class HiddenPaths(NamedTuple):
    """What the rules hide in one repository.

    Attributes:
        top: The absolute path of the top folder of its working tree; of the repository itself if it is bare.
        globs: The forbidden paths, as git's globs relative to `top`.
        found: Whether a commit or the index has such a path.
        tracked: The absolute paths of such files in the index.
        bare: Whether the repository is bare.
    """

    top: str
    globs: tuple[str, ...]
    found: bool = True
    tracked: tuple[str, ...] = ()
    bare: bool = False

    @property
    def only(self) -> list[str]:
        """The pathspecs of the hidden paths."""
        return [f":({_MAGIC}){glob}" for glob in self.globs]

    @property
    def excluded(self) -> list[str]:
        """The pathspecs that exclude the hidden paths from what other pathspecs match."""
        return [f":({_MAGIC},exclude){glob}" for glob in self.globs]

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which git uses this repository, not one that it finds itself."""
        if self.bare:
            return {"GIT_DIR": self.top}
        return {"GIT_DIR": f"{self.top}/{GIT_FOLDER}", "GIT_WORK_TREE": self.top}


class _Search(NamedTuple):
    """A cached search.

    Attributes:
        state: The state of the repository, see `_state`.
        result: What was found.
        clean: The commits whose history has no hidden path.
        ever_found: Whether this search or an earlier one found a hidden path.
    """

    state: object
    result: HiddenPaths
    clean: tuple[str, ...]
    ever_found: bool


_searches: dict[tuple[str, tuple[str, ...]], _Search] = {}


async def hidden_paths(context: CallContext, cwd: str, run: Run) -> HiddenPaths | None:
    """What the rules hide in the repository around `cwd`; None if they name no path in it, or if there is no repository.

    Raises:
        Failure: `permission_denied` if the rules forbid the top folder; `invalid_arguments` inside a git folder.
    """
    workspace = context.workspace
    if not workspace.judge.selective:
        return None
    root, here = str(workspace.root), os.path.realpath(workspace.absolute(workspace.locate(cwd or ".")))
    if any(protected_folder(part) == GIT_FOLDER for part in here[len(root) :].split("/")):
        raise refused_argument(
            "cwd", "git's folder can't be the working directory", hint="pass the repository's folder"
        )
    while not os.path.lexists(f"{here}/{GIT_FOLDER}") and not is_bare(here):
        here = os.path.dirname(here)
        if here != root and not here.startswith(f"{root}/"):
            return None
    workspace.judge.demand(here, "read")
    globs = _globs(workspace.judge, root, here)
    return await _search(context, here, globs, run) if globs else None


async def repositories_to_hide(context: CallContext, run: Run) -> list[str]:
    """The git folders in the workspace whose objects contain hidden files."""
    import asyncio

    judge, root, hide = context.workspace.judge, str(context.workspace.root), []
    for top in await asyncio.to_thread(lambda: list(repositories(root))) if judge.selective else ():
        globs = _globs(judge, root, top)
        if not judge.allows(top) or (globs and (await _search(context, top, globs, run)).found):
            hide += folders_of_git(root, top)
    return hide


def _globs(judge: Any, root: str, top: str) -> tuple[str, ...]:
    """The forbidden paths of a repository, relative to its top folder.

    A further working tree has the objects of the main one, so the rules on paths of both apply. A bare repository has the paths of
    no working tree, so the rules apply as if it were the workspace too.
    """
    tops = [top, *(os.path.dirname(folder) for folder in folders_of_git(root, top)[1:])]
    if not os.path.lexists(f"{top}/{GIT_FOLDER}"):
        tops.append(root)
    return tuple(dict.fromkeys(glob for each in tops for glob in judge.forbidden_globs(each)))


async def _search(context: CallContext, top: str, globs: tuple[str, ...], run: Run) -> HiddenPaths:
    """Search a repository for hidden paths. A repository that can't be read counts as one that has some."""
    hidden = HiddenPaths(top, globs, bare=not os.path.lexists(f"{top}/{GIT_FOLDER}"))
    state, old = _state(folders_of_git(str(context.workspace.root), top)), _searches.get((top, globs))
    if old is not None and old.state == state:
        return old.result

    async def lines(operation: str, *words: str) -> list[str] | None:
        environment = {**ENVIRONMENT, **hidden.environment}
        how = {"only": programs() or ["/usr/bin/git"], "separate_errors": True, "recorded": False}
        try:
            ran = await run(
                context, command(operation, words), cwd=top, timeout=_SEARCH_SECONDS, environment=environment, **how
            )
        except Failure as failure:
            if failure.code != "timeout":
                raise
            return None
        text = ran.output.whole.decode("utf-8", "surrogateescape")
        return [line for line in text.split("\0") if line] if ran.code == 0 and ran.output.complete else None

    tracked = None if hidden.bare else await lines("LS-FILES", "-z", "--", *hidden.only)
    hidden = hidden._replace(tracked=tuple(f"{top}/{path}" for path in tracked or ()))
    clean: tuple[str, ...] = ()
    # Objects remain after the last branch that leads to them was deleted, so a finding is not forgotten.
    ever_found = bool(tracked) or (old is not None and old.ever_found)
    if not ever_found and (tracked == [] or hidden.bare):
        tips = [tip for text in await lines("REV-PARSE", "--all") or () for tip in text.split()]
        known = [f"^{tip}" for tip in old.clean] if old is not None else []
        words = ("LOG", "--ignore-missing", "-1", "-z", "--format=%H", "--full-history", "--all", "--reflog")
        first = await lines(*words, *_HEADS, *tips[:_MAX_TIPS], *known, "--", *hidden.only)
        hidden, ever_found = hidden._replace(found=first != []), bool(first)
        clean = tuple(tips[:_MAX_TIPS]) if first == [] else ()
    if len(_searches) >= _MAX_SEARCHES:
        _searches.clear()
    _searches[top, globs] = _Search(state, hidden, clean, ever_found)
    return hidden


def _state(folders: list[str]) -> object:
    """Changes whenever the index or a branch changes: git replaces these files."""
    found: list[tuple[str, int, int, int]] = []
    for folder in folders:
        names = [f"{folder}/{name}" for name in ("index", "packed-refs", "logs/HEAD", "HEAD", *_HEADS)]
        for inner in ("refs", "worktrees"):
            names += (f"{place}/{name}" for place, _, files in os.walk(f"{folder}/{inner}") for name in files)
        for name in names:
            try:
                facts = os.stat(name)
            except OSError:
                continue
            found.append((name, facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return found
