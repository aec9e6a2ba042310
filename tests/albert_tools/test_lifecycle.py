"""Opening and closing a service, also from several threads and with obstacles on the disk."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import albert_tools
from albert_tools import Failure, Question, SourceError, SyncToolService, ToolService, primitive
from tests.helpers.gate import until

SOURCE = 'def t() -> int:\n    """One."""\n    return 1\n'

Open = Callable[..., SyncToolService]


@primitive(effects=["read"])
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    (folder / ".albert").mkdir(parents=True)
    return folder


@pytest.fixture
def opened(tmp_path: Path, work: Path) -> Iterator[Open]:
    """Opens services, and closes them at the end of the test."""
    made: list[SyncToolService] = []

    def make(**options: Any) -> SyncToolService:
        made.append(
            SyncToolService.open(**{"home": tmp_path / "home", "workspace": work, "primitives": [wait], **options})
        )
        return made[-1]

    yield make
    for service in made:
        service.close()


# Opening


def test_public_names() -> None:
    for name in albert_tools.__all__:
        assert getattr(albert_tools, name)
    assert albert_tools.__version__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        albert_tools.nothing  # noqa: B018


def test_importing_loads_nothing() -> None:
    script = "import sys, albert_tools; print([m for m in sys.modules if m.startswith('albert_tools.')])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_only_primitives_can_be_registered(opened: Open) -> None:
    def plain(x: int) -> int:
        return x

    with pytest.raises(TypeError, match=r"is not a primitive; put @primitive\(effects=\[…\]\) over the function"):
        opened(primitives=[plain])
    with pytest.raises(ValueError, match="a primitive named 'wait' already"):
        opened(primitives=[wait, primitive(name="wait")(plain)])
    service = opened(primitives=[wait, wait])
    with pytest.raises(TypeError, match="is not a primitive"):
        service.register(plain)  # type: ignore[arg-type]


def test_a_primitive_can_be_registered_later(opened: Open) -> None:
    service = opened()
    with pytest.raises(SourceError, match="no tool named 'extra'"):
        service.define(SOURCE.replace("return 1", "return tools.extra()"))

    @primitive
    def extra() -> int:
        """Give more."""
        return 7

    service.register(extra)
    service.define(SOURCE.replace("return 1", "return tools.extra()"))
    assert service.invoke("t").value() == 7
    assert "extra" in service.service.registry.names()
    assert service.check(SOURCE) == ()


def test_a_primitive_hides_a_saved_tool(opened: Open) -> None:
    opened().define(SOURCE)

    @primitive(name="t")
    def other() -> str:
        """Be another."""
        return "primitive"

    service = opened(primitives=[other])
    assert service.invoke("t").value() == "primitive"
    listed = [t for t in service.list() if t.name == "t"]
    assert [t.problem for t in listed] == [None, "a primitive of this application has the name t, so calls reach that"]
    assert [r.service.registry.get("t").kind for r in (service, opened())] == ["primitive", "composite"]
    assert service.service.registry.names().count("t") == 1
    with pytest.raises(SourceError, match="'t' is a primitive; a saved tool needs a name of its own"):
        service.define(SOURCE)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("gone", "does not exist"),
        ("file", "is not a folder"),
        ("link", "is a symbolic link"),
        ("/", "root of the file system"),
    ],
)
def test_an_invalid_workspace(opened: Open, work: Path, named: str, said: str) -> None:
    (work / "file").write_text("")
    (work / "link").symlink_to(work)
    service = opened(workspace=work / named)
    service.define(SOURCE)
    error = service.invoke("t").error
    assert error is not None
    assert (error.code, error.denied) == ("governance_unavailable", True)
    assert said in error.message
    assert error.hint


def test_the_current_folder_was_removed(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    error = opened(workspace=None).invoke("list_directory").error
    assert error is not None
    assert error.code == "governance_unavailable"
    assert error.message.startswith("the workspace can't be found: ")
    monkeypatch.chdir(tmp_path)


def test_the_home_folder_is_unknown(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALBERT_HOME", raising=False)
    monkeypatch.delenv("HOME")

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(Failure) as caught:
        SyncToolService.open(workspace=work)
    assert caught.value.code == "io_error"
    assert caught.value.hint == "set HOME, or set ALBERT_HOME to an absolute path"


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS always names files in UTF-8")
def test_a_process_whose_charset_is_not_utf8(tmp_path: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "albert_tools.surfaces.cli", "--home", str(tmp_path), "tools"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "error[governance_unavailable]: this process reads the names of files in ascii, not in UTF-8" in done.stderr


IN_THE_WORKSPACE = """
from albert_tools import SyncToolService

