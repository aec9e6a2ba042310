"""Which folder is the workspace, and which folders never are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace.find_workspace import find_workspace
from tests.helpers.children import Child, Report


class Machine:
    """A user's home with Albert's folder and a project."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home" / "ann"
        self.albert = self.home / ".albert"
        self.project = self.home / "src" / "project"
        self.inner = self.project / "lib" / "deep"
        for folder in (self.albert / "tools", self.project / ".git", self.inner):
            folder.mkdir(parents=True)

    def find(self, cwd: Path | None = None, named: Path | str | None = None) -> Path:
        path = None if named is None else Path(named)
        with find_workspace(path, cwd or self.inner, self.home, self.albert) as workspace:
            return workspace.root

    def none(self, cwd: Path | None = None, named: Path | str | None = None) -> str:
        with pytest.raises(Failure) as caught:
            self.find(cwd, named)
        assert caught.value.code == "governance_unavailable"
        assert caught.value.denied
        assert caught.value.hint
        return caught.value.message


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path.resolve())


def test_the_nearest_marked_folder(machine: Machine) -> None:
    assert machine.find() == machine.project
    assert machine.find(machine.project) == machine.project
    (machine.project / "lib" / ".albert").mkdir()
    assert machine.find() == machine.project / "lib"


def test_a_repository_in_a_project_is_no_workspace_of_its_own(machine: Machine) -> None:
    (machine.inner / ".git").mkdir()
    assert machine.find() == machine.inner
    (machine.project / ".albert").mkdir()
    assert machine.find() == machine.project


def test_in_a_worktree_git_is_a_file(machine: Machine) -> None:
    (machine.inner / ".git").write_text("gitdir: elsewhere")
    assert machine.find() == machine.inner


def test_an_albert_file_that_is_not_a_folder_marks_no_workspace(machine: Machine) -> None:
    (machine.inner / ".albert").write_text("")
    assert machine.find() == machine.project


def test_no_workspace_is_found(machine: Machine) -> None:
    assert "is a workspace" in machine.none(machine.home / "src")


def test_the_home_folder_is_never_the_workspace(machine: Machine) -> None:
    assert "is a workspace" in machine.none(machine.home)
    (machine.home / ".git").mkdir()
    assert "your home folder" in machine.none(machine.home / "src")
    assert "your home folder" in machine.none(named=machine.home)
    assert machine.find() == machine.project


@pytest.mark.parametrize("folder", ["tools", "state"])
def test_albert_s_folder_of_another_user_marks_no_workspace(machine: Machine, folder: str) -> None:
    theirs = machine.base / "home" / "ada"
    (theirs / ".albert" / folder).mkdir(parents=True)
    (theirs / "project" / ".git").mkdir(parents=True)
    assert machine.find(theirs / "project") == theirs / "project"
    assert "is a workspace" in machine.none(theirs)
    # A project can have such a folder, too.
    (theirs / ".albert" / "governance.yaml").touch()
    assert machine.find(theirs / "project") == theirs


def test_a_folder_above_the_home_folder_is_never_the_workspace(machine: Machine) -> None:
    (machine.base / "home" / ".git").mkdir()
    assert "inside it" in machine.none(machine.home / "src")
    assert "inside it" in machine.none(named=machine.base / "home")
    assert "root of the file system" in machine.none(named="/")


def test_a_folder_of_albert_is_never_the_workspace(machine: Machine) -> None:
    (machine.albert / ".git").mkdir()
    (machine.albert / "tools" / ".git").mkdir()
    for folder in (machine.albert, machine.albert / "tools"):
        assert "Albert's own" in machine.none(folder)
        assert "Albert's own" in machine.none(named=folder)


def test_albert_home_inside_the_workspace_is_sealed(machine: Machine) -> None:
    for name in (".demo", ".albert"):
        own = machine.project / name
        own.mkdir()
        (own / "log").write_text("x")
        with find_workspace(None, machine.inner, machine.home, own) as workspace:
            assert workspace.root == machine.project
            for call in (
                lambda path: workspace.read(path, 100),
                lambda path: workspace.replace(path, b"y"),
            ):
                with pytest.raises(Failure) as caught:
                    call(f"{own.name}/log")
                assert caught.value.rule == "albert_own"


