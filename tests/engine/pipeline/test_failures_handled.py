"""Failures: which calls are retried, what a timeout leaves behind, and the form of a failure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from albert_tools import CallContext, Failure, primitive
from albert_tools.engine.model.telemetry import Ended, Span, Started

TRIES: list[str] = []
#: The exceptions that the attempts raise, one after the other. Later attempts succeed.
COMES: list[Failure] = []


def attempt(name: str) -> str:
    TRIES.append(name)
    if COMES:
        raise COMES.pop(0)
    return "done"


@primitive(effects=["read"])
def fetch() -> str:
    """Only read."""
    return attempt("fetch")


@primitive(effects=["write"], idempotent=True, once=["more"])
def put(context: CallContext, first: bool = False, more: bool = False) -> str:
    """Do something idempotent, unless `more` is given."""
    if first:
        context.effect("write", path="a", size_bytes=1)
    return attempt("put")


@primitive(effects=["write"])
def add() -> str:
    """Do something that is not idempotent."""
    return attempt("add")


class Watch:
    def __init__(self) -> None:
        self.told: list[Ended] = []

    def started(self, span: Span, call: Started) -> None: ...

    def ended(self, span: Span, call: Ended) -> None:
        self.told.append(call)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def bench(make_bench: Any, watch: Watch) -> Any:
    TRIES.clear()
    COMES.clear()
    return make_bench(primitives=[fetch, put, add], telemetry=watch, governance={"allow": ["bash"]})


def passing(code: str = "network_error", retryable: bool = True) -> Failure:
    return Failure(code, "try again", retryable=retryable)


@pytest.mark.parametrize(
    ("tool", "arguments", "comes", "tries", "ok"),
    [
        ("fetch", {}, [passing()], 2, True),
        ("put", {}, [passing("io_error")], 2, True),
        ("fetch", {}, [passing(), passing()], 2, False),
        ("fetch", {}, [passing(retryable=False)], 1, False),
        ("fetch", {}, [passing("not_found")], 1, False),
        ("fetch", {}, [passing("permission_denied")], 1, False),
        ("put", {"first": True}, [passing()], 1, False),
        ("put", {"more": True}, [passing()], 1, False),
        ("add", {}, [passing()], 1, False),
    ],
)
def test_which_failures_are_retried(
    bench: Any, watch: Watch, tool: str, arguments: Any, comes: list[Failure], tries: int, ok: bool
) -> None:
    COMES[:] = comes
    result = bench.service.invoke(tool, arguments)
    assert (result.ok, len(TRIES)) == (ok, tries)
    assert [t.retried for t in watch.told] == [tries - 1]
    if not ok:
        assert result.error.category == watch.told[0].category
        with pytest.raises(Failure) as caught:
            result.value()
        assert caught.value.code == result.error.code


def test_a_timeout_is_not_retried(make_bench: Any) -> None:
    tries: list[int] = []

    @primitive(effects=["read"], timeout=0.1)
    def stuck() -> None:
        """Take too long."""
        tries.append(1)
        time.sleep(0.4)

    bench = make_bench(primitives=[stuck])
    error = bench.error("stuck")
    assert (error.code, error.category, error.retryable, tries) == ("timeout", "timeout", False, [1])


def processes(marked: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if marked in " ".join(process.info["cmdline"] or []) and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@pytest.mark.parametrize(
    "way", ["sleep {0}", "sleep {0} & setsid sleep {0} & wait", "(setsid sleep {0} &) ; sleep {0}"]
)
@pytest.mark.parametrize("end", ["timeout", "rules", "cancelled"])
def test_a_command_ends_with_all_its_processes(make_bench: Any, way: str, end: str, tmp_path: Path) -> None:
    import asyncio

    seconds = f"7{time.time_ns() % 10**7}"
    limit = {"limits": {"call_seconds": 0.7}} if end == "rules" else {}
    rules = {"allow": ["bash"], "tools": {"bash": {"ordinary_commands": ["setsid *"]}}}
    bench = make_bench(governance={**rules, **limit})
    command = way.format(seconds)
    given = {"command": command, "timeout": 0.5 if end == "timeout" else 30}
    if end == "cancelled":

        async def main() -> None:
            task = asyncio.create_task(bench.service.service.invoke("bash", given))
            while not await asyncio.to_thread(processes, seconds):
                assert not task.done(), task.result()
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        bench.service._wait(main())
    else:
        error = bench.error("bash", **given)
        assert (error.code, error.category) == ("timeout", "timeout")
    assert processes(seconds) == []


def test_the_first_of_several_parallel_failures_keeps_its_code_and_rule(bench: Any) -> None:
    bench.define("return len(parallel(tools.read_file(path=p) for p in ['/etc/passwd', 'missing']))", "both")
    error = bench.error("both")
    assert (error.code, error.rule, error.details["type"]) == ("permission_denied", "outside_workspace", "ToolError")


@pytest.mark.parametrize("others", [1, 70])
def test_a_denial_stays_a_denial_after_other_failures(make_bench: Any, others: int) -> None:
    # 70 failures are more than calls can overlap, and the message is longer than a worker's report may be.
    secret = "secrets/" + "x" * 3000
    bench = make_bench(governance={"tools": {"read_file": {"forbidden_paths": ["secrets"]}}})
    bench.define(
        "first = None\n"
        f"    for i in range({others} + 1):\n        try:\n            tools.read_file(path=f'missing{{i}}' if i else p)\n"
        "        except ToolError as error:\n            first = first or error\n    raise first",
        "reader",
        "p: str",
    )
    bench.define("return tools.reader(p=p)", "outer", "p: str")
    for tool in ("reader", "outer"):
        result = bench.service.invoke(tool, {"p": secret})
        assert (result.error.code, result.error.denied) == ("permission_denied", True)
        assert result.error.details["type"] == "ToolError"
        assert result.error.message == bench.error("read_file", path=secret).message
        assert result.policy["rule_id"] == "tools.read_file.forbidden_paths"
        assert result.policy["rationale_code"] == "path"
