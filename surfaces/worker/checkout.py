"""Checkouts: a run works in the files of a commit of a git repository, and its changes become a patch or a branch.

git runs as the worker's user, outside of the sandbox, and files of the run must not decide what it does. So git never looks at the
folder in which a run has worked: it gets the contents of the files (`file_tree`), and to say what is ignored it sees the files
``.gitignore`` and nothing else. It has no settings but those below, and no attribute chooses a filter. Only to fetch and to push,
which read no files, git has the user's settings and credentials.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from albert_tools.engine.call.context import checkout_in
from albert_tools.engine.model.environment import outside
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.temporary_folders import clear
from albert_tools.surfaces.worker.file_tree import commit_of_folder, entries_of_commit, entries_of_folder

#: Seconds for one command of git.
TIMEOUT = 600
#: The most bytes of a patch.
MAX_PATCH = 64 * 1024 * 1024
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.file.allow=always",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "init.templateDir=",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "gc.auto=0",
)
#: What hides the user's settings from git.
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
#: The attributes of all files: a checkout has the bytes of the commit.
_ATTRIBUTES = "* -text !eol -ident !filter !working-tree-encoding\n"
#: The commit of what a run has changed.
_CHANGES = "refs/changes"


class Checkout:
    """The checkout of a run, below the folder `within`. `workspace` is the run's: ``git+URL@COMMIT``.

    Its methods raise Failure `io_error` if git fails.
    """

    def __init__(self, within: Path, run: str, workspace: str) -> None:
        self.run = run
        named = checkout_in(workspace)
        assert named is not None
        self.repository, self._commit = named
        self._folder = within / run
        self._git_folder = self._folder / "git"
        #: A file that exists when the checkout is made.
        self._done = self._folder / "done"
        #: The folder with the files.
        self.files = self._folder / "files"

    def make(self) -> None:
        """Check out the commit, unless that was done before."""
        if self._done.exists():
            return
        self.remove()
        self.files.mkdir(parents=True, mode=0o700)
        git("init", "--quiet", "--bare", str(self._git_folder))
        (self._git_folder / "info").mkdir(exist_ok=True)
        (self._git_folder / "info" / "attributes").write_text(_ATTRIBUTES)
        self._transfer("fetch", "--quiet", "--depth=1", "--no-tags", self.repository, self._commit)
        self._git(f"--work-tree={self.files}", "checkout", "--quiet", "--force", "--detach", self._commit)
        self._done.touch()

    def changes(self, message: str) -> bytes | None:
        """The patch from the commit to the files as they are now, without ignored ones; None if they are the same.

        Raises:
            Failure: `too_large`; `io_error`, also if a folder or a file can't be read.
        """
        if not self._done.exists():
            return None
        before = entries_of_commit(self._git("ls-tree", "--full-tree", "-r", "-l", "-z", self._commit))
        folder = os.fsencode(self.files)
        # The same time at each try, so that a branch that was pushed before is the same.
        when = int(self._done.stat().st_mtime)
        header = (
            f"commit {_CHANGES}\ncommitter Albert Tools <albert-tools@localhost> {when} +0000\n"
            f"data {len(message.encode())}\n{message}\nfrom {self._commit}\n"
        )
        try:
            entries = entries_of_folder(folder)
            ignored = self._ignored(entries, before)
            stream = commit_of_folder(folder, entries, ignored, before, header.encode())
            self._git("fast-import", "--quiet", "--force", given=stream)
        except OSError as error:
            raise Failure("io_error", f"the files of the run {self.run} can't be read: {str(error)[:300]}") from error
        patch = self._git("diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", self._commit, _CHANGES)
        if len(patch) > MAX_PATCH:
            raise Failure("too_large", f"the changes of the run {self.run} have more than {MAX_PATCH:,} bytes")
        return patch or None

    def _ignored(self, entries: Mapping[bytes, os.stat_result], before: Collection[bytes]) -> set[bytes]:
        """The new files that the repository ignores. git gets the files ``.gitignore`` in a folder with nothing else."""
        with TemporaryDirectory(dir=self._folder) as rules:
            for path, facts in entries.items():
                if os.path.basename(path) == b".gitignore" and stat.S_ISREG(facts.st_mode):
                    place = os.path.join(os.fsencode(rules), path)
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    os.link(os.path.join(os.fsencode(self.files), path), place)
            said = git(
                *(f"--git-dir={self._git_folder}", f"--work-tree={rules}"),
                *("check-ignore", "--no-index", "-z", "--stdin"),
                cwd=Path(rules),
                given=(
                    b"./%s\0" % p for p, facts in entries.items() if p not in before and not stat.S_ISDIR(facts.st_mode)
                ),
                # 1 says that it ignores none.
                codes=(0, 1),
            )
        return {path.removeprefix(b"./") for path in said.split(b"\0")}

    def push(self) -> str:
        """Push what `changes` has found as the branch ``albert/RUN``. Returns the name of the branch."""
        branch = f"albert/{self.run}"
        self._transfer("push", "--quiet", self.repository, f"{_CHANGES}:refs/heads/{branch}")
        return branch

    def remove(self) -> None:
        """Delete the files. Raises Failure `io_error` if some can't be deleted."""
        try:
            # First, so that the files that are left are taken for no changes.
            self._done.unlink(missing_ok=True)
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                clear(handle)
            finally:
                os.close(handle)
            self._folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise Failure("io_error", f"the checkout of the run {self.run} can't be deleted: {error}") from error

    def _git(self, *words: str, given: Iterable[bytes] = ()) -> bytes:
        return git(f"--git-dir={self._git_folder}", *words, cwd=self._git_folder, given=given)

    def _transfer(self, *words: str) -> bytes:
        return git(f"--git-dir={self._git_folder}", *words, cwd=self._git_folder, settings_of_user=True)


