"""Finds what the rules hide in a repository: the tracked files that the call may not read.

Git's objects contain the files of all commits, so hiding the files themselves is not enough. Each repository is searched: does
its index, or a commit that a branch, tag, stash or reflog entry leads to, have a path that the rules forbid? If so:

- the tool `git` leaves these paths out of what it prints and changes (`limited_operations`);
- other programs do not see the git folder, because no rule could stop them from reading the objects.

Other repositories are not restricted. A repository is searched again only when the index or a branch has changed, and then only its
new commits.

A finding can depend on where a working tree is, which project code can change. Then the repository gets a mark, and counts as one
with such paths from then on, in every process.

What FETCH and PULL bring is not searched. Until then, code of the project could write into the git folder, also false objects, so
no search would prove anything. The repository gets the mark, too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from albert_tools.builtins.git.git_options import ENVIRONMENT, command, programs
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.folders import within
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.git_folders import (
    Repositories,
    beginning,
    family,
    git_folder_of,
    is_git_folder,
    named_tops,
    objects_in,
    repositories,
)
from albert_tools.engine.workspace.openat import identity
from albert_tools.engine.workspace.path_syntax import GIT_FOLDER, protected_folder

#: Runs a confined command: `confined_command.run`.
Run = Callable[..., Awaitable[Any]]

#: The most bytes of a file that names borrowed stores.
_MAX_ALTERNATES = 1 << 16
#: Seconds for one git command of a search. A repository that needs longer counts as one with hidden files until it changes.
_SEARCH_SECONDS = 30.0
#: The most searches that are cached, and the most branches that a cached search names.
_MAX_SEARCHES, _MAX_TIPS = 256, 2_000

#: For each ref, the kinds of what it names and of what that tag names, and the id.
_KINDS = "%(objecttype)%(*objecttype) %(objectname)%00"
#: The id of a commit, or its beginning, of which git takes four digits.
_ID = re.compile(r"\b[0-9a-f]{4,64}\b")
#: The fewest digits of a whole id.
_DIGITS = 40
#: The most bytes of a file that names commits. A repository with a longer one counts as one with hidden files.
_MAX_FILE = 1024 * 1024

#: The mark of a repository that counts as one with hidden paths, whatever a search finds: this service has brought commits, taken
#: names away, or found paths that the rules forbid by the place of a working tree.
MARK = "albert_fetched"
_MARK_TEXT = b"""While rules forbid some files, Albert Tools has brought commits into this repository, deleted names of commits,
or found files that the rules forbid by the place of a working tree.
So commands don't see this folder, and the tool `git` leaves these files out.
Delete this file if nothing in the history of the repository is forbidden.
"""
#: The file that names other repositories whose objects a repository uses.
_ALTERNATES = "objects/info/alternates"

_MAGIC = "top,glob,icase" if sys.platform == "darwin" else "top,glob"


class HiddenPaths(NamedTuple):
    """What the rules hide in one repository.

    Attributes:
        top: The absolute path of the top folder of its working tree; of the repository itself if it is bare.
        globs: The forbidden paths, as git's globs relative to `top`.
        tops: The folders for which the rules count: git's objects may be those of any repository in the workspace.
        found: Whether a commit or the index has such a path.
        bare: Whether the repository is bare.
        store: The git folder that has its objects; "" outside of the workspace.
        others: The objects of other repositories with hidden files. Git doesn't see them: a commit of this repository could
            name them under another path.
    """

    top: str
    globs: tuple[str, ...]
    tops: tuple[str, ...]
    found: bool = True
    bare: bool = False
    store: str = ""
    others: tuple[str, ...] = ()

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

    def demand(self, judge: CallJudge, path: str) -> None:
        """Refuse a path, relative to `top`, that is hidden.

        Raises:
            Failure: `permission_denied`.
        """
        judge.demand(os.path.normpath(os.path.join(self.top, path)), "read")
        # Which paths are allowed depends on where they are, and the call is allowed to read them here.
        for top in self.tops:
            judge.demand_not_forbidden(os.path.normpath(os.path.join(top, path)))


class _Search(NamedTuple):
    """A cached search of a git folder.

    Attributes:
        state: The state of the repository, see `_state`.
        found: Whether the index or a commit has a hidden path.
        clean: The commits whose history has no hidden path.
    """

    state: object
    found: bool
    clean: tuple[str, ...]


_searches: dict[tuple[str, tuple[str, ...]], _Search] = {}
#: The first commits of git folders, each with the state of the repository.
_first: dict[str, tuple[object, frozenset[str]]] = {}
#: The git folders, by device and inode, in which a search has ever found a hidden path, whatever the rules named then.
_ever_found: set[tuple[int, int]] = set()


async def hidden_paths(context: CallContext, cwd: str, run: Run) -> HiddenPaths | None:
    """What the rules hide in the repository around `cwd`; None if they name no path in it, or if there is no repository.

    Raises:
        Failure: `permission_denied` if the rules forbid the top folder; `invalid_arguments` inside a git folder.
    """
    hidden, folder = await _around(context, cwd)
    if hidden is None or folder is None:
        return hidden
    root, search = str(context.workspace.root), await _search(context, folder, hidden, run)
    own = family(root, folder)
    hiding = await repositories_to_hide(context, run)
    return hidden._replace(
        # Working trees of one repository have their objects together.
        found=search.found or any(family(root, other)[-1] == own[-1] for other in hiding),
        store=own[-1],
        others=tuple(
            os.path.realpath(f"{other}/objects")
            for other in hiding
            if family(root, other)[-1] != own[-1] and not any(within(each, other) for each in own)
        ),
    )


def mark(store: str) -> None:
    """Mark a repository before its commits or their names change. `store` is the git folder that has its objects.

    Raises:
        Failure: `permission_denied`: its objects would be in another folder, where commands see them; `io_error`.
    """
    objects = f"{store}/objects"
    if next(_linked_stores(objects), None) is not None:
        raise Failure(
            "permission_denied",
            f"{objects} is a link or has one, so commands would see what git brings into it",
            hint="ask the owner, or clone the repository again",
            rule="git_forbidden_paths",
        )
    mark_folder(store)


def mark_folder(folder: str) -> None:
    """Mark a git folder. Only the owner takes the mark away.

    Raises:
        Failure: `io_error`.
    """
    try:
        with suppress(FileExistsError), open(f"{folder}/{MARK}", "xb") as file:
            file.write(_MARK_TEXT)
    except OSError as error:
        raise Failure(
            "io_error",
            f"{folder}/{MARK} can't be written: {error.strerror}",
            hint="make the folder writable: the mark hides forbidden files",
        ) from error


async def _around(context: CallContext, cwd: str) -> tuple[HiddenPaths | None, str | None]:
    """What can be hidden in the repository around `cwd`, not searched yet, and its git folder. None if the rules name no path in
    it; no folder if it is not in the workspace."""
    import asyncio

    workspace = context.workspace
    if not workspace.judge.selective:
        return None, None
    root, here = str(workspace.root), os.path.realpath(workspace.absolute(workspace.locate(cwd or ".")))
    if any(protected_folder(part) == GIT_FOLDER for part in here[len(root) :].split("/")):
        raise refused_argument(
            "cwd", "git's folder can't be the working directory", hint="pass the repository's folder"
        )
    while not os.path.lexists(f"{here}/{GIT_FOLDER}") and not is_git_folder(here):
        here = os.path.dirname(here)
        if not within(here, root):
            return None, None
    workspace.judge.demand(here, "read")
    hidden = _hidden(workspace.judge, root, here, await asyncio.to_thread(repositories, root))
    return (hidden, git_folder_of(root, here)) if hidden.globs else (None, None)


async def repositories_to_hide(context: CallContext, run: Run) -> list[str]:
    """The git folders in the workspace whose objects contain hidden files."""
    import asyncio

    judge, root = context.workspace.judge, str(context.workspace.root)
    if not judge.selective:
        return []
    repos = await asyncio.to_thread(repositories, root)
    hidden = _hidden(judge, root, root, repos)
    git_folders = [folder for top in repos.tops if not judge.allows(top) and (folder := git_folder_of(root, top))]
    if hidden.globs:
        git_folders += [each for each in repos.git_folders if (await _search(context, each, hidden, run)).found]
    folders = [folder for each in git_folders for folder in family(root, each)]
    return [
        *folders,
        *(
            path
            for folder in folders
            for store in _linked_stores(f"{folder}/objects")
            if within(store, root)
            for path in objects_in(store)
        ),
    ]


def _linked_stores(objects: str) -> Iterator[str]:
    """The folders elsewhere that have a git folder's objects, by a link or as a borrowed store, which can borrow from others."""
    known, ahead = {objects}, [objects]
    while ahead:
        store = ahead.pop()
        lines = beginning(f"{store}/info/alternates", _MAX_ALTERNATES).split("\n")
        # Git unquotes a name, skips one character, and goes on. It writes no names in quotes, so this is enough.
        pieces = [piece for line in lines for piece in (line, *line.split('"'))]
        named = (os.path.join(store, name) for piece in pieces for name in (piece, piece[1:]))
        # A hostile file can name many folders that don't exist.
        places = [store, *filter(os.path.isdir, named)]
        with suppress(OSError), os.scandir(store) as entries:
            places += [entry.path for entry in entries if entry.is_symlink()]
        found = {os.path.realpath(place) for place in places} - known
        known |= found
        ahead += found
    yield from known - {objects}