def test_a_link_in_the_workspace_never_leads_to_a_folder_of_albert(machine: Machine) -> None:
    outside = machine.base / "outside"
    outside.mkdir()
    (machine.project / "conf").symlink_to(outside)
    (machine.base / "link").symlink_to(machine.project)
    for place in (machine.project / "conf", machine.project / "conf" / "albert", machine.base / "link" / "conf" / "a"):
        with pytest.raises(Failure, match="conf' leads to a folder of Albert's"):
            find_workspace(None, machine.inner, machine.home, machine.albert, [place])
    (machine.base / "hop").symlink_to(machine.base / "link" / "conf")
    (machine.base / "dangling").symlink_to(machine.project / "conf" / "nothing")
    with pytest.raises(Failure, match="conf' leads to a folder of Albert's"):
        find_workspace(None, machine.inner, machine.home, machine.albert, [machine.base / "dangling" / "a"])
    (machine.base / "loop").symlink_to("loop")
    with pytest.raises(Failure, match="conf' leads to a folder of Albert's"):
        find_workspace(None, machine.inner, machine.home, machine.albert, [machine.project / "conf" / ".." / "a"])
    with pytest.raises(Failure, match="conf' leads to a folder of Albert's"):
        find_workspace(None, machine.inner, machine.home, machine.albert, [machine.base / "hop" / "a"])
    find_workspace(None, machine.inner, machine.home, machine.albert, [machine.base / "loop" / "a"]).close()
    # A link to a folder in the workspace stays, because its target is sealed.
    find_workspace(None, machine.inner, machine.home, machine.base / "link" / "own").close()


def test_albert_home_does_not_make_its_parent_a_workspace(machine: Machine) -> None:
    place = machine.base / "srv"
    (place / ".albert").mkdir(parents=True)
    with pytest.raises(Failure):
        find_workspace(None, place, machine.home, place / ".albert")


def test_a_named_workspace(machine: Machine) -> None:
    assert machine.find(named=machine.inner) == machine.inner
    assert machine.find(machine.project, named="lib") == machine.project / "lib"
    assert machine.find(machine.inner, named="..") == machine.project / "lib"
    assert machine.find(machine.inner, named=".") == machine.inner


def test_a_named_folder_that_can_not_be_the_workspace(machine: Machine) -> None:
    (machine.base / "file").touch()
    (machine.base / "link").symlink_to(machine.project)
    (machine.base / "loop").symlink_to("loop")
    assert "does not exist" in machine.none(named=machine.base / "nowhere")
    assert "not a folder" in machine.none(named=machine.base / "file")
    assert "symbolic link" in machine.none(named=machine.base / "link")
    assert "symbolic link" in machine.none(named=machine.base / "loop")


def test_links_on_the_way_are_resolved(machine: Machine) -> None:
    (machine.base / "link").symlink_to(machine.home / "src")
    assert machine.find(named=machine.base / "link" / "project") == machine.project
    assert machine.find(machine.base / "link" / "project" / "lib") == machine.project


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_marker_of_another_user_does_not_count(machine: Machine) -> None:
    planted = machine.base / "shared" / ".git"
    work = machine.base / "shared" / "mine"
    planted.mkdir(parents=True)
    work.mkdir()
    assert machine.find(work) == machine.base / "shared"
    os.chown(planted, 4242, 4242)
    assert "is a workspace" in machine.none(work)
    os.chown(work, 4242, 4242)
    assert machine.find(work) == machine.base / "shared"


def _found_by_another(report: Report, project: str) -> None:
    os.setuid(4242)
    nowhere = Path("/nowhere")
    with find_workspace(None, Path(project), nowhere, nowhere) as workspace:
        report(str(workspace.root))


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
def test_a_folder_of_albert_that_is_closed_to_the_user_marks_no_workspace() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        Path(place, ".albert").mkdir(0o700)
        project = Path(place, "project")
        (project / ".git").mkdir(parents=True)
        assert Child(_found_by_another, str(project)).rest() == [str(project)]
