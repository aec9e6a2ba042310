"""Observers get the beginning and the end of every call, and never affect a call."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from albert_tools import primitive
from albert_tools.engine.model.telemetry import Ended, Span, Started

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}


@primitive(effects=["write"])
def count(items: list[int]) -> list[int]:
    """Give back what was given."""
    return items


@primitive(effects=["read"])
async def wait(seconds: float = 0.0) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "waited"


class Watch:
    """Records notices, and checks that they come in pairs."""

    def __init__(self) -> None:
        self.open: dict[Span, Started] = {}
        self.ended_: list[Ended] = []
        self.spans: list[Span] = []

    def started(self, span: Span, call: Started) -> None:
        assert span not in self.spans
        self.spans.append(span)
        self.open[span] = call

    def ended(self, span: Span, call: Ended) -> None:
        assert self.open.pop(span) is call.started
        self.ended_.append(call)

    def told(self) -> list[tuple[str, str, str | None]]:
        """The calls that ended since the previous question. Every call must have ended."""
        assert self.open == {}
        found = [(e.started.tool, e.outcome, e.code) for e in self.ended_]
        self.ended_.clear()
        return found


@pytest.fixture
def make(make_bench: Any) -> Any:
    def made(watch: Any, rules: Any = None, **options: Any) -> Any:
        return make_bench(governance=rules or {}, primitives=[count, wait], telemetry=watch, **options)

    return made


def test_each_call_has_a_beginning_and_an_end(make: Any) -> None:
    watch = Watch()
    bench = make(watch, {**ASKS, "deny": ["http_request"]})
    token = bench.service.within(lambda s: s.open_session("x", tools=["wait"]))[1]
    bench.define("return tools.wait()")

    def call(*arguments: Any, **options: Any) -> list[tuple[str, str, str | None]]:
        bench.service.invoke(*arguments, **options)
        return watch.told()

    assert call("wait") == [("wait", "completed", None)]
    assert [code for _, _, code in call("nothing")] == ["unknown_tool"]
    assert [code for _, _, code in call(7)] == ["invalid_arguments"]
    assert call("wait", request_id="")[0][2] == "invalid_arguments"
    assert call("wait", {"seconds": "x"}) == [("wait", "blocked", "invalid_arguments")]
    assert call("wait", session="alb_x") == [("wait", "blocked", "permission_denied")]
    assert call("count", {"items": []}, session=token) == [("count", "blocked", "permission_denied")]
    assert call("http_request", {"url": "https://a.example"}) == [("http_request", "blocked", "permission_denied")]
    assert call("t") == [("wait", "completed", None), ("t", "completed", None)]
    for _ in range(2):
        # A repeat also has notices, with the first result.
        assert call("wait", dedupe_key="k") == [("wait", "completed", None)]
    assert call("wait", {"seconds": 1.0}, dedupe_key="k") == [("wait", "blocked", "dedupe_conflict")]


def test_suspended_and_resumed_runs(make: Any) -> None:
    watch = Watch()
    bench = make(watch, ASKS)
    bench.define('tools.wait()\n    return tools.write_file(path="a", content="x")["path"]')
    run = bench.service.invoke("t").run_id
    assert watch.told() == [
        ("wait", "completed", None),
        ("write_file", "blocked", "suspended"),
        ("t", "failed", "suspended"),
    ]
    (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
    bench.service.within(lambda s: s.approvals.answer(question.id, "once", "ada"))
    assert bench.service.resume(run).ok
    # A step whose result comes from the journal has no notices.
    assert watch.told() == [("write_file", "completed", None), ("t", "completed", None)]
    bench.service._wait(bench.service.service.runs.replay(run))
    assert watch.told() == []


def test_cancelled_calls(make: Any) -> None:
    watch = Watch()
    bench = make(watch)
    bench.define("return tools.wait(seconds=20)")

    async def main() -> None:
        task = asyncio.create_task(bench.service.service.invoke("t"))
        while len(watch.open) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench.service._wait(main())
    assert {(tool, code) for tool, _, code in watch.told()} == {("wait", "cancelled"), ("t", "cancelled")}


class Rude(Watch):
    """An observer that raises exceptions, blocks, calls tools, and changes the notices."""

    service: Any = None

    def started(self, span: Span, call: Started) -> None:
        super().started(span, call)
        time.sleep(0.01)
        call.arguments.get("items", []).append(13)
        call.arguments.clear()
        try:
            self.service.invoke("wait")
        except RuntimeError as error:
            raise ValueError("it can't be called from here") from error

    def ended(self, span: Span, call: Ended) -> None:
        super().ended(span, call)
        if isinstance(call.output, list):
            call.output.append(14)
        raise KeyError("rude")


def test_a_failing_observer_affects_no_call(make: Any) -> None:
    watch = Rude()
    bench = make(watch)
    watch.service = bench.service
    bench.define("return tools.count(items=[1, 2])")
    complaints: list[Any] = []
    bench.service._loop.set_exception_handler(lambda loop, context: complaints.append(context))
    given = {"items": [1]}
    assert bench.service.invoke("count", given).value() == [1]
    assert given == {"items": [1]}
    assert bench.value("t") == [1, 2]
    assert watch.told() == [("count", "completed", None), ("count", "completed", None), ("t", "completed", None)]
    assert {c["message"] for c in complaints} == {"an observer of calls failed"}
    assert len(complaints) == 6


def test_an_observer_may_call_tools(make: Any) -> None:
    class Curious(Watch):
        tasks: list[Any] = []  # noqa: RUF012

        def ended(self, span: Span, call: Ended) -> None:
            super().ended(span, call)
            if len(self.tasks) < 3:
                self.tasks.append(asyncio.ensure_future(bench.service.service.invoke("wait")))

    watch = Curious()
    bench = make(watch)
    assert bench.value("wait") == "waited"

    async def rest() -> list[Any]:
        while len(watch.tasks) < 3:
            await asyncio.sleep(0.01)
        return [(await task).ok for task in watch.tasks]

    assert bench.service._wait(rest()) == [True] * 3
    assert {outcome for _, outcome, _ in watch.told()} == {"completed"}
