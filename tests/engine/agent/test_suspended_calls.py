"""A call that waits is resumed by the same call, and by no other one."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.agent import suspended_calls
from albert_tools.engine.agent.suspended_calls import SuspendedCalls
from albert_tools.engine.model.result import ToolResult


class Service:
    """Suspends each new call in a run of its own, and resumes a run once."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def client_of(self, session: str) -> str:
        return session[:1]  # The sessions `s` and `s2` belong to one client.

    async def invoke(self, name: str, arguments: Any, **options: Any) -> ToolResult:
        self.runs.append(f"r{len(self.runs)}")
        details = {"run": self.runs[-1], "approval": "a"}
        return ToolResult(name, error=Failure("suspended", "it waits", details=details))

    async def resume(self, run: str, log: Any, *, session: str) -> ToolResult:
        if run not in self.runs:
            raise Failure("exists", "it has ended")
        self.runs.remove(run)
        return ToolResult("t", run)


async def call(calls: SuspendedCalls, service: Any, arguments: Any, **other: Any) -> ToolResult:
    return await calls.invoke(service, "t", arguments, **{"version": None, "session": "s", **other})


async def test_the_same_call_resumes_its_run_once() -> None:
    calls, service = SuspendedCalls(), Service()
    waits = await call(calls, service, {"a": 1, "b": [True]})
    assert waits.error is not None
    assert waits.error.hint == "a person answers with `albert approvals answer a once`; then make the same call again"
    others = [
        ({"a": 1, "b": [1]}, {}),
        ({"a": 1, "b": [True]}, {"session": "x"}),
        ({"a": 1, "b": [True]}, {"version": "v"}),
    ]
    for arguments, other in others:
        assert not (await call(calls, service, arguments, **other)).ok
    assert (await call(calls, service, {"b": [True], "a": 1})).output == "r0"
    assert not (await call(calls, service, {"b": [True], "a": 1})).ok


@pytest.mark.parametrize("value", [b"x", {1: 2, "a": 3}, float])
async def test_arguments_that_are_not_json_are_not_remembered(value: Any) -> None:
    calls, service = SuspendedCalls(), Service()
    for _ in range(2):
        assert not (await call(calls, service, {"a": value})).ok
    assert service.runs == ["r0", "r1"]


async def test_a_run_that_went_on_without_its_call_is_named() -> None:
    calls, service = SuspendedCalls(), Service()
    await call(calls, service, {})
    service.runs.clear()
    error = (await call(calls, service, {})).error
    assert error is not None
    assert error.message == "the run r0 of this call went on without it: it has ended"


async def test_the_oldest_run_of_a_client_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended_calls, "MAX_SUSPENDED", 2)
    calls, service = SuspendedCalls(), Service()
    for n in range(3):
        await call(calls, service, {"n": n})
    await call(calls, service, {"n": 3}, session="s2")
    await call(calls, service, {"n": 4}, session="x")
    assert (await call(calls, service, {"n": 2})).output == "r2"
    assert not (await call(calls, service, {"n": 1})).ok
