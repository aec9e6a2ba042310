"""Every change in the workspace under attack: with real files, with and without `openat2`.

No change reaches files outside, Albert's files or git's files. A refused change leaves everything unchanged.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.extra_roots import Root
from albert_tools.engine.policy.tool_paths import ToolPaths
from albert_tools.engine.workspace import files, openat, walk
from albert_tools.engine.workspace.call_judge import NO_RULES, CallJudge
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.refusals import refused, snapshot

LIMIT = 1 << 20

#: The operations that change a path.
CHANGES: dict[str, Callable[[Workspace, str], Any]] = {
    "replace": lambda w, p: w.replace(p, b"x"),
    "create": lambda w, p: w.replace(p, b"x", new=True),
    "append": lambda w, p: w.rewrite(p, lambda old: (old or b"") + b"x", LIMIT, missing=True),
    "edit": lambda w, p: w.rewrite(p, lambda old: b"x", LIMIT),
    "remove": lambda w, p: w.remove(p),
    "move there": lambda w, p: w.move("a.txt", p, LIMIT, new=False),
    "move from there": lambda w, p: w.move(p, "moved", LIMIT),
    "make folder": lambda w, p: w.make_folder(p),
}
LOOKS: dict[str, Callable[[Workspace, str], Any]] = {
    "open": lambda w, p: w.open(p).close(),
    "info": lambda w, p: w.info(p),
    "walk": lambda w, p: list(w.walk(p)),
}
changes = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture(autouse=True)
def _renaming(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without `openat2` has no `renameat2` either."""
    if way != "openat2":
        monkeypatch.setattr(openat, "_rename_new", lambda: None)


@pytest.mark.parametrize(
    ("path", "code", "rule"),
    [
        ("../outside/secret", "permission_denied", "path_traversal"),
        ("sub/../a.txt", "permission_denied", "path_traversal"),
        ("/etc/passwd", "permission_denied", "outside_workspace"),
        ("/proc/self/root/etc/passwd", "permission_denied", "outside_workspace"),
        ("/proc/self/cwd/x", "permission_denied", "outside_workspace"),
        ("", "invalid_arguments", None),
        ("a\0b", "invalid_arguments", None),
        ("\ud800", "invalid_arguments", None),
        ("n" * 256, "invalid_arguments", None),
        ("a.txt/b", "not_a_directory", None),
    ],
)
@pytest.mark.parametrize("what", [*CHANGES, *LOOKS])
def test_paths_that_are_refused(
    workspace: Workspace, root: Path, what: str, path: str, code: str, rule: str | None
) -> None:
    before = snapshot(root.parent)
    assert refused(lambda: {**CHANGES, **LOOKS}[what](workspace, path)) == (code, rule)
    assert snapshot(root.parent) == before


@changes
@pytest.mark.parametrize("target", ["/etc", "../outside", "sub/../../outside", "/proc/self/root", "/proc/self/cwd"])
def test_links_that_lead_out(workspace: Workspace, root: Path, change: str, target: str) -> None:
    (root / "link").symlink_to(target)
    before = snapshot(root.parent)
    for path in ("link/secret", "link/new", "link/sub/new"):
        assert refused(lambda path=path: CHANGES[change](workspace, path)) == ("permission_denied", "outside_workspace")
    assert snapshot(root.parent) == before
    for look in LOOKS.values():
        assert refused(lambda look=look: look(workspace, "link/secret")) == ("permission_denied", "outside_workspace")


@changes
def test_changes_do_not_go_through_links(workspace: Workspace, root: Path, change: str) -> None:
    (root / "folder").symlink_to("sub")
    (root / "file").symlink_to("sub/b.txt")
    (root / "dangling").symlink_to("sub/new")
    before = snapshot(root)
    for path in ("folder/b.txt", "folder/new", "file", "dangling"):
        if change == "remove" and "/" not in path:
            continue
        code, rule = refused(lambda path=path: CHANGES[change](workspace, path))
        # Creating a file fails because the link exists.
        assert (code, rule) == ("permission_denied", "symbolic_link") or (change, code) == ("create", "exists")
    assert snapshot(root) == before


def test_deleting_a_link_leaves_its_target(workspace: Workspace, root: Path) -> None:
    (root / "out").symlink_to("../outside/secret")
    (root / "folder").symlink_to("sub")
    (root / "dangling").symlink_to("nowhere")
    for name in ("out", "folder", "dangling"):
        assert workspace.remove(name) == (name, "symlink", 0, None)
    assert sorted(os.listdir(root)) == ["a.txt", "sub"]
    assert (root.parent / "outside" / "secret").read_text() == "secret"
    assert (root / "sub" / "b.txt").exists()


