"""What a run leaves in its checkout, and what its repository has, starts no program when the worker keeps the changes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from albert_tools.surfaces.worker.checkout import Checkout

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
    (folder / "a").write_text("changed")


def test_a_repository_in_the_files_starts_nothing(tmp_path: Path, marked: Path, program: str) -> None:
    repository, inner = tmp_path / "repository", tmp_path / "inner"
    submodule = commit(inner, a="a")
    commit(repository, b="b")
    # The repository has a submodule, and the run makes a repository with the same commit in its place.
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{submodule},sub")
    git(repository, "commit", "--quiet", "-m", "two")
    checkout = Checkout(tmp_path / "checkouts", "r", f"git+{repository}@{git(repository, 'rev-parse', 'HEAD')}")
    checkout.make()
    for place in ("sub", "new"):
        assert commit(checkout.files / place, a="a") == submodule
        set_trap(checkout.files / place, program)
    found = checkout.changes()
    assert not marked.exists()
    assert found is not None
    assert b"new/a" in found[1]
    # Again, as after a crash, when the index knows these folders.
    commit(checkout.files / "new", a="a")
    set_trap(checkout.files / "new", program)
    checkout.changes()
    assert not marked.exists()


def test_attributes_choose_no_filter_of_the_user(
    tmp_path: Path, marked: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[filter "x"]\n\tclean = "{program}"\n\tsmudge = "{program}"\n')
    monkeypatch.setenv("HOME", str(home))
    head = commit(tmp_path / "repository", **{".gitattributes": "*.y filter=x\n", "a.txt": "a"})
    git(tmp_path / "repository", "rm", "--quiet", "--cached", "a.txt")
    checkout = Checkout(tmp_path / "checkouts", "r", f"git+{tmp_path}/repository@{head}")
    checkout.make()
    (checkout.files / ".gitattributes").write_text("* filter=x\n")
    (checkout.files / "b.txt").write_text("b")
    assert checkout.changes() is not None
    assert not marked.exists()
