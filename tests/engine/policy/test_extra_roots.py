"""Folders outside the workspace that the owner's rules open. Reads follow the rule, writes ask, and no path leads out of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from albert_tools import primitive
from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.decision import strictest
from albert_tools.engine.policy.extra_roots import Root, root_of
from albert_tools.engine.policy.lint import lint
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance
from albert_tools.engine.workspace.find_workspace import find_workspace
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.refusals import refused, snapshot

pytestmark = pytest.mark.usefixtures("way")

LIMIT = 1 << 20
DENIED = ("permission_denied", "outside_workspace")


@primitive(effects=["read"], paths={"path": "read"})
def look(path: str) -> str:
    """Read a file."""
    return path


@primitive(effects=["write"], paths={"path": "write"})
def put(path: str) -> str:
    """Write a file."""
    return path


class Machine:
    """A home with a workspace, a shared folder that the rules open, and a private folder that they don't open."""

    def __init__(self, folder: Path) -> None:
        self.base = folder.resolve()
        self.home, self.work = self.base / "home", self.base / "home" / "work"
        self.shared, self.private = self.base / "data" / "shared", self.base / "data" / "private"
        for made in (self.work / ".albert", self.home / ".ssh", self.home / ".albert", self.shared, self.private):
            made.mkdir(parents=True)
        (self.work / "a.txt").write_text("inside")
        (self.shared / "b.txt").write_text("shared")
        (self.private / "secret").write_text("secret")
        (self.home / ".ssh" / "id").write_text("key")
        (self.home / ".albert" / "log").write_text("log")
        self.workspace = find_workspace(self.work, self.home, self.home, self.home / ".albert")

    def authority(self, *patterns: str, project: dict[str, Any] | None = None, **more: Any) -> Authority:
        said = {"allowed_paths": ["$WORKSPACE", *patterns], **more}
        rules = read_governance({"tools": {"look": said, "put": said}})
        if project is not None:
            rules = rules.tightened(read_governance(project))
        return Authority(Policy(rules.layers(), str(self.work), str(self.home)), Modes(None))

    def view(self, *patterns: str, tool: Any = look, **more: Any) -> Workspace:
        return self.authority(*patterns, **more).guarded(tool.definition, self.workspace)

    def verdict(self, tool: Any, path: str, authority: Authority) -> tuple[str, str]:
        try:
            found = authority.judge(tool.definition, tool, {"path": path}, self.workspace, "NORMAL")
        except Failure as failure:
            return "deny", str(failure.rule)
        decision = strictest(found)
        return decision.verdict, decision.rule


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    with made.workspace:
        yield made


def test_reads_follow_the_rule_and_writes_ask(machine: Machine) -> None:
    rules = machine.authority(f"{machine.shared}/**")
    inside, outside = f"{machine.work}/a.txt", f"{machine.shared}/b.txt"
    for tool, path, verdict, rule in (
        (look, "a.txt", "allow", "shipped.categories.read_only.allowed_in_modes"),
        (look, inside, "allow", "shipped.categories.read_only.allowed_in_modes"),
        (look, outside, "allow", "shipped.categories.read_only.allowed_in_modes"),
        (put, "a.txt", "allow", "shipped.categories.system_write.allowed_in_modes"),
        (put, outside, "ask", "shipped.outside_workspace_asks"),
        (look, str(machine.private / "secret"), "deny", "outside_workspace"),
        (look, f"{machine.shared}/../private/secret", "deny", "path_traversal"),
        (look, f"{machine.shared}-too", "deny", "outside_workspace"),
        (look, str(machine.shared.parent), "deny", "outside_workspace"),
    ):
        assert machine.verdict(tool, path, rules) == (verdict, rule), path
    view = machine.view(f"{machine.shared}/**")
    assert view.read(outside, LIMIT) == b"shared"
    assert view.read("a.txt", LIMIT) == b"inside"
    assert [e.path for e in view.listing(str(machine.shared))] == [outside]
    assert view.recorded(outside) == view.spell(f"{machine.shared}//./b.txt") == view.locate(outside) == outside
    assert view.replace(f"{machine.shared}/new", b"x").path == f"{machine.shared}/new"
    with view.folder(str(machine.shared)) as opened:
        assert os.fstat(opened).st_ino == machine.shared.stat().st_ino


