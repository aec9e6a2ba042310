"""Reading and writing in the workspace, and the paths that it refuses: with real files, with and without `openat2`."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import hard_links, openat
from albert_tools.engine.workspace import workspace as workspace_module
from albert_tools.engine.workspace.files import Entry
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.refusals import refused, snapshot

pytestmark = pytest.mark.usefixtures("way")

LIMIT = 1 << 20

#: Lists a folder without the capabilities of root that read every folder.
AS_USER = """
import ctypes, pathlib, struct, sys
from albert_tools.engine.workspace.workspace import Workspace

header, none = struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
assert sys.platform != "linux" or ctypes.CDLL(None).capset(header, none) == 0
with Workspace(pathlib.Path(sys.argv[1])) as workspace:
    print([entry.path for entry in workspace.listing(".", recursive=True)])
"""


def test_reading_and_writing(workspace: Workspace, root: Path) -> None:
    assert workspace.read("a.txt", LIMIT) == b"inside"
    assert workspace.read("./sub//b.txt", LIMIT) == b"below"
    assert workspace.read(f"{root}/sub/b.txt", LIMIT) == b"below"
    facts = workspace.replace("sub/./new", b"data")
    assert facts == ("sub/new", 4, hashlib.sha256(b"data").hexdigest())
    assert (root / "sub" / "new").read_bytes() == b"data"


def test_only_what_is_in_memory_is_read_at_once(workspace: Workspace, root: Path) -> None:
    def at_once(path: str, place: Workspace = workspace) -> bytes:
        with place.open(path, at_once=True) as opened:
            return opened.read_at_once(LIMIT)

    (root / "link").symlink_to("sub")
    (root / "file").symlink_to("a.txt")
    (root / "large").write_bytes(bytes(1 << 17))
    (root / "twice").write_text("")
    os.link(root / "twice", root / "another")
    for path in ("link/b.txt", "file", "large", "another", "missing", "missing/b.txt"):
        with pytest.raises(BlockingIOError):
            at_once(path)
    if _can_read_at_once(root / "a.txt"):
        assert at_once("a.txt") == b"inside"
        assert at_once("sub/b.txt") == b"below"
        with Workspace(Path("/proc")) as unknown, pytest.raises(BlockingIOError):
            at_once("version", unknown)
        with Workspace(Path("/")) as whole, pytest.raises(BlockingIOError):
            at_once("proc/version", whole)


def _can_read_at_once(file: Path) -> bool:
    """Whether this system can: `openat2` knows the flag since Linux 5.12, and the file system of the tests must know its own."""
    if sys.platform != "linux" or openat.kernel_open() is None:
        return False
    with file.open("rb") as opened:
        try:
            os.preadv(opened.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError:
            return False
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 12)


@pytest.mark.parametrize(
    ("path", "code", "rule"),
    [
        ("../outside/secret", "permission_denied", "path_traversal"),
        ("sub/../a.txt", "permission_denied", "path_traversal"),
        ("..", "permission_denied", "path_traversal"),
        ("/etc/passwd", "permission_denied", "outside_workspace"),
        ("/proc/self/root/etc/passwd", "permission_denied", "outside_workspace"),
        ("/", "permission_denied", "outside_workspace"),
        ("", "invalid_arguments", None),
        ("a\0b", "invalid_arguments", None),
        ("a\udc80", "invalid_arguments", None),
        ("\ud800", "invalid_arguments", None),
        ("a/" * 2049, "invalid_arguments", None),
        ("n" * 256, "invalid_arguments", None),
    ],
)
def test_paths_that_are_refused(workspace: Workspace, root: Path, path: str, code: str, rule: str | None) -> None:
    before = snapshot(root.parent)
    assert refused(lambda: workspace.read(path, LIMIT)) == (code, rule)
    assert refused(lambda: workspace.replace(path, b"x")) == (code, rule)
    assert refused(lambda: workspace.listing(path)) == (code, rule)
    assert refused(lambda: workspace.locate(path)) == (code, rule)
    assert snapshot(root.parent) == before


def test_an_absolute_path_with_the_same_beginning_is_outside(workspace: Workspace, root: Path) -> None:
    Path(f"{root}-too").mkdir()
    assert refused(lambda: workspace.listing(f"{root}-too")) == ("permission_denied", "outside_workspace")
    assert refused(lambda: workspace.listing(f"{root}/../work")) == ("permission_denied", "path_traversal")


def test_dots_that_are_names(workspace: Workspace) -> None:
    workspace.replace("...", b"1")
    workspace.replace("..a", b"2")
    workspace.replace("a\\..\\b", b"3")
    assert [e.path for e in workspace.listing(".") if "." in e.path[:2] or "\\" in e.path] == [
        "...",
        "..a",
        "a.txt",
        "a\\..\\b",
    ]


def test_links_inside_are_followed_for_reading_and_not_for_writing(workspace: Workspace, root: Path) -> None:
    (root / "file").symlink_to("a.txt")
    (root / "folder").symlink_to("sub")
    (root / "sub" / "up").symlink_to("../a.txt")
    (root / "sub" / "twice").symlink_to("../folder/up")
    assert workspace.read("file", LIMIT) == b"inside"
    assert workspace.read("folder/b.txt", LIMIT) == b"below"
    assert workspace.read("sub/up", LIMIT) == b"inside"
    assert workspace.read("folder/twice", LIMIT) == b"inside"
    assert workspace.locate("folder/twice") == "a.txt"
    assert workspace.locate("folder") == "sub"
    before = snapshot(root)
    for path, real in (("file", "a.txt"), ("folder/b.txt", "sub/b.txt")):
        with pytest.raises(Failure) as caught:
            workspace.replace(path, b"x")
        assert (caught.value.code, caught.value.rule) == ("permission_denied", "symbolic_link")
        assert repr(real) in str(caught.value.hint)
    assert refused(lambda: workspace.read("file", LIMIT, follow=False))[0] == "io_error"
    assert snapshot(root) == before


@pytest.mark.parametrize("target", ["/etc", "../outside", "sub/../../outside", "/proc/self/root", "OWN"])
def test_links_that_lead_out(workspace: Workspace, root: Path, target: str) -> None:
    (root / "link").symlink_to(str(root) if target == "OWN" else target)
    before = snapshot(root.parent / "outside")
    denied = ("permission_denied", "outside_workspace")
    for path in ("link", "link/secret", "link/a.txt", "link/etc/passwd"):
        assert refused(lambda path=path: workspace.read(path, LIMIT)) == denied
        assert refused(lambda path=path: workspace.replace(path, b"x")) == denied
        assert refused(lambda path=path: workspace.listing(path)) == denied
        assert refused(lambda path=path: workspace.locate(path)) == denied
    assert snapshot(root.parent / "outside") == before
    assert os.path.islink(root / "link")


def test_dangling_and_circular_links(workspace: Workspace, root: Path) -> None:
    (root / "gone").symlink_to("nowhere")
    (root / "round").symlink_to("round")
    assert refused(lambda: workspace.read("gone", LIMIT)) == ("not_found", None)
    assert refused(lambda: workspace.replace("gone", b"x")) == ("permission_denied", "symbolic_link")
    assert refused(lambda: workspace.read("round", LIMIT)) == ("io_error", None)
    assert refused(lambda: workspace.replace("round", b"x")) == ("permission_denied", "symbolic_link")
    assert not (root / "nowhere").exists()


def test_writing_separates_a_hard_link(workspace: Workspace, root: Path) -> None:
    os.link(root.parent / "outside" / "secret", root / "hard")
    workspace.replace("hard", b"mine")
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret"
    assert (root / "hard").read_bytes() == b"mine"


def test_a_file_that_is_not_regular_is_refused(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)  # The path of a socket may have only about 100 characters.
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    for path in ("fifo", "socket", "sub", ".", "sub/"):
        assert refused(lambda path=path: workspace.read(path, LIMIT)) == ("not_a_file", None)
        assert refused(lambda path=path: workspace.replace(path, b"x")) == ("not_a_file", None)
    types = {e.path: (e.type, e.size) for e in workspace.listing(".")}
    assert types["fifo"] == types["socket"] == ("other", 0)
    assert types["sub"] == ("directory", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_devices(workspace: Workspace, root: Path) -> None:
    try:
        os.mknod(root / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not even root, here")
    assert refused(lambda: workspace.read("zero", LIMIT)) == ("not_a_file", None)
    assert refused(lambda: workspace.replace("zero", b"x")) == ("not_a_file", None)


def test_a_missing_path_has_a_hint(workspace: Workspace, root: Path) -> None:
    def hint(call: Callable[[], object]) -> str | None:
        with pytest.raises(Failure) as caught:
            call()
        assert caught.value.code == "not_found"
        return caught.value.hint

    assert hint(lambda: workspace.read("sub/B.txt", LIMIT)) == "did you mean 'sub/b.txt'?"
    assert hint(lambda: workspace.read("zzzzzz", LIMIT)) is None
    assert (
        hint(lambda: workspace.replace("new/a.txt", b"")) == "its folder 'new' does not exist: make_directory makes it"
    )
    assert refused(lambda: workspace.read("a.txt/b", LIMIT)) == ("not_a_directory", None)
    assert refused(lambda: workspace.replace("a.txt/b", b"")) == ("not_a_directory", None)
    assert refused(lambda: workspace.listing("a.txt")) == ("not_a_directory", None)
    assert refused(lambda: workspace.listing("nothing")) == ("not_found", None)
    assert not (root / "new").exists()


def test_the_limit_of_a_read(workspace: Workspace) -> None:
    assert workspace.read("a.txt", 6) == b"inside"
    assert refused(lambda: workspace.read("a.txt", 5)) == ("too_large", None)


def test_the_mode_of_a_file_stays_and_read_only_files_stay_unchanged(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").chmod(0o750)
    workspace.replace("a.txt", b"new")
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o750
    (root / "a.txt").chmod(0o444)
    assert refused(lambda: workspace.replace("a.txt", b"newer")) == ("io_error", None)
    assert (root / "a.txt").read_bytes() == b"new"


def test_a_failed_write_leaves_the_old_file(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = snapshot(root)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match=r"no space left for 'a\.txt'"):
        workspace.replace("a.txt", b"new")
    assert snapshot(root) == before


@pytest.mark.parametrize("name", [".albert", ".ALBERT", ".a\u200clbert", ".ａlbert", ".albert."])
@pytest.mark.parametrize("there", [True, False])
def test_the_albert_folder_can_be_read_and_not_written(
    workspace: Workspace, root: Path, name: str, there: bool
) -> None:
    if there:
        (root / ".albert").mkdir()
        (root / ".albert" / "governance.yaml").write_text("mode: ask")
        assert workspace.read(".albert/governance.yaml", LIMIT) == b"mode: ask"
    before = snapshot(root)
    for path in (name, f"{name}/governance.yaml", f"{name}/new", f"sub/{name}"):
        denial = refused(lambda path=path: workspace.replace(path, b"x"))
        assert denial == ("permission_denied", "albert_own")
    assert snapshot(root) == before


@pytest.mark.parametrize("name", [".git", ".GIT", ".g\u200cit", "git~1", ".git "])
def test_the_git_folder_can_be_read_and_not_written(workspace: Workspace, root: Path, name: str) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    assert workspace.read(".git/config", LIMIT) == b"[core]"
    for path in (name, f"{name}/config", f"{name}/hooks/pre-commit", f"sub/{name}", f"sub/{name}/config"):
        assert refused(lambda path=path: workspace.replace(path, b"x")) == ("permission_denied", "git_own")
    workspace.replace("sub/.gitignore", b"x")


def test_the_target_of_a_link_in_the_albert_folder_is_protected(workspace: Workspace, root: Path) -> None:
    (root / "config").mkdir()
    (root / ".albert").symlink_to("config")
    assert refused(lambda: workspace.replace("config/x", b"")) == ("permission_denied", "albert_own")
    workspace.replace("sub/x", b"")


def test_a_sealed_folder_can_not_be_reached(root: Path) -> None:
    state = root / "state"
    with Workspace(root, [state]) as workspace:
        denied = ("permission_denied", "albert_own")
        for path in ("state", "state/x", "STATE/x"):
            assert refused(lambda path=path: workspace.replace(path, b""))[1] in ("albert_own", None)
        assert refused(lambda: workspace.replace("state", b"")) == denied
        (state / "runs").mkdir(parents=True)
        (state / "runs" / "1").write_text("x")
        (root / "other").symlink_to("state")
        for path in ("state", "state/runs", "other", "other/runs"):
            assert refused(lambda path=path: workspace.listing(path)) == denied
            assert refused(lambda path=path: workspace.read(f"{path}/1", LIMIT)) in (
                denied,
                ("not_found", None),
            )
        assert refused(lambda: workspace.read("other/runs/1", LIMIT)) == denied
        assert refused(lambda: workspace.replace("state/runs/1", b"y")) == denied
        with pytest.raises(Failure), workspace.folder("state/runs"):
            pass
        paths = [e.path for e in workspace.listing(".", recursive=True)]
        assert paths == ["a.txt", "other", "state", "sub", "sub/b.txt"]


def test_a_listing(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub" / "deep").mkdir()
    (root / "sub" / "deep" / "c").write_text("c")
    (root / "sub" / "back").symlink_to("..")
    (root / "view").symlink_to("sub")
    assert workspace.listing("sub", recursive=True) == [
        Entry("sub/b.txt", "file", 5),
        Entry("sub/back", "symlink", 0),
        Entry("sub/deep", "directory", 0),
        Entry("sub/deep/c", "file", 1),
    ]
    assert [e.path for e in workspace.listing("view")] == ["view/b.txt", "view/back", "view/deep"]
    everything = workspace.listing(".", recursive=True)
    monkeypatch.setattr(workspace_module, "MAX_ENTRIES", len(everything))
    assert workspace.listing(".", recursive=True) == everything
    monkeypatch.setattr(workspace_module, "MAX_ENTRIES", len(everything) - 1)
    assert refused(lambda: workspace.listing(".", recursive=True)) == ("too_large", None)


def test_a_folder_that_can_not_be_opened_is_listed_without_its_content(root: Path) -> None:
    (root / "sub").chmod(0)
    try:
        line = [sys.executable, "-c", AS_USER, str(root)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    finally:
        (root / "sub").chmod(0o700)
    assert done.stdout == "['a.txt', 'sub']\n"


def test_folders_that_are_too_deep_for_a_listing(workspace: Workspace, root: Path) -> None:
    (root / "sub" / "/".join("d" * 210)).mkdir(parents=True)
    assert refused(lambda: workspace.listing(".", recursive=True)) == ("too_large", None)
    assert [e.path for e in workspace.listing("sub")] == ["sub/b.txt", "sub/d"]
    assert len(workspace.listing("sub" + "/d" * 100, recursive=True)) == 110


def test_a_name_that_is_not_text_is_listed_with_escapes(workspace: Workspace, root: Path) -> None:
    os.mkdir(os.fsencode(root) + b"/\xff")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff/x")).touch()
    paths = [e.path for e in workspace.listing(".", recursive=True)]
    assert paths == ["\\xff", "\\xff/x", "a.txt", "sub", "sub/b.txt"]


def test_the_workspace_is_the_folder_not_its_path(workspace: Workspace, root: Path) -> None:
    moved = root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "outside")
    workspace.replace("new", b"x")
    assert (moved / "new").exists()
    assert not (root.parent / "outside" / "new").exists()


def test_a_root_that_is_a_link_is_not_opened(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    with pytest.raises(OSError):
        Workspace(root.parent / "link")


def test_no_descriptor_is_left_open(workspace: Workspace, root: Path) -> None:
    (root / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a.txt", "sub", "out/passwd", "no/such", "a.txt/b", "sub/b.txt", "n" * 300):
        for call in (
            lambda path=path: workspace.read(path, 1),
            lambda path=path: workspace.replace(path, b""),
            lambda path=path: workspace.listing(path),
        ):
            try:
                call()
            except Failure:
                pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_swapped_for_a_link_never_leads_out(workspace: Workspace, root: Path) -> None:
    """A thread swaps the folder all the time. Each operation fails or stays inside."""
    folder, kept, link = root / "flip", root / "kept", root / "link"
    folder.mkdir()
    outside = root.parent / "outside"
    (outside / "x").write_text("outside")
    (folder / "x").write_text("inside")
    before = snapshot(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(folder, kept)
            os.symlink(outside, folder)
            os.rename(folder, link)
            os.symlink("../outside", folder)
            os.unlink(folder)
            os.unlink(link)
            os.rename(kept, folder)
            # The folder stays in its place for a moment, also on a busy machine.
            done.wait(0.0005)

    swapping = threading.Thread(target=swap)
    swapping.start()
    codes: set[str] = set()
    good = bad = 0
    try:
        end = time.monotonic() + 20
        while (good < 100 or bad < 100) and time.monotonic() < end:
            for call in (
                lambda: workspace.read("flip/x", LIMIT),
                lambda: workspace.replace("flip/x", b"inside"),
                lambda: workspace.listing("flip"),
            ):
                try:
                    result = call()
                except Failure as failure:
                    codes.add(failure.code)
                    bad += 1
                    continue
                good += 1
                if isinstance(result, bytes):
                    assert result == b"inside"
                if isinstance(result, list):
                    assert "flip/secret" not in [e.path for e in result]
    finally:
        done.set()
        swapping.join()
    assert snapshot(outside) == before
    assert good > 0
    assert codes <= {"permission_denied", "not_found", "not_a_directory", "io_error"}


# Hard links.


@pytest.fixture
def keys(root: Path) -> Path:
    """A folder of secrets and Albert's own folder, on the same device as the workspace."""
    home = root.parent / "home"
    (home / ".ssh" / "old").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("key")
    (home / ".ssh" / "old" / "id").write_text("old key")
    (home / ".netrc").write_text("password")
    (home / ".albert").mkdir()
    (home / ".albert" / "log").write_text("log")
    return home