@changes
@pytest.mark.parametrize("name", [".albert", ".ALBERT", ".a\u200clbert", ".ａlbert", ".git", ".GIT", "git~1", ".git "])
def test_the_folders_of_albert_and_git_can_not_be_changed(
    workspace: Workspace, root: Path, change: str, name: str
) -> None:
    for folder in (".albert", ".git"):
        (root / folder).mkdir()
        (root / folder / "config").write_text("[core]")
    before = snapshot(root)
    for path in (name, f"{name}/config", f"{name}/new", f"sub/{name}", f"sub/{name}/hooks"):
        code, rule = refused(lambda path=path: CHANGES[change](workspace, path))
        assert (code, rule) in (("permission_denied", "albert_own"), ("permission_denied", "git_own"))
    assert snapshot(root) == before


@changes
def test_the_target_of_a_link_in_the_albert_folder_is_not_changed(
    workspace: Workspace, root: Path, change: str
) -> None:
    (root / "config").mkdir()
    (root / ".albert").symlink_to("config")
    before = snapshot(root)
    paths = ["config/x", "config/x/y"] + (["config"] if change == "remove" else [])
    for path in paths:
        code, rule = refused(lambda path=path: CHANGES[change](workspace, path))
        if path == "config/x/y" and change != "make folder":
            assert code == "not_found"
        else:
            assert (code, rule) == ("permission_denied", "albert_own")
    assert snapshot(root) == before


@changes
@pytest.mark.parametrize("there", [True, False])
def test_a_sealed_folder_and_those_above_it_are_not_changed(root: Path, change: str, there: bool) -> None:
    state = root / "deep" / "state"
    (state if there else state.parent).mkdir(parents=True)
    with Workspace(root, [state]) as workspace:
        before = snapshot(root)
        for path in ("deep/state", "deep/state/x", *(["deep"] if change != "make folder" else [])):
            code, rule = refused(lambda path=path: CHANGES[change](workspace, path))
            assert rule == "albert_own" or (not there and code == "not_found")
        assert snapshot(root) == before


@changes
def test_a_file_that_is_not_regular_is_refused(workspace: Workspace, root: Path, change: str) -> None:
    os.mkfifo(root / "fifo")
    before = snapshot(root)
    if change == "remove":
        assert workspace.remove("fifo") == ("fifo", "other", 0, None)
        assert refused(lambda: workspace.remove("sub")) == ("not_a_file", None)
        return
    expected = {"create": "exists", "make folder": "exists"}.get(change, "not_a_file")
    assert refused(lambda: CHANGES[change](workspace, "fifo")) == (expected, None)
    if change != "make folder":
        assert refused(lambda: CHANGES[change](workspace, "sub")) == (expected, None)
        assert refused(lambda: CHANGES[change](workspace, ".")) == ("not_a_file", None)
    assert snapshot(root) == before


@pytest.mark.parametrize("change", ["append", "edit", "move from there"])
def test_a_secret_under_another_name_is_not_copied_out(root: Path, change: str) -> None:
    home = root.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("key")
    os.link(home / ".ssh" / "id", root / "innocent")
    with Workspace(root, secret=[home / ".ssh"]) as workspace:
        before = snapshot(root.parent)
        assert refused(lambda: CHANGES[change](workspace, "innocent")) == ("permission_denied", "hard_link")
        assert refused(lambda: workspace.open("innocent")) == ("permission_denied", "hard_link")
        assert refused(lambda: workspace.info("innocent")) == ("permission_denied", "hard_link")
        assert snapshot(root.parent) == before
        # The name may be deleted, but the result contains nothing of the secret.
        assert workspace.remove("innocent").sha256 is None
        assert (home / ".ssh" / "id").read_text() == "key"


@pytest.mark.parametrize("change", ["append", "edit"])
def test_nothing_is_written_through_a_hard_link(workspace: Workspace, root: Path, change: str) -> None:
    os.link(root.parent / "outside" / "secret", root / "hard")
    CHANGES[change](workspace, "hard")
    assert (root.parent / "outside" / "secret").read_text() == "secret"


