"""An attacker who controls a confined function reaches nothing outside it, and the service continues to work."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, NewType

import psutil
import pytest

from albert_tools import Failure, ToolService, primitive
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.parameter_types import FileContent
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.sandbox.worker import confined_function
from albert_tools.engine.sandbox.worker.codec import pack
from albert_tools.engine.sandbox.worker.confined_fence import DESCRIPTIONS
from albert_tools.engine.sandbox.worker.confined_function import confinement, run_confined
from tests.helpers import confined_primitives, hostile
from tests.helpers.children import Child, Report
from tests.helpers.governed import governing

FULL = "seccomp+landlock"
pytestmark = pytest.mark.skipif(not confinement(), reason="nothing confines here")
#: Each confinement that this machine has.
KINDS = [k for k in DESCRIPTIONS if set(k.split("+")) <= set(confinement().split("+"))]
#: For tests of every attack. A machine with seccomp and without Landlock is rare.
EACH_KIND = [pytest.param(k, marks=pytest.mark.slow) if k == "seccomp" else k for k in KINDS]

VIOLATION = "sandbox_violation"
REFUSED = "exception"

#: Python 3.13 starts programs by a system call that kills the process. Earlier versions first ask for a pipe, which
#: fails.
SPAWNS_DIRECTLY = getattr(subprocess, "_HAVE_POSIX_SPAWN_CLOSEFROM", False)

#: Each attempt and its end: the process is killed, or the attempt fails with an error.
ATTEMPTS: dict[Callable[..., Any], str] = {
    hostile.open_passwd: REFUSED,
    hostile.open_through_link: REFUSED,
    hostile.list_root: REFUSED,
    hostile.write_file: REFUSED,
    hostile.truncate_library: REFUSED,
    hostile.unlink_file: REFUSED,
    hostile.rename_file: REFUSED,
    hostile.chmod_file: REFUSED,
    hostile.touch_file: REFUSED,
    hostile.link_file: REFUSED,
    hostile.make_folder: REFUSED,
    hostile.make_device: REFUSED,
    hostile.own_environ: REFUSED,
    hostile.parents_environ: REFUSED,
    hostile.parents_memory: REFUSED,
    hostile.parents_descriptor: REFUSED,
    hostile.memory_file: REFUSED,
    hostile.tcp: VIOLATION,
    hostile.udp: VIOLATION,
    hostile.unix_socket: VIOLATION,
    hostile.resolve: VIOLATION,
    hostile.fork: VIOLATION,
    hostile.fork_bomb: VIOLATION,
    hostile.start_program: VIOLATION if SPAWNS_DIRECTLY else REFUSED,
    hostile.replace_program: VIOLATION,
    hostile.thread: REFUSED,
    hostile.kill_parent: VIOLATION,
    hostile.kill_parents_group: REFUSED,
    hostile.signal_by_handle: REFUSED,
    hostile.signal_by_socket: REFUSED,
    hostile.trace_parent: VIOLATION,
    hostile.more_memory: REFUSED,
    hostile.outlive_parent: REFUSED,
    hostile.runnable_memory: REFUSED,
    hostile.made_runnable: REFUSED,
    hostile.new_namespace: VIOLATION,
    hostile.rings: VIOLATION,
    hostile.calls_of_x32: VIOLATION,
}
_TAKE_PATHS = {
    "open_through_link",
    "write_file",
    "unlink_file",
    "rename_file",
    "chmod_file",
    "touch_file",
    "link_file",
} | {
    "make_folder",
    "make_device",
}
#: The attempts that Landlock alone stops. Where system calls can't be filtered, the others succeed, as `DESCRIPTIONS`
#: says.
BY_LANDLOCK = [
    f for f in ATTEMPTS if f.__name__.startswith(("open_", "list_", "write_", "truncate_", "parents_", "own_"))
]
BY_LANDLOCK += [hostile.unlink_file, hostile.rename_file, hostile.link_file, hostile.make_folder, hostile.make_device]


#: The head of a frame with a structure of one byte.
_HEAD = struct.pack("<II", 1, 0)


def confined_processes() -> list[psutil.Process]:
    """The zygotes of confined functions that this process started, then their children."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any("confined_worker" in word for word in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The confinement during the test, a parameter."""
    monkeypatch.setattr(confined_function, "confinement", lambda: request.param)
    return str(request.param)


async def failed(function: Callable[..., Any], seconds: float = 60, **more: Any) -> Failure:
    arguments = more.pop("arguments", {})
    with pytest.raises(Failure) as caught:
        await run_confined(function, arguments, seconds=seconds, **more)
    return caught.value


