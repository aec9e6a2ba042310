"""git in a repository that tracks files that the rules forbid: nobody reads them through it, and commits keep them."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.builtins.files import files, folders
from albert_tools.builtins.git import git as tools
from albert_tools.builtins.git import hidden_paths as searches
from albert_tools.builtins.git.git_options import command, demand_options
from albert_tools.builtins.git.hidden_paths import MARK as MARK_FILE
from albert_tools.builtins.git.hidden_paths import HiddenPaths, hidden_paths
from albert_tools.builtins.git.limited_operations import limited
from albert_tools.builtins.shell import confined_command, shell
from albert_tools.engine.authority.authorization import Authority, Question
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.policy.layers import Layer
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.sandbox.command.confinement import found
from albert_tools.engine.workspace import git_lock
from albert_tools.engine.workspace.git_folders import family
from albert_tools.engine.workspace.workspace import Workspace
from tests.builtins.conftest import Context
from tests.builtins.test_git import ENVIRONMENT, plain
from tests.helpers.effort import examples
from tests.helpers.governed import Governed

FORBIDDEN = ["secrets", "*.pem", "config/prod.yml"]
#: Every version of a forbidden file contains this text.
MARK = "HIDDEN"


def build(root: Path) -> None:
    """Two commits; the second changes, deletes and adds forbidden files. A dropped commit has another one."""
    plain(root, "init", "-q", "-b", "main")
    for name in ("secrets/key", "config/prod.yml", "old.pem", "sub/x.pem"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"{MARK} {name}\n")
    (root / "config/dev.yml").write_text("dev\n")
    (root / "a.txt").write_text("one\n")
    plain(root, "add", "--all")
    plain(root, "commit", "-q", "-m", "first")
    plain(root, "branch", "old")
    (root / "old.pem").unlink()
    (root / "secrets/key").write_text(f"{MARK} rotated\n")
    (root / "config/prod.yml").write_text(f"{MARK} changed\n")
    (root / "a.txt").write_text("one\ntwo\n")
    plain(root, "commit", "-q", "-a", "-m", "second")
    plain(root, "tag", "blob", "HEAD:secrets/key")
    (root / "secrets/staged").write_text(f"{MARK} stashed\n")
    plain(root, "add", "--all")
    plain(root, "stash", "-q")


@pytest.fixture(autouse=True)
def nothing_found_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding is remembered by the inode of the git folder, and another test's may have had the same one."""
    monkeypatch.setattr(searches, "_ever_found", set())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built").resolve() / "work"
    folder.mkdir()
    build(folder)
    return folder


@pytest.fixture
def repository(built: Path, root: Path) -> Path:
    shutil.copytree(built, root, dirs_exist_ok=True, symlinks=True)
    (root / ".git" / MARK_FILE).unlink(missing_ok=True)
    return root


def context_of(tool: Primitive, root: Path, forbidden: list[str] = FORBIDDEN, confinement: str = "bwrap") -> Context:
    """The context of a call to a tool for which the rules forbid these paths."""
    policy = Policy((Layer(tools={tool.name: {"forbidden_paths": tuple(forbidden)}}),), str(root), "/nowhere")
    workspace = Authority(policy, Modes(None)).guarded(tool.definition, Workspace(root))
    return Context(workspace, settings={"confinement": confinement})


async def git(root: Path, operation: str, *args: str, **more: Any) -> Any:
    """The output of an operation, or the failure as text, with the exit code before it."""
    confinement = more.pop("confinement", "bwrap")
    try:
        arguments = {"operation": operation, "args": list(args), **more}
        result = await call_primitive(tools.git, arguments, context_of(tools.git, root, confinement=confinement))
    except Failure as failure:
        if failure.code not in ("permission_denied", "invalid_arguments") or not failure.hint:
            raise
        return f"{failure.code} {failure.rule} {failure.message}"
    return f"{result['exit_code']} {result['output']}"


@cache
def hash_of(root: Path, name: str) -> str:
    return plain(root, "rev-parse", name).strip()


def readings(root: Path) -> list[tuple[Any, ...]]:
    """Attempts to read a forbidden file: an operation, its arguments, and perhaps the working directory."""
    blob, tree = hash_of(root, "HEAD:secrets/key"), hash_of(root, "HEAD:secrets")
    # A few digits are enough.
    top = hash_of(root, "HEAD^{tree}")[:5]
    return [
        ("SHOW", "HEAD:secrets/key"),
        ("SHOW", "HEAD:secrets"),
        ("SHOW", ":secrets/key"),
        ("SHOW", ":0:secrets/key"),
        ("SHOW", "HEAD:./secrets/key"),
        ("SHOW", "HEAD:sub/../secrets/key"),
        ("SHOW", "HEAD:./prod.yml", "config"),
        ("SHOW", ":0:./prod.yml", "config"),
        ("SHOW", "HEAD:sub/x.pem^!"),
        ("SHOW", ":/first..HEAD:secrets/key"),
        ("SHOW", "}:secrets/key"),
        ("SHOW", "HEAD:../secrets/key", "config"),
        ("SHOW", "HEAD~1:old.pem"),
        ("SHOW", "HEAD~1"),
        ("SHOW", "--name-only", "HEAD", "--", "*"),
        ("SHOW", blob),
        ("SHOW", blob[:10]),
        ("SHOW", "blob"),
        ("SHOW", "blob^{}"),
        ("SHOW", f"{tree}:key"),
        ("SHOW", tree),
        ("SHOW", "HEAD^{tree}:secrets/key"),
        ("SHOW", "stash@{0}^2"),
        ("SHOW", "stash@{0}:secrets/staged"),
        ("LOG", "-p"),
        ("LOG", "-p", "--all", "--graph"),
        ("LOG", "-p", "--", "secrets/*", ":(top)old.pem", ":(icase)SECRETS/key"),
        ("LOG", "-p", "main", "--", ":(exclude)a.txt"),
        ("LOG", "--follow", "-p", "--", "a.txt"),
        ("LOG", "--stat", "--format=", "old..main"),
        ("LOG", "-p", "a.txt", "-S"),
        ("LOG", "-p", "-S", "--", "-U9"),
        ("DIFF", "HEAD~1"),
        ("DIFF", "HEAD~1..HEAD", "--binary"),
        ("DIFF", "old", "main", "--raw"),
        ("DIFF", "old...main", "--", ":/"),
        ("DIFF", "--stat", "HEAD~1:secrets/key", "HEAD:secrets/key"),
        ("DIFF", "HEAD~1:secrets/key..HEAD:secrets/key"),
        ("DIFF", "HEAD~1:", "HEAD:"),
        ("DIFF", "HEAD~1:config", "HEAD:config"),
        ("DIFF", ":/first", ":/second"),
        ("DIFF", "blob", "HEAD:a.txt"),
        ("DIFF", "HEAD:a.txt", blob),
        ("DIFF", "--cached", "HEAD~1", "--", "secrets/key"),
        ("DIFF", "secrets/key", "/dev/null"),
        ("STASH", "show", "-p"),
        ("STASH", "list", "-p"),
        ("STASH", "list", "-u"),
        ("STASH", "-u", "list"),
        ("STATUS", "-v"),
        ("COMMIT", "--dry-run", "-v", "--amend", "-m", "x"),
        ("TAG", "t", "HEAD:secrets/key"),
        ("TAG", "--", "u", "HEAD:secrets/key"),
        ("TAG", "--list", "--format=%(refname) %(objecttype) %(contents) %(contents:lines=9) %(*contents)"),
        ("TAG", "--list", "--format=%(raw)"),
        ("TAG", "--list", "--sort=raw"),
        ("TAG", "-n9"),
        ("BRANCH", "--format=%(raw)"),
        ("BRANCH", "--format=%(tree)"),
        ("LOG", "--format=%T"),
        ("LOG", "--pretty=raw"),
        ("LOG", "--pretty=r"),
        ("LOG", "--format=%+T"),
        ("SHOW", "--pretty=format:%h %t"),
        ("BRANCH", "-a", "--sort=raw"),
        ("BRANCH", "-a", "--sort=-committerdate"),
        ("BRANCH", "b", "HEAD:secrets/key"),
        ("BRANCH", "b", "HEAD^{tree}"),
        ("BRANCH", "b", top),
        ("BRANCH", f"--contains={top}"),
        ("BRANCH", "--merged", top),
        ("BRANCH", "--no-merged", top),
        ("BRANCH", "--contains", top),
        ("TAG", f"--merged={top}"),
        ("COMMIT", f"--fixup={top}"),
        ("BRANCH", "--contains", "HEAD^{tree}"),
        ("BRANCH", "--merged=HEAD^{tree}"),
        ("TAG", "--contains=HEAD^{tree}"),
        ("COMMIT", "--fixup=amend:HEAD^{tree}"),
        ("COMMIT", "--dry-run"),
        ("COMMIT", "-m", "x"),
        ("COMMIT", "-a", "-m", "x"),
        ("COMMIT", "--amend", "--no-edit"),
        ("COMMIT", "-m", "x", "--", "none"),
        ("LOG", "-p", ".git"),
    ]


