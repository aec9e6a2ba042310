"""Checkouts: a run works in the files of a commit of a git repository, and its changes become a patch or a branch.

git runs as the worker's user, outside of the sandbox, on files of the run. So nothing in them may decide what git does. The git
folder lies beside them, repositories in them are deleted before git looks, and git has no settings but those below, so there are no
filters that attributes could choose. Only to fetch and to push, which read no files, git has the user's settings and credentials.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure

#: Seconds for one command of git.
TIMEOUT = 600
#: The most bytes of a patch.
MAX_PATCH = 64 * 1024 * 1024
_SETTINGS = (
    "core.bare=false",
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
    "commit.gpgSign=false",
    "user.name=Albert Tools",
    "user.email=albert-tools@localhost",
)


#: What hides the user's settings from git.
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}


def checkouts() -> Path:
    """The folder of all checkouts of this user. It is none of Albert's own folders, which can't be workspaces."""
    import platformdirs

    return platformdirs.user_data_path("albert-checkouts")


class Checkout:
    """The checkout of a run, below the folder `within`. `workspace` is the run's: ``git+URL@COMMIT``.

    Its methods raise Failure `io_error` if git fails.
    """

    def __init__(self, within: Path, run: str, workspace: str) -> None:
        self.run = run
        self.repository, _, self._commit = workspace.removeprefix("git+").rpartition("@")
        self._folder = within / run
        self._git_folder = self._folder / "git"
        #: The folder with the files.
        self.files = self._folder / "files"

    def make(self) -> None:
        """Check out the commit, unless that was done before."""
        done = self._folder / "done"
        if done.exists():
            return
        self.remove()
        self.files.mkdir(parents=True, mode=0o700)
        git("init", "--quiet", "--bare", str(self._git_folder))
        self._transfer("fetch", "--quiet", "--depth=1", "--no-tags", self.repository, self._commit)
        self._git("checkout", "--quiet", "--force", "--detach", self._commit)
        done.touch()

    def changes(self) -> tuple[str, bytes] | None:
        """The tree of the files as they are now, without ignored ones, and the patch from the commit to it; None if it is the same.

        Raises:
            Failure: `too_large`; `io_error`.
        """
        _delete_repositories(self.files)
        self._git("add", "--all", ".")
        tree = self._git("write-tree").decode().strip()
        patch = self._git("diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", self._commit, tree)
        if len(patch) > MAX_PATCH:
            raise Failure("too_large", f"the changes of the run {self.run} have more than {MAX_PATCH:,} bytes")
        return (tree, patch) if patch else None

    def push(self, tree: str, message: str) -> str:
        """Push a commit of the tree as the branch ``albert/RUN``. Returns the name of the branch."""
        commit = self._git("commit-tree", tree, "-p", self._commit, "-m", message).decode().strip()
        branch = f"albert/{self.run}"
        self._transfer("push", "--quiet", self.repository, f"{commit}:refs/heads/{branch}")
        return branch

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _git(self, *words: str) -> bytes:
        return git(f"--git-dir={self._git_folder}", f"--work-tree={self.files}", *words, cwd=self.files)

    def _transfer(self, *words: str) -> bytes:
        return git(f"--git-dir={self._git_folder}", *words, cwd=self._git_folder, settings_of_user=True)


def _delete_repositories(files: Path) -> None:
    """Delete each ``.git`` in the files. For a repository in them, git would start programs that its settings name."""
    for folder, folders, names in os.walk(files):
        for name in [name for name in (*folders, *names) if name.casefold() == ".git"]:
            path = Path(folder, name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
                folders.remove(name)
            else:
                path.unlink()


def git(*words: str, cwd: Path | None = None, settings_of_user: bool = False) -> bytes:
    """What git prints. Raises Failure `io_error` if it fails or takes too long, `not_found` if it is not installed."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    if not settings_of_user:
        environ |= _NO_SETTINGS
    try:
        done = subprocess.run(
            ["git", *settings, *words],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
        )
    except FileNotFoundError as error:
        raise Failure("not_found", "git is not installed", hint="install git on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise Failure("io_error", f"git {_name(words)} took more than {TIMEOUT} s", retryable=True) from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
        raise Failure("io_error", f"git {_name(words)} failed: {said}", retryable=True)
    return done.stdout


def _name(words: tuple[str, ...]) -> str:
    return next(word for word in words if not word.startswith("-"))


def commit_of(repository: str, revision: str) -> str:
    """The commit of a branch, a tag or a commit's id in a repository, in 40 hex digits.

    Raises:
        Failure: `not_found` if there is none, or git is not installed; `invalid_arguments`; `io_error`.
    """
    if repository.startswith("-") or revision.startswith("-"):
        raise Failure("invalid_arguments", "a repository or a revision does not begin with -")
    if len(revision) == 40 and set(revision) <= set("0123456789abcdef"):
        return revision
    found = (
        git("ls-remote", "--quiet", "--", repository, revision, f"{revision}^{{}}", settings_of_user=True)
        .decode()
        .split("\n")
    )
    by_name = {name: commit for commit, _, name in (line.partition("\t") for line in found) if name}
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
    found = checkout.changes()
    if found is None:
        return {}
    tree, patch = found
    if how == "branch":
        return {"branch": checkout.push(tree, f"Changes of {tool}, run {checkout.run}")}
    return {"patch": put(patch), "size_bytes": len(patch)}
