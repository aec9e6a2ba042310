"""Attacks on the pipeline: by a failing record, a slow stage, a program that ignores its failures, and a primitive that changes its
arguments."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import Budget, primitive
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline import policy
from tests.engine.conftest import DONE, PRIMITIVES

CAUGHT = "try:\n        {}\n    except ToolError as e:\n        return e.code"


@primitive(effects=["read"])
def arrange(items: list[int]) -> list[int]:
    """Change the argument."""
    items.sort()
    return items


def entries(bench: Any, *kinds: str) -> list[dict[str, Any]]:
    ledger = bench.service.service.ledger
    return [dict(entry.data) for entry in ledger.entries(kinds)]


def test_a_run_whose_read_could_not_be_recorded_gives_no_result(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()
    bench.define(CAUGHT.format("return tools.look()"))
    ledger = bench.service.service.ledger
    append = type(ledger).append

    def failing(self: Any, kind: str, data: Any) -> int:
        if kind == "call" and data["tool"] == "look":
            raise Failure("io_error", "the disk is full")
        return int(append(self, kind, data))

    monkeypatch.setattr(type(ledger), "append", failing)
    monkeypatch.setattr("albert_tools.engine.call.entries.LATEST", 3600.0)
    result = bench.service.invoke("t")
    assert result.output is None
    assert result.error is not None
    assert (result.error.code, result.error.denied) == ("governance_unavailable", True)
    assert bench.service.service.runs.list() == []


def test_invalid_calls_count_against_the_limit(make_bench: Any) -> None:
    bench = make_bench(governance={"limits": {"calls": 6}})
    again = "try:\n            tools.launch(name=n)\n        except ToolError as e:\n            out = out + [e.code]\n"
    bench.define(f"out = []\n    for i in range(4):\n        {again}    return out", "inner", "n: Any")
    bench.define("return tools.inner(n=1) + tools.inner(n=2)", "outer")
    assert bench.value("outer") == ["invalid_arguments"] * 4 + ["call_limit"] * 4


def test_examples_have_the_limit_of_calls(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from albert_tools.engine.model.limits import RunLimits

    bench = make_bench()
    monkeypatch.setattr("albert_tools.engine.examples.RunLimits", lambda: RunLimits()._replace(calls=5))
    bench.define("return 1", "one_call")
    bench.define("for i in range(3):\n        tools.one_call()", "three")
    refused = bench.refused("for i in range(3):\n        tools.three()", "@example(result=None)\n")
    assert "tool calls" in str(refused.details)


def test_a_lockdown_while_a_call_is_judged_denies_it(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench()
    modes, judge = bench.service.service.modes, policy._judge

    async def slowly(*arguments: Any) -> Any:
        found = await judge(*arguments)
        modes.switch("LOCKDOWN", "a person", "a test")
        return found

    monkeypatch.setattr(policy, "_judge", slowly)
    assert bench.service.invoke("launch", {"name": "a"}).error.code == "permission_denied"
    assert DONE == []


def test_the_record_has_the_arguments_as_they_were_given(make_bench: Any) -> None:
    bench = make_bench(primitives=[*PRIMITIVES, arrange])
    assert bench.value("arrange", items=[3, 1, 2]) == [1, 2, 3]
    assert entries(bench, "call")[-1]["arguments"] == {"items": [3, 1, 2]}


def test_refused_calls_do_not_fill_the_disk(make_bench: Any) -> None:
    bench = make_bench()
    call = "tools.write_file(path='../../x' + str(i), content=str(i) + 'x' * 1_000_000)"
    bench.define(f"for i in range(8):\n        try:\n            {call}\n        except ToolError:\n            pass")
    used = size_of(bench.home)
    result = bench.service.invoke("t")
    bench.service.invoke("read_file", {"path": "a", **{f"x{i}": ["y" * 100] * 50 for i in range(50)}})
    assert result.ok, result.error
    assert size_of(bench.home) - used < 1_000_000
    steps = bench.service.within(lambda s: s.runs.show(result.run_id)).steps
    assert {step["arguments"]["size_bytes"] > 1_000_000 for step in steps} == {True}
    # The hash is enough to replay the run.
    assert bench.service._wait(bench.service.service.runs.replay(result.run_id)).ok


def test_a_program_is_not_told_how_much_is_left_of_a_budget(make_bench: Any) -> None:
    """That would tell how much earlier calls have used."""
    bench = make_bench(governance={"allow": ["write_file"]})
    call = 'tools.write_file(path="a", content="x" * 20)'
    bench.define(CAUGHT.format(call).replace("e.code", "str(e)"))
    bench.define(call, "u")
    _, token = bench.service.within(lambda s: s.open_session("a test", budget=Budget(bytes_written=10)))
    assert "budget has no room" in bench.service.invoke("t", {}, session=token).value()
    assert "10 bytes" in bench.service.invoke("u", {}, session=token).error.message


def size_of(folder: Any) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