@pytest.mark.parametrize("confinement", ["bwrap", pytest.param("landlock", marks=pytest.mark.slow)])
async def test_no_operation_prints_a_forbidden_file(built: Path, confinement: str) -> None:
    assert confinement in found().kinds, found().missing.get(confinement)
    attempts = readings(built)
    await git(built, "STATUS", confinement=confinement)  # The search of the repository is cached.
    turns = asyncio.Semaphore(4)

    async def attempt(operation: str, *args: str) -> str:
        more = {"cwd": args[-1]} if args[-1:] in (("config",), (".git",)) else {}
        async with turns:
            return str(await git(built, operation, *args[: len(args) - len(more)], confinement=confinement, **more))

    answers = await asyncio.gather(*(attempt(*each) for each in attempts))
    leaks = {each: answer for each, answer in zip(attempts, answers, strict=True) if MARK in answer}
    assert leaks == {}
    trees = [hash_of(built, name)[:7] for name in ("HEAD^{tree}", "HEAD~1^{tree}")]
    named = (*trees, "rotated", "prod.yml |", "key |", "old.pem |", "sub/x.pem\n", "staged |")
    assert [answer for answer in answers if any(text in answer for text in named)] == []


@pytest.mark.parametrize("words", [("t",), ("-m", "x", "t"), ("-a", "-m", "x", "t")])
async def test_a_tag_names_a_commit(built: Path, words: tuple[str, ...]) -> None:
    # A format would tell the id and the size of another object.
    assert "expected commit type" in await git(built, "TAG", *words, hash_of(built, "HEAD:secrets/key"))


#: Parts of revisions and paths. They are joined in any order.
REVISIONS = st.sampled_from("HEAD HEAD~1 main old blob tag stash@{0} stash@{0}^2 @ :0 :/first :/ {blob} {tree}".split())
OPERATORS = st.sampled_from(["..", "...", ":", "^", "^!", "^@", "^-", "^{}", "^{tree}", "^{commit}", "~0", "@{0}", ""])
PLACES = st.sampled_from(
    "secrets/key ./secrets key sub/x.pem x.pem ./x.pem config prod.yml old.pem a.txt . ../ :/ *".split()
)
WORDS = st.lists(REVISIONS | OPERATORS | PLACES, min_size=1, max_size=4).map("".join)
FLAGS = st.sampled_from(
    "-p --raw --stat --name-only --all --cached -S -n --relative --graph --binary -U9 --format=%H --".split()
)


@given(
    st.sampled_from(["SHOW", "DIFF", "LOG"]),
    st.lists(WORDS | REVISIONS | PLACES | FLAGS, min_size=1, max_size=5),
    st.sampled_from(["", "config", "sub"]),
)
@examples(60)
def test_no_combination_of_words_prints_a_forbidden_file(
    built: Path, operation: Any, words: list[str], cwd: str
) -> None:
    """Runs git without a sandbox, so it sees everything."""
    names = {"{blob}": "HEAD:secrets/key", "{tree}": "HEAD:secrets"}
    words = [re.sub(r"\{blob\}|\{tree\}", lambda name: hash_of(built, names[name[0]]), word) for word in words]
    try:
        demand_options(operation, words)
        context = context_of(tools.git, built)
        hidden = HiddenPaths(str(built), tuple(context.workspace.judge.forbidden_globs(str(built))), (str(built),))
        exists, demand = partial(tools._exists, context, cwd), partial(tools._demand, context, cwd, hidden)
        limits = limited(operation, words, hidden, exists, demand)
    except Failure:
        return
    line, environment = command(operation, limits, limited=True), {**ENVIRONMENT, **hidden.environment}
    done = subprocess.run(line, cwd=built / cwd, env=environment, capture_output=True, check=False)
    shown = done.stdout + done.stderr
    assert MARK.encode() not in shown, (operation, words, cwd)
    assert not re.search(rb"(key|prod.yml|\.pem) +\|", shown), (operation, words, cwd)


async def test_allowed_files_are_shown_as_ever(built: Path) -> None:
    assert (await git(built, "LOG", "--format=%s", "main")) == "0 second\nfirst\n"
    assert "+two" in await git(built, "SHOW")
    assert (await git(built, "SHOW", "HEAD~1:a.txt")) == "0 one\n"
    assert "+two" in await git(built, "DIFF", "old..main", "a.txt")
    assert await git(built, "STATUS", "--short") == "0 "
    status = await call_primitive(tools.git_status, {}, context_of(tools.git_status, built))
    assert status["clean"]


async def test_other_programs_do_not_see_the_git_folder(built: Path) -> None:
    commands = "git log -p; cat .git/HEAD; ls -A .git; git -C sub log -p; grep -rs HIDDEN .; echo end"
    result = await call_primitive(shell.bash, {"command": commands}, context_of(shell.bash, built))
    assert "not a git repository" in result["output"]
    assert result["output"].endswith("\nend\n")
    assert MARK not in result["output"]
    for path in (".git/index", next((built / ".git/objects").glob("??/*")), ".git/logs/../index"):
        name = str(path).removeprefix(f"{built}/")
        with pytest.raises(Failure) as caught:
            await call_primitive(files.read_file, {"path": name}, context_of(files.read_file, built))
        assert caught.value.code == "permission_denied"
    listed = await call_primitive(
        folders.list_directory, {"path": ".git", "recursive": True}, context_of(folders.list_directory, built)
    )
    assert not any("objects/" in entry["path"] for entry in listed)
    await call_primitive(files.read_file, {"path": ".git/HEAD"}, context_of(files.read_file, built))


@pytest.mark.parametrize(
    "where",
    [
        "reset commit",
        pytest.param("removed", marks=pytest.mark.slow),
        "index",
        "fetched",
        "CHERRY_PICK_HEAD",
        "BISECT_START",
        "rebase-merge/autostash",
        "sequencer/todo",
        "a tag of a tree",
    ],
)
async def test_a_file_that_only_history_or_the_index_has_counts(repository: Path, where: str, tmp_path: Path) -> None:
    forbidden, other = ["only.key"], repository
    if where == "fetched":
        other = tmp_path / "other"
        shutil.copytree(repository, other, symlinks=True)
    (other / "only.key").write_text(f"{MARK}\n")
    plain(other, "add", "only.key")
    if where != "index":
        plain(other, "commit", "-q", "-m", "add")
        (other / "only.key").unlink()
        plain(other, "commit", "-q", "-a", "-m", "remove")
        if where == "reset commit":
            plain(other, "reset", "-q", "--hard", "HEAD~2")
        if where == "fetched":
            plain(repository, "fetch", "-q", str(other))
        if where == "a tag of a tree":
            plain(repository, "tag", "-a", "-m", "x", "tree", "HEAD~1^{tree}")
            plain(repository, "reset", "-q", "--hard", "HEAD~2")
            plain(repository, "reflog", "expire", "--expire=now", "--all")
            (repository / ".git" / "ORIG_HEAD").unlink()
        if where.isupper() or "/" in where:
            # Only an operation that the owner has begun names the commit.
            named = hash_of(repository, "HEAD~1")
            plain(repository, "reset", "-q", "--hard", "HEAD~2")
            plain(repository, "reflog", "expire", "--expire=now", "--all")
            (repository / ".git" / "ORIG_HEAD").unlink()
            file = repository / ".git" / where
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"pick {named[:7]} add\n" if where.endswith("todo") else f"{named}\n")
            # Names of branches come before ids.
            plain(repository, "branch", named[:7])
    context = context_of(shell.bash, repository, forbidden)
    result = await call_primitive(shell.bash, {"command": "git log --all -p; git show :only.key"}, context)
    assert result["exit_code"] == 128
    assert "not a git repository" in result["output"]