with SyncToolService.open(home="../home", workspace=".") as service:
    module = "open('imported', 'w')"
    service.invoke("write_file", {"path": "src/re2.py", "content": module}).value()
    service.invoke("search_text", {"pattern": "(x+)y"}).value()
import beside
"""


def test_no_tool_replaces_a_module_that_the_service_imports_later(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / ".albert").mkdir()
    (work / "src" / "app.py").write_text(IN_THE_WORKSPACE)
    (work / "src" / "beside.py").write_text("print('the application imports its own modules')")
    done = subprocess.run([sys.executable, "src/app.py"], cwd=work, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("the application imports its own modules\n", "")
    assert not (work / "imported").exists()


def test_no_tool_changes_the_python_of_the_service(opened: Open, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = work / "env" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(sys, "prefix", str(work / "env"))
    service = opened()
    for name, arguments in (
        ("write_file", {"path": "env/lib/site-packages/re2.py", "content": "x"}),
        ("edit_file", {"path": "env/lib/site-packages/a.py", "old_text": "1", "new_text": "2"}),
        ("copy_file", {"source": "env/lib/site-packages/a.py", "target": "env/lib/b.pth"}),
        ("make_directory", {"path": "ENV/lib/more"}),
    ):
        error = service.invoke(name, arguments).error
        assert error is not None
        assert (error.code, error.rule) == ("permission_denied", "albert_own"), name
    assert service.invoke("write_file", {"path": "environment.py", "content": "x"}).ok


def test_the_environment_of_the_service_is_no_workspace(
    opened: Open, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(work))
    error = opened().invoke("read_file", {"path": "a"}).error
    assert error is not None
    assert error.message.endswith(
        "it is the Python that runs Albert Tools; make that in a folder of its own: `python -m venv .venv`"
    )


def test_rules_by_path(opened: Open, tmp_path: Path, work: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("deny: [list_directory]")
    assert opened(governance=rules).invoke("list_directory").error.rule == "deny"  # type: ignore[union-attr]
    for path, said in (
        (tmp_path / "none.yaml", "there is no file of rules"),
        ("x" * 5000, "there is no file of rules"),
        (work, "not a file"),
    ):
        error = opened(governance=path).invoke("list_directory").error
        assert error is not None
        assert error.code == "governance_unavailable"
        assert said in error.message


@pytest.fixture
def rules(work: Path) -> Path:
    """A file of rules in the workspace."""
    file = work / "config" / "rules.yaml"
    file.parent.mkdir()
    file.write_text("allow: [bash]")
    return file


def test_tools_cannot_write_the_rules_in_the_workspace(opened: Open, rules: Path) -> None:
    service = opened(governance=rules)
    error = service.invoke("write_file", {"path": "config/rules.yaml", "content": "{}"}).error
    assert error is not None
    assert (error.code, error.rule) == ("permission_denied", "albert_own")
    for command in ("echo '{}' > config/rules.yaml", "mv config c; mkdir config; echo '{}' > config/rules.yaml"):
        assert service.invoke("bash", {"command": command}).value()["exit_code"] != 0
    assert rules.read_text() == "allow: [bash]"
    assert service.invoke("bash", {"command": "cat config/rules.yaml"}).value()["output"] == "allow: [bash]"


def test_no_command_starts_while_the_rules_are_missing(opened: Open, rules: Path, work: Path) -> None:
    service = opened(governance=rules)
    assert service.invoke("bash", {"command": "true"}).ok
    rules.rename(work / "away.yaml")
    missing = service.invoke("bash", {"command": "cp away.yaml config/rules.yaml"}).error
    assert missing is not None
    assert missing.code == "governance_unavailable"
    (work / "away.yaml").rename(rules)
    assert service.invoke("bash", {"command": "true"}).ok


def test_a_link_to_the_rules_is_followed_once(opened: Open, rules: Path, work: Path) -> None:
    (work / "link").symlink_to("config")
    (work / "none.yaml").write_text("{}")
    service = opened(governance=work / "link" / "rules.yaml")
    assert service.invoke("bash", {"command": "rm link; mkdir link; cp none.yaml link/rules.yaml"}).ok
    assert (work / "link" / "rules.yaml").is_file()
    assert service.invoke("bash", {"command": "true"}).ok


def test_a_command_cannot_make_albert_s_own_folders_in_the_workspace(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / ".cache"))
    monkeypatch.delenv("ALBERT_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(work / "conf"))

    async def yes(question: Question) -> bool:
        return True

    with SyncToolService.open(workspace=work, governance={}, ask=yes) as service:
        assert service.invoke("bash", {"command": "mkdir -p .cache/albert conf/albert"}).ok
        for name in (".cache/albert/a", "conf/albert/governance.yaml"):
            assert service.invoke("bash", {"command": f"echo > {name}"}).output["exit_code"] != 0
        (work / "conf" / "albert").rename(work / "old")
        assert service.invoke("bash", {"command": "echo > conf/albert/governance.yaml"}).output["exit_code"] != 0
        (work / "conf" / "albert").rmdir()
        (work / "conf" / "albert").symlink_to("../old")
        assert "'conf/albert' can't be made" in service.invoke("bash", {"command": "true"}).error.message


def test_a_command_cannot_reach_the_checkouts_of_a_worker(
    opened: Open, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "share"))
    config = work / "share" / "albert-checkouts" / "run" / "git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("of git")
    service = opened(governance={"allow": ["bash"]})
    assert "of git" not in service.invoke("bash", {"command": f"cat {config}"}).output["output"]
    assert service.invoke("read_file", {"path": str(config.relative_to(work))}).error.rule == "albert_own"
    # The run in a checkout works there.
    files = config.parents[1] / "files"
    files.mkdir()
    (files / "a.txt").write_text("a")
    assert opened(workspace=files).invoke("read_file", {"path": "a.txt"}).ok


def test_rules_of_the_application_and_of_the_project(opened: Open, work: Path) -> None:
    project = work / ".albert" / "governance.yaml"
    project.write_text("limits: {calls: 1}")
    given = {"allow": ["bash"], "primitives": {"bash": {}}}
    assert opened(governance=given).invoke("bash", {"command": "echo hi"}).value()["output"] == "hi\n"
    project.unlink()
    project.symlink_to("nowhere")
    error = opened(governance=given).invoke("bash", {"command": "echo hi"}).error
    assert error is not None
    assert (error.code, "it is a symbolic link" in error.message) == ("governance_unavailable", True)


# The store


def test_a_file_in_place_of_the_store(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        service = opened(home=home)
        with pytest.raises(Failure) as caught:
            service.define(SOURCE)
        assert caught.value.code == "io_error"
        assert "file" in caught.value.message
        # The decision can't be recorded, so the call has no effect.
        error = service.invoke("current_time").error
        assert error is not None
        assert (error.code, error.rule) == ("governance_unavailable", "unrecorded")
        with pytest.raises(Failure, match=r"can't read the folder .*: Not a directory"):
            service.list()


def test_a_full_disk(opened: Open) -> None:
    service = opened()
    service.define(SOURCE)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, usual[1]))
    try:
        with pytest.raises(Failure) as caught:
            service.define(SOURCE.replace("1", "2"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert caught.value.code == "io_error"
    assert service.invoke("t").value() == 1
    service.define(SOURCE.replace("1", "2"))
    assert service.invoke("t").value() == 2


def test_unknown_tools(opened: Open) -> None:
    service = opened()
    assert service.list()[-1].name == "wait"
    assert service.search("") == []
    assert service.search("zzzzzz") == []
    assert service.search("wait", 0) == service.search("wait", -1) == []
    for ask in (service.describe, service.remove):
        with pytest.raises(Failure) as caught:
            ask("wiat")
        assert caught.value.code == "unknown_tool"
    with pytest.raises(Failure, match="did you mean 'wait'"):
        service.describe("wiat")


# Threads, closing


def test_closing_twice_from_many_threads(opened: Open) -> None:
    service = opened()
    threads = [threading.Thread(target=service.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    with pytest.raises(RuntimeError, match="this service is closed; open another one"):
        service.invoke("t")


def test_closing_ends_waiting_calls(opened: Open) -> None:
    service = opened()
    heard: list[BaseException] = []

    def run() -> None:
        try:
            service.invoke("wait", {"seconds": 120})
        except BaseException as error:
            heard.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: service.within(lambda s: s.runs.under_way()))
    service.close()
    thread.join(60)
    assert [str(e) for e in heard] == ["this service was closed before it could answer"]


def test_a_call_while_the_service_closes_fails_clearly(opened: Open) -> None:
    service = opened()
    service.define(SOURCE)
    service.invoke("t")
    heard: list[str] = []
    answered: set[int] = set()

    def ask_again_and_again() -> None:
        while True:
            try:
                service.validate("t", {})
                answered.add(threading.get_ident())
            except RuntimeError as error:
                if "is closed" in str(error):
                    heard.append(str(error))
                    return

    threads = [threading.Thread(target=ask_again_and_again, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(answered) == 8)
    service.close()
    for thread in threads:
        thread.join(10)
    assert heard == ["this service is closed; open another one"] * 8


def test_a_listener_can_not_wait_for_the_service(opened: Open) -> None:
    service = opened()
    service.define(SOURCE.replace("return 1", 'print("a")\n    return 1'))
    said: list[str] = []

    def ask(tool: str, text: str) -> None:
        try:
            service.invoke("t")
        except RuntimeError as error:
            said.append(str(error))

    assert service.invoke("t", log=ask).value() == 1
    assert said == ["a listener can't wait for the service that calls it; call the service from another thread"]


def test_a_failed_opening_leaves_no_thread() -> None:
    # Threads of other tests may still be ending.
    before = set(threading.enumerate())

    def fail() -> ToolService:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        SyncToolService(fail)
    assert set(threading.enumerate()) <= before


async def test_a_closed_service(tmp_path: Path, work: Path) -> None:
    service = ToolService.open(home=tmp_path / "home", workspace=work)

    async def use() -> None:
        async with service:
            assert service.confinement == ""
            await service.define(SOURCE)
            assert (await service.invoke("t")).value() == 1
            assert service.confinement
            await service.define("nonsense")

    with pytest.raises(SourceError):
        await use()
    await service.close()
    for ask in (service.invoke("t"), service.invoke("list_directory"), service.define(SOURCE)):
        with pytest.raises(RuntimeError, match="this service is closed"):
            await ask
    # Saved tools can still be described.
    assert (await service.describe("t")).source == SOURCE


async def test_preparing_for_one_tool(tmp_path: Path, work: Path) -> None:
    async with ToolService.open(home=tmp_path / "home", workspace=work) as service:
        await service.define('import json\n\ndef inner() -> str:\n    """One."""\n    return json.dumps(1)\n')
        await service.define(
            'import math\n\ndef outer() -> Any:\n    """Two."""\n    return [tools.inner(), math.floor(1.5)]\n'
        )
    async with ToolService.open(home=tmp_path / "home", workspace=work) as service:
        with pytest.raises(Failure, match="nothing"):
            await service.prepare("nothing")
        await service.prepare("outer")
        assert (await service.invoke("outer")).value() == ["1", 1]


async def test_closing_leaves_no_handle_open(tmp_path: Path, work: Path) -> None:
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    for _ in range(3):
        async with ToolService.open(home=tmp_path / "home", workspace=work) as service:
            await service.define(SOURCE)
            await service.invoke("t")
    await asyncio.sleep(0.05)
    after = set(os.listdir("/proc/self/fd")) if before else set()
    assert len(after) <= len(before) + 1


def test_two_services_share_a_home(opened: Open) -> None:
    one, other = opened(), opened()
    one.define(SOURCE)
    assert other.invoke("t").value() == 1
    other.remove("t")
    error = one.invoke("t").error
    assert error is not None
    assert error.code == "unknown_tool"
    one.define(SOURCE)
    assert other.invoke("t").value() == 1


async def test_a_caller_in_another_event_loop_waits_without_blocking_and_cancels(opened: Open) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    @primitive(effects=["read"])
    async def park() -> None:
        """Wait until the call is cancelled."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    service = opened(primitives=[wait, park])
    _, token = service.open_session("a test")
    results = await asyncio.gather(
        *(service.arun(lambda s: s.invoke("wait", {"seconds": 0}, session=token)) for _ in range(3))
    )
    assert [r.value() for r in results] == ["waited"] * 3
    caller = asyncio.create_task(service.arun(lambda s: s.invoke("park", session=token)))
    assert await asyncio.to_thread(begun.wait, 30)
    caller.cancel()
    assert await asyncio.to_thread(cancelled.wait, 30)


async def test_a_service_can_be_closed_inside_another_event_loop(opened: Open) -> None:
    with opened() as service:
        assert (await service.arun(lambda s: s.invoke("wait", {"seconds": 0}))).ok
    with pytest.raises(RuntimeError, match="closed"):
        service.invoke("wait", {"seconds": 0})
