"""Cancelling a run stops the present call at any depth, also in another process, and reports the effects so far."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import CallContext, Failure, ToolResult, ToolService, primitive
from albert_tools.store.record import durability
from tests.helpers.children import Child, Report
from tests.helpers.kill_points import PRIMITIVES, Place

OUTER = '''
def outer() -> str:
    """Put one, then wait within another."""
    tools.put(name="a")
    tools.inner()
    return tools.put(name="never")
'''
INNER = '''
def inner() -> str:
    """Put one, then wait."""
    tools.put(name="b")
    try:
        tools.linger(name="c")
    except Exception:
        pass
    return tools.put(name="never")
'''
TOGETHER = '''
def together() -> list[str]:
    """Wait for three at once."""
    tools.put(name="a")
    return list(parallel(tools.gaze(name=name) for name in ["x", "y", "z"]))
'''
COUNTING = '''
def counting() -> int:
    """Count."""
    return tools.count()
'''
BUSY = '''
def busy() -> int:
    """Compute for a long time."""
    tools.put(name="a")
    n = 0
    for i in range(100000000):
        n = n + i % 7
    return n
'''


async def _lingers(name: str, context: CallContext) -> str:
    into = Path(context.settings["into"])
    into.with_name(f"began {name}").touch()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        into.with_name(f"called off {name}").touch()
        raise
    return name


@primitive(effects=["write"])
async def linger(name: str, context: CallContext) -> str:
    """Change something slowly."""
    return await _lingers(name, context)


@primitive(effects=["read"])
async def gaze(name: str, context: CallContext) -> str:
    """Read something slowly."""
    return await _lingers(name, context)


def service_at(place: Place, rules: dict[str, Any] | None = None) -> ToolService:
    options = place.options(rules)
    options["governance"]["primitives"] |= {"linger": {"into": str(place.into)}, "gaze": {"into": str(place.into)}}
    return ToolService.open(**{**options, "primitives": [*PRIMITIVES, linger, gaze]})


async def begun(place: Place, *names: str) -> None:
    """Wait until calls are in flight."""
    for _ in range(3000):
        if all(place.into.with_name(f"began {name}").exists() for name in names):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it doesn't begin")


def called_off(result: ToolResult) -> dict[str, Any]:
    assert result.error is not None
    assert result.error.code == "cancelled"
    return result.error.details


async def refuses_to_go_on(place: Place, run: str) -> None:
    async with service_at(place) as service:
        assert service.runs.show(run).state == "cancelled"
        for again in (service.resume, lambda run: asyncio.to_thread(service.runs.cancel, run, "a person")):
            with pytest.raises(Failure) as caught:
                await again(run)
            assert caught.value.code == "exists"
    assert "never" not in place.done


async def in_flight(service: ToolService) -> str:
    (run,) = (run for run in service.runs.list() if run.state == "running")
    return run.id


async def test_cancelling_stops_the_present_call(place: Place) -> None:
    async with service_at(place) as service:
        for source in (INNER, OUTER):
            await service.define(source)
        task = asyncio.ensure_future(service.invoke("outer"))
        await begun(place, "c")
        run = await in_flight(service)
        assert service.runs.cancel(run, "a person").state == "cancelled"
        result = await asyncio.wait_for(task, 10)
        assert called_off(result) == {"applied": 2, "unknown": [{"step": "1/1", "tool": "linger"}]}
        assert "linger (step 1/1)" in str(result.error)
        assert place.into.with_name("called off c").exists()
        states = {step["step"]: step["state"] for step in service.runs.show(run).steps}
        assert states == {"0": "ended", "1/0": "ended", "1/1": "unknown"}
    await refuses_to_go_on(place, run)


async def test_a_run_that_is_over_is_on_the_disk_before_this_is_answered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    async with service_at(place) as service:
        await service.define(COUNTING)
        await service.invoke("counting")
        (run,) = service.runs.list()
        monkeypatch.setattr(durability, "_sync", fail)
        with pytest.raises(Failure, match="can't sync the record"):
            service.runs.cancel(run.id, "a person")


async def test_cancelling_stops_parallel_calls(place: Place) -> None:
    async with service_at(place) as service:
        await service.define(TOGETHER)
        task = asyncio.ensure_future(service.invoke("together"))
        await begun(place, "x", "y", "z")
        run = await in_flight(service)
        service.runs.cancel(run, "a person")
        # The outcome of a read is never unknown.
        assert called_off(await asyncio.wait_for(task, 10)) == {"applied": 1, "unknown": []}
        for _ in range(300):
            if all(place.into.with_name(f"called off {name}").exists() for name in "xyz"):
                break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError("a call goes on")
    await refuses_to_go_on(place, run)


async def test_cancelling_stops_a_program_between_calls(place: Place) -> None:
    async with service_at(place) as service:
        await service.define(BUSY)
        task = asyncio.ensure_future(service.invoke("busy"))
        for _ in range(1000):
            if place.done:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        run = await in_flight(service)
        service.runs.cancel(run, "a person")
        assert called_off(await asyncio.wait_for(task, 10)) == {"applied": 1, "unknown": []}
    await refuses_to_go_on(place, run)


def _calls(report: Report, base: Path) -> None:
    async def main() -> None:
        async with service_at(Place(base)) as service:
            result = await service.invoke("outer")
            report(result.error.as_dict() if result.error else None)

    asyncio.run(main())


@pytest.fixture
def elsewhere(place: Place) -> Iterator[Child]:
    """A process that runs `outer`."""

    async def define() -> None:
        async with service_at(place) as service:
            for source in (INNER, OUTER):
                await service.define(source)

    asyncio.run(define())
    child = Child(_calls, place.base)
    asyncio.run(begun(place, "c"))
    yield child
    child.wait()


def test_cancelling_a_run_of_another_process(place: Place, elsewhere: Child) -> None:
    async def cancel() -> str:
        async with service_at(place) as service:
            run = await in_flight(service)
            with pytest.raises(Failure) as caught:
                await service.resume(run)
            assert caught.value.code == "exists"
            service.runs.cancel(run, "a person")
            error = await asyncio.to_thread(elsewhere.hear, 30)
            assert error["code"] == "cancelled"
            assert error["details"] == {"applied": 2, "unknown": [{"step": "1/1", "tool": "linger"}]}
            return run

    run = asyncio.run(cancel())
    assert elsewhere.wait() == 0
    assert place.into.with_name("called off c").exists()
    asyncio.run(refuses_to_go_on(place, run))


def test_a_cancelled_run_of_a_dead_process_is_not_resumed(place: Place, elsewhere: Child) -> None:
    async def cancel() -> str:
        async with service_at(place) as service:
            run = await in_flight(service)
            # The process is stopped, and dies before it sees the cancellation.
            os.kill(elsewhere.pid, signal.SIGSTOP)
            service.runs.cancel(run, "a person")
            elsewhere.kill()
            with pytest.raises(Failure, match="cancelled") as caught:
                await service.resume(run)
            assert caught.value.code == "exists"
            # A repeat reports the effects so far.
            seen = service.runs.cancel(run, "a person")
            assert seen.state == "cancelled"
            assert seen.error is not None
            assert seen.error["details"] == {"applied": 2, "unknown": [{"step": "1/1", "tool": "linger"}]}
            return run

    asyncio.run(refuses_to_go_on(place, asyncio.run(cancel())))


async def test_a_run_can_be_cancelled_while_it_waits_for_its_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert_tools.engine.pipeline.pipeline.MAX_RUNS", 1)
    rules = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}
    async with service_at(place, rules) as service:
        await service.define(INNER)
        result = await service.invoke("inner")
        assert result.error is not None
        assert result.run_id is not None
        assert result.error.code == "suspended"
        busy = asyncio.ensure_future(service.invoke("gaze", {"name": "x"}))
        await begun(place, "x")
        task = asyncio.ensure_future(service.resume(result.run_id))
        while service.runs.show(result.run_id).state != "running":
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        busy.cancel()
        assert service.runs.show(result.run_id).state == "cancelled"
    assert place.done == []