def git(
    *words: str,
    cwd: Path | None = None,
    settings_of_user: bool = False,
    given: Iterable[bytes] = (),
    codes: Collection[int] = (0,),
) -> bytes:
    """What git prints when it reads `given`, if it ends with one of these codes.

    Raises:
        Failure: `io_error` if it fails or takes too long, `not_found` if it is not installed.
    """
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    if not settings_of_user:
        environ |= _NO_SETTINGS
    with TemporaryFile(dir=cwd) as stdin:
        stdin.writelines(given)
        stdin.seek(0)
        try:
            done = subprocess.run(
                ["git", *settings, *words],
                cwd=cwd or "/",
                env=environ,
                stdin=stdin,
                capture_output=True,
                timeout=TIMEOUT,
            )
        except FileNotFoundError as error:
            raise Failure("not_found", "git is not installed", hint="install git on this machine") from error
        except subprocess.TimeoutExpired as error:
            raise Failure("io_error", f"git {_name(words)} took more than {TIMEOUT} s", retryable=True) from error
    if done.returncode not in codes:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
        raise Failure("io_error", f"git {_name(words)} failed: {said}", retryable=True)
    return done.stdout


def _name(words: tuple[str, ...]) -> str:
    return next(word for word in words if not word.startswith("-"))


def leave_workspaces(*workspaces: str) -> None:
    """Change the environment of this process: git and the command of `notify`, which it starts, find no programs, libraries and
    modules in these folders. Variables that name Albert's own folders stay, because these are sealed."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(("ALBERT_", "XDG_"))}
    left = outside(found, *workspaces)
    os.environ.update(left)
    for name in found.keys() - left.keys():
        del os.environ[name]


def commit_of(repository: str, revision: str) -> str:
    """The commit of a branch, a tag or a commit's id in a repository, in 40 hex digits.

    Raises:
        Failure: `not_found` if there is none, or git is not installed; `invalid_arguments`; `io_error`.
    """
    if repository.startswith("-") or revision.startswith("-"):
        raise Failure("invalid_arguments", "a repository or a revision does not begin with -")
    if len(revision) == 40 and set(revision) <= set("0123456789abcdef"):
        return revision
    words = ("ls-remote", "--quiet", "--", repository, revision, f"{revision}^{{}}")
    lines = git(*words, settings_of_user=True).decode().split("\n")
    by_name = {name: commit for commit, _, name in (line.partition("\t") for line in lines) if name}
    # An annotated tag names an object that names the commit.
    for name in (f"refs/tags/{revision}^{{}}", f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
        if name in by_name:
            return by_name[name]
    raise Failure(
        "not_found",
        f"{repository[:200]} has no branch or tag {revision[:80]!r}",
        hint="give a branch, a tag, or all 40 digits of a commit",
    )


def keep_changes(checkout: Checkout, how: str, tool: str, put: Callable[[bytes], str]) -> dict[str, Any]:
    """Keep what a run has changed: as a ``patch`` in the content store, for which `put` is called, or as a ``branch``.

    Returns:
        The data of the entry ``run_changes``: ``{patch, size_bytes}`` or ``{branch}``; empty if nothing has changed.

    Raises:
        Failure: See `Checkout`.
    """
    patch = checkout.changes(f"Changes of {tool}, run {checkout.run}")
    if patch is None:
        return {}
    if how == "branch":
        return {"branch": checkout.push()}
    return {"patch": put(patch), "size_bytes": len(patch)}