def test_a_root_is_opened_only_to_the_tools_whose_rules_name_it(machine: Machine) -> None:
    rules = read_governance({"tools": {"put": {"allowed_paths": [f"{machine.shared}/**"]}}})
    authority = Authority(Policy(rules.layers(), str(machine.work), str(machine.home)), Modes(None))
    outside = f"{machine.shared}/b.txt"
    assert machine.verdict(look, outside, authority) == ("deny", "outside_workspace")
    assert machine.verdict(put, outside, authority)[0] == "ask"
    assert refused(lambda: authority.guarded(look.definition, machine.workspace).read(outside, LIMIT)) == DENIED


def test_a_pattern_without_an_absolute_path_opens_nothing(machine: Machine) -> None:
    """`*.txt` matches a file in any folder. Only a pattern that begins at the root of the file system names a folder."""
    rules = machine.authority("*.txt", "**/shared/**", f"{machine.shared}/x")
    assert machine.verdict(look, f"{machine.shared}/b.txt", rules) == ("deny", "outside_workspace")


def test_the_pattern_selects_the_files(machine: Machine) -> None:
    (machine.shared / "n.md").write_text("note")
    view = machine.view(f"{machine.shared}/*.md")
    assert view.read(f"{machine.shared}/n.md", LIMIT) == b"note"
    assert refused(lambda: view.read(f"{machine.shared}/b.txt", LIMIT)) == DENIED
    assert refused(lambda: view.listing(str(machine.shared))) == DENIED
    one = machine.view(f"{machine.shared}/b.txt")
    assert one.read(f"{machine.shared}/b.txt", LIMIT) == b"shared"
    assert refused(lambda: one.read(f"{machine.shared}/n.md", LIMIT)) == DENIED


def test_a_project_opens_no_folder_and_can_tighten_rules(machine: Machine) -> None:
    opening = {"tools": {"look": {"allowed_paths": ["$WORKSPACE", f"{machine.private}/**"]}}}
    both = machine.authority(f"{machine.shared}/**", project=opening)
    assert machine.verdict(look, f"{machine.private}/secret", both) == ("deny", "outside_workspace")
    assert machine.verdict(look, f"{machine.shared}/b.txt", both) == ("deny", "project.tools.look.allowed_paths")
    assert machine.verdict(look, "a.txt", both)[0] == "allow"


def test_forbidden_paths_apply_in_a_root(machine: Machine) -> None:
    (machine.home / "notes" / "keys").mkdir(parents=True)
    view = machine.view("$HOME/notes/**", forbidden_paths=["keys"])
    assert refused(lambda: view.listing(f"{machine.home}/notes/keys"))[1] == "tools.look.forbidden_paths"
    # A folder that contains forbidden files can be opened. The forbidden files can't be read.
    for path in (".config/chromium/x", ".local/state/albert/log"):
        (machine.home / path).parent.mkdir(parents=True)
        (machine.home / path).write_text("x")
    view = machine.view("$HOME/.config/**", "~/.local/**")
    assert view.listing(f"{machine.home}/.config") != []
    for path in (".config/chromium/x", ".local/state/albert/log"):
        assert refused(lambda path=path: view.read(f"{machine.home}/{path}", LIMIT)) == (
            "permission_denied",
            "shipped.forbidden_paths",
        )


