"""What a run leaves in its checkout, and what its repository has, starts no program when the worker keeps the changes."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.worker.checkout import Checkout, leave_workspaces

ADA = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "a@b"}
DATES = {"GIT_AUTHOR_DATE": "1600000000 +0000", "GIT_COMMITTER_DATE": "1600000000 +0000"}


def git(folder: Path, *words: str) -> str:
    environ = {**os.environ, **ADA, **DATES}
    done = subprocess.run(["git", *words], cwd=folder, env=environ, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, **files: str) -> str:
    """A repository with these files and one commit. Returns the id of the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "one")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """The file that a program makes if it is started."""
    return tmp_path / "started"


@pytest.fixture
def program(marked: Path) -> str:
    return f"sh -c 'touch {marked}; cat'"


def set_trap(folder: Path, program: str) -> None:
    """Let a repository name the program for all its files."""
    git(folder, "config", "filter.x.clean", program)
    git(folder, "config", "core.fsmonitor", program)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    # Of the same size, so that git must read it to see that it has changed.
    (folder / "a").write_text("b")
    os.utime(folder / "a", (1, 1))


#: A path that git can open below the files, and nobody can whose paths are absolute.
LONG = "/".join(["d" * 254] * 15 + ["e" * 230])


def checkout_of(tmp_path: Path, head: str) -> Checkout:
    made = Checkout(tmp_path / "checkouts", "r", f"git+{tmp_path}/repository@{head}")
    made.make()
    return made


def open_folder(top: Path, path: str) -> int:
    """Open a folder, which is made if there is none, step by step, because the whole path may be too long."""
    folder = os.open(top, os.O_RDONLY)
    for part in path.split("/"):
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
        inner = os.open(part, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    return folder


@pytest.mark.parametrize("place", ["sub", "new", LONG])
def test_a_repository_in_the_files_starts_nothing(tmp_path: Path, marked: Path, program: str, place: str) -> None:
    repository, trap = tmp_path / "repository", tmp_path / "checkouts/r/files/trap"
    submodule = commit(tmp_path / "inner", a="a")
    commit(repository, b="b")
    if place != "new":
        # The run makes a repository with the same commit in the place of a submodule.
        git(repository, "update-index", "--add", "--cacheinfo", f"160000,{submodule},{place}")
        git(repository, "commit", "--quiet", "-m", "two")
    checkout = checkout_of(tmp_path, git(repository, "rev-parse", "HEAD"))
    assert commit(trap, a="a") == submodule
    set_trap(trap, program)
    git(trap, "config", "core.worktree", str(trap))
    (trap / ".git").rename(trap / "gd")
    folder = open_folder(checkout.files, place)
    os.close(os.open("x", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    with open(os.open(".git", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "w") as file:
        file.write(f"gitdir: {trap}/gd")
    # The folder can't be listed, and git needs no listing to find a submodule.
    os.fchmod(folder, 0o311)
    for _ in range(2):
        # The worker may keep the changes or not.
        with suppress(Failure):
            checkout.changes("changes")
    os.fchmod(folder, 0o700)
    os.close(folder)
    assert not marked.exists()


def test_a_git_in_a_folder_of_the_workspace_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = commit(tmp_path / "repository", a="a")
    planted = tmp_path / "work" / ".venv" / "bin" / "git"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("LD_PRELOAD", f"{tmp_path}/work/x.so")
    leave_workspaces(str(tmp_path / "work"))
    assert "LD_PRELOAD" not in os.environ
    assert (checkout_of(tmp_path, head).files / "a").read_text() == "a"
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("path", "mode", "said"),
    [
        ("x", 0o300, "Permission denied"),
        ("/".join("x" * 1500), 0o700, "folders more than 200 deep"),
        (LONG, 0o700, "File name too long"),
    ],
    ids=["unreadable", "deep", "long"],
)
def test_changes_that_can_not_be_read_are_a_failure(tmp_path: Path, path: str, mode: int, said: str) -> None:
    if mode == 0o300 and os.geteuid() == 0:
        pytest.skip("root reads everything")
    checkout = checkout_of(tmp_path, commit(tmp_path / "repository", a="a"))
    folder = open_folder(checkout.files, path)
    os.fchmod(folder, mode)
    os.close(folder)
    try:
        with pytest.raises(Failure, match=said):
            checkout.changes("changes")
        checkout.remove()
    finally:
        # pytest could not.
        subprocess.run(["rm", "-rf", checkout.files], check=True)
    assert not list((tmp_path / "checkouts").iterdir())


def test_a_large_file_is_a_failure(tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path, commit(tmp_path / "repository", a="a"))
    with (checkout.files / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Failure, match="have more than"):
        checkout.changes("changes")


def test_the_patch_has_what_the_run_has_changed(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    files = {".gitattributes": "* text eol=crlf\n", ".gitignore": "*.o\n/out/\n!keep.o\n"}
    commit(repository, **files, deleted="d", mode="m", **{"both.o": "b", "file": "f", "crlf": "1\r\n"})
    submodule = commit(tmp_path / "inner", a="a")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{submodule},sub")
    git(repository, "add", "--force", "both.o")
    git(repository, "commit", "--quiet", "-m", "two")
    checkout = checkout_of(tmp_path, git(repository, "rev-parse", "HEAD"))
    assert checkout.changes("nothing") is None
    here = checkout.files
    (here / "deleted").unlink()
    (here / "mode").chmod(0o755)
    (here / "both.o").write_text("changed")
    (here / "file").unlink()
    (here / "file").mkdir()
    (here / "file" / 'a "\\\n b').write_bytes(b"1\r\n\0")
    (here / ":x").write_text("data 5\n")
    (here / os.fsdecode(b"\xff")).symlink_to("/etc/passwd")
    for name in ("new.o", "out/x", "cache/x", "cache/.gitignore"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("*\n")
    os.mkfifo(here / "fifo")
    (here / "keep.o").write_text("k")
    patch = checkout.changes("changes")
    assert patch is not None
    (tmp_path / "patch").write_bytes(patch)
    git(repository, "apply", "--index", str(tmp_path / "patch"))
    changed = subprocess.run(
        ["git", "diff", "--cached", "--raw", "--no-renames", "-z"], cwd=repository, check=True, capture_output=True
    ).stdout.split(b"\0")
    assert {(name, *facts.split()[1::3]) for facts, name in zip(changed[::2], changed[1::2], strict=False)} == {
        (b":x", b"100644", b"A"),
        (b"both.o", b"100644", b"M"),
        (b"deleted", b"000000", b"D"),
        (b"file", b"000000", b"D"),
        (b'file/a "\\\n b', b"100644", b"A"),
        (b"keep.o", b"100644", b"A"),
        (b"mode", b"100755", b"M"),
        (b"\xff", b"120000", b"A"),
    }
    assert (repository / "file" / 'a "\\\n b').read_bytes() == b"1\r\n\0"


def test_attributes_choose_no_filter_of_the_user(
    tmp_path: Path, marked: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[filter "x"]\n\tclean = "{program}"\n\tsmudge = "{program}"\n')
    monkeypatch.setenv("HOME", str(home))
    head = commit(tmp_path / "repository", **{".gitattributes": "*.y filter=x\n", "a.txt": "a"})
    git(tmp_path / "repository", "rm", "--quiet", "--cached", "a.txt")
    checkout = checkout_of(tmp_path, head)
    (checkout.files / ".gitattributes").write_text("* filter=x\n")
    (checkout.files / "b.txt").write_text("b")
    assert checkout.changes("changes") is not None
    assert not marked.exists()