@pytest.mark.parametrize("kind", [k for k in EACH_KIND if k != "landlock"], indirect=True)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda f: str(f.__name__))
async def test_escapes(attempt: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("as it was", "utf-8")
    before = file.stat()
    link = tmp_path / "link"
    link.symlink_to(file)
    path = {"path": str(link if attempt is hostile.open_through_link else file)}
    if kind == "seccomp" and attempt in (hostile.tcp, hostile.resolve, hostile.thread):
        pytest.skip("what it imports on its way is missing there")
    failure = await failed(attempt, arguments=path if attempt.__name__ in _TAKE_PATHS else {})
    assert failure.code == ATTEMPTS[attempt], failure
    if failure.code == REFUSED:
        assert failure.details["type"] in ("PermissionError", "OSError", "RuntimeError", "ValueError"), failure
    assert sorted(tmp_path.iterdir()) == [file, link]
    assert (file.read_text("utf-8"), file.stat().st_mode, file.stat().st_mtime_ns) == (
        "as it was",
        before.st_mode,
        before.st_mtime_ns,
    )
    assert confined_processes() == []


@pytest.mark.skipif("landlock" not in KINDS, reason="no Landlock here")
@pytest.mark.parametrize("kind", ["landlock"], indirect=True)
@pytest.mark.parametrize("attempt", BY_LANDLOCK, ids=lambda f: str(f.__name__))
async def test_files_without_a_filter_of_system_calls(attempt: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("as it was", "utf-8")
    failure = await failed(attempt, arguments={"path": str(file)} if attempt.__name__ in _TAKE_PATHS else {})
    assert (failure.code, failure.details["type"]) in ((REFUSED, "PermissionError"), (REFUSED, "OSError")), failure
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text("utf-8") == "as it was"


@pytest.mark.parametrize("kind", EACH_KIND, indirect=True)
async def test_an_honest_function_can_compute_and_import_libraries(kind: str) -> None:
    assert await run_confined(hostile.add, {"a": 1, "b": 2}, seconds=60) == 3
    assert await run_confined(hostile.add, {"a": 1}, seconds=60) == 2
    imports = ["xml.etree.ElementTree"] if kind == "seccomp" else []
    assert await run_confined(hostile.parse_late, {"text": "<a>é</a>"}, seconds=60, imports=imports) == "é"


async def test_bytes_are_passed_unchanged() -> None:
    given = {"data": bytes(range(256)), "more": "é"}
    assert await run_confined(hostile.sizes, given, seconds=60) == {"data": ["bytes", 256], "more": ["str", 1]}


async def test_it_starts_without_environment_and_descriptors() -> None:
    found = await run_confined(hostile.who, {}, seconds=60)
    assert found["descriptors"] == [0, 1, 2]
    assert not {"HOME", "PATH", "ALBERT_HOME", "PYTHONPATH"} & set(found["environ"])
    assert (found["no core"], found["zone"]) == ([0, 0], "UTC")


@pytest.mark.parametrize("kind", EACH_KIND, indirect=True)
@pytest.mark.parametrize(
    ("function", "code"),
    [
        (hostile.endless, "timeout"),
        (hostile.endless_in_c, "timeout"),
        (hostile.deaf, "timeout"),
        (hostile.printer, "timeout"),
        (hostile.memory_bomb, "memory_limit"),
        (hostile.one_large_piece, "memory_limit"),
        (hostile.large_result, "result_limit"),
        (hostile.deep_result, "result_limit"),
    ],
)
async def test_bombs(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], code: str, kind: str) -> None:
    seconds = 0.3 if code == "timeout" else 60.0
    monkeypatch.setattr("albert_tools.engine.sandbox.worker.confined_function.MEMORY", 64 * MiB)
    failure = await failed(function, seconds)
    assert failure.code == code, failure
    assert failure.tool is None
    assert confined_processes() == []


async def test_printing_is_bounded_and_reported_with_a_crash() -> None:
    assert await run_confined(hostile.a_little_print, {}, seconds=60) == 7
    failure = await failed(hostile.crash)
    assert (failure.code, failure.message) == ("worker_died", "crash crashed with SIGSEGV on what it was given")
    assert failure.details == {"printed": "about to\n"}


def no_number() -> str:
    """The message of this Python about a number that JSON can't express."""
    with pytest.raises(ValueError) as caught:
        json.dumps(float("nan"), allow_nan=False)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        (hostile.abort, "worker_died", "abort crashed with SIGABRT on what it was given"),
        (hostile.leave, "worker_died", "leave ended with 3 on what it was given"),
        (hostile.exit_politely, "exception", "SystemExit: 3"),
        (hostile.no_json, "not_json", "the result is not JSON: Object of type set is not JSON serializable"),
        (hostile.no_number, "not_json", f"the result is not JSON: {no_number()}"),
        (hostile.raises, "exception", "ValueError: no such page"),
    ],
)
async def test_ends_without_a_value(function: Callable[..., Any], code: str, message: str) -> None:
    failure = await failed(function)
    assert (failure.code, failure.message) == (code, message)