def test_albert_s_own_folders_are_sealed_in_a_root(machine: Machine) -> None:
    own = machine.base / "data" / "albert"
    own.mkdir()
    (own / "log").write_text("log")
    with find_workspace(machine.work, machine.home, machine.home, own) as workspace:
        view = machine.authority(f"{machine.base}/data/**").guarded(put.definition, workspace)
        for call in (
            lambda: view.read(f"{own}/log", LIMIT),
            lambda: view.replace(f"{own}/log", b""),
            lambda: view.listing(str(own)),
        ):
            assert refused(call) == ("permission_denied", "albert_own")
        assert f"{own}/log" not in [e.path for e in view.listing(f"{machine.base}/data", recursive=True)]
        assert (own / "log").read_text() == "log"


def test_sealed_files_are_recognised_by_identity(machine: Machine) -> None:
    """The folder and the folders above it are compared by identity, so the spelling in the rules does not matter."""
    inner = machine.home / ".ssh" / "old"
    inner.mkdir()
    (inner / "id").write_text("key")
    for real in (machine.home, machine.home / ".ssh", inner):
        view = machine.workspace.reaching([Root(str(real), str(real), "")])
        forbidden = ("permission_denied", "shipped.forbidden_paths")
        assert refused(partial(view.read, f"{inner}/id", LIMIT)) == forbidden
        assert refused(partial(view.replace, f"{inner}/id", b"")) == forbidden
    listed = machine.workspace.reaching([Root(str(machine.home), str(machine.home), "")])
    assert f"{inner}" not in [e.path for e in listed.listing(str(machine.home), recursive=True)]
    assert (inner / "id").read_text() == "key"


def test_a_root_within_albert_s_own_folders_is_refused(machine: Machine) -> None:
    own = machine.base / "data"
    with find_workspace(machine.work, machine.home, machine.home, own) as workspace:
        view = machine.authority(f"{machine.shared}/**").guarded(look.definition, workspace)
        assert refused(lambda: view.read(f"{machine.shared}/b.txt", LIMIT)) == ("permission_denied", "albert_own")


@pytest.mark.parametrize("name", [".git", ".albert", ".GIT", ".ａlbert"])
def test_the_albert_and_git_folders_of_other_projects_are_not_written(machine: Machine, name: str) -> None:
    (machine.shared / name).mkdir()
    view = machine.view(f"{machine.shared}/**", tool=put)
    denied = refused(lambda: view.replace(f"{machine.shared}/{name}/config", b""))
    assert denied in (("permission_denied", "git_own"), ("permission_denied", "albert_own"))
    assert list((machine.shared / name).iterdir()) == []


def test_a_root_around_the_workspace(machine: Machine) -> None:
    """Files in the workspace belong to it by any path, and its links still lead nowhere."""
    around = machine.base / "around"
    around.mkdir()
    machine.work.rename(around / "work")
    work = around / "work"
    (around / "b.txt").write_text("around")
    (around / "link").symlink_to("work/a.txt")
    (around / ".albert").mkdir()
    with find_workspace(work, machine.home, machine.home, machine.home / ".albert") as workspace:
        rules = read_governance({"tools": {"put": {"allowed_paths": ["$WORKSPACE", f"{around}/**"]}}})
        authority = Authority(Policy(rules.layers(), str(work), str(machine.home)), Modes(None))
        view = authority.guarded(put.definition, workspace)
        assert view.locate(f"{around}/link") == "a.txt"
        assert view.spell(f"{work}/a.txt") == "a.txt"
        assert view.read(f"{around}/link", LIMIT) == b"inside"
        assert view.read(f"{around}/b.txt", LIMIT) == b"around"
        for path in (f"{work}/.albert/governance.yaml", ".albert/governance.yaml"):
            assert refused(lambda path=path: view.replace(path, b""))[1] == "albert_own"
        (work / "up").symlink_to("../b.txt")
        assert refused(lambda: view.read("up", LIMIT)) == DENIED


