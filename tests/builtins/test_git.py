"""git with real repositories under each confinement: its operations, and that a hostile repository can't run programs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.git import git as tools
from albert_tools.builtins.git.git import read_status
from albert_tools.builtins.shell import shell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.validation import violations
from albert_tools.engine.workspace import git_lock
from tests.helpers.catalogue_rows import Row, running

CATALOGUE = {
    "git": replace(
        running({"operation": "ADD", "args": ["a.txt"]}, operation="ADD", args=["a.txt"]),
        section={"forbidden_operations": ["ADD"]},
        rule="forbidden_operations",
    ),
    "git_status": Row({"cwd": ""}, [{"kind": "execute"}]),
}

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def plain(root: Path, *words: str, fails: bool = False) -> str:
    """Run git unconfined, and return its output. It succeeds, or `fails`."""
    done = subprocess.run(["git", *words], cwd=root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout


@pytest.fixture
def repository(root: Path) -> Path:
    """A repository with one commit."""
    plain(root, "init", "-q", "-b", "main")
    (root / "a.txt").write_text("one\n")
    plain(root, "add", "a.txt")
    plain(root, "commit", "-q", "-m", "first")
    return root


pytestmark = pytest.mark.usefixtures("confinement")


async def git(context: Any, operation: str, *args: str, **more: Any) -> Any:
    given = {"operation": operation, "args": list(args), **more}
    assert violations(given, tools.git.definition.parameters_schema()) == []
    result = await call_primitive(tools.git, given, context)
    assert violations(result, tools.git.definition.result) == []
    return result


async def status(context: Any, **more: Any) -> Any:
    result = await call_primitive(tools.git_status, more, context)
    assert violations(result, tools.git_status.definition.result) == []
    return result


async def test_from_change_to_commit_and_back(context: Any, repository: Path) -> None:
    (repository / "a.txt").write_text("one\ntwo\n")
    assert "+two" in (await git(context, "DIFF"))["output"]
    assert (await git(context, "ADD", "a.txt"))["exit_code"] == 0
    assert (await git(context, "COMMIT", "-m", "second: more"))["exit_code"] == 0
    assert "second: more" in (await git(context, "LOG", "--oneline", "-n", "1"))["output"]
    assert plain(repository, "log", "-1", "--format=%an <%ae>") == "Albert Tools <albert-tools@localhost>\n"
    assert "+two" in (await git(context, "SHOW", "HEAD"))["output"]
    assert (await git(context, "CHECKOUT", "-b", "side"))["exit_code"] == 0
    (repository / "b.txt").write_text("b\n")
    await git(context, "ADD", "--all")
    await git(context, "COMMIT", "-m", "side")
    await git(context, "CHECKOUT", "main")
    assert (await git(context, "MERGE", "--no-ff", "-m", "merged", "side"))["exit_code"] == 0
    assert (await git(context, "TAG", "-a", "-m", "a release", "v1"))["exit_code"] == 0
    assert "side" in (await git(context, "BRANCH", "--list"))["output"]
    # Git moves the log of the branch to another folder. (Behind Landlock, it then fails to change its configuration.)
    for names in (("side", "other"), ("other", "side")):
        await git(context, "BRANCH", "-m", *names)
        assert f"  {names[1]}\n" in (await git(context, "BRANCH", "--list"))["output"]
    await git(context, "RESET", "--hard", "HEAD~1")
    assert not (repository / "b.txt").exists()
    assert (await git(context, "REBASE", "side"))["exit_code"] == 0
    (repository / "a.txt").write_text("stashed\n")
    await git(context, "STASH", "push", "-m", "later")
    assert (repository / "a.txt").read_text() == "one\ntwo\n"
    await git(context, "STASH", "pop")
    assert (repository / "a.txt").read_text() == "stashed\n"
    assert plain(repository, "fsck", "--full", "--no-dangling") == ""
    facts = context.effects[-1][1]
    assert (facts["operation"], facts["args"], facts["exit_code"]) == ("STASH", ["pop"], 0)


async def test_the_author_of_commits_comes_from_the_repository_or_the_owner(context: Any, repository: Path) -> None:
    plain(repository, "config", "user.name", "Ada")
    plain(repository, "config", "user.email", "ada@example.org")
    await git(context, "COMMIT", "--allow-empty", "-m", "hers")
    assert plain(repository, "log", "-1", "--format=%an") == "Ada\n"
    context.settings |= {"user_name": "Bot", "user_email": "bot@example.org"}
    await git(context, "COMMIT", "--allow-empty", "-m", "its")
    assert plain(repository, "log", "-1", "--format=%an <%ce>") == "Bot <bot@example.org>\n"


async def test_status(context: Any, repository: Path) -> None:
    assert (await status(context))["clean"]
    (repository / "new ü\nfile").write_text("x")
    (repository / "a.txt").write_text("changed")
    plain(repository, "mv", "a.txt", "moved.txt")
    found = await status(context)
    assert found["branch"] == "main"
    assert found["commit"] == plain(repository, "rev-parse", "HEAD").strip()
    assert found["untracked"] == ["new ü\nfile"]
    assert [c["path"] for c in found["changed"]] == ["moved.txt"] or {c["path"] for c in found["changed"]} == {
        "a.txt",
        "moved.txt",
    }
    assert not found["clean"]
    assert (found["upstream"], found["ahead"], found["conflicted"]) == (None, 0, [])


def test_every_line_of_a_status_is_parsed() -> None:
    lines = [
        "# branch.oid (initial)",
        "# branch.head (detached)",
        "# branch.upstream origin/main",
        "# branch.ab +2 -3",
        "1 .M N... 100644 100644 100644 1 1 a b",
        "2 R. N... 100644 100644 100644 1 1 R100 new name",
        "old name",
        "u UU N... 100644 100644 100644 100644 1 2 3 both ways",
        "? odd\nname",
    ]
    found = read_status("\0".join(lines) + "\0")
    assert found == {
        "branch": None,
        "commit": None,
        "upstream": "origin/main",
        "ahead": 2,
        "behind": 3,
        "changed": [
            {"path": "a b", "index": ".", "tree": "M", "original": None},
            {"path": "new name", "index": "R", "tree": ".", "original": "old name"},
        ],
        "untracked": ["odd\nname"],
        "conflicted": ["both ways"],
        "clean": False,
    }


async def test_a_folder_without_a_repository(context: Any, root: Path) -> None:
    with pytest.raises(Failure) as caught:
        await status(context)
    assert caught.value.code == "not_found"
    assert (await git(context, "LOG"))["exit_code"] == 128


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("DIFF", ["--output=x"]),
        ("DIFF", ["--ext-diff"]),
        ("LOG", ["--output=x"]),
        ("REBASE", ["--exec", "id", "HEAD"]),
        ("REBASE", ["-i", "HEAD"]),
        ("REBASE", ["-x", "id"]),
        ("CLONE", ["--upload-pack=id", "x"]),
        ("CLONE", ["-c", "core.hooksPath=h", "x"]),
        ("CLONE", ["--template=t", "x"]),
        ("FETCH", ["--upload-pack", "id"]),
        ("FETCH", ["ext::sh -c id"]),
        ("PUSH", ["--receive-pack=id"]),
        ("PUSH", ["--exec=id"]),
        ("REMOTE", ["add", "x", "ext::sh -c id"]),
        ("REMOTE", ["update"]),
        ("STASH", ["store", "x"]),
        ("STASH", ["list", "-m", "--output=x"]),
        ("STASH", ["show", "--message", "--ext-diff"]),
        ("ADD", ["-p"]),
        ("BRANCH", ["--edit-description"]),
        ("COMMIT", ["--template=/etc/passwd"]),
        ("COMMIT", ["-F", "/etc/passwd"]),
        ("LOG", ["-nx"]),
        ("LOG", ["--exec-path=x"]),
    ],
)
async def test_dangerous_options_are_refused(context: Any, operation: str, args: list[str]) -> None:
    url = {"url": "https://example.org/x.git"} if operation == "CLONE" else {}
    with pytest.raises(Failure) as caught:
        await git(context, operation, *args, **url)
    assert caught.value.code == "invalid_arguments"
    assert context.effects == []


async def test_programs_that_a_repository_names_do_not_run(context: Any, repository: Path) -> None:
    trap = f"touch {repository}/ran; cat"
    for key, value in {
        "core.fsmonitor": trap,
        "core.pager": trap,
        "core.editor": trap,
        "core.sshCommand": trap,
        "core.hooksPath": "hooks",
        "diff.external": trap,
        "diff.evil.textconv": trap,
        "diff.evil.command": trap,
        "filter.evil.clean": trap,
        "filter.evil.smudge": trap,
        "filter.evil.required": "true",
        "merge.evil.driver": trap,
        "gpg.program": trap,
        "commit.gpgSign": "true",
        "credential.helper": f"!{trap}",
        "alias.log": f"!{trap}",
        "sequence.editor": trap,
        "log.showSignature": "true",
    }.items():
        plain(repository, "config", key, value)
    (repository / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    for folder in (".git/hooks", "hooks"):
        (repository / folder).mkdir(exist_ok=True)
        for hook in (
            "pre-commit",
            "commit-msg",
            "post-commit",
            "post-checkout",
            "pre-rebase",
            "post-merge",
            "prepare-commit-msg",
        ):
            (repository / folder / hook).write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
            (repository / folder / hook).chmod(0o755)
    (repository / "a.txt").write_text("two\n")
    for operation, *args in (
        ("STATUS",),
        ("DIFF",),
        ("ADD", "--all"),
        ("COMMIT", "-m", "x"),
        ("LOG", "-p"),
        ("SHOW",),
        ("CHECKOUT", "-b", "side", "HEAD~1"),
        ("CHECKOUT", "main"),
        ("MERGE", "side"),
        ("REBASE", "side"),
        ("STASH", "list"),
    ):
        result = await git(context, operation, *args)
        assert result["exit_code"] == 0, result
        assert not (repository / "ran").exists(), operation
    assert (await status(context))["branch"] == "main"
    assert not (repository / "ran").exists()


@pytest.mark.parametrize("where", ["a name with =", "a configuration beside"])
async def test_a_filter_is_disabled_wherever_it_is_configured(context: Any, repository: Path, where: str) -> None:
    trap, name = f"touch {repository}/ran; cat", "a=b" if where == "a name with =" else "evil"
    beside = ["--worktree"] if where == "a configuration beside" else []
    if beside:
        plain(repository, "config", "core.repositoryFormatVersion", "1")
        plain(repository, "config", "extensions.worktreeConfig", "true")
    for key in ("clean", "smudge"):
        plain(repository, "config", *beside, f"filter.{name}.{key}", trap)
    plain(repository, "config", *beside, f"filter.{name}.required", "true")
    (repository / ".gitattributes").write_text(f"*.txt filter={name}\n")
    (repository / "a.txt").write_text("two\n")
    for operation, *args in (("STATUS",), ("DIFF",), ("ADD", "--all"), ("COMMIT", "-m", "x"), ("CHECKOUT", "-b", "y")):
        result = await git(context, operation, *args)
        assert result["exit_code"] == 0, result
        assert not (repository / "ran").exists(), operation
    await status(context)
    assert not (repository / "ran").exists()


async def test_remotes_can_be_changed(context: Any, repository: Path) -> None:
    # Under Landlock git can't set the mode of the new file and fails. docs/sandbox.md says so.
    context.settings["confinement"] = "bwrap"
    before = (repository / ".git/config").read_text()
    result = await git(context, "REMOTE", "add", "origin", "https://example.org/x.git")
    assert result["exit_code"] == 0
    assert (repository / ".git/config").read_text() != before
    assert "example.org" in (await git(context, "REMOTE", "-v"))["output"]


async def test_only_operations_on_remotes_take_an_address(context: Any, repository: Path) -> None:
    for operation, url in (("LOG", "https://example.org/x.git"), ("FETCH", "ssh://example.org/x.git"), ("CLONE", None)):
        with pytest.raises(Failure) as caught:
            await git(context, operation, url=url)
        assert caught.value.details["violations"][0]["field"] == "url"


async def bash(context: Any, command: str) -> Any:
    return await call_primitive(shell.bash, {"command": command, "cwd": "", "timeout": 30, "env": []}, context)


async def test_a_missing_folder_of_hooks_cannot_be_made(context: Any, repository: Path) -> None:
    shutil.rmtree(repository / ".git/hooks")
    await bash(context, "mkdir .git/hooks; echo evil > .git/hooks/pre-commit; mv .git/hooks x; ln -s ../x .git/hooks")
    assert not (repository / ".git/hooks").is_symlink()
    assert os.listdir(repository / ".git/hooks") == []


@pytest.mark.parametrize("name", ["commondir", "config.worktree"])
async def test_other_files_of_configuration_cannot_be_made(context: Any, repository: Path, name: str) -> None:
    await bash(
        context, f"mkdir -p evil/hooks; cp -r .git/config .git/refs .git/objects evil; echo ../evil > .git/{name}"
    )
    made = repository / ".git" / name
    assert not made.exists() or made.read_bytes() == b""
    plain(repository, "status")


async def test_a_working_trees_own_configuration_cannot_be_written(context: Any, repository: Path) -> None:
    plain(repository, "config", "extensions.worktreeConfig", "true")
    plain(repository, "worktree", "add", "-q", "--detach", "tree")
    for place in (".git", ".git/worktrees/tree"):
        result = await bash(
            context, f"echo evil > {place}/config.worktree; mv x {place}/config.worktree; cat {place}/config.worktree"
        )
        assert "evil" not in result["output"].splitlines()
        assert (repository / place / "config.worktree").read_bytes() == b""
    assert plain(repository / "tree", "status", "--short") == ""


async def test_git_folders_in_other_places_are_read_only(context: Any, repository: Path) -> None:
    plain(repository, "config", "core.hooksPath", "tools/hooks")
    plain(repository, "config", "include.path", "../shared/settings")
    plain(repository, "worktree", "add", "-q", "--detach", "tree")
    places = (
        "tools/hooks/pre-commit",
        "shared/settings",
        ".git/worktrees/tree/commondir",
        "tree/.git",
        ".git/modules/libs/deep/config",
        ".git/modules/libs/deep/hooks/pre-commit",
        "kept/real/config",
        "kept/real/hooks/pre-commit",
    )
    for place in places:
        (repository / place).parent.mkdir(parents=True, exist_ok=True)
        if not (repository / place).exists():
            (repository / place).write_text("[a]\n")
    for folder in (".git/modules/libs/deep", "kept/real"):
        (repository / folder / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "other").mkdir()
    (repository / "other/.git").symlink_to("../kept/real")
    before = {place: (repository / place).read_text() for place in places}
    for place in places:
        await bash(context, f"echo evil >> {place}; echo evil > x; mv x {place}; rm -r {Path(place).parent}")
    assert {place: (repository / place).read_text() for place in places} == before


async def test_the_git_folder_cannot_be_the_working_tree_of_another_repository(context: Any, repository: Path) -> None:
    before = (repository / ".git/config").read_text()
    inner = repository / "sub/inner"
    inner.mkdir(parents=True)
    plain(inner, "init", "-q", "-b", "main")
    (inner / "config").write_text(f"[core]\n\tfsmonitor = touch {repository}/ran\n")
    plain(inner, "add", "config")
    plain(inner, "commit", "-q", "-m", "evil")
    plain(inner, "config", "core.worktree", str(repository / ".git"))
    for operation, *args in (("CHECKOUT", "-f", "main"), ("CHECKOUT", "main", "--", "config"), ("RESET", "--hard")):
        await git(context, operation, *args, cwd="sub/inner")
        assert (repository / ".git/config").read_text() == before


async def test_the_git_folder_cannot_be_its_own_working_tree(context: Any, repository: Path) -> None:
    (repository / "config").write_text(f"[core]\n\tfsmonitor = touch {repository}/ran\n")
    plain(repository, "add", "config")
    plain(repository, "commit", "-q", "-m", "evil")
    before = (repository / ".git/config").read_text()
    (repository / ".git/.git").write_text(f"gitdir: {repository}/.git\n")
    await git(context, "CHECKOUT", "-f", "main", cwd=".git")
    await git(context, "CHECKOUT", "main", "--", "config", cwd=".git")
    assert (repository / ".git/config").read_text() == before


async def test_programs_with_odd_names_do_not_run(context: Any, repository: Path) -> None:
    trap = f"touch {repository}/ran; cat; true"
    plain(repository, "config", "filter.a=b.clean", trap)
    (repository / ".git/config").open("ab").write(b'[filter "\xff"]\n\tclean = "' + trap.encode() + b'"\n')
    plain(repository, "config", "core.alternateRefsCommand", trap)
    plain(repository, "config", "tag.forceSignAnnotated", "true")
    plain(repository, "config", "gpg.format", "ssh")
    plain(repository, "config", "gpg.ssh.defaultKeyCommand", trap)
    (repository / ".gitattributes").write_bytes(b"*.txt filter=a=b\n*.dat filter=\xff\n")
    (repository / "b.dat").write_text("new\n")
    plain(repository, "-c", "filter.\udcff.clean=", "add", "b.dat")
    (repository / "b.dat").write_text("changed\n")
    (repository / "a.txt").write_text("two\n")
    (repository / "ran").unlink(missing_ok=True)
    for operation, *args in (("STATUS",), ("DIFF",), ("ADD", "a.txt"), ("TAG", "-m", "x", "v1")):
        await git(context, operation, *args)
        assert not (repository / "ran").exists(), operation
    assert (await status(context))["changed"] != []
    assert not (repository / "ran").exists()


async def test_programs_of_a_working_trees_own_configuration_do_not_run(context: Any, repository: Path) -> None:
    plain(repository, "config", "extensions.worktreeConfig", "true")
    plain(repository, "config", "--worktree", "filter.evil.clean", f"touch {repository}/ran; cat")
    (repository / ".gitattributes").write_text("*.txt filter=evil\n")
    (repository / "a.txt").write_text("two\n")
    await git(context, "DIFF")
    assert not (repository / "ran").exists()


def with_submodule(repository: Path) -> Path:
    """Add a submodule whose files have the filter `evil`. Returns the submodule's folder."""
    inner = repository / "inner"
    inner.mkdir()
    plain(inner, "init", "-q", "-b", "main")
    (inner / "b.txt").write_text("one\n")
    (inner / ".gitattributes").write_text("*.txt filter=evil\n")
    plain(inner, "add", "--all")
    plain(inner, "commit", "-q", "-m", "first")
    (repository / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n')
    plain(repository, "add", "--all")
    plain(repository, "commit", "-q", "-m", "with a submodule")
    return inner


async def test_programs_of_a_submodule_do_not_run(context: Any, repository: Path) -> None:
    inner = with_submodule(repository)
    plain(inner, "config", "filter.evil.clean", f"touch {repository}/ran; cat")
    (inner / "b.txt").write_text("two\n")
    for operation, *args in (
        ("STATUS",),
        ("DIFF",),
        ("COMMIT", "-m", "x"),
        ("COMMIT", "--dry-run"),
        ("CHECKOUT", "main"),
        ("LOG", "-p"),
        ("SHOW",),
    ):
        await git(context, operation, *args)
        assert not (repository / "ran").exists(), operation
    await status(context)
    assert not (repository / "ran").exists()


async def test_configuration_can_not_be_replaced_during_a_command(context: Any, repository: Path) -> None:
    # Under Landlock files are not mounted read-only, and git can't change its configuration anyway.
    context.settings["confinement"] = "bwrap"
    trying = "touch started; for n in {1..10}; do echo evil >> .git/config; sleep 0.05; done"
    running = asyncio.create_task(bash(context, trying))
    while not (repository / "started").exists():
        await asyncio.sleep(0.02)
    result = await git(context, "REMOTE", "add", "origin", "https://example.org/x.git")
    await running
    assert "evil" not in (repository / ".git/config").read_text()
    assert result["exit_code"] == 0
    assert "example.org" in plain(repository, "remote", "-v")


async def test_the_configuration_is_locked_while_other_commands_run(
    context: Any, repository: Path, monkeypatch: Any
) -> None:
    # Under Landlock files are not mounted read-only, and git can't change its configuration anyway.
    context.settings["confinement"] = "bwrap"
    monkeypatch.setattr(git_lock, "PATIENCE", 0.2)
    running = asyncio.create_task(bash(context, "touch started; while [ ! -e stop ]; do sleep 0.05; done"))
    while not (repository / "started").exists():
        await asyncio.sleep(0.02)
    assert (await git(context, "CHECKOUT", "-b", "side"))["exit_code"] == 0
    assert (await git(context, "REMOTE", "add", "origin", "https://example.org/x.git"))["exit_code"] != 0
    (repository / "stop").touch()
    assert (await running)["exit_code"] == 0
    assert (await git(context, "REMOTE", "add", "origin", "https://example.org/x.git"))["exit_code"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"operation": "CLONE"}, "url: CLONE needs the address to clone"),
        ({"operation": "PUSH", "args": ["--force-everything"]}, "--force-everything"),
        ({"operation": "FETCH", "url": "ext::sh -c true"}, "only https:// and http:// remotes can be reached"),
    ],
)
def test_an_impossible_call_is_refused_without_a_question(govern: Any, arguments: dict[str, Any], said: str) -> None:
    error = govern().call("git", arguments).error
    assert (error.code, said in error.message) == ("invalid_arguments", True)
