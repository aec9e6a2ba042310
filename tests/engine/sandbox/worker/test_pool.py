"""The service's side of workers that die, lie or flood it with messages. No process and no descriptor is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.sandbox.kernel import rlimits
from albert_tools.engine.sandbox.worker import codec, fence, pool, spawn
from albert_tools.engine.sandbox.worker.boundary_values import BadFrame, Unexportable, export
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.program_run import ProgramRun
from albert_tools.engine.sandbox.worker.run_report import RunReport
from albert_tools.engine.sandbox.worker.self_test import trials
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle
from tests.helpers.children import PATIENCE
from tests.helpers.effort import examples

ADD = Program("t", "t", "def t(n):\n    return n + 1\n", (), (1, 2))
WAIT = Program("t", "t", "def t():\n    return __call('wait', {})\n", (), (1, 2))


async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
    if name == "wait":
        await asyncio.sleep(60)
    return arguments


def within(work: Callable[[Sandbox], Awaitable[Any]], kind: str = "", **options: Any) -> Any:
    async def main() -> Any:
        sandbox = Sandbox(**options)
        sandbox.kind = kind
        await sandbox.start()
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


async def kill_zygote(sandbox: Sandbox) -> None:
    zygote = sandbox._zygote
    assert zygote is not None
    zygote._process.send_signal(signal.SIGKILL)
    await until(lambda: zygote.dead)


@pytest.mark.parametrize("kind", ["seccomp", "landlock"])
def test_every_trial_of_the_self_test_succeeds(kind: str) -> None:
    async def work(sandbox: Sandbox) -> dict[str, bool]:
        return {t.name: t.ok async for t in trials(sandbox)}

    found = within(work, kind=kind)
    weaker = {"starting a process", "running a command"} if kind == "landlock" else set()
    assert {name for name, ok in found.items() if not ok} <= weaker


def test_a_machine_without_confinement_reports_its_kind() -> None:
    assert fence.probe() == "seccomp"
    assert set(fence.DESCRIPTIONS) == {"seccomp", "landlock", "rlimits"}
    assert rlimits.address_space() > MiB

    async def work(sandbox: Sandbox) -> Any:
        return sandbox.confinement, await sandbox.run(ADD, {"n": 1}, call=call)

    assert within(work, kind="rlimits") == ("rlimits", 2)


def test_fifty_runs_leave_no_process_and_no_descriptor() -> None:
    me = psutil.Process()

    async def work(sandbox: Sandbox) -> None:
        for _ in range(3):
            await sandbox.run(ADD, {"n": 1}, call=call)
        before = me.num_fds()
        found = await asyncio.gather(*(sandbox.run(ADD, {"n": i}, call=call) for i in range(50)))
        assert found == [i + 1 for i in range(50)]
        await until(lambda: me.num_fds() <= before + 4)

    others = set(me.children(recursive=True))
    within(work)
    assert set(me.children(recursive=True)) <= others


def test_a_killed_worker_fails_its_run_and_a_killed_zygote_is_replaced() -> None:
    busy = Program("t", "t", "def t():\n    __call('start', {})\n    while True:\n        pass\n")

    async def work(sandbox: Sandbox) -> None:
        zygote = sandbox._zygote
        assert zygote is not None
        called, answer = asyncio.Event(), asyncio.Event()

        async def signalling(name: str, arguments: dict[str, Any], key: str) -> Any:
            called.set()
            if name == "wait":
                await answer.wait()

        await until(lambda: bool(zygote._idle))
        victim = zygote._idle[0].pid
        running = asyncio.create_task(sandbox.run(busy, {}, call=signalling))
        await called.wait()
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(Failure) as caught:
            await running
        assert caught.value.code == "memory_limit"

        called.clear()
        waiting = asyncio.create_task(sandbox.run(WAIT, {}, call=signalling))
        await called.wait()
        await kill_zygote(sandbox)
        answer.set()
        with pytest.raises(Failure) as caught:
            await waiting
        assert caught.value.code in ("worker_died", "memory_limit", "sandbox_unavailable")
        assert await sandbox.run(ADD, {"n": 1}, call=call) == 2

    within(work)


def test_a_run_can_have_lower_limits_than_its_sandbox() -> None:
    hungry = Program("t", "t", "def t():\n    return len('x' * 40_000_000)\n", (), (1, 2))

    async def work(sandbox: Sandbox) -> None:
        assert await sandbox.run(hungry, {}, call=call) == 40_000_000
        with pytest.raises(Failure) as caught:
            await sandbox.run(hungry, {}, call=call, limits=RunLimits(memory_bytes=16 * MiB))
        assert caught.value.code == "memory_limit"
        report = RunReport()
        await sandbox.run(Program("t", "t", "def t():\n    __call('x', {})\n"), {}, call=call, report=report)
        assert report.calls == 1
        assert 0 < report.own_seconds < 5

    within(work)


def test_a_program_that_still_holds_all_its_memory_gets_the_memory_limit() -> None:
    program = Program("t", "t", "def t(xs):\n    xs.extend(enumerate(xs))\n", (), (1, 2))

    async def work(sandbox: Sandbox) -> str:
        with pytest.raises(Failure) as caught:
            await sandbox.run(program, {"xs": [1]}, call=call)
        return caught.value.code

    assert within(work) == "memory_limit"


def test_limits_of_a_run_apply_in_a_worker_that_has_just_been_forked() -> None:
    hungry = Program("t", "t", "def t():\n    return len('x' * 40_000_000)\n", (), (1, 2))

    async def work(sandbox: Sandbox) -> list[str]:
        limits = RunLimits(memory_bytes=16 * MiB)
        runs = (sandbox.run(hungry, {}, call=call, limits=limits) for _ in range(8))
        found = await asyncio.gather(*runs, return_exceptions=True)
        return [each.code for each in found if isinstance(each, Failure)]

    assert within(work) == ["memory_limit"] * 8


def test_a_saved_program_that_is_not_python_is_damaged() -> None:
    async def work(sandbox: Sandbox) -> None:
        with pytest.raises(Failure) as caught:
            await sandbox.run(Program("t", "t", "def t(:"), {}, call=call)
        assert caught.value.code == "damaged"
        with pytest.raises(Failure) as caught:
            await sandbox.run(Program("t", "t", "def t():\n    return '\0'"), {}, call=call)
        assert caught.value.code == "damaged"
        with pytest.raises(Failure) as caught:
            await sandbox.run(ADD, {"n": {1}}, call=call)
        assert caught.value.code == "not_json"

    within(work)


def test_a_program_is_compiled_by_its_first_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_CODES", 2)
    one, two, three = (Program("t", "t", f"def t():\n    return {n}\n") for n in (1, 2, 3))

    async def work(sandbox: Sandbox) -> None:
        for program, result in ((one, 1), (one, 1), (two, 2), (three, 3), (one, 1)):
            assert await sandbox.run(program, {}, call=call) == result
        assert list(sandbox._codes) == [three.lowered, one.lowered]
        # The code of a text is what the worker runs.
        sandbox._codes[two.lowered] = sandbox._codes[three.lowered]
        assert await sandbox.run(two, {}, call=call) == 3

    within(work)


def test_constant_sets_have_the_same_order_when_a_program_runs_again() -> None:
    text = "def t():\n    return [list({8, 0, 16, 24}), [x for x in {41, -36, 17, 9}], 3 in {1, 2, 3}]\n"
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102

    async def work(sandbox: Sandbox) -> None:
        for _ in range(3):
            assert await sandbox.run(Program("t", "t", text), {}, call=call) == names["t"]()

    within(work)


def test_warnings_of_the_compiler_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    text = "def t():\n    assert (1, 'always')\n    return 1 is 1\n"

    async def work(sandbox: Sandbox) -> Any:
        return await sandbox.run(Program("t", "t", text), {}, call=call)

    assert within(work) is True
    assert [w for w in recwarn if issubclass(w.category, SyntaxWarning)] == []


def test_a_zygote_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn.sys, "executable", "/nothing/here")
    with pytest.raises(Failure) as caught:
        spawn.spawn_zygote()
    assert caught.value.code == "sandbox_unavailable"
    monkeypatch.setattr(spawn.sys, "executable", "/bin/true")

    async def start() -> None:
        await Sandbox().start()

    with pytest.raises(Failure) as caught:
        asyncio.run(start())
    assert caught.value.code == "sandbox_unavailable"


def test_large_answers_to_overlapping_calls_arrive_complete() -> None:
    async def large(name: str, arguments: dict[str, Any], key: str) -> Any:
        return "é" * (1_000_000 + arguments["n"])

    text = "def t():\n    return __gather(True, lambda i: len(__call('x', {'n': i})), ((i,) for i in range(12)))\n"

    async def work(sandbox: Sandbox) -> Any:
        return await sandbox.run(Program("t", "t", text, (), (1, 2)), {}, call=large)

    assert within(work) == [1_000_000 + i for i in range(12)]


@pytest.mark.slow
def test_sandboxes_in_two_threads_do_not_mix_their_bytes() -> None:
    async def work(sandbox: Sandbox, letter: str) -> list[set[str]]:
        program = Program("t", "t", f"def t():\n    return {letter!r} * 300_000\n", (), (1, 2))
        return [set(await sandbox.run(program, {}, call=call)) for _ in range(40)]

    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda letter: within(lambda sandbox: work(sandbox, letter)), "abc")
        assert [set().union(*each) for each in found] == [{"a"}, {"b"}, {"c"}]


def test_a_worker_that_does_not_read_its_answer_is_ended_in_time() -> None:
    async def large(name: str, arguments: dict[str, Any], key: str) -> Any:
        return "x" * 8_000_000

    # Only a program that has left the language can do this: send a call and not read the answer.
    ask = pack(["call", 1, "x", "0", False, {}])
    text = f"def t():\n    __call.__self__._socket.sendall({ask!r})\n    while True:\n        pass\n"

    async def work(sandbox: Sandbox) -> None:
        limits = RunLimits(own_seconds=0.3, run_seconds=20.0)
        with pytest.raises(Failure) as caught:
            await sandbox.run(Program("t", "t", text), {}, call=large, limits=limits)
        assert caught.value.code == "time_limit"
        # The number of its descriptor is free for the next worker.
        assert await asyncio.gather(*(sandbox.run(ADD, {"n": 1}, call=call) for _ in range(8))) == [2] * 8

    within(work)


def test_cancelled_runs_leave_no_worker() -> None:
    async def work(sandbox: Sandbox) -> None:
        for delay in (0, 0, 0.001, 0.002, 0.004, 0.008):
            tasks = [asyncio.create_task(sandbox.run(WAIT, {}, call=call)) for _ in range(12)]
            await asyncio.sleep(delay)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert sandbox._zygote is not None
        zygote = psutil.Process(sandbox._zygote._process.pid)
        await until(lambda: len(zygote.children()) <= 2)

    within(work, idle=2)


def test_a_zygote_that_has_ended_leaves_nothing_open() -> None:
    me = psutil.Process()

    async def work(sandbox: Sandbox) -> None:
        await sandbox.run(ADD, {"n": 1}, call=call)
        before, others = me.num_fds(), len(me.children())
        for _ in range(3):
            await kill_zygote(sandbox)
            assert await sandbox.run(ADD, {"n": 1}, call=call) == 2
            assert len(me.children()) == others
        await until(lambda: me.num_fds() <= before + 4)

    within(work)


# A worker that lies. The test has the other end of its socket.

HEAD = struct.Struct("<II")
LIES: dict[str, tuple[bytes, str]] = {
    "garbage": (b"\xff" * 64, "sandbox_violation"),
    "a structure that is too large": (HEAD.pack(2**31, 0), "sandbox_violation"),
    "too many strings beside": (HEAD.pack(10, 2**30), "sandbox_violation"),
    "strings too large": (HEAD.pack(1, 1) + struct.pack("<I", 2**31), "sandbox_violation"),
    "no msgpack": (HEAD.pack(3, 0) + b"\xc1\xc1\xc1", "sandbox_violation"),
    "not a list": (HEAD.pack(1, 0) + b"\x01", "sandbox_violation"),
    "an unknown message": (pack(["hello", 1]), "sandbox_violation"),
    "a call with a number for a name": (pack(["call", 1, 2, "0", False, {}]), "sandbox_violation"),
    "a limit that there isn't": (pack(["limit", "patience", []]), "sandbox_violation"),
    "an error that claims too much": (pack(["error", {"code": "permission_denied", "message": "x"}]), "tool_error"),
    "an error that says it is a limit": (pack(["error", {"code": "time_limit", "message": "x"}]), "tool_error"),
    "an error of strange parts": (pack(["error", {"code": 3, "lines": ["x", 10**9], "message": None}]), "tool_error"),
    "more printed than allowed": (pack(["print", "x" * 900]) * 3, "log_limit"),
    "more calls at once than fibres": (
        b"".join(pack(["call", i, "wait", "0", True, {}]) for i in range(80)),
        "sandbox_violation",
    ),
    "more calls than allowed": (b"".join(pack(["call", i, "x", "0", False, {}]) for i in range(30)), "call_limit"),
    "a large int": (HEAD.pack(17, 0) + b"\x92\xa6result\xcf" + b"\xff" * 8, "sandbox_violation"),
    "not a number": (HEAD.pack(17, 0) + b"\x92\xa6result\xcb\x7f\xf8" + b"\0" * 6, "sandbox_violation"),
    "a foreign extension": (HEAD.pack(11, 0) + b"\x92\xa6result\xd4\x05\x00", "sandbox_violation"),
    "deep nesting": (HEAD.pack(5008, 0) + b"\x92\xa6result" + b"\x91" * 4999 + b"\x90", "sandbox_violation"),
    "a string beside that is named twice": (
        HEAD.pack(21, 1) + struct.pack("<I", 3) + b"\x92\xa6result\x92" + b"\xd6\x01\0\0\0\0" * 2 + b"abc",
        "sandbox_violation",
    ),
    "the end": (b"", "worker_died"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_sends_false_messages_is_ended(lie: str) -> None:
    data, code = LIES[lie]
    assert ending(data, calls=100 if "fibres" in lie else 20) == code


def ending(data: bytes, calls: int = 20) -> str:
    """The failure code of a run whose worker sends these bytes and then nothing more; ``nothing`` if the run has a result."""

    async def main() -> str:
        ours, theirs = socket.socketpair()
        child = subprocess.Popen(["sleep", "600"])
        worker = WorkerHandle(child.pid, ours, os.pidfd_open(child.pid), asyncio.get_running_loop())
        worker.reaped(0)
        limits = RunLimits(run_seconds=30.0, own_seconds=20.0, log_bytes=1000, calls=calls)
        run = ProgramRun(worker, ADD, call, None, limits)
        theirs.setblocking(False)

        async def speak() -> None:
            await asyncio.get_running_loop().sock_sendall(theirs, data)
            theirs.shutdown(socket.SHUT_WR)

        speaking = asyncio.create_task(speak())
        try:
            await run.run(pack(["run"]))
        except Failure as failure:
            return failure.code
        finally:
            speaking.cancel()
            worker.kill()
            theirs.close()
            child.kill()
            child.wait(PATIENCE)
        return "nothing"

    return asyncio.run(main())


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_KINDS = st.sampled_from(["ready", "code", "damaged", "call", "print", "result", "error", "limit", "x"])
_FRAMES = st.one_of(
    st.binary(max_size=30),
    st.tuples(_KINDS, st.lists(_VALUES, max_size=5)).map(lambda m: bytes(pack([m[0], *m[1]]))),
    st.sampled_from([bytes(pack(["call", 1, "x", "0", False, {}])), bytes(pack(["print", "a"]))]),
)


@examples(30)
@given(st.lists(_FRAMES, max_size=4).map(b"".join), st.integers(0, 200))
def test_any_bytes_of_a_worker_end_its_run_with_a_result_or_a_failure(data: bytes, cut: int) -> None:
    assert ending(data[: len(data) - cut] if cut < len(data) else data) in {"nothing", *CODES}


# The message format.


def test_frames_can_be_split_at_any_byte() -> None:
    frames = pack(["a", 1], {"k": "é" * 20_000, "n": [None, True, 1.5]}, MiB) + pack(["b"])
    for step in (1, 7, 4096):
        unpacker = Unpacker(MiB)
        found = [m for i in range(0, len(frames), step) for m in unpacker.feed(frames[i : i + step])]
        assert found == [["a", 1, {"k": "é" * 20_000, "n": [None, True, 1.5]}], ["b"]]


def test_a_large_string_is_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "aé€\U0001f600" * 20_000
    whole = pack(["a"], [text, "b" * 20_000], MiB)
    monkeypatch.setattr(codec, "_PART", 7)
    assert pack(["a"], [text, "b" * 20_000], MiB) == whole
    assert list(Unpacker(MiB).feed(whole)) == [["a", [text, "b" * 20_000]]]


def test_bounds_of_the_codec() -> None:
    with pytest.raises(Unexportable, match="structure"):
        pack(["x"], ["0123456789"] * 200_000, 100 * MiB)
    with pytest.raises(BadFrame):
        list(Unpacker(100).feed(pack(["x"], "y" * 20_000, MiB)))
    assert export(True, 100) is True
    for bad in (2**63, -(2**63) - 1, float("inf"), "\ud800", {"a": {1: 2}}, [object()], {"\ud800": 1}):
        with pytest.raises(Unexportable) as caught:
            export(bad, MiB)
        assert caught.value.code == "not_json"
        assert "can't leave the program" in caught.value.sentence("it")