@pytest.mark.parametrize(
    ("path", "code", "rule"),
    [
        ("{shared}/../private/secret", "permission_denied", "path_traversal"),
        ("{shared}/sub/../../private/secret", "permission_denied", "path_traversal"),
        ("{shared}/..", "permission_denied", "path_traversal"),
        ("{private}/secret", "permission_denied", "outside_workspace"),
        ("{shared}X", "permission_denied", "outside_workspace"),
        ("{SHARED}/b.txt", "permission_denied", "outside_workspace"),
        ("/proc/self/root{shared}/b.txt", "permission_denied", "outside_workspace"),
        ("/proc/self/cwd", "permission_denied", "outside_workspace"),
        ("/", "permission_denied", "outside_workspace"),
        ("{shared}/b\0", "invalid_arguments", None),
        ("{shared}/\udc80", "invalid_arguments", None),
        ("{shared}/B.TXT", "not_found", None),
        ("{shared}/ｂ.txt", "not_found", None),
    ],
)
def test_paths_that_are_refused(machine: Machine, path: str, code: str, rule: str | None) -> None:
    shared = str(machine.shared)
    path = path.format(shared=shared, SHARED=shared.upper(), private=machine.private)
    before = snapshot(machine.base)
    view = machine.view(f"{shared}/**", tool=put)
    assert refused(lambda: view.read(path, LIMIT)) == (code, rule)
    assert refused(lambda: view.listing(path)) == (code, rule)
    if code != "not_found":
        assert refused(lambda: view.replace(path, b"x")) == (code, rule)
    assert snapshot(machine.base) == before


@pytest.mark.parametrize(
    "target", ["{private}", "../private", "/proc/self/root", "{shared}", "{work}", "../../home/.ssh"]
)
def test_links_that_lead_out(machine: Machine, target: str) -> None:
    """A link may not leave its root. This rule includes links into the workspace, into another root, and back by an absolute
    path."""
    made = target.format(private=machine.private, shared=machine.shared, work=machine.work)
    (machine.shared / "link").symlink_to(made)
    before = snapshot(machine.base)
    view = machine.view(f"{machine.shared}/**", tool=put)
    for path in (f"{machine.shared}/link", f"{machine.shared}/link/secret", f"{machine.shared}/link/b.txt"):
        assert refused(lambda path=path: view.read(path, LIMIT)) == DENIED
        assert refused(lambda path=path: view.replace(path, b"x")) == DENIED
        assert refused(lambda path=path: view.listing(path)) == DENIED
    assert snapshot(machine.base) == before


def test_a_link_in_the_workspace_does_not_lead_into_a_root(machine: Machine) -> None:
    (machine.work / "link").symlink_to(machine.shared)
    assert refused(lambda: machine.view(f"{machine.shared}/**").read("link/b.txt", LIMIT)) == DENIED


def test_hard_links_in_a_root(machine: Machine) -> None:
    os.link(machine.home / ".ssh" / "id", machine.shared / "innocent")
    os.link(machine.shared / "b.txt", machine.shared / "again")
    view = machine.view(f"{machine.shared}/**", tool=put)
    assert refused(lambda: view.read(f"{machine.shared}/innocent", LIMIT)) == ("permission_denied", "hard_link")
    assert view.read(f"{machine.shared}/again", LIMIT) == b"shared"
    view.replace(f"{machine.shared}/innocent", b"mine")
    assert (machine.home / ".ssh" / "id").read_text() == "key"


def test_a_root_that_is_a_link_stays_the_folder_it_named_at_first(machine: Machine) -> None:
    written = machine.base / "link"
    written.symlink_to(machine.shared)
    view = machine.view(f"{written}/**")
    assert view.read(f"{written}/b.txt", LIMIT) == view.read(f"{machine.shared}/b.txt", LIMIT) == b"shared"
    assert view.locate(f"{written}/b.txt") == f"{machine.shared}/b.txt"
    written.unlink()
    written.symlink_to(machine.private)
    assert refused(lambda: view.read(f"{written}/secret", LIMIT)) == ("not_found", None)