def _hidden(judge: CallJudge, root: str, top: str, repos: Repositories) -> HiddenPaths:
    """The hidden paths of the repository at `top`.

    Git's objects may come from any repository: further working trees, bare repositories and clones have those of others. So the
    rules hold as if each repository, and the workspace, were at the top of the others.
    """
    tops = tuple(dict.fromkeys((top, root, *repos.tops)))
    globs = tuple(dict.fromkeys(glob for each in tops for glob in judge.forbidden_globs(each)))
    return HiddenPaths(top, globs, tops, bare=not os.path.lexists(f"{top}/{GIT_FOLDER}"))


async def _search(context: CallContext, folder: str, hidden: HiddenPaths, run: Run) -> _Search:
    """Search a git folder for hidden paths. One that can't be read counts as one that has some."""
    folders = family(str(context.workspace.root), folder)
    state, old = _state(folders), _searches.get((folder, hidden.globs))
    if old is not None and old.state == state:
        return old

    lines = partial(_lines, context, run, folder)

    async def ids(*words: str) -> list[str] | None:
        texts = await lines("REV-PARSE", *words)
        return None if texts is None else [each for text in texts for each in text.split()]

    try:
        store = identity(os.stat(folders[-1]))
    except OSError:
        return _Search(state, True, ())
    tracked = await lines("LS-FILES", "-z", "--", *hidden.only)
    # Objects remain after the last branch that leads to them was deleted, so a finding is not forgotten. And nothing in this
    # repository leads to the objects that it borrows from another one.
    if tracked or any(os.path.lexists(f"{folders[-1]}/{name}") for name in (_ALTERNATES, MARK)):
        _ever_found.add(store)
    found, clean = True, tuple[str, ...]()
    if tracked == [] and store not in _ever_found:
        listed = await lines("FOR-EACH-REF", f"--format={_KINDS}")
        refs = [fields for line in listed or () if (fields := line.split())]
        # A tree that a tag names is not searched. A blob has no path.
        is_searched = listed is not None and all(kind.removeprefix("tag") in ("commit", "blob") for kind, *_ in refs)
        tips = [fields[-1] for fields in refs][:_MAX_TIPS]
        known = [f"^{tip}" for tip in old.clean] if old is not None else []
        words = ("LOG", "--ignore-missing", "-1", "-z", "--format=%H", "--full-history", "--all", "--reflog")
        begun = _begun(folders)
        # A branch can have the beginning of an id as its name, so git lists all ids that begin so.
        beginnings = [f"--disambiguate={each}" for each in begun or () if len(each) < _DIGITS]
        named = await ids(*beginnings) if beginnings else []
        first = None
        if is_searched and begun is not None and named is not None and len(named) <= _MAX_TIPS:
            first = await lines(*words, *begun, *named, *tips, *known, "--", *hidden.only)
        found, clean = first != [], tuple(tips) if first == [] else ()
        if first:
            _ever_found.add(store)
    is_marked = os.path.lexists(f"{folders[-1]}/{MARK}")
    if store in _ever_found and not is_marked and await _depends_on_place(context, run, folder, hidden):
        # Code of the project can move the working tree, or delete its `.git`, before the next process searches. A repository that
        # can't be changed must remain readable.
        with suppress(Failure):
            mark_folder(folders[-1])
    if len(_searches) >= _MAX_SEARCHES:
        _searches.clear()
    _searches[folder, hidden.globs] = search = _Search(state, found, clean)
    return search