@pytest.mark.parametrize("where", ["index", "CHERRY_PICK_HEAD"])
async def test_what_a_further_working_tree_names_is_hidden_in_all_of_them(repository: Path, where: str) -> None:
    plain(repository, "worktree", "add", "-q", "further", "-b", "further")
    (repository / "further/only.key").write_text(f"{MARK}\n")
    plain(repository / "further", "add", "only.key")
    blob = hash_of(repository / "further", ":only.key")
    if where != "index":
        plain(repository / "further", "commit", "-q", "-m", "add")
        named = hash_of(repository / "further", "HEAD")
        plain(repository / "further", "reset", "-q", "--hard", "HEAD~1")
        plain(repository, "reflog", "expire", "--expire=now", "--all")
        (repository / ".git/worktrees/further/ORIG_HEAD").unlink()
        (repository / ".git/worktrees/further" / where).write_text(f"{named}\n")
    context = context_of(tools.git, repository, ["only.key"])
    shown = await call_primitive(tools.git, {"operation": "SHOW", "args": [blob]}, context)
    assert MARK not in shown["output"]
    context = context_of(shell.bash, repository, ["only.key"])
    result = await call_primitive(shell.bash, {"command": f"ls; git show {blob}"}, context)
    assert "further" in result["output"]
    assert MARK not in result["output"]


async def test_a_repository_without_forbidden_files_is_searched_once(repository: Path) -> None:
    ran: list[Any] = []

    async def counted(*args: Any, **how: Any) -> Any:
        ran.append(args[1])
        return await confined_command.run(*args, **how)

    context = context_of(tools.git, repository, ["nothing"])
    for _ in range(3):
        hidden = await hidden_paths(context, "", counted)
        assert hidden is not None
        assert not hidden.found
    assert len(ran) == 3  # Of one search: the index, the branches, the history.
    plain(repository, "commit", "-q", "--allow-empty", "-m", "more")
    await hidden_paths(context, "", counted)
    assert any(word.startswith("^") for word in ran[-1])  # Only new commits are searched.
    assert await hidden_paths(context_of(tools.git, repository, []), "", counted) is None
    # Nothing is restricted.
    arguments = {"operation": "LOG", "args": ["--follow", "--format=%s", "a.txt"]}
    assert (await call_primitive(tools.git, arguments, context))["output"] == "second\nfirst\n"
    result = await call_primitive(
        shell.bash, {"command": "git log -1"}, context_of(shell.bash, repository, ["nothing"])
    )
    assert result["exit_code"] == 0


def hidden_in(root: Path, commit: str) -> str:
    """The forbidden files of a commit with their hashes."""
    return plain(root, "ls-tree", "-r", commit, "--", "secrets", "config/prod.yml", "sub/x.pem", "old.pem")


async def test_everyday_work_keeps_the_forbidden_files(repository: Path) -> None:
    before = hidden_in(repository, "HEAD")
    # The owner's uncommitted changes.
    (repository / "secrets/key").write_text("changed by the owner")
    (repository / "secrets/new").write_text("added by the owner")
    for n, commit in enumerate((["-m", "x"], ["-am", "x"], ["-m", "x", "--", "a.txt", "b.txt"])):
        (repository / "a.txt").write_text(f"{n}\n")
        (repository / "b.txt").write_text(f"{n}\n")
        if n != 1:
            assert await git(repository, "ADD", "-A") == "0 "
        assert (await git(repository, "COMMIT", *commit)).startswith("0 "), commit
        assert plain(repository, "show", "--format=", "--name-only").split() == ["a.txt", "b.txt"]
        assert hidden_in(repository, "HEAD") == before
    (repository / "a.txt").write_text("stashed\n")
    assert (await git(repository, "STASH")).startswith("0 ")
    assert (await git(repository, "STASH", "pop")).startswith("0 ")
    assert plain(repository, "status", "--short") == " M a.txt\n M secrets/key\n?? secrets/new\n"
    assert "RESET can't leave them out" in await git(repository, "RESET", "--hard")
    assert "CHECKOUT can't leave them out" in await git(repository, "CHECKOUT", "-f", "old")
    assert "would be overwritten" in await git(repository, "CHECKOUT", "old")
    assert "forbidden by" in await git(repository, "CHECKOUT", "--", "secrets/key")
    for attempt in (("CHECKOUT", "secrets/key"), ("CHECKOUT", "HEAD", "--", "."), ("RESET", "--", ".")):
        await git(repository, *attempt)
    assert (repository / "secrets/key").read_text() == "changed by the owner"
    assert (repository / "secrets/new").read_text() == "added by the owner"


MERGING = (
    "MERGE main",
    "REBASE main",
    "PULL --rebase",
    "STASH pop",
    *(
        pytest.param(how, marks=pytest.mark.slow)
        for how in (
            "MERGE --ff-only --strategy=subtree main",
            "MERGE --ff-only -X ours main",
            "MERGE --continue",
            "REBASE --onto=main early",
            "REBASE --continue",
            "REBASE --skip",
            "STASH branch new",
        )
    ),
)


@pytest.mark.parametrize("how", MERGING)
async def test_a_forbidden_file_is_not_merged_into_a_file_of_another_name(repository: Path, how: str) -> None:
    """On one branch a file became a forbidden one; here it gets another name."""
    await rename_apart(repository)
    if how.startswith("STASH"):
        await git(repository, "STASH", "push")
        await git(repository, "CHECKOUT", "main")
    else:
        await git(repository, "COMMIT", "-m", "renamed")
    assert "could merge them into files of other names" in await git(repository, *how.split())
    assert not marked(repository)


@pytest.mark.parametrize(
    "setting", ["merge.autoStash=true", "branch.other.mergeOptions=--autostash --no-ff", "none.a=b"]
)
async def test_a_merge_forward_merges_no_staged_files(repository: Path, setting: str) -> None:
    await rename_apart(repository)
    plain(repository, "config", *setting.split("=", 1))
    assert (await git(repository, "MERGE", "--ff-only", "main"))[:2] in ("0 ", "1 ")
    assert not marked(repository)


async def test_a_stash_is_popped_where_it_was_made(repository: Path) -> None:
    await rename_apart(repository)
    plain(repository, "reset", "-q", "--hard")
    # A stash of the owner has made the file a forbidden one.
    plain(repository, "mv", "settings", "secrets/moved")
    (repository / "secrets/moved").write_text("".join([*LINES, f"{MARK}\n"]))
    plain(repository, "stash", "-q")
    (repository / "settings").rename(repository / "public")
    await git(repository, "ADD", "-A")
    assert "could merge them into files of other names" in await git(repository, "STASH", "pop")
    plain(repository, "reset", "-q", "--hard")
    # Git can't write the forbidden file.
    assert "unable to create file secrets/moved" in await git(repository, "STASH", "pop")
    assert not marked(repository)


LINES = [f"key{i}\n" for i in range(20)]


def marked(repository: Path) -> list[Path]:
    """The files at the top that have the text of a forbidden one."""
    return [p for p in repository.iterdir() if p.is_file() and MARK in p.read_text("utf-8", "replace")]


async def rename_apart(repository: Path) -> None:
    """On `main`, a file of `early` became a forbidden one. On `other`, which is checked out, another name for it is staged."""
    (repository / "settings").write_text("".join(LINES))
    plain(repository, "add", "settings")
    plain(repository, "commit", "-q", "-m", "early")
    plain(repository, "branch", "early")
    plain(repository, "mv", "settings", "secrets/settings")
    (repository / "secrets/settings").write_text("".join([*LINES, f"{MARK}\n"]))
    plain(repository, "commit", "-q", "-a", "-m", "late")
    await git(repository, "CHECKOUT", "-b", "other", "early")
    (repository / "settings").rename(repository / "public")
    await git(repository, "ADD", "-A")