def test_a_root_that_was_replaced_by_a_link(machine: Machine) -> None:
    view = machine.view(f"{machine.shared}/**")
    machine.shared.rename(machine.base / "moved")
    machine.shared.symlink_to(machine.private)
    assert refused(lambda: view.read(f"{machine.shared}/secret", LIMIT)) == DENIED
    machine.shared.unlink()
    assert refused(lambda: view.read(f"{machine.shared}/secret", LIMIT)) == ("not_found", None)


def test_a_root_swapped_for_a_link_never_leads_out(machine: Machine) -> None:
    """A thread swaps the folder as fast as it can during all operations. Each operation fails or sees the shared folder."""
    shared, kept, link = machine.shared, machine.base / "kept", machine.base / "link"
    (machine.private / "b.txt").write_text("private")
    before = snapshot(machine.private)
    view = machine.view(f"{shared}/**", tool=put)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(shared, kept)
            os.symlink(machine.private, shared)
            os.rename(shared, link)
            os.unlink(link)
            os.rename(kept, shared)
            done.wait(0.0005)

    swapping = threading.Thread(target=swap)
    swapping.start()
    codes: set[str] = set()
    good = 0
    try:
        end = time.monotonic() + 0.7
        while time.monotonic() < end or (good < 3 and time.monotonic() < end + 20):
            for call in (
                lambda: view.read(f"{shared}/b.txt", LIMIT),
                lambda: view.replace(f"{shared}/b.txt", b"shared"),
                lambda: view.listing(str(shared)),
            ):
                try:
                    result = call()
                except Failure as failure:
                    codes.add(failure.code)
                    continue
                good += 1
                if isinstance(result, bytes):
                    assert result == b"shared"
                if isinstance(result, list):
                    assert f"{shared}/secret" not in [e.path for e in result]
    finally:
        done.set()
        swapping.join()
    assert snapshot(machine.private) == before
    assert good > 0
    assert codes <= {"permission_denied", "not_found", "not_a_directory", "io_error"}


def test_no_descriptor_is_left_open(machine: Machine) -> None:
    (machine.shared / "out").symlink_to("/etc")
    view = machine.view(f"{machine.shared}/**", f"{machine.base}/none/**", tool=put)
    before = len(os.listdir("/proc/self/fd"))
    for top in (machine.shared, machine.base / "none"):
        for name in ("b.txt", "out/passwd", "no/such", "b.txt/x", "n" * 300):
            for call in (
                lambda path=f"{top}/{name}": view.read(path, LIMIT),
                lambda path=f"{top}/{name}": view.replace(path, b""),
                lambda path=f"{top}/{name}": view.listing(path),
            ):
                try:
                    call()
                except Failure:
                    pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_budget_limits_the_bytes_written(machine: Machine) -> None:
    authority = machine.authority(f"{machine.shared}/**", max_file_size_mb=1)
    path = f"{machine.shared}/b.txt"
    view = authority.guarded(look.definition, machine.workspace, 5)
    assert view.read(path, LIMIT) == b"shared"
    # All bytes written count, also if a file is replaced later. A failed write does not count.
    view.replace(path, b"1234")
    assert refused(lambda: view.replace(f"{machine.shared}/no/c.txt", b"1"))[0] == "not_found"
    view.replace(path, b"5")
    assert refused(lambda: view.replace(path, b"6")) == ("budget_exceeded", "lease.budget.bytes_written")
    assert (view.judge.bytes_written, view.read(path, LIMIT)) == (5, b"5")
    view = authority.guarded(look.definition, machine.workspace, 1 << 30)
    assert refused(lambda: view.replace(path, b"x" * ((1 << 20) + 1))) == ("too_large", "max_file_size_mb")