async def _depends_on_place(context: CallContext, run: Run, folder: str, hidden: HiddenPaths) -> bool:
    """Whether the rules name some paths of a repository only because its working tree is where it is, or that of a repository with
    the same commits. A command can't move one that is forbidden, or has a forbidden git folder in it."""
    judge, root = context.workspace.judge, str(context.workspace.root)
    everywhere, others = {*judge.forbidden_globs(root)}, list[str]()
    for top in dict.fromkeys((*named_tops(folder), *hidden.tops)):
        if judge.allows(top) and not everywhere.issuperset(judge.forbidden_globs(top)):
            other = git_folder_of(root, top)
            if other is None or other == folder:
                return True
            if not within(other, top) or judge.allows(other):
                others.append(other)
    if not others:
        return False
    ours = await _first_commits(context, run, folder)
    for other in others:
        theirs = await _first_commits(context, run, other)
        if not ours or not theirs or not ours.isdisjoint(theirs):
            return True
    return False


async def _first_commits(context: CallContext, run: Run, folder: str) -> frozenset[str]:
    """The commits of a repository without parents, which a clone has too; empty if they can't be found out."""
    folders = family(str(context.workspace.root), folder)
    state, (known, first) = _state(folders), _first.get(folder, (None, frozenset[str]()))
    if known != state:
        words = ("LOG", "-z", "--format=%H", "--max-parents=0", "--all", "--reflog")
        is_shallow = os.path.lexists(f"{folders[-1]}/shallow")
        first = frozenset([] if is_shallow else await _lines(context, run, folder, *words) or [])
        if len(_first) >= _MAX_SEARCHES:
            _first.clear()
        _first[folder] = state, first
    return first