@changes
def test_a_read_only_file_is_not_changed(workspace: Workspace, root: Path, change: str) -> None:
    (root / "fixed").write_text("fixed")
    (root / "fixed").chmod(0o444)
    before = snapshot(root)
    code = {"create": "exists", "make folder": "exists"}.get(change, "io_error")
    assert refused(lambda: CHANGES[change](workspace, "fixed")) == (code, None)
    assert snapshot(root) == before


@changes
def test_a_change_that_is_refused_at_the_last_moment(workspace: Workspace, root: Path, change: str) -> None:
    class Refusing(CallJudge):
        def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
            if written == refused_path:
                raise Failure("cancelled", "the call is over")

    before = snapshot(root)
    view = workspace.judged_by(Refusing(NO_RULES))
    calls: dict[str, tuple[str, Callable[[], object]]] = {
        "replace": ("a.txt", lambda: view.replace("a.txt", b"x")),
        "create": ("new", lambda: view.replace("new", b"x", new=True)),
        "append": ("a.txt", lambda: view.rewrite("a.txt", lambda old: b"x", LIMIT)),
        "edit": ("a.txt", lambda: view.rewrite("a.txt", lambda old: b"x", LIMIT)),
        "remove": ("a.txt", lambda: view.remove("a.txt")),
        "move there": ("a.txt", lambda: view.move("sub/b.txt", "a.txt", LIMIT, new=False)),
        "move from there": ("a.txt", lambda: view.move("a.txt", "new", LIMIT)),
        "make folder": ("new/er", lambda: view.make_folder("new/er")),
    }
    refused_path, call = calls[change]
    assert refused(call)[0] == "cancelled"
    assert snapshot(root) == before


# Changes that are allowed.