def test_the_innermost_root_applies(machine: Machine) -> None:
    (machine.shared / "up").symlink_to("../private/secret")
    view = machine.view(f"{machine.base}/data/**", f"{machine.shared}/**")
    assert view.read(f"{machine.private}/secret", LIMIT) == b"secret"
    assert refused(lambda: view.read(f"{machine.shared}/up", LIMIT)) == DENIED


def test_a_working_directory_and_roots(machine: Machine) -> None:
    (machine.work / "sub").mkdir()
    (machine.work / "sub" / "c.txt").write_text("below")
    at = machine.workspace.at("sub")
    authority = machine.authority(f"{machine.shared}/**", forbidden_paths=["./sub/no"])
    view = authority.guarded(look.definition, at)
    assert view.read("c.txt", LIMIT) == b"below"
    assert view.read(f"{machine.shared}/b.txt", LIMIT) == b"shared"
    assert [e.path for e in view.listing(".")] == ["c.txt"]
    (found,) = [d for d in authority.judge(look.definition, look, {"path": "no"}, at, "NORMAL") if d.verdict == "deny"]
    assert found.rule == "tools.look.forbidden_paths"
    assert refused(lambda: machine.workspace.at(str(machine.shared))) == DENIED


@pytest.mark.parametrize(
    ("pattern", "real", "covered", "problem"),
    [
        ("/data/shared/**", "/data/shared", "/data/shared", None),
        ("/data/shared", "/data/shared", "/data/shared", None),
        ("/data/./a*/b", "/data", "/data/a*/b", None),
        ("/data/*/x/**", "/data", "/data/*/x/**", None),
        ("$HOME/notes/*.md", "/h/ada/notes", "/h/ada/notes/*.md", None),
        ("~/notes", "/h/ada/notes", "/h/ada/notes", None),
        ("/", "/", "/", "whole file system"),
        ("/**", "/", "/", "whole file system"),
        ("/*.txt", "/", "/*.txt", "whole file system"),
        ("~", "/h/ada", "/h/ada", "home folder"),
        ("$HOME/**", "/h/ada", "/h/ada", "home folder"),
        ("$HOME/*.md", "/h/ada", "/h/ada/*.md", "home folder"),
        ("/h/**", "/h", "/h", "it contains your home folder"),
        ("$HOME/.ssh/**", "/h/ada/.ssh", "/h/ada/.ssh", "always forbidden"),
        ("/sys/x/**", "/sys/x", "/sys/x", "always forbidden"),
    ],
)
def test_the_folder_that_a_pattern_opens(pattern: str, real: str, covered: str, problem: str | None) -> None:
    root = root_of(pattern, "/h/ada/work", "/h/ada")
    assert root is not None
    assert (root.real, root.pattern) == (real, covered)
    assert (problem or "") in (root.problem or "")
    assert (root.problem is None) == (problem is None)


@pytest.mark.parametrize("pattern", ["src/**", "*.md", "$WORKSPACE/x", ".", "~/work/src/**", "/h/ada/work", "**/x"])
def test_patterns_about_the_workspace_open_nothing(pattern: str) -> None:
    assert root_of(pattern, "/h/ada/work", "/h/ada") is None


def test_lint_reports_roots_that_open_nothing(machine: Machine) -> None:
    said = {"allowed_paths": ["$WORKSPACE", "/", f"{machine.shared}/**", f"{machine.base}/none/**", "~"]}
    rules = read_governance({"tools": {"look": said}}).tightened(
        read_governance({"tools": {"look": {"allowed_paths": [f"{machine.shared}/**"]}}})
    )
    found = lint(rules, [look.definition], [], str(machine.work), str(machine.home))
    assert [(f["rule"], f["message"].partition(": ")[2]) for f in found] == [
        ("tools.look.allowed_paths", "it would open the whole file system; name a folder"),
        ("tools.look.allowed_paths", f"there is no folder '{machine.base}/none'"),
        ("tools.look.allowed_paths", "it would open your home folder; name a folder in it"),
        ("project.tools.look.allowed_paths", "a project's file can only tighten"),
    ]