async def _lines(context: CallContext, run: Run, folder: str, operation: str, *words: str) -> list[str] | None:
    """What git prints about a git folder, without its NULs; None if it fails, or takes too long."""
    environment = {**ENVIRONMENT, "GIT_DIR": folder, "GIT_WORK_TREE": folder}
    how = {"only": programs() or ["/usr/bin/git"], "separate_errors": True, "recorded": False}
    try:
        ran = await run(context, command(operation, words), timeout=_SEARCH_SECONDS, environment=environment, **how)
    except Failure as failure:
        if failure.code != "timeout":
            raise
        return None
    text = ran.output.whole.decode("utf-8", "surrogateescape")
    return [line for line in text.split("\0") if line] if ran.code == 0 and ran.output.complete else None


def _naming(folder: str) -> list[str]:
    """The files that name commits to which perhaps no branch and no reflog entry leads: of fetches, and of operations that were
    begun. Their names are in capitals, or they are in a folder. The text of the last commit is no such file, and can be long."""
    files: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isupper() and entry.name != "COMMIT_EDITMSG":
                files.append(entry.path)
            elif entry.name == "sequencer" or entry.name.startswith("rebase-"):
                with suppress(OSError):
                    files += (f"{entry.path}/{name}" for name in os.listdir(entry.path))
    return sorted(files)


def _begun(folders: list[str]) -> list[str] | None:
    """The ids in the files that name commits, and their beginnings; None if there are too many."""
    texts = [beginning(file, _MAX_FILE + 1) for folder in folders for file in _naming(folder)]
    ids = list(dict.fromkeys(each for text in texts for each in _ID.findall(text)))
    return ids if len(ids) <= _MAX_TIPS and all(len(text) <= _MAX_FILE for text in texts) else None


def _state(folders: list[str]) -> object:
    """Changes whenever the index or a branch changes: git replaces these files."""
    state: list[tuple[str, int, int, int]] = []
    for folder in folders:
        names = [f"{folder}/{name}" for name in ("index", "packed-refs", "logs/HEAD", MARK, _ALTERNATES)]
        names += _naming(folder)
        for inner in ("refs", "reftable", "worktrees"):
            names += (f"{place}/{name}" for place, _, files in os.walk(f"{folder}/{inner}") for name in files)
        for name in names:
            for look in (os.lstat, os.stat):
                with suppress(OSError):
                    facts = look(name)
                    state.append((name, facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return state