async def test_git_moves_only_between_commits_with_the_same_forbidden_files(repository: Path) -> None:
    plain(repository, "checkout", "-q", "-b", "later")
    (repository / "a.txt").write_text("later\n")
    plain(repository, "commit", "-q", "-a", "-m", "later")
    assert (await git(repository, "CHECKOUT", "main")).startswith("0 ")
    assert (await git(repository, "MERGE", "--ff-only", "later")).startswith("0 ")
    assert (repository / "a.txt").read_text() == "later\n"
    assert "would be overwritten" in await git(repository, "CHECKOUT", "old")
    assert (repository / "secrets/key").read_text() == f"{MARK} rotated\n"
    for operation in ("MERGE", "REBASE"):
        assert "permission_denied" in await git(repository, operation, "--abort")


async def test_a_merge_that_the_owner_has_begun_is_committed(repository: Path) -> None:
    plain(repository, "checkout", "-q", "-b", "later")
    for name in ("secrets/key", "a.txt"):
        (repository / name).write_text(f"{MARK} later\n")
    plain(repository, "commit", "-q", "-a", "-m", "later")
    plain(repository, "checkout", "-q", "-b", "side", "main")
    (repository / "a.txt").write_text("conflict\n")
    plain(repository, "commit", "-q", "-a", "-m", "side")
    assert "CONFLICT" in plain(repository, "merge", "later", fails=True)
    (repository / "a.txt").write_text("resolved\n")
    await git(repository, "ADD", "a.txt")
    assert (await git(repository, "COMMIT", "-m", "merged")).startswith("0 ")
    assert hidden_in(repository, "HEAD") == hidden_in(repository, "later")
    assert plain(repository, "status", "--short") == ""


async def test_no_commit_deletes_or_reverts_a_forbidden_file(repository: Path) -> None:
    before = hidden_in(repository, "HEAD")
    attempts = [
        ("RESET", "old"),
        ("RESET", "--soft", "old"),
        ("RESET", "old", "--", "."),
        ("CHECKOUT", "old", "--", ":/"),
        ("ADD", "-A", "secrets"),
        ("ADD", "--renormalize", "."),
        ("MERGE", "--strategy=ours", "old"),
        ("MERGE", "--strategy-option=subtree=pub", "old"),
        ("MERGE", "-X", "subtree=\n", "old"),
        ("STASH", "apply", "main~1"),
    ]
    for attempt in attempts:
        await git(repository, *attempt)
        staged = plain(repository, "diff", "--cached", "--name-only").split()
        assert not {"secrets/key", "config/prod.yml", "sub/x.pem", "old.pem"} & set(staged), attempt
    assert (await git(repository, "COMMIT", "-a", "-m", "x")).startswith("0 ")
    assert hidden_in(repository, "HEAD") == before
    plain(repository, "rm", "-q", "--cached", "secrets/key")
    answer = await git(repository, "COMMIT", "-m", "what the owner staged")
    assert answer.startswith("permission_denied git_forbidden_paths the rules forbid files in this repository, and the")
    plain(repository, "reset", "-q")
    await git(repository, "CHECKOUT", "--orphan", "new")
    assert "permission_denied" in await git(repository, "COMMIT", "-m", "a new beginning without them")


@pytest.fixture
def remote(govern: Callable[..., Governed], tmp_path: Path) -> Iterator[tuple[Governed, str]]:
    """A workspace whose repository has no forbidden file, and the address of a remote whose branch `late` has one."""
    rules = {"forbidden_paths": ["config/prod.yml"], "free_hosts": ["127.0.0.1"], "allow": ["git", "bash"]}
    operations = ["CHECKOUT", "FETCH", "PULL", "MERGE", "SHOW", "LOG", "DIFF"]
    git_rules = {"allowed_operations": operations, "allowed_hosts": ["127.0.0.1"]}
    home = govern(governance={**rules, "tools": {"git": git_rules}})
    (home.work / "config").mkdir()
    plain(home.work, "init", "-q", "-b", "main")
    for name in ("dev.yml", "test.yml"):
        (home.work / "config" / name).write_text(f"{name}\n")
    plain(home.work, "add", "--all")
    plain(home.work, "commit", "-q", "-m", "first")
    served = tmp_path / "served"
    plain(tmp_path, "clone", "-q", str(home.work), "upstream")
    plain(tmp_path / "upstream", "checkout", "-q", "-b", "late")
    (tmp_path / "upstream/config/prod.yml").write_text(f"{MARK}\n")
    plain(tmp_path / "upstream", "add", "--all")
    plain(tmp_path / "upstream", "commit", "-q", "-m", "late")
    plain(tmp_path, "clone", "-q", "--bare", str(tmp_path / "upstream"), str(served))
    plain(served, "update-server-info")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(served))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield home, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def said(home: Governed, operation: str, *args: str, **more: Any) -> str:
    result = home.call("git", operation=operation, args=args, **more)
    return str(result.output["output"] if result.ok else result.error)


@pytest.mark.parametrize("how", ["", "--no-rebase", "--rebase", "--ff-only --no-ff", "--ff-only --ff"])
def test_what_a_pull_brings_is_not_merged_unseen(remote: tuple[Governed, str], how: str) -> None:
    """Git would follow a folder to its new name, with the forbidden file that the remote has added in it."""
    home, url = remote
    plain(home.work, "mv", "config", "public")
    plain(home.work, "commit", "-q", "-m", "renamed")
    assert "the rules forbid files in this repository, and PULL" in said(home, "PULL", *how.split(), "late", url=url)
    assert not (home.work / ".git" / MARK_FILE).exists()
    assert "Not possible to fast-forward" in said(home, "PULL", "--ff-only", "late", url=url)
    assert "MERGE could merge them" in said(home, "MERGE", "FETCH_HEAD")
    assert not [p for p in home.work.glob("*/*") if p.is_file() and MARK in p.read_text("utf-8", "replace")]


def test_a_pull_that_merges_nothing_is_allowed(remote: tuple[Governed, str]) -> None:
    home, url = remote
    assert "Fast-forward" in said(home, "PULL", "--ff-only", "late", url=url)
    assert (home.work / "config/prod.yml").exists()
    assert MARK not in said(home, "SHOW", "HEAD")


@pytest.mark.parametrize("args", [["late"], ["main", "late"], ["--dry-run", "late"], ["main"]], ids=" ".join)
def test_what_a_fetch_brings_is_hidden_from_then_on(
    remote: tuple[Governed, str], args: list[str], tmp_path: Path
) -> None:
    """Code of the project can write false objects and take names away before a search, so none is made."""
    home, url = remote
    late = hash_of(tmp_path / "upstream", "late")
    assert "commit" in str(home.call("bash", command="git log").output)
    said(home, "FETCH", *args, url=url)
    assert args == ["main"] or MARK in plain(home.work, "show", late)
    (home.work / ".git/FETCH_HEAD").unlink(missing_ok=True)
    for words in (["SHOW", late], ["SHOW", f"{late}:config/prod.yml"], ["LOG", "-p", late], ["DIFF", "main", late]):
        assert MARK not in said(home, *words)
    assert "not a git repository" in str(home.call("bash", command=f"git show {late}").output)
    assert "first" in said(home, "LOG")
    # Only the owner takes the mark away.
    assert not home.call("delete_file", path=f".git/{MARK_FILE}").ok
    (home.work / ".git" / MARK_FILE).unlink()


def test_a_clone_without_an_end_is_hidden(govern: Callable[..., Governed]) -> None:
    """Its objects may be there without a name."""
    rules = {"forbidden_paths": ["prod.yml"], "free_hosts": ["127.0.0.1"], "allow": ["git", "bash"]}
    git_rules = {"allowed_operations": ["CLONE"], "allowed_hosts": ["127.0.0.1"]}
    home = govern(governance={**rules, "tools": {"git": git_rules}})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        result = home.call("git", operation="CLONE", args=["c"], url=url, timeout=3)
    assert result.error.code == "timeout"
    assert (home.work / "c/.git" / MARK_FILE).exists()
    assert "HEAD" not in str(home.call("bash", command="ls c/.git").output)


