"""Concurrent calls in one service and in several processes on one home. An effect that is allowed once happens once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from albert_tools import CallContext, SyncToolService, ToolResult, ToolService, primitive
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report
from tests.helpers.kill_points import PRIMITIVES, Place

#: The number of processes that compete.
RACERS = 4

MANY = '''
def many(names: list[str]) -> int:
    """Put many."""
    for name in names:
        tools.put(name=name)
    return len(names)
'''


@primitive(effects=["write"], paths={"path": "write"})
async def grow(path: str, context: CallContext) -> int:
    """Increment a number in a file, slowly. Without the lock, concurrent calls lose increments."""
    try:
        n = int(context.workspace.read(path, 100))
    except Exception:
        n = 0
    await asyncio.sleep(0.005)
    context.workspace.replace(path, str(n + 1).encode())
    return n + 1


def options(place: Place, governance: Any = None) -> dict[str, Any]:
    return {**place.options(governance), "primitives": [*PRIMITIVES, grow]}


def code(result: ToolResult) -> str | None:
    return result.error.code if result.error else None


def race(report: Report, base: Path, governance: Any, go: Path, call: Any, times: int) -> None:
    """Make a call `times` times at once, when all processes are ready."""

    async def main() -> None:
        async with ToolService.open(**options(Place(base), governance)) as service:
            name, arguments, more = call
            # Load everything before the race.
            await service.invoke("count")
            report("ready")
            while not go.exists():
                await asyncio.sleep(0.001)
            results = await asyncio.gather(*(service.invoke(name, arguments, **more) for _ in range(times)))
            report([(code(r), r.output, r.repeated) for r in results])

    asyncio.run(main())


def raced(place: Place, call: Any, times: int = 1, governance: Any = None) -> list[Any]:
    """The results of all processes."""
    go = place.base / "go"
    children = [Child(race, place.base, governance, go, call, times) for _ in range(RACERS)]
    for child in children:
        assert child.hear() == "ready"
    go.touch()
    found = [result for child in children for result in child.hear()]
    assert [child.wait() for child in children] == [0] * RACERS
    with SyncToolService.open(**options(place, governance)) as service:
        assert verify(service.service.ledger.place).ok  # type: ignore[union-attr]
    return found


async def test_two_hundred_concurrent_calls(place: Place) -> None:
    async with ToolService.open(**options(place)) as service:
        await service.define(MANY)
        calls: list[Callable[[], Awaitable[ToolResult]]] = []
        for i in range(200):
            if i % 8 == 0:
                calls.append(lambda i=i: service.invoke("many", {"names": [f"m{i}a", f"m{i}b"]}))  # type: ignore[misc]
            elif i % 4 == 1:
                calls.append(lambda i=i: service.invoke("grow", {"path": f"{i % 3}.txt"}))  # type: ignore[misc]
            elif i % 4 == 3:
                calls.append(lambda: service.invoke("put", {"name": "once"}, dedupe_key="k"))
            else:
                calls.append(lambda i=i: service.invoke("put", {"name": f"p{i}"}))  # type: ignore[misc]
        results = await asyncio.wait_for(asyncio.gather(*(call() for call in calls)), 60)
        assert [code(r) for r in results] == [None] * 200
        done = Counter(place.done)
        assert set(done.values()) == {1}
        assert len(done) == 1 + 2 * 25 + 75
        assert sum(int((place.work / f"{i}.txt").read_text()) for i in range(3)) == 50
        ledger: Any = service.ledger
        entries = list(ledger.entries({"call", "result"}))
        assert len({e.data["call"] for e in entries}) == sum("ok" in e.data for e in entries)
        assert {run.state for run in service.runs.list(100)} == {"done"}
        assert verify(ledger.place).ok


def test_writes_to_one_file_are_serialized(place: Place) -> None:
    found = raced(place, ("grow", {"path": "n.txt"}, {}), 5)
    assert sorted(output for _, output, _ in found) == list(range(1, 5 * RACERS + 1))
    assert (place.work / "n.txt").read_text() == str(5 * RACERS)


def test_one_key_is_one_effect(place: Place) -> None:
    found = raced(place, ("put", {"name": "a"}, {"dedupe_key": "k"}), 5)
    assert place.done == ["a"]
    assert Counter(found) == {(None, "a", True): 5 * RACERS - 1, (None, "a", False): 1}


def test_one_answer_is_one_effect(place: Place) -> None:
    asks = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}
    with SyncToolService.open(**options(place, asks)) as service:
        result = service.invoke("put", {"name": "a"})
        assert result.error is not None
        question = result.error.details["approval"]
        service.within(lambda s: s.approvals.answer(question, "once", "a person"))
    found = raced(place, ("put", {"name": "a"}, {}), 3, asks)
    assert place.done == ["a"]
    codes = Counter(code for code, _, _ in found)
    assert codes[None] == 1
    # The other answers are too late, or the calls ask a new question.
    assert set(codes) <= {None, "permission_denied", "suspended"}


def test_a_rate_limit_applies_to_all_processes(place: Place) -> None:
    limited = {"tools": {"put": {"rate_limit_per_hour": 7}}}
    found = raced(place, ("put", {"name": "a"}, {}), 6, limited)
    assert Counter(code for code, _, _ in found) == {None: 7, "rate_limited": 6 * RACERS - 7}
    assert len(place.done) == 7


def test_a_budget_applies_to_all_processes(place: Place) -> None:
    with SyncToolService.open(**options(place)) as service:
        _, token = service.within(lambda s: s.open_session("c", budget=Budget(calls=9)))
    found = raced(place, ("put", {"name": "a"}, {"session": token}), 5)
    assert Counter(code for code, _, _ in found) == {None: 9, "budget_exceeded": 5 * RACERS - 9}
    assert len(place.done) == 9