def test_a_hard_link_to_a_forbidden_file_is_not_read(root: Path, keys: Path) -> None:
    with Workspace(root, [keys / ".albert"], [keys / ".ssh", keys / ".netrc", keys / "none"]) as workspace:
        for secret in (".ssh/id", ".ssh/old/id", ".netrc", ".albert/log"):
            os.link(keys / secret, root / "innocent")
            assert refused(lambda: workspace.read("innocent", LIMIT)) == ("permission_denied", "hard_link")
            # Writing gives the name to a new file and leaves the secret unchanged.
            before = snapshot(keys)
            workspace.replace("innocent", b"mine")
            assert snapshot(keys) == before
            assert workspace.read("innocent", LIMIT) == b"mine"
            (root / "innocent").unlink()


def test_other_files_with_several_names_are_read(root: Path, keys: Path) -> None:
    with Workspace(root, secret=[keys / ".ssh"]) as workspace:
        os.link(root / "a.txt", root / "sub" / "again")
        assert workspace.read("sub/again", LIMIT) == b"inside"


def test_a_new_name_of_a_secret_is_noticed(root: Path, keys: Path) -> None:
    with Workspace(root, secret=[keys / ".ssh"]) as workspace:
        os.link(root / "a.txt", root / "again")
        for n in range(30):
            if n == 20:
                time.sleep(0.15)
            assert workspace.read("again", LIMIT) == b"inside"
            (keys / ".ssh" / "old" / f"{n}").write_text("new key")
            os.link(keys / ".ssh" / "old" / f"{n}", root / f"innocent{n}")
            assert refused(lambda n=n: workspace.read(f"innocent{n}", LIMIT)) == ("permission_denied", "hard_link")
        # The folder hasn't changed, but one of its files has a new name in another folder.
        time.sleep(0.15)
        assert workspace.read("again", LIMIT) == b"inside"
        os.link(keys / ".ssh" / "id", root / "late")
        assert refused(lambda: workspace.read("late", LIMIT)) == ("permission_denied", "hard_link")