def test_objects_that_are_stored_elsewhere_are_not_fetched(remote: tuple[Governed, str]) -> None:
    home, url = remote
    (home.work / "store").mkdir()
    (home.work / ".git/objects/ab").symlink_to("../../store")
    assert "commands would see what git brings" in said(home, "FETCH", "late", url=url)
    assert not any((home.work / "store").iterdir())


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("MERGE_MSG", ["COMMIT", "--allow-empty", "--no-edit"]),
        ("COMMIT_EDITMSG", ["COMMIT", "--allow-empty", "-m", "x"]),
        ("packed-refs", ["CHECKOUT", "-b", "new"]),
        ("shallow", ["MERGE", "--ff-only", "HEAD"]),
        ("objects/info/alternates", ["RESET", "--soft", "HEAD"]),
    ],
)
async def test_git_reads_no_hidden_file_in_place_of_its_own(repository: Path, link: str, words: list[str]) -> None:
    """A command can make links in git's folder, and a false entry in the index makes git see a file that was never tracked."""
    path = repository / ".git" / link
    path.unlink(missing_ok=True)
    path.symlink_to("../" * (link.count("/") + 1) + "secrets/key")
    before = (repository / "secrets/key").read_text()
    assert MARK not in await git(repository, *words)
    assert MARK not in await git(repository, "LOG")
    assert (repository / "secrets/key").read_text() == before


async def test_a_repository_whose_last_hidden_commit_loses_its_name_stays_limited(repository: Path) -> None:
    """Another process would find nothing."""
    (repository / "secrets/new").write_text(f"{MARK} new\n")
    plain(repository, "add", "--all")
    assert "other versions of them than the index" in await git(repository, "RESET")
    assert MARK in plain(repository, "show", ":secrets/new")
    assert (await git(repository, "BRANCH", "-D", "old")).startswith("0 ")
    assert (repository / ".git" / MARK_FILE).exists()


async def test_no_setting_of_a_repository_makes_git_read_a_hidden_file(repository: Path) -> None:
    """A command can make a repository, with its settings."""
    for name in ("commit.template", "mailmap.file", "fetch.fsck.skipList"):
        plain(repository, "config", name, str(repository / "secrets/key"))
    plain(repository, "config", "commit.verbose", "2")
    (repository / "secrets/key").write_text(f"{MARK} changed\n")
    (repository / "a.txt").write_text("changed\n")
    plain(repository, "add", "a.txt")
    assert MARK not in await git(repository, "COMMIT", "--dry-run")
    assert MARK not in await git(repository, "COMMIT", "--allow-empty", "--allow-empty-message")
    assert MARK not in await git(repository, "LOG")


async def test_a_finding_is_not_forgotten_when_the_rules_change(repository: Path) -> None:
    """A new repository in the workspace adds patterns."""
    await git(repository, "STATUS")
    blob = plain(repository, "rev-parse", "HEAD:secrets/key").strip()
    plain(repository, "checkout", "-q", "--orphan", "new")
    plain(repository, "rm", "-q", "-r", "-f", "--cached", ".")
    plain(repository, "commit", "-q", "--allow-empty", "-m", "none")
    for name in ("main", "old"):
        plain(repository, "branch", "-D", name)
    plain(repository, "tag", "-d", "blob")
    plain(repository, "stash", "clear")
    shutil.rmtree(repository / ".git/logs")
    (repository / "inner/.git/refs").mkdir(parents=True)
    result = await call_primitive(shell.bash, {"command": f"git show {blob}"}, context_of(shell.bash, repository))
    assert "not a git repository" in result["output"]


async def test_a_comparison_is_of_the_whole_repository(repository: Path) -> None:
    plain(repository, "config", "diff.relative", "true")
    (repository / "config/prod.yml").write_text("changed by the owner")
    plain(repository, "add", "config/prod.yml")
    assert "permission_denied" in await git(repository, "COMMIT", "-m", "x", cwd="sub")


async def test_a_search_reads_commits_as_they_are(repository: Path) -> None:
    """Grafts hide the history from git, and can be deleted afterwards."""
    plain(repository, "rm", "-q", "-r", "secrets", "config/prod.yml", "sub/x.pem")
    plain(repository, "commit", "-q", "-m", "without them")
    for name in ("old", "blob"):
        plain(repository, "branch" if name == "old" else "tag", "-D" if name == "old" else "-d", name)
    plain(repository, "stash", "clear")
    shutil.rmtree(repository / ".git/logs")
    grafts = repository / ".git/info/grafts"
    grafts.write_text(plain(repository, "rev-parse", "HEAD"))
    await git(repository, "STATUS")
    grafts.unlink()
    assert MARK in plain(repository, "show", "HEAD~1:secrets/key")
    assert "permission_denied" in await git(repository, "SHOW", "HEAD~1:secrets/key")