async def test_a_lone_surrogate_is_not_a_value() -> None:
    assert (await failed(hostile.half_a_character)).code == "not_json"
    failure = await failed(hostile.raises_half_a_character)
    assert (failure.code, failure.message) == ("exception", "ValueError: \\ud800")


async def test_details_that_are_no_values_are_left_out() -> None:
    failure = await failed(hostile.fails_with_details)
    assert (failure.code, failure.message, failure.details) == ("too_large", "no", {})


async def test_its_own_failure_is_passed_to_the_caller() -> None:
    failure = await failed(hostile.fails)
    assert (failure.code, failure.message, failure.hint) == ("too_large", "the page is too large", "ask for a part")
    assert (failure.details, failure.retryable) == ({"bytes": 7}, False)


@pytest.mark.parametrize("code", ["permission_denied", "suspended", "governance_unavailable", "no_such_code", 7])
async def test_it_can_not_claim_codes_of_the_service(code: Any) -> None:
    assert (await failed(hostile.claims, arguments={"code": code})).code == "exception"


@pytest.mark.parametrize(
    "frame",
    [
        pack(["ready"]),
        pack(["result"]),
        pack(["result", 1]),
        pack(["question", "1"]),
        pack(["result", "[" * 100_000]),
        pack(["result", "9" * 5000]),
        pack(["exception", {"type": 1, "message": 2}]),
        pack([]),
        _HEAD + b"\x01",
        _HEAD + b"\xc1",
        _HEAD + b"\x80",
        # Half of a surrogate pair, as the kind of the message.
        struct.pack("<II", 5, 0) + b"\x91\xa3\xed\xa0\x80",
        # Sizes that no message has.
        struct.pack("<II", 2**32 - 1, 0),
        struct.pack("<III", 1, 1, 2**32 - 1),
        struct.pack("<II", 1, 2**32 - 1),
    ],
    ids=lambda frame: frame[:16].hex(),
)
async def test_a_forged_answer_is_refused(frame: bytes) -> None:
    assert (await failed(hostile.forged, arguments={"frame": bytes(frame)})).code == VIOLATION


@pytest.mark.parametrize(
    "forged",
    [
        ["failure", {"code": "io_error", "message": 1, "hint": 1, "details": 1}],
        ["failure", {"code": "io_error", "message": "a", "details": {"x": float("nan"), "y": 2**63}}],
        ["failure", {"code": "io_error", "message": "a", "details": {"x": "y" * 200_000}}],
        ["failure", {"code": "io_error", "message": "a", "details": {"trail": 5}}],
        ["exception", {"type": "x" * 5000, "message": "y" * 50_000}],
    ],
    ids=["wrong types", "wrong numbers", "large details", "a trail", "exception"],
)
async def test_a_forged_failure_can_be_encoded(forged: Any) -> None:
    failure = await failed(hostile.forged, arguments={"frame": bytes(pack(forged))})
    # As if the failure came from a saved tool.
    failure.line = 1
    told = json.dumps(failure.as_dict(), ensure_ascii=False).encode()
    assert len(told) < 100_000


async def test_a_forged_value_is_valid_or_refused() -> None:
    def forged(text: str) -> dict[str, Any]:
        return {"frame": bytes(pack(["result", text]))}

    assert await run_confined(hostile.forged, forged('{"a": [1]}'), seconds=60) == {"a": [1]}
    for text in ("1e999", "NaN", str(2**70), '"\\ud800"', '{"a": "\\udfff"}'):
        assert (await failed(hostile.forged, arguments=forged(text))).code == "not_json"


async def test_cancelling_ends_it() -> None:
    running = asyncio.create_task(run_confined(hostile.endless, {}, seconds=600))
    while not confined_processes():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert confined_processes() == []