def test_a_secret_behind_a_link_is_forbidden_too(root: Path, keys: Path) -> None:
    (keys / "dotfiles").mkdir()
    (keys / "dotfiles" / "key").write_text("key")
    (keys / ".ssh" / "linked").symlink_to("../dotfiles/key")
    os.link(keys / "dotfiles" / "key", root / "innocent")
    with Workspace(root, secret=[keys / ".ssh"]) as workspace:
        assert refused(lambda: workspace.read("innocent", LIMIT)) == ("permission_denied", "hard_link")


def test_too_many_secrets_to_compare(root: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.link(root / "a.txt", root / "again")
    monkeypatch.setattr(hard_links, "MAX_FILES", 1)
    with Workspace(root, secret=[keys / ".ssh"]) as workspace:
        assert refused(lambda: workspace.read("again", LIMIT)) == ("permission_denied", "hard_link")
        assert workspace.read("sub/b.txt", LIMIT) == b"below"


# A working directory.


def test_relative_paths_begin_at_the_working_directory(workspace: Workspace, root: Path) -> None:
    (root / "sub" / "deep").mkdir()
    (root / "sub" / "up").symlink_to("../a.txt")
    with workspace.at("./sub/") as view:
        assert view.root == root
        assert view.read("b.txt", LIMIT) == b"below"
        assert view.replace("deep/new", b"x").path == "deep/new"
        assert (root / "sub" / "deep" / "new").exists()
        assert [e.path for e in view.listing(".", recursive=True)] == ["b.txt", "deep", "deep/new", "up"]
        # A path outside the working directory is reported as an absolute path, so that a caller can use it again.
        assert view.read(f"{root}/a.txt", LIMIT) == b"inside"
        assert view.spell(f"{root}/a.txt") == f"{root}/a.txt"
        assert view.locate("up") == f"{root}/a.txt"
        assert view.read(view.locate("up"), LIMIT, follow=False) == b"inside"
        assert [e.path for e in view.listing(str(root))] == [f"{root}/a.txt", f"{root}/sub"]
        assert (view.spell(f"{root}/sub/b.txt"), view.absolute("b.txt")) == ("b.txt", f"{root}/sub/b.txt")
        assert (view.recorded("b.txt"), view.recorded(f"{root}/a.txt"), view.recorded(".")) == (
            "sub/b.txt",
            "a.txt",
            "sub",
        )
        assert view.at("deep").read("new", LIMIT) == b"x"
        assert view.at(str(root)).read("a.txt", LIMIT) == b"inside"
        with pytest.raises(Failure) as caught:
            view.read("c.txt", LIMIT)
        assert caught.value.hint == "did you mean 'b.txt'?"
    # Closing the view does not close the workspace.
    assert workspace.read("a.txt", LIMIT) == b"inside"


def test_a_working_directory_does_not_lead_out(workspace: Workspace, root: Path) -> None:
    view = workspace.at("sub")
    for path in ("../a.txt", "..", "deep/../b.txt"):
        assert refused(lambda path=path: view.read(path, LIMIT)) == ("permission_denied", "path_traversal")
        assert refused(lambda path=path: view.replace(path, b"")) == ("permission_denied", "path_traversal")
    (root / "sub" / "out").symlink_to("../../outside")
    assert refused(lambda: view.read("out/secret", LIMIT)) == ("permission_denied", "outside_workspace")
    assert refused(lambda: view.read("/etc/passwd", LIMIT)) == ("permission_denied", "outside_workspace")
    for folder, code in (
        ("none", "not_found"),
        ("a.txt", "not_a_directory"),
        ("sub/..", "permission_denied"),
        ("sub/out", "permission_denied"),
        ("/etc", "permission_denied"),
    ):
        assert refused(lambda folder=folder: workspace.at(folder))[0] == code


def test_a_link_as_working_directory_means_its_target(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("sub")
    view = workspace.at("link")
    view.replace("new", b"x")
    assert view.absolute("new") == f"{root}/sub/new"
    (root / ".albert").mkdir()
    inner = workspace.at(".albert")
    assert refused(lambda: inner.replace("governance.yaml", b"")) == ("permission_denied", "albert_own")