@pytest.mark.parametrize("operation", ["FETCH", "CHECKOUT late"])
def test_git_brings_no_forbidden_file_to_a_command_that_runs(
    remote: tuple[Governed, str], operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = remote
    monkeypatch.setattr(git_lock, "PATIENCE", 0.2)
    waiting = "touch started; while [ ! -e stop ]; do sleep 0.05; done; git show FETCH_HEAD; cat config/prod.yml"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(home.call, "bash", command=waiting)
        while not (home.work / "started").exists():
            time.sleep(0.02)
        words = operation.split()
        more = {"url": url} if operation == "FETCH" else {}
        assert "they would see the forbidden files that git can bring" in said(home, *words, **more)
        (home.work / "stop").touch()
        assert MARK not in str(running.result().output)
    assert "they would see" not in said(home, *words, **more)


@pytest.mark.parametrize(
    ("named", "is_main"),
    [
        ("../../.git\n", True),
        ("../../.git\r\n\n", True),
        ("../../.git \n", False),
        (" ../../.git", False),
        ("../../.git\0/x", False),
        ("./" * 3000 + "../../.git", False),
    ],
    ids=["a line", "two ends", "a blank behind it", "a blank before it", "a null byte", "too long"],
)
def test_a_git_folder_is_named_as_git_reads_it(repository: Path, named: str, is_main: bool) -> None:
    """A false git folder that counted as a further working tree of the main one could read its objects."""
    place = repository / "w/.git"
    place.mkdir(parents=True)
    (place / "commondir").write_text(named)
    assert (str(repository / ".git") in family(str(repository), str(place))) == is_main


async def test_a_false_repository_does_not_move_the_rules(repository: Path) -> None:
    (repository / "config/.git").mkdir()
    answer = await git(repository, "SHOW", "HEAD:config/prod.yml", cwd="config")
    assert answer.startswith("permission_denied tools.git.forbidden_paths")
    assert "not a git repository" in await git(repository, "SHOW", "HEAD:config/dev.yml", cwd="config")
    assert "invalid_arguments" in await git(repository, "LOG", "-p", cwd=".git")


@pytest.mark.slow
async def test_a_bare_repository_and_a_second_working_tree(repository: Path) -> None:
    plain(repository, "clone", "-q", "--bare", ".", "copies/bare.git")
    plain(repository, "worktree", "add", "-q", "--detach", "copies/tree")
    for cwd in ("copies/bare.git", "copies/tree"):
        answer = await git(repository, "LOG", "-p", cwd=cwd)
        assert MARK not in answer
        assert "+two" in answer
    commands = "git -C copies/bare.git log -p; git -C copies/tree log -p"
    result = await call_primitive(shell.bash, {"command": commands}, context_of(shell.bash, repository))
    assert "+two" not in result["output"]


#: Ways to have the objects of the repository `main` in another folder.
LAYOUTS = {
    "a further working tree": ("worktree", "add", "-q", "--detach", "../wt"),
    "a bare clone": ("clone", "-q", "--bare", ".", "../bare.git"),
    "a separate git folder": ("clone", "-q", "--separate-git-dir=../separate", ".", "../sep"),
    "a clone": ("clone", "-q", ".", "../clone"),
    "a borrowed store": ("clone", "-q", "--shared", "--bare", ".", "../lent.git"),
}


@pytest.fixture
def layouts(govern: Callable[..., Governed]) -> Governed:
    """A workspace with the repository `main` in all layouts. The rules forbid one of its files by the path from the workspace."""
    rules = {
        "forbidden_paths": ["main/config/prod.yml"],
        "allow": ["bash", "git", "copy_file", "delete_file", "move_file"],
    }
    home = govern(governance={**rules, "tools": {"git": {"allowed_operations": ["SHOW", "LOG", "DIFF"]}}})
    main = home.work / "main"
    (main / "config").mkdir(parents=True)
    plain(main, "init", "-q", "-b", "main")
    (main / "config/prod.yml").write_text(f"{MARK}\n")
    (main / "config/dev.yml").write_text("dev\n")
    plain(main, "add", "--all")
    plain(main, "commit", "-q", "-m", "first")
    for words in LAYOUTS.values():
        plain(main, *words)
    # Layouts that a command can make.
    (home.work / "link").mkdir()
    (home.work / "link/.git").write_text("gitdir: ../main/.git\n")
    plain(home.work, "init", "-q", "borrower")
    (home.work / "borrower/.git/objects/info/alternates").write_text("../../../main/.git/objects\n")
    return home


@pytest.mark.slow
def test_no_layout_of_a_repository_shows_a_forbidden_file(layouts: Governed) -> None:
    commit = hash_of(layouts.work / "main", "main")
    blob = hash_of(layouts.work / "main", "main:config/prod.yml")
    allowed = []
    for cwd in ("main", "wt", "bare.git", "sep", "separate", "clone", "lent.git", "link", "borrower", "wt/config"):
        for operation, *args in (
            ("SHOW", f"{commit}:config/prod.yml"),
            ("SHOW", f"{commit}:./prod.yml"),
            ("SHOW", commit),
            ("SHOW", blob),
            ("LOG", "-p", "--all"),
        ):
            result = layouts.call("git", operation=operation, args=args, cwd=cwd)
            text = str(result.output if result.ok else result.error)
            assert MARK not in text, (cwd, operation, args)
            allowed += [cwd] if "+dev" in text else []
    # The rest of the commit is shown, but not by what only borrows the objects.
    assert set(allowed) >= {"main", "wt", "bare.git", "sep", "separate", "clone", "link"}
    assert set(allowed).isdisjoint({"lent.git", "borrower"})
    folders = "main wt bare.git sep separate clone lent.git link borrower".split()
    commands = "; ".join(f"git -C {each} show {commit}; git -C {each} log -p --all" for each in folders)
    answer = layouts.value("bash", command=f"{commands}; true")["output"]
    assert answer.count("not a git repository") == 2 * len(folders), answer


@pytest.mark.parametrize("confinement", ["bwrap", pytest.param("landlock", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["alternates", "links", "chain", "around"])
def test_a_repository_that_a_command_makes_shows_no_objects_of_another_one(
    govern: Callable[..., Governed], how: str, confinement: str
) -> None:
    """Its commit has the forbidden file under another path: the whole tree of `main` is a folder in it."""
    rules = {
        "forbidden_paths": ["main/config/prod.yml"],
        "tools": {"git": {"allowed_operations": ["SHOW", "LOG", "DIFF"]}},
    }
    home = govern(governance={**rules, "primitives": {"git": {"confinement": confinement}}})
    main = home.work / "main"
    (main / "config").mkdir(parents=True)
    plain(main, "init", "-q", "-b", "main")
    (main / "config/prod.yml").write_text(f"{MARK}\n")
    plain(main, "add", "--all")
    plain(main, "commit", "-q", "-m", "first")
    words = plain(main, "log", "--format=%T").split()
    repository = home.work if how == "around" else home.work / "made"
    repository.mkdir(exist_ok=True)
    plain(repository, "init", "-q", "--bare", ".")
    objects, store = repository / "objects", str(main / ".git/objects")
    made = {"cwd": repository, "capture_output": True, "text": True, "check": True}
    entry = f"040000 tree {words[0]}\tsub\n"
    tree = subprocess.run(["git", "mktree", "--missing"], input=entry, **made).stdout.strip()
    # `git commit-tree` wants to see the trees.
    text = f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n"
    commit = subprocess.run(["git", "hash-object", "-t", "commit", "-w", "--stdin"], input=text, **made).stdout.strip()
    (repository / "refs/heads/main").write_text(f"{commit}\n")
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    if how == "links":
        for folder in (main / ".git/objects").iterdir():
            if not (objects / folder.name).exists():
                (objects / folder.name).symlink_to(folder)
    elif how == "chain":
        plain(home.work, "init", "-q", "--bare", "between.git")
        (home.work / "between.git/objects/info/alternates").write_text(f"{store}\n")
        (objects / "info/alternates").write_text(f"{home.work}/between.git/objects\n")
    else:
        (objects / "info/alternates").write_text(f"{store}\n")
    assert MARK in subprocess.run(["git", "show", "main"], **made).stdout
    cwd = "" if how == "around" else "made"
    for operation, *args in (
        ("SHOW", "main"),
        ("SHOW", "main:sub/config/prod.yml"),
        ("LOG", "-p"),
        ("DIFF", tree, "main"),
    ):
        result = home.call("git", operation=operation, args=args, cwd=cwd)
        assert MARK not in str(result.output if result.ok else result.error), (operation, args)


def test_a_git_folder_is_known_by_its_structure(layouts: Governed) -> None:
    work = layouts.work
    for folder in ("bare.git", "separate"):
        for path in sorted((work / folder).rglob("*")):
            if path.is_file() and path.relative_to(work / folder).parts[0] in ("objects", "index"):
                name = str(path.relative_to(work))
                for tool, arguments in (
                    ("read_bytes", {"path": name}),
                    ("read_file", {"path": name}),
                    ("copy_file", {"source": name, "target": "copy"}),
                    ("move_file", {"source": name, "target": "copy"}),
                    ("publish_artifact", {"id": "a", "category": "report", "path": name}),
                ):
                    assert layouts.error(tool, arguments).rule == "git_own", (tool, name)
        listed = layouts.value("list_directory", path=folder, recursive=True)
        assert not any("/objects/" in entry["path"] for entry in listed)
        # Its structure can't be taken away, and the programs that it names can't be changed.
        for tool, arguments in (
            ("delete_file", {"path": f"{folder}/HEAD"}),
            ("move_file", {"source": f"{folder}/HEAD", "target": "HEAD"}),
            ("write_file", {"path": f"{folder}/hooks/post-update", "content": "#!/bin/sh\n"}),
            ("edit_file", {"path": f"{folder}/config", "old_text": "[core]", "new_text": "[alias]"}),
            ("make_directory", {"path": f"{folder}/commondir"}),
        ):
            assert layouts.error(tool, arguments).rule == "git_own", tool
        assert layouts.value("read_file", path=f"{folder}/HEAD").startswith("ref: ")
    assert not (work / "copy").exists()
    # The repository is deeper than those that no command can change, and a file says where its objects are.
    (work / "a/b").mkdir(parents=True)
    plain(work, "clone", "-q", "main", "a/b/c")
    (work / "a/b/c/common").mkdir()
    for name in ("objects", "refs", "config", "packed-refs"):
        (work / "a/b/c/.git" / name).rename(work / "a/b/c/common" / name)
    (work / "a/b/c/.git/commondir").write_text("../common\n")
    plain(work / "a/b/c", "status")
    blob = next(path for path in (work / "a/b/c/common/objects").rglob("*") if path.is_file())
    assert layouts.error("read_bytes", path=str(blob.relative_to(work))).rule == "git_own"
    # A false git folder around it doesn't make its objects one of the parts that can be read.
    (work / "outer/refs").mkdir(parents=True)
    plain(work, "clone", "-q", "--bare", "main", "outer/refs/bare.git")
    (work / "outer/objects").mkdir()
    (work / "outer/HEAD").write_text("")
    packed = next((work / "outer/refs/bare.git/objects").rglob("*/*"))
    assert layouts.error("read_bytes", path=str(packed.relative_to(work))).rule == "git_own"


def add_inner(home: Governed, form: str) -> Path:
    """The folder `a/b/inner`, a working tree with a forbidden file, whose git folder is elsewhere. The workspace has one, too."""
    other, inner = home.work.parent / "other", home.work / "a/b/inner"
    for folder, name in ((other, "prod.yml"), (home.work, "a.txt")):
        folder.mkdir(exist_ok=True)
        plain(folder, "init", "-q", "-b", "main")
        (folder / name).write_text(f"{MARK}\n")
        plain(folder, "add", name)
        plain(folder, "commit", "-q", "-m", "first")
    if form == "submodule":
        plain(home.work, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other), "a/b/inner")
    elif form == "further working tree":
        plain(home.work, "fetch", "-q", str(other))
        plain(home.work, "worktree", "add", "-q", "-b", "more", "a/b/inner", "FETCH_HEAD")
    else:
        plain(home.work, "clone", "-q", "--separate-git-dir=store", str(other), "a/b/inner")
    if form == "link":
        (inner / ".git").unlink()
        (inner / ".git").symlink_to("../../../store")
    return inner


@pytest.mark.parametrize("how", ["moved", "deleted"])
@pytest.mark.parametrize("form", ["submodule", "further working tree", "separate git folder", "link"])
def test_a_repository_whose_working_tree_has_gone_stays_hidden(
    govern: Callable[..., Governed], form: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = govern(governance={"forbidden_paths": ["a/b/inner/prod.yml"], "allow": ["bash"]})
    inner = add_inner(home, form)
    store = plain(inner, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    # Only the history has the forbidden file, so no file in the working tree keeps the folder in place.
    plain(inner, "rm", "-q", "prod.yml")
    plain(inner, "commit", "-q", "-m", "removed")
    seen = {"command": f"cat {store}/HEAD; true"}
    assert "ref:" not in home.value("bash", **seen)["output"]
    if how == "moved":
        home.value("bash", command="mv a/b/inner a/b/other")
    else:
        (inner / ".git").unlink()
    # Another process.
    monkeypatch.setattr(searches, "_ever_found", set())
    monkeypatch.setattr(searches, "_searches", {})
    assert not (inner / ".git").exists()
    assert "ref:" not in home.value("bash", **seen)["output"]


@pytest.mark.parametrize("form", ["submodule", "further working tree"])
def test_a_git_folder_names_a_working_tree_that_has_gone(govern: Callable[..., Governed], form: str) -> None:
    """The owner has deleted it before the first command."""
    home = govern(governance={"forbidden_paths": ["a/b/inner/prod.yml"], "allow": ["bash"]})
    inner = add_inner(home, form)
    if form == "submodule":
        plain(home.work, "submodule", "--quiet", "deinit", "-f", "a/b/inner")
    else:
        shutil.rmtree(inner)
    folder = ".git/modules/a/b/inner" if form == "submodule" else ".git"
    assert "ref:" not in home.value("bash", command=f"cat {folder}/HEAD; true")["output"]


async def test_a_finding_by_the_place_of_the_workspace_leaves_no_mark(repository: Path) -> None:
    """When the owner has changed the rules, the next process shows the repository again."""
    result = await call_primitive(shell.bash, {"command": "git log; true"}, context_of(shell.bash, repository))
    assert "not a git repository" in result["output"]
    assert not (repository / ".git" / MARK_FILE).exists()


def test_the_place_of_another_repository_leaves_no_mark(govern: Callable[..., Governed]) -> None:
    home = govern(governance={"forbidden_paths": ["private/**"], "allow": ["bash"]})
    for name in ("app", "private"):
        (home.work / name).mkdir()
        (home.work / name / "f").write_text(name)
        plain(home.work / name, "init", "-q")
        plain(home.work / name, "add", "-A")
        plain(home.work / name, "commit", "-q", "-m", "first")
    seen = {"command": "cat app/.git/HEAD; true"}
    assert "ref:" not in home.value("bash", **seen)["output"]
    assert not (home.work / "app" / ".git" / MARK_FILE).exists()


@pytest.mark.parametrize("how", ["clone", "shallow", "git folder elsewhere", "fetched"])
def test_a_bare_repository_beside_its_clone_stays_hidden(
    govern: Callable[..., Governed], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clone has only the branch without the forbidden file, and a commit that the bare repository lacks."""
    home = govern(governance={"forbidden_paths": ["app/prod.yml", "vault/"], "allow": ["bash"]})
    first = home.work / "first"
    first.mkdir()
    plain(first, "init", "-q", "-b", "main")
    plain(first, "commit", "-q", "--allow-empty", "-m", "first")
    plain(first, "checkout", "-q", "-b", "prod")
    (first / "prod.yml").write_text("password")
    plain(first, "add", "-A")
    plain(first, "commit", "-q", "-m", "second")
    if how == "fetched":
        plain(home.work, "init", "-q", "--bare", "hub")
        plain(home.work / "hub", "fetch", "-q", str(first), "prod")
    else:
        plain(home.work, "clone", "-q", "--bare", "first", "hub")
    plain(first, "checkout", "-q", "main")
    plain(first, "commit", "-q", "--allow-empty", "-m", "third")
    options = {"shallow": ["--depth", "1"], "git folder elsewhere": ["--separate-git-dir", "vault/app"]}.get(how, [])
    (home.work / "vault").mkdir()
    plain(home.work, "clone", "-q", *options, "--single-branch", "-b", "main", first.as_uri(), "app")
    shutil.rmtree(first)
    seen = {"command": "cat hub/HEAD; true"}
    assert "ref:" not in home.value("bash", **seen)["output"]
    home.value("bash", command="mv app other")
    # Another process.
    monkeypatch.setattr(searches, "_ever_found", set())
    monkeypatch.setattr(searches, "_searches", {})
    assert "ref:" not in home.value("bash", **seen)["output"]


def test_a_store_that_is_borrowed_is_hidden(layouts: Governed) -> None:
    work, blob = layouts.work, hash_of(layouts.work / "main", "main:config/prod.yml")
    shutil.copytree(work / "main/.git/objects", work / "pool")
    (work / "borrower/.git/objects/info/alternates").write_text("../../../between\n")
    (work / "between/info").mkdir(parents=True)
    (work / "between/info/alternates").write_text("../pool\n")
    for folder in ("src/pack", "src/info"):
        (work / folder).mkdir(parents=True)
        layouts.value("write_file", path=f"{folder}/a.py", content="")
        layouts.value("write_file", path="src/main.py", content="")
        assert layouts.value("read_file", path="src/main.py") == ""
    store = f"pool/{blob[:2]}/{blob[2:]}"
    assert (work / store).exists()
    assert "No such file" in layouts.value("bash", command=f"cat {store}; true")["output"]
    assert layouts.error("read_bytes", {"path": store}).rule == "git_own"
    for text in ('"../pool"\n', '"nowhere"X../pool\n', '"a\\xb\n../pool\n"\n'):
        (work / "between/info/alternates").write_text(text)
        assert "No such file" in layouts.value("bash", command=f"cat {store}; true")["output"]


@pytest.mark.parametrize("named", ["../../..", "../../../src", '"x"', "x" * 100_000])
def test_a_folder_that_is_no_store_can_not_be_hidden_by_naming_it_as_one(layouts: Governed, named: str) -> None:
    work = layouts.work
    (work / "src").mkdir(exist_ok=True)
    (work / "src/a.py").write_text("code")
    plain(work, "init", "-q", "sub")
    (work / "sub/.git/objects/info/alternates").write_text(f"{named}\n")
    assert layouts.value("bash", command="cat src/a.py")["output"] == "code"


@pytest.mark.parametrize(
    ("pattern", "config"),
    [(".git", ".git/config"), ("**/.git", "secrets/.git/config"), ("secrets/", "secrets/.git/config")],
)
@pytest.mark.parametrize("confinement", ["bwrap", "landlock"])
def test_a_forbidden_folder_that_is_a_repository_stops_no_command(
    govern: Callable[..., Governed], pattern: str, config: str, confinement: str
) -> None:
    rules = {"forbidden_paths": [pattern], "allow": ["bash", "git"]}
    settings = {name: {"confinement": confinement} for name in ("bash", "git")}
    home = govern(governance=rules | {"primitives": settings})
    (home.work / "secrets").mkdir()
    for folder in (home.work, home.work / "secrets"):
        plain(folder, "init", "-q")
    assert home.value("bash", command="ls -A; true")["exit_code"] == 0
    assert home.error("read_file", path=config).denied


@pytest.mark.parametrize("pattern", ["config/", "index"])
def test_a_forbidden_name_of_a_file_of_git_stops_no_command(govern: Callable[..., Governed], pattern: str) -> None:
    home = govern(governance={"forbidden_paths": [pattern], "allow": ["bash", "git"]})
    (home.work / "config").mkdir()
    for name in ("config/index", "index", "a.txt"):
        (home.work / name).write_text(f"{MARK}\n")
    plain(home.work, "init", "-q", "-b", f"{pattern.rstrip('/')}/branch")
    plain(home.work, "add", "a.txt")
    plain(home.work, "commit", "-q", "-m", "first")
    assert home.value("bash", command="ls a.txt; cat config/index")["output"].startswith("a.txt\n")
    assert "first" in home.value("git", operation="LOG")["output"]
    assert "first" in home.value("bash", command="git log")["output"]
    assert MARK not in home.value("bash", command="cat config/index; true")["output"]


def test_folders_named_as_those_of_git_are_no_repository(govern: Callable[..., Governed]) -> None:
    home = govern(governance={"forbidden_paths": ["config", "*.pem", ".git/token"], "allow": ["bash", "write_file"]})
    for name in ("config", "k.pem", ".git/token", "src/main.py", "src/objects/cube.py"):
        (home.work / name).parent.mkdir(parents=True, exist_ok=True)
        (home.work / name).write_text(f"{MARK}\n")
    home.value("bash", command="mkdir -p objects refs src/refs")
    for name in ("config", "k.pem", ".git/token"):
        assert MARK not in home.value("bash", command=f"cat {name}; true")["output"]
    assert MARK in home.value("read_file", path="src/main.py")
    assert MARK in home.value("read_file", path="src/objects/cube.py")


def test_files_of_a_repository_that_alone_is_allowed(govern: Callable[..., Governed]) -> None:
    """The rules allow paths where they are, and forbid them in all layouts of the repository."""
    rules = {"forbidden_paths": ["main/config/prod.yml", "*.pem"], "allow": ["git"]}
    home = govern(
        governance={**rules, "tools": {"git": {"allowed_paths": ["clone"], "allowed_operations": ["SHOW", "DIFF"]}}}
    )
    main = home.work / "main"
    (main / "config").mkdir(parents=True)
    plain(main, "init", "-q", "-b", "main")
    for name in ("config/prod.yml", "config/dev.yml", "key.pem"):
        (main / name).write_text(f"{MARK}\n" if name != "config/dev.yml" else "dev\n")
    plain(main, "add", "--all")
    plain(main, "commit", "-q", "-m", "first")
    plain(main, "clone", "-q", ".", "../clone")
    (home.work / "clone/config/dev.yml").write_text("new\n")

    def git_says(operation: str, *args: str, cwd: str = "clone") -> str:
        result = home.call("git", operation=operation, args=args, cwd=cwd)
        return str(result.output if result.ok else result.error)

    assert "dev\\n" in git_says("SHOW", "HEAD:config/dev.yml")
    assert "+new" in git_says("DIFF", "--", "config/dev.yml")
    for hidden in ("config/prod.yml", "key.pem"):
        assert "is forbidden by" in git_says("SHOW", f"HEAD:{hidden}")
        assert "is forbidden by" in git_says("DIFF", "HEAD~0", "--", hidden)
    assert "not among the paths" in git_says("SHOW", "HEAD:config/dev.yml", cwd="main")
    assert MARK not in git_says("SHOW", "HEAD")


def test_a_working_tree_inside_of_its_bare_repository_is_no_part_of_it(layouts: Governed) -> None:
    plain(layouts.work / "bare.git", "worktree", "add", "-q", "--detach", "tree")
    layouts.value("write_file", path="bare.git/tree/config/dev.yml", content="new\n")
    assert layouts.value("read_file", path="bare.git/tree/config/dev.yml") == "new\n"
    # Git itself writes into these folders, later too.
    for name in ("objects", "lost-found", "rebase-merge", "NOTES_MERGE_WORKTREE"):
        folder = layouts.work / "bare.git" / name
        folder.mkdir(exist_ok=True)
        (folder / ".git").write_text("gitdir: ../worktrees/tree\n")
        (folder / "content").write_text(f"{MARK}\n")
        assert layouts.error("read_file", path=f"bare.git/{name}/content").rule == "git_own"


async def test_commands_can_not_change_what_a_bare_repository_runs(repository: Path) -> None:
    plain(repository, "clone", "-q", "--bare", ".", "bare.git")
    context = context_of(shell.bash, repository, [])
    command = "echo x >> bare.git/hooks/post-update; git -C bare.git config core.fsmonitor x; rm bare.git/config; true"
    await call_primitive(shell.bash, {"command": command}, context)
    assert not (repository / "bare.git/hooks/post-update").exists()
    assert "fsmonitor" not in (repository / "bare.git/config").read_text()


def test_the_question_about_a_commit_lists_its_files(built: Path, govern: Callable[..., Governed]) -> None:
    asked: list[str] = []

    async def person(question: Question) -> bool:
        asked.append(question.decision.message)
        return True

    home = govern(governance={"tools": {"git": {"forbidden_paths": FORBIDDEN}}}, ask=person)
    shutil.copytree(built, home.work, dirs_exist_ok=True, symlinks=True)
    (home.work / "a.txt").write_text("three\n")
    plain(home.work, "mv", "config/dev.yml", "config/test.yml")
    home.value("git", operation="COMMIT", args=["-a", "-m", "Improve"])
    for n in range(40):
        (home.work / f"{n:02}.txt").write_text("x")
    home.value("git", operation="ADD", args=["--all"])
    home.value("git", operation="COMMIT", args=["-m", "Many"])
    assert home.error("git", operation="RESET", args=["--hard", "old"]).rule == "git_forbidden_paths"
    assert [text.partition("; ")[2] for text in asked] == [
        "it commits M a.txt, R config/test.yml",
        f"it commits {', '.join(f'A {n:02}.txt' for n in range(30))} and 10 more",
    ]


def test_the_files_of_a_question_are_part_of_the_approval(built: Path, govern: Callable[..., Governed]) -> None:
    home = govern()
    shutil.copytree(built, home.work, dirs_exist_ok=True, symlinks=True)
    (home.work / "a.txt").write_text("three\n")
    first = home.error("git", operation="COMMIT", args=["-a", "-m", "x"]).details["approval"]
    (home.work / "b.txt").write_text("new\n")
    plain(home.work, "add", "b.txt")
    second = home.error("git", operation="COMMIT", args=["-a", "-m", "x"]).details["approval"]
    assert first != second


async def test_objects_are_not_found_after_the_last_branch_was_deleted(repository: Path) -> None:
    (repository / "only.key").write_text(f"{MARK}\n")
    plain(repository, "checkout", "-q", "-b", "side")
    plain(repository, "add", "only.key")
    plain(repository, "commit", "-q", "-m", "add")
    plain(repository, "checkout", "-q", "main")

    async def objects() -> str:
        context = context_of(shell.bash, repository, ["only.key"])
        result = await call_primitive(shell.bash, {"command": "git cat-file --batch-all-objects --batch"}, context)
        return str(result["output"])

    assert "not a git repository" in await objects()
    plain(repository, "branch", "-q", "-D", "side")
    plain(repository, "reflog", "expire", "--expire=now", "--all")
    assert "not a git repository" in await objects()


def test_a_path_forbidden_at_the_top_of_the_rules_is_out_of_reach_of_every_tool(
    built: Path, govern: Callable[..., Governed]
) -> None:
    rules = {"forbidden_paths": FORBIDDEN, "allow": ["bash"], "tools": {"git": {"allowed_operations": ["SHOW"]}}}
    home = govern(governance=rules)
    shutil.copytree(built, home.work, dirs_exist_ok=True, symlinks=True)
    blob = hash_of(built, "HEAD:secrets/key")
    object_file = f".git/objects/{blob[:2]}/{blob[2:]}"
    for name, arguments, rule in (
        ("git", {"operation": "SHOW", "args": ["HEAD:secrets/key"]}, "forbidden_paths"),
        ("read_file", {"path": object_file}, "git_own"),
        ("publish_artifact", {"id": "a", "category": "report", "path": "secrets/key"}, "forbidden_paths"),
        ("publish_artifact", {"id": "a", "category": "report", "path": object_file}, "git_own"),
    ):
        assert home.error(name, arguments).rule == rule, name
    assert MARK not in home.value("bash", command="cat secrets/key; git show HEAD:secrets/key; true")["output"]


def test_a_refused_operation_has_changed_nothing(built: Path, govern: Callable[..., Governed]) -> None:
    home = govern(governance={"forbidden_paths": FORBIDDEN})
    shutil.copytree(built, home.work, dirs_exist_ok=True, symlinks=True)
    plain(home.work, "remote", "add", "origin", "https://a.example/x")
    refused = home.error("git", operation="ADD", args=["secrets"])
    assert (refused.code, refused.rule) == ("permission_denied", "forbidden_paths")
    assert "CONFIG" in [effect.get("operation") for effect in home.effects("git")]
    assert "changed something" not in refused.message