async def test_the_number_of_concurrent_processes_is_limited() -> None:
    most = 0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, sum(process.ppid() == os.getpid() for process in confined_processes()))
            await asyncio.sleep(0.02)

    looking = asyncio.create_task(look())
    found = await asyncio.gather(*(run_confined(hostile.add, {"a": i}, seconds=60) for i in range(12)))
    looking.cancel()
    assert found == [i + 1 for i in range(12)]
    assert 1 <= most <= confined_function.MAX_AT_ONCE


async def test_a_session_whose_calls_take_long_leaves_places_for_others(tmp_path: Path) -> None:
    service = ToolService.open(
        home=tmp_path / "home", workspace=tmp_path, governance={}, primitives=[confined_primitives.word_lengths]
    )
    async with service:
        flood, other = (service.open_session(client)[1] for client in ("flood", "other"))
        flooding = [
            asyncio.create_task(service.invoke("word_lengths", {"text": "endless"}, session=flood)) for _ in range(6)
        ]
        while not confined_processes():
            await asyncio.sleep(0.01)
        assert (await service.invoke("word_lengths", {"text": "a"}, session=other)).value() == {"a": 1}
        assert not any(task.done() for task in flooding)
        for task in flooding:
            task.cancel()
        await asyncio.gather(*flooding, return_exceptions=True)


