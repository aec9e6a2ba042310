"""A hostile repository can't make git run a program. Every known way is tried in a real repository, with each operation that
uses it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.git import git as tools
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.sandbox.command.confinement import found
from tests.builtins.test_git import plain, with_submodule


class Nowhere:
    """Rules that allow no address."""

    named = staticmethod(lambda *_: False)

    def demand(self, url: str, method: str) -> None:
        raise Failure("permission_denied", f"{method} {url}")


#: The operations on a hostile repository. Each one has a changed working tree.
LOCAL = (
    ("STATUS",),
    ("DIFF",),
    ("ADD", "--all"),
    ("ADD", "-u"),
    ("COMMIT", "-m", "x"),
    ("COMMIT", "-am", "y"),
    ("LOG", "-p"),
    ("STASH", "push"),
    ("STASH", "pop"),
    ("TAG", "-a", "-m", "x", "v1"),
    ("CHECKOUT", "-f", "side"),
    ("MERGE", "main", "--no-ff", "-m", "merged"),
    ("REBASE", "main"),
    ("RESET", "--hard"),
)
REMOTE = (("REMOTE", "show", "origin"), ("FETCH", "origin"), ("PULL", "origin", "main"), ("PUSH", "origin", "main"))
REBASING = (("REBASE", "--continue"), ("REBASE", "--skip"))


def trap(repository: Path) -> str:
    """A command that creates a mark file and copies its input."""
    return f"touch {repository}/ran; cat"


def script(repository: Path) -> str:
    """The same command as a file, which needs no shell."""
    path = repository / "trap"
    path.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    path.chmod(0o755)
    return str(path)


def setting(key: str, *more: str) -> Callable[[Path], None]:
    """A hostile setting, as a shell command or as a file. `more` are settings (``key=value``) that make git use it."""

    def make(repository: Path) -> None:
        plain(repository, "config", key, trap(repository) if not key.endswith(".process") else script(repository))
        for one in more:
            name, _, value = one.partition("=")
            plain(repository, "config", name, value)

    return make


def as_file(key: str) -> Callable[[Path], None]:
    def make(repository: Path) -> None:
        plain(repository, "config", key, script(repository))

    return make


def hooks(folder: str, *settings: str) -> Callable[[Path], None]:
    def make(repository: Path) -> None:
        (repository / folder).mkdir(parents=True, exist_ok=True)
        names = (
            "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
            "post-commit pre-rebase post-checkout post-merge pre-push post-rewrite reference-transaction post-index-change "
            "pre-auto-gc fsmonitor-watchman push-to-checkout"
        )
        for name in names.split():
            (repository / folder / name).write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
            (repository / folder / name).chmod(0o755)
        for one in settings:
            name, _, value = one.partition("=")
            plain(repository, "config", name, value)

    return make


def included(conditional: bool) -> Callable[[Path], None]:
    def make(repository: Path) -> None:
        (repository / "settings").write_text(
            f'[filter "evil"]\n\tclean = {script(repository)}\n\tsmudge = {script(repository)}\n'
        )
        key = "includeIf.gitdir:/**.path" if conditional else "include.path"
        plain(repository, "config", key, "../settings")

    return make


def submodule(where: str) -> Callable[[Path], None]:
    """A submodule whose settings name a filter. Its git folder is its own, inside the outer git folder, or in another place."""

    def make(repository: Path) -> None:
        inner = with_submodule(repository)
        plain(inner, "config", "filter.evil.clean", trap(repository))
        plain(inner, "config", "filter.evil.smudge", trap(repository))
        plain(inner, "config", "core.fsmonitor", script(repository))
        elsewhere = {"absorbed": ".git/modules/inner", "elsewhere": "far/away"}.get(where)
        if elsewhere:
            (repository / elsewhere).parent.mkdir(parents=True, exist_ok=True)
            (inner / ".git").rename(repository / elsewhere)
            (inner / ".git").write_text(f"gitdir: ../{elsewhere}\n")
        if where == "no .gitmodules":
            (repository / ".gitmodules").unlink()
        (inner / "b.txt").write_text("two\n")

    return make


def updating(repository: Path) -> None:
    submodule("own")(repository)
    with (repository / ".gitmodules").open("a") as file:
        file.write("\tupdate = !touch ran\n")
    plain(repository, "config", "submodule.inner.update", "!touch ran")


def compared(repository: Path) -> None:
    """A submodule with a new commit. Comparing the submodule would run the programs that its settings name."""
    submodule("own")(repository)
    inner = repository / "inner"
    plain(inner, "config", "--unset", "filter.evil.clean")
    plain(inner, "config", "--unset", "core.fsmonitor")
    (inner / ".gitattributes").write_text("* diff=evil\n")
    plain(inner, "commit", "-q", "-am", "second")
    plain(inner, "config", "diff.evil.textconv", trap(repository))
    plain(inner, "config", "diff.evil.command", trap(repository))
    plain(repository, "config", "diff.submodule", "diff")
    plain(repository, "config", "status.submoduleSummary", "true")


def common(repository: Path) -> None:
    evil = repository / "evil"
    evil.mkdir()
    for name in ("objects", "refs"):
        (repository / ".git" / name).rename(evil / name)
    (evil / "config").write_text(
        (repository / ".git/config").read_text()
        + f'[filter "evil"]\n\tclean = {trap(repository)}\n\tsmudge = {trap(repository)}\n'
    )
    (repository / ".git/commondir").write_text("../evil\n")


def beside(repository: Path) -> None:
    plain(repository, "config", "extensions.worktreeConfig", "true")
    for key in ("clean", "smudge"):
        plain(repository, "config", "--worktree", f"filter.evil.{key}", trap(repository))


def linked(how: str) -> Callable[[Path], None]:
    """The git folder is in another place, behind a link or a file."""

    def make(repository: Path) -> None:
        for key in ("clean", "smudge"):
            plain(repository, "config", f"filter.evil.{key}", trap(repository))
        (repository / ".git/info/exclude").write_text("kept\n")
        (repository / ".git").rename(repository / "kept")
        if how == "link":
            (repository / ".git").symlink_to("kept")
        else:
            (repository / ".git").write_text("gitdir: kept\n")

    return make


def todo(folder: str) -> Callable[[Path], None]:
    """A stopped rebase whose list contains commands."""

    def make(repository: Path) -> None:
        plain(repository, "commit", "-q", "--allow-empty", "-m", "one more")
        environment = {"PATH": os.environ["PATH"], "GIT_SEQUENCE_EDITOR": "printf 'break\\n' >", "HOME": "/nowhere"}
        subprocess.run(["git", "rebase", "-q", "-i", "HEAD~1"], cwd=repository, env=environment, check=True)
        (repository / ".git" / folder / "git-rebase-todo").write_text(
            f"exec touch {repository}/ran\nexec {script(repository)}\n"
        )

    return make


def alternates(repository: Path) -> None:
    other = repository / "other.git"
    plain(repository, "clone", "-q", "--bare", ".", str(other))
    (repository / ".git/objects/info/alternates").write_text(f"{other}/objects\n")
    plain(repository, "config", "core.alternateRefsCommand", trap(repository))


def remote(**keys: str) -> Callable[[Path], None]:
    def make(repository: Path) -> None:
        other = repository / "other.git"
        plain(repository, "clone", "-q", "--bare", ".", str(other))
        plain(repository, "remote", "add", "origin", str(other))
        for name, value in keys.items():
            key = name.replace("__", ".").replace("_", "-") if "__" in name else f"remote.origin.{name}"
            plain(
                repository,
                "config",
                key,
                value.replace("TRAP", f"touch {repository}/ran").replace("WORK", str(repository)),
            )

    return make


WAYS: dict[str, Callable[[Path], None]] = {
    "filter.clean": setting("filter.evil.clean"),
    "filter.smudge": setting("filter.evil.smudge"),
    "filter.process": setting("filter.evil.process"),
    "filter as a file": as_file("filter.evil.clean"),
    "diff.external": setting("diff.external"),
    "diff.command": setting("diff.evil.command"),
    "diff.textconv": setting("diff.evil.textconv", "diff.evil.cachetextconv=true"),
    "merge.driver": setting("merge.evil.driver", "merge.default=evil"),
    "core.fsmonitor": as_file("core.fsmonitor"),
    "core.pager": setting("core.pager"),
    "pager.log": setting("pager.log", "pager.diff=true", "pager.stash=less"),
    "core.editor": setting("core.editor"),
    "sequence.editor": setting("sequence.editor"),
    "core.askPass": as_file("core.askPass"),
    "core.sshCommand": remote(url="ssh://localhost/x", core__sshCommand="TRAP"),
    "core.gitProxy": remote(url="git://localhost/x", core__gitProxy="TRAP"),
    "core.attributesFile": setting("filter.evil.clean", "core.attributesFile=more"),
    "gpg.program": as_file("gpg.program"),
    "gpg.ssh.program": setting("gpg.ssh.program", "gpg.format=ssh", "commit.gpgSign=true", "user.signingKey=x"),
    "gpg.x509.program": setting("gpg.x509.program", "gpg.format=x509", "commit.gpgSign=true", "tag.gpgSign=true"),
    "gpg.ssh.defaultKeyCommand": setting("gpg.ssh.defaultKeyCommand", "gpg.format=ssh", "commit.gpgSign=true"),
    "signatures shown": setting("gpg.program", "log.showSignature=true", "merge.verifySignatures=true"),
    "trailer.command": setting(
        "trailer.x.command", "trailer.x.key=X", "trailer.x.ifmissing=add", "trailer.ifmissing=add"
    ),
    "trailer.cmd": setting("trailer.x.cmd", "trailer.x.key=X"),
    "credential.helper": setting("credential.helper"),
    "credential for an address": setting("credential.https://localhost.helper"),
    "alias": setting("alias.status"),
    "browser, tools": setting(
        "mergetool.x.cmd", "merge.tool=x", "diff.tool=x", "man.x.cmd=touch", "browser.x.cmd=touch"
    ),
    "interactive.diffFilter": setting("interactive.diffFilter"),
    "sendemail": setting("sendemail.sendmailcmd"),
    "uploadpack.packObjectsHook": remote(uploadpack__packObjectsHook="TRAP"),
    "remote.uploadpack": remote(uploadpack="TRAP;", receivepack="TRAP;"),
    "remote.vcs": remote(vcs="ext"),
    "remote by ext": remote(url="ext::sh -c 'TRAP'", protocol__ext__allow="always", protocol__allow="always"),
    "remote by file": remote(protocol__file__allow="always"),
    "remote rewritten": remote(**{"url__ext::sh -c TRAP;__insteadOf": "https://", "url": "https://localhost/x"}),
    "remote in a file": lambda r: (
        (r / ".git/remotes").mkdir(exist_ok=True),
        (r / ".git/remotes/origin").write_text(f"URL: ext::sh -c touch% {r}/ran\nPull: main\n"),
        plain(r, "config", "protocol.ext.allow", "always"),
    ),
    "core.alternateRefsCommand": alternates,
    "hooks": hooks(".git/hooks"),
    "core.hooksPath": hooks("tools", "core.hooksPath=tools"),
    "include": included(False),
    "includeIf": included(True),
    "config.worktree": beside,
    "commondir": common,
    "a linked .git": linked("link"),
    "a .git file": linked("file"),
    "exec in a rebase": todo("rebase-merge"),
    "a submodule": submodule("own"),
    "an absorbed submodule": submodule("absorbed"),
    "a submodule elsewhere": submodule("elsewhere"),
    "a submodule without .gitmodules": submodule("no .gitmodules"),
    "a submodule compared": compared,
    "a submodule's update": updating,
    "maintenance": setting("maintenance.evil.command", "gc.auto=1", "maintenance.auto=true"),
    "blame and notes": setting("blame.ignoreRevsFile", "notes.rewriteRef=refs/notes/*"),
    "submodule.update": setting("submodule.inner.update", "submodule.recurse=true", "submodule.inner.active=true"),
}


#: These cases run in every test run, also under Landlock. The others differ only in the setting. The limit to git's own
#: programs applies to all of them.
BOTH = (
    "filter.clean",
    "filter.process",
    "core.fsmonitor",
    "core.hooksPath",
    "exec in a rebase",
    "a submodule",
    "an absorbed submodule",
    "a .git file",
)
FEW = ("filter.clean", "core.hooksPath")


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *(pytest.param("bwrap", way, marks=[] if way in BOTH else [pytest.mark.slow]) for way in WAYS),
        *(pytest.param("landlock", way, marks=[] if way in FEW else [pytest.mark.slow]) for way in BOTH),
    ],
    ids=str,
)
async def test_no_program_of_the_repository_runs(context: Any, root: Path, kind: str, way: str) -> None:
    assert kind in found().kinds, found().missing.get(kind)
    context.settings["confinement"] = kind
    context.network = Nowhere()
    plain(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    (root / "more").write_text("*.txt filter=evil\n")
    (root / "a.txt").write_text("one\n")
    plain(root, "add", "--all")
    plain(root, "commit", "-q", "-m", "first")
    plain(root, "branch", "side")
    WAYS[way](root)
    (root / "ran").unlink(missing_ok=True)
    has_remote = "remote" in plain(root, "config", "--list", "--name-only") or (root / ".git/remotes").exists()
    operations = REBASING if "rebase" in way else (*LOCAL[:5], *REMOTE) if has_remote else LOCAL
    for n, (operation, *args) in enumerate(operations):
        for path in (root / "a.txt", root / "inner/b.txt"):
            if path.exists() and operations is not REBASING:
                # The file has the same size as before, so git must read it.
                path.write_text(f"{n:03}\n")
        await call_primitive(tools.git, {"operation": operation, "args": args, "timeout": 25}, context)
        assert not (root / "ran").exists(), (operation, args)
    await call_primitive(tools.git_status, {}, context)
    assert not (root / "ran").exists()