def test_moving(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").chmod(0o750)
    assert workspace.move("a.txt", "sub/c", LIMIT)[:4] == ("a.txt", "sub/c", "sub/c", 6)
    assert (root / "sub" / "c").stat().st_mode & 0o777 == 0o750
    assert refused(lambda: workspace.move("sub/c", "sub/b.txt", LIMIT)) == ("exists", None)
    workspace.move("sub/c", "sub/b.txt", LIMIT, new=False)
    assert (root / "sub" / "b.txt").read_text() == "inside"
    assert sorted(p.name for p in root.rglob("*")) == ["b.txt", "sub"]
    assert refused(lambda: workspace.move("sub/b.txt", "./sub/b.txt", LIMIT, new=False)) == ("invalid_arguments", None)
    os.link(root / "sub" / "b.txt", root / "other")
    assert refused(lambda: workspace.move("sub/b.txt", "other", LIMIT, new=False)) == ("exists", None)
    assert (root / "other").read_text() == (root / "sub" / "b.txt").read_text() == "inside"
    for source in ("nothing", "sub"):
        assert refused(lambda source=source: workspace.move(source, "x", LIMIT))[0] in ("not_found", "not_a_file")
    assert refused(lambda: workspace.move("other", "no/such", LIMIT)) == ("not_found", None)


def test_moving_to_another_file_system(workspace: Workspace, root: Path) -> None:
    """The file is copied, if its size is within the limit, and then deleted."""
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == root.stat().st_dev:
        pytest.skip("there is no other file system to write to")
    other = elsewhere / f"albert-test-{os.getpid()}"
    other.mkdir()
    try:
        wide = workspace.reaching([Root(str(other), str(other), "")])
        before = snapshot(root)
        assert refused(lambda: wide.move("a.txt", f"{other}/a", 5)) == ("too_large", None)
        assert snapshot(root) == before
        assert wide.move("a.txt", f"{other}/a", LIMIT).target == f"{other}/a"
        assert (other / "a").read_text() == "inside"
        assert not (root / "a.txt").exists()
        (root / "a.txt").write_text("back")
        assert refused(lambda: wide.move(f"{other}/a", "a.txt", LIMIT)) == ("exists", None)
        wide.move(f"{other}/a", "a.txt", LIMIT, new=False)
        assert (root / "a.txt").read_text() == "inside"
        assert os.listdir(other) == []
    finally:
        shutil.rmtree(other)


def test_a_file_is_not_moved_to_itself_across_two_mounts(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a check, the file would be copied onto itself and then deleted."""

    def other_mount(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    facts_of = files.facts_of
    monkeypatch.setattr(os, "rename", other_mount)
    monkeypatch.setattr(files, "facts_of", lambda folder, name: facts_of(folder, "a.txt" if name == "same" else name))
    before = snapshot(root)
    for new in (True, False):
        assert refused(lambda new=new: workspace.move("a.txt", "same", LIMIT, new=new)) == ("exists", None)
    assert snapshot(root) == before


def test_deleting(workspace: Workspace, root: Path) -> None:
    (root / "empty").mkdir()
    assert workspace.remove("empty/") == ("empty", "directory", 0, None)
    assert refused(lambda: workspace.remove("sub")) == ("not_a_file", None)
    assert workspace.remove("sub/b.txt")[:3] == ("sub/b.txt", "file", 5)
    assert workspace.remove("sub").type == "directory"
    assert refused(lambda: workspace.remove("sub")) == ("not_found", None)
    assert os.listdir(root) == ["a.txt"]


def test_making_folders(workspace: Workspace, root: Path) -> None:
    judged: list[str] = []
    rules = ToolPaths("x", (), str(root))
    rules.judge = lambda path, use: judged.append(path)  # type: ignore[assignment, func-returns-value, method-assign]
    view = workspace.judged_by(CallJudge(rules, "x", LIMIT))
    assert view.make_folder("x/y/z") == ["x", "x/y", "x/y/z"]
    assert judged == [f"{root}/x/y/z"]
    assert workspace.make_folder("x/y/z/") == []
    assert refused(lambda: workspace.make_folder("p/q", parents=False)) == ("not_found", None)
    assert workspace.make_folder("p", parents=False) == ["p"]
    assert refused(lambda: workspace.make_folder("a.txt")) == ("exists", None)
    assert refused(lambda: workspace.make_folder("a.txt/x")) == ("not_a_directory", None)
    assert not (root / "p" / "q").exists()


def test_one_of_several_threads_creates_a_file(workspace: Workspace, root: Path) -> None:
    done: list[int] = []
    failed: list[str] = []

    def create(n: int) -> None:
        for name in range(30):
            try:
                workspace.replace(f"n{name}", str(n).encode(), new=True)
                done.append(name)
            except Failure as failure:
                failed.append(failure.code)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(30))
    assert set(failed) == {"exists"}
    assert not [p for p in os.listdir(root) if p.startswith(".albert-write")]


def test_facts(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("sub")
    found = workspace.info("link/b.txt")
    assert (found.path, found.type, found.facts.st_size) == ("sub/b.txt", "file", 5)
    assert workspace.info("link")[:2] == ("link", "symlink")
    assert workspace.info("link").link == "sub"
    assert workspace.info(".")[:2] == (".", "directory")
    assert refused(lambda: workspace.info("nothing")) == ("not_found", None)


# Walking.


def met(workspace: Workspace, path: str = ".", **more: Any) -> list[tuple[str, str]]:
    return [(m.path, m.type) for m in workspace.walk(path, **more)]


def test_a_walk(workspace: Workspace, root: Path) -> None:
    (root / "sub" / "deep").mkdir()
    (root / "sub" / "deep" / "c").touch()
    (root / "sub-1").touch()
    (root / "sub.x").touch()
    (root / "link").symlink_to("sub")
    (root / "out").symlink_to("/etc")
    os.mkfifo(root / "fifo")
    everything = met(workspace)
    assert everything == sorted(everything)
    assert dict(everything) == {
        **{"a.txt": "file", "fifo": "other", "link": "symlink", "out": "symlink", "sub": "directory", "sub-1": "file"},
        **{"sub.x": "file", "sub/b.txt": "file", "sub/deep": "directory", "sub/deep/c": "file"},
    }
    assert met(workspace, "link") == [("link/b.txt", "file"), ("link/deep", "directory"), ("link/deep/c", "file")]
    assert met(workspace, "sub/b.txt") == [("sub/b.txt", "file")]
    assert "sub/b.txt" not in dict(met(workspace, enter=lambda m: m.name != "sub"))
    assert refused(lambda: met(workspace, "none")) == ("not_found", None)


def test_a_walk_does_not_enter_sealed_folders(root: Path) -> None:
    (root / "state" / "runs").mkdir(parents=True)
    with Workspace(root, [root / "state"]) as workspace:
        assert "state/runs" not in dict(met(workspace))
        assert refused(lambda: met(workspace, "state")) == ("permission_denied", "albert_own")


def test_the_bounds_of_a_walk(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(10):
        (root / f"{n}").touch()
    monkeypatch.setattr(walk, "MAX_NAMES", 12)
    assert len(met(workspace)) == 13
    monkeypatch.setattr(walk, "MAX_WALKED", 12)
    assert refused(lambda: met(workspace)) == ("too_large", None)
    monkeypatch.setattr(walk, "MAX_WALKED", 13)
    monkeypatch.setattr(walk, "MAX_NAMES", 11)
    assert refused(lambda: met(workspace)) == ("too_large", None)
    monkeypatch.setattr(walk, "MAX_NAMES", 12)
    monkeypatch.setattr(walk, "MAX_DEPTH", 1)
    assert refused(lambda: met(workspace)) == ("too_large", None)


def test_an_abandoned_walk_leaves_nothing_open(workspace: Workspace, root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in workspace.walk("."):
        break
    for found in workspace.walk("sub"):
        with workspace.open_met(found) as opened:
            assert opened.read(LIMIT) == b"below"
    assert len(os.listdir("/proc/self/fd")) == before


@changes
def test_no_descriptor_is_left_open(workspace: Workspace, root: Path, change: str) -> None:
    (root / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a.txt", "sub", "out/passwd", "no/such", "a.txt/b", "sub/b.txt", "n" * 300, "fresh"):
        for call in (CHANGES[change], *LOOKS.values()):
            try:
                call(workspace, path)
            except Failure:
                pass
    assert len(os.listdir("/proc/self/fd")) == before


# Races.


def test_a_folder_swapped_for_a_link_never_leads_out(workspace: Workspace, root: Path) -> None:
    """A thread swaps the folder all the time. No file outside is changed or read."""
    folder, kept, outside = root / "flip", root / "kept", root.parent / "outside"
    folder.mkdir()
    (outside / "x").write_text("outside")
    before = snapshot(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(folder, kept)
            os.symlink("../outside", folder)
            os.unlink(folder)
            os.symlink(outside, folder)
            os.unlink(folder)
            os.rename(kept, folder)
            done.wait(0.0005)

    def searched() -> None:
        for found in workspace.walk("."):
            if found.type == "file":
                with workspace.open_met(found) as opened:
                    assert opened.read(LIMIT) not in (b"outside", b"secret")

    swapping = threading.Thread(target=swap)
    swapping.start()
    codes: set[str] = set()
    good = bad = 0
    try:
        end = time.monotonic() + 20
        while (good < 100 or bad < 100) and time.monotonic() < end:
            for call in (
                lambda: workspace.replace("flip/x", b"inside"),
                lambda: workspace.rewrite("flip/x", lambda old: (old or b"")[:9] + b"x", LIMIT, missing=True),
                lambda: workspace.move("flip/x", "flip/y", LIMIT, new=False),
                lambda: workspace.move("flip/y", "back", LIMIT, new=False),
                lambda: workspace.move("back", "flip/secret", LIMIT, new=False),
                lambda: workspace.make_folder("flip/new", parents=False),
                lambda: workspace.remove("flip/new"),
                lambda: workspace.remove("flip/secret"),
                lambda: workspace.info("flip/x"),
                searched,
            ):
                try:
                    call()
                except Failure as failure:
                    codes.add(failure.code)
                    bad += 1
                    continue
                good += 1
    finally:
        done.set()
        swapping.join()
    assert snapshot(outside) == before
    assert good >= 10
    assert codes <= {"permission_denied", "not_found", "not_a_directory", "not_a_file", "io_error", "exists"}


def test_a_file_swapped_while_it_is_moved_or_deleted(workspace: Workspace, root: Path) -> None:

    class Swapping(CallJudge):
        def demand_going(self) -> None:
            (root / "new").write_text("other")
            os.replace(root / "new", root / "a.txt")

    view = workspace.judged_by(Swapping(NO_RULES))
    for call in (lambda: view.remove("a.txt"), lambda: view.move("a.txt", "b", LIMIT)):
        with pytest.raises(Failure) as caught:
            call()
        assert (caught.value.code, caught.value.retryable) == ("io_error", True)
        assert (root / "a.txt").read_text() == "other"
    assert not (root / "b").exists()


def test_a_full_disk(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = snapshot(root)
    monkeypatch.setattr(os, "fsync", full)
    for change in ("replace", "append", "edit"):
        assert refused(lambda change=change: CHANGES[change](workspace, "a.txt")) == ("io_error", None)
    assert refused(lambda: workspace.replace("new", b"x", new=True)) == ("io_error", None)
    assert snapshot(root) == before