def ignores_signals(pid: int) -> bool:
    """Whether a process has already reached the point where it ignores SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def _service_that_dies(report: Report) -> None:
    async def work() -> None:
        running = asyncio.create_task(run_confined(hostile.deaf, {}, seconds=600))
        while len(found := confined_processes()) < 2:
            await asyncio.sleep(0.01)
        while not ignores_signals(found[1].pid):
            await asyncio.sleep(0.01)
        report([process.pid for process in found])
        await running

    asyncio.run(work())


def test_it_ends_with_its_service() -> None:
    service = Child(_service_that_dies)
    pids = service.hear()
    service.kill()
    deadline = time.monotonic() + 30
    for pid in pids:
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "it has outlived its service"
            time.sleep(0.01)


def _as_an_ordinary_user(report: Report, folder: str) -> None:
    os.chdir("/")
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    try:
        subprocess.run([sys.executable, "-I", "-c", ""], check=True)
    except PermissionError:
        report("not here")
        return
    secret = str(Path(folder, "secret"))

    async def work() -> None:
        report((await run_confined(hostile.who, {}, seconds=60))["user"])
        for attempt, arguments in (
            (hostile.open_through_link, {"path": secret}),
            (hostile.write_file, {"path": secret}),
            (hostile.parents_environ, {}),
            (hostile.fork, {}),
            (hostile.kill_parent, {}),
        ):
            report((await failed(attempt, arguments=arguments)).code)

    asyncio.run(work())


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
def test_an_ordinary_user_has_the_same_confinement(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "secret").write_text("", "utf-8")
    child = Child(_as_an_ordinary_user, str(tmp_path))
    told = child.rest()
    if told == ["not here"]:
        pytest.skip("Python lies where only root can start it")
    assert told == [65534, REFUSED, REFUSED, REFUSED, VIOLATION, VIOLATION]


async def test_without_a_confinement_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_function, "confinement", lambda: "")
    failure = await failed(hostile.add, arguments={"a": 1})
    assert failure.code == "sandbox_unavailable"
    assert failure.denied


async def test_an_import_that_fails_is_reported() -> None:
    failure = await failed(hostile.add, arguments={"a": 1}, imports=["no_such_module"])
    assert failure.code == "sandbox_unavailable"
    assert "No module named 'no_such_module'" in failure.message


async def test_functions_that_can_not_be_imported_are_refused() -> None:
    for function, said in ((lambda: 1, "isn't found by its name"), (hostile.waits, "is async")):
        with pytest.raises(TypeError, match=said):
            await run_confined(function, {}, seconds=1)
    with pytest.raises(TypeError, match="not JSON"):
        await run_confined(hostile.add, {"a": {1}}, seconds=1)


Page = NewType("Page", FileContent)


def takes_context(context: CallContext) -> None: ...
def plain() -> None: ...
def several(names: list[str]) -> None: ...
def named(page: Annotated[Page, {"title": "a page"}]) -> None: ...
def maybe(pages: list[FileContent] | None) -> None: ...
async def waits() -> None: ...


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: primitive(sandbox=True)(takes_context), "takes a CallContext, so it cannot run confined"),
        (lambda: primitive(sandbox=True)(waits), "is async, so it cannot run confined"),
        (lambda: primitive(sandbox=True, effects=["read"])(plain), "reads only the files that `paths` names"),
        (
            lambda: primitive(sandbox=True, effects=["network"])(plain),
            "can't have the effects network; cause them in another",
        ),
        (lambda: primitive(sandbox=True, effects=["read", "write"])(plain), "can't have the effects read, write"),
        (
            lambda: primitive(sandbox=True, effects=["read"], paths={"page": "write"})(confined_primitives.size),
            "can't change a file",
        ),
        (
            lambda: primitive(sandbox=True, effects=["read"], paths={"names": "read"})(several),
            "annotate the parameter with `FileContent`",
        ),
        (lambda: primitive(sandbox=True, name="n")(lambda: None), "by its name"),
        (lambda: primitive(sandbox=True, name="n")(Path("x").exists), "no method"),
        (
            lambda: primitive(sandbox=True)(FunctionType(plain.__code__, {"__name__": "__main__"})),
            "in the script that is started",
        ),
        (lambda: primitive(effects=["read"], paths={"page": "read"})(confined_primitives.size), "write `sandbox=True`"),
        (lambda: primitive(effects=["read"], paths={"pages": "read"})(maybe), "write `sandbox=True`"),
        (lambda: primitive(effects=["read"], paths={"page": "read"})(named), "write `sandbox=True`"),
    ],
)
def test_declarations_that_are_refused(declare: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        declare()


def test_a_confined_function_gets_the_files_that_it_may_read(tmp_path: Path) -> None:
    with governing(tmp_path) as make:
        rules = {
            "forbidden_paths": ["*.pem"],
            "tools": {"size_of": {"allowed_in_modes": ["NORMAL"], "max_file_size_mb": 0.001}},
        }
        here = make(governance=rules, primitives=[confined_primitives.size_of])
        for name, data in (("a.bin", b"\0\xffab"), ("key.pem", b"x"), ("large", b"x" * 2000)):
            (here.work / name).write_bytes(data)
        (here.work / "link").symlink_to("key.pem")
        (here.work / "out").symlink_to("/etc/passwd")
        assert here.value("size_of", page="a.bin") == {"size": 4, "opened": "OSError", "is_bytes": True}
        digest = hashlib.sha256(b"\0\xffab").hexdigest()
        facts = {"path": "a.bin", "size_bytes": 4, "sha256": digest}
        assert here.effects("size_of") == [{"kind": "read", "tool": "size_of", **facts}]
        for name, code in (
            ("key.pem", "permission_denied"),
            ("link", "permission_denied"),
            ("out", "permission_denied"),
            ("../x", "permission_denied"),
            ("none", "not_found"),
            ("large", "too_large"),
        ):
            assert here.error("size_of", page=name).code == code, name
        assert here.composite('return tools.size_of(page="a.bin")["size"]') == 4
        # The rules about flows know what the session has seen.
        (here.work / ".env").write_text("x")
        _, here.session = here.service.open_session("an agent")
        here.value("size_of", page=".env")
        # A call that takes long has an entry of its own for its result.
        entries = [*here.entries("call"), *here.entries("result")]
        assert [entry["saw"] for entry in entries if "saw" in entry] == [{"private": ".env"}]


async def test_a_primitive_that_runs_confined(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    service = ToolService.open(
        home=tmp_path / "home",
        workspace=tmp_path / "project",
        governance={"tools": {"word_lengths": {"allowed_in_modes": ["NORMAL"], "timeout_seconds": 20}}},
        primitives=[confined_primitives.word_lengths],
    )
    async with service:
        assert (await service.invoke("word_lengths", {"text": "a bc"})).value() == {"a": 1, "bc": 2}
        taken_over = await service.invoke("word_lengths", {"text": "fork"})
        assert taken_over.error is not None
        assert (taken_over.error.code, taken_over.error.tool) == (VIOLATION, "word_lengths")
        source = 'def of(text: str) -> int:\n    """Count."""\n    return len(tools.word_lengths(text=text))\n'
        await service.define(source)
        assert (await service.invoke("of", {"text": "a bc d"})).value() == 3


async def test_a_primitive_that_runs_confined_has_its_timeout(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    rules = {"tools": {"word_lengths": {"allowed_in_modes": ["NORMAL"], "timeout_seconds": 1}}}
    async with ToolService.open(
        home=tmp_path / "home",
        workspace=tmp_path / "project",
        governance=rules,
        primitives=[confined_primitives.word_lengths],
    ) as service:
        result = await service.invoke("word_lengths", {"text": "endless"})
        assert result.error is not None
        assert (result.error.code, result.error.tool) == ("timeout", "word_lengths")
    assert confined_processes() == []
