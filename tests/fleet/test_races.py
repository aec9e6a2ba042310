"""Eight processes that use one home at the same time, and reach its limits together. What may happen once happens once.

Each process makes some calls at a time, so that they also share transactions.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, ToolResult, ToolService, primitive
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report
from tests.helpers.postgres import server

PROCESSES, AT_ONCE = 8, 4


def put(kind: str, step: int) -> int:
    """Append a line to the file that the variable MARKS names. Returns a number that no other call returns."""
    handle = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{kind} {step}\n".encode())
    os.close(handle)
    return int.from_bytes(os.urandom(6), "big")


@primitive(effects=["write"])
def spent(step: int) -> int:
    """Do something in a session with a budget."""
    return put("spent", step)


@primitive(effects=["write"])
def limited(step: int) -> int:
    """Do something that has a rate limit."""
    return put("limited", step)


@primitive(effects=["write"])
def keyed(step: int) -> int:
    """Do something with a dedupe key."""
    return put("keyed", step)


@primitive(effects=["write"])
def asked(step: int) -> int:
    """Do something that needs an answer."""
    return put("asked", step)


def open_home(url: str, work: Path, most: int) -> ToolService:
    tools = {"limited": {"rate_limit_per_hour": most}, "asked": {"requires_approval_in_modes": ["NORMAL"]}}
    primitives = [spent, limited, keyed, asked]
    return ToolService.open(home=url, workspace=work, governance={"tools": tools}, primitives=primitives, builtins=[])


def race(report: Report, url: str, work: Path, number: int, tries: int, token: str) -> None:
    """What each process does."""
    os.environ["MARKS"] = str(work / "marks")
    asyncio.run(_race(report, url, work, range(number, tries, PROCESSES), tries, token))


async def _race(report: Report, url: str, work: Path, own: range, tries: int, token: str) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def all_of(call: Callable[[int], Awaitable[Any]], steps: Iterable[int]) -> list[Any]:
        async def one(step: int) -> Any:
            async with turn:
                return await call(step)

        return await asyncio.gather(*map(one, steps))

    async with open_home(url, work, tries // 2) as service:

        async def ask(step: int) -> int:
            """Call, answer the question, and call again. Returns how many of the calls were made."""
            first = await service.invoke("asked", {"step": step})
            if first.error is not None and "approval" in first.error.details:
                with suppress(Failure):  # Another process has answered it.
                    service.approvals.answer(first.error.details["approval"], "once", "ada")
            second = await service.invoke("asked", {"step": step})
            return sum(result.ok for result in (first, second))

        shared = range(len(own))
        report("ready")
        report(
            {
                "spent": _outcomes(await all_of(lambda n: service.invoke("spent", {"step": n}, session=token), own)),
                "limited": _outcomes(await all_of(lambda n: service.invoke("limited", {"step": n}), own)),
                "keyed": [
                    result.value()
                    for result in await all_of(
                        lambda n: service.invoke("keyed", {"step": n}, dedupe_key=str(n)), shared
                    )
                ],
                "asked": Counter(ok=sum(await all_of(ask, shared[: len(own) // 2]))),
            }
        )


def _outcomes(results: list[ToolResult]) -> Counter[str]:
    return Counter(result.error.code if result.error else "ok" for result in results)


@pytest.mark.parametrize("tries", [64, pytest.param(10_000, marks=pytest.mark.fleet)])
def test_processes_that_race_do_what_is_allowed_once(tmp_path: Path, tries: int) -> None:
    url, most = server().url(), tries // 2
    (tmp_path / ".albert").mkdir()
    with Record(url) as record:
        token = _session(url, tmp_path, most)
        children = [Child(race, url, tmp_path, number, tries, token) for number in range(PROCESSES)]
        assert [child.hear() for child in children] == ["ready"] * PROCESSES
        found = [child.hear(1500) for child in children]
        assert [child.wait() for child in children] == [0] * PROCESSES
        entries = list(record.entries(["asked", "answered", "approval_used"]))
    made = Counter((tmp_path / "marks").read_text().splitlines())

    def times(kind: str) -> list[int]:
        return [count for mark, count in made.items() if mark.startswith(kind)]

    def told(kind: str) -> Counter[str]:
        return sum((each[kind] for each in found), Counter[str]())

    assert told("spent") == {"ok": most, "budget_exceeded": tries - most}
    assert times("spent") == [1] * most

    assert told("limited") == {"ok": most, "rate_limited": tries - most}
    assert times("limited") == [1] * most

    assert times("keyed") == [1] * (tries // PROCESSES)
    first, *others = (each["keyed"] for each in found)
    assert others == [first] * (PROCESSES - 1)

    steps = {entry.data["approval"]: entry.data["arguments"]["step"] for entry in entries if entry.kind == "asked"}
    answered, used = (
        Counter(f"asked {steps[entry.data['approval']]}" for entry in entries if entry.kind == kind)
        for kind in ("answered", "approval_used")
    )
    assert len(used) == tries // PROCESSES // 2
    assert used == {mark: count for mark, count in made.items() if mark.startswith("asked")}
    assert told("asked")["ok"] == used.total()
    assert used <= answered

    assert verify(url).ok


def _session(url: str, work: Path, calls: int) -> str:
    async def opened() -> str:
        async with open_home(url, work, 0) as service:
            return service.open_session("racers", budget=Budget(calls=calls))[1]

    return asyncio.run(opened())
