"""Processes race for what is allowed a few times. On each database, exactly that many calls are made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolService, primitive
from albert_tools.engine.authority.sessions import Budget
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report
from tests.store.record.conftest import Place

#: The calls of one process that run at the same time.
AT_ONCE = 8
#: How many calls the budget and the rate limit allow, and the numbers of dedupe keys and of answers, for each of which one is.
ALLOWED = {"spend": 20, "limited": 15, "once": 10, "asked": 5}
RULES: Mapping[str, Any] = {
    "tools": {
        "limited": {"rate_limit_per_hour": ALLOWED["limited"]},
        "asked": {"requires_approval_in_modes": ["NORMAL"]},
    }
}


@primitive(effects=["write"])
async def spend(number: int) -> int:
    """Return the number. The session has a budget."""
    return number


@primitive(effects=["write"])
async def limited(number: int) -> int:
    """Return the number. A rule limits the calls in an hour."""
    return number


@primitive(effects=["write"])
async def once(number: int) -> int:
    """Return the number. Each number has a dedupe key."""
    return number


@primitive(effects=["write"])
async def asked(number: int) -> int:
    """Return the number. A person is asked first."""
    return number


def options(place: Place, work: Path) -> dict[str, Any]:
    """The options of a service whose home is at `place`."""
    primitives = [spend, limited, once, asked]
    return {"home": place, "workspace": work, "primitives": primitives, "governance": RULES, "patience": 0}


def race(report: Report, place: Place, work: Path, token: str, tries: int) -> None:
    """Call each tool `tries` times. Report how many calls of each were made here, and all failures."""

    async def main() -> None:
        async with ToolService.open(**options(place, work)) as service:
            report("ready")
            while not (work / "go").exists():
                await asyncio.sleep(0.001)
            made, codes = Counter[str](), Counter[tuple[str, str]]()

            async def call(tool: str, i: int) -> None:
                number = i % ALLOWED[tool]
                more: dict[str, Any] = {"session": token} if tool == "spend" else {}
                if tool == "once":
                    more["dedupe_key"] = str(number)
                result = await service.invoke(tool, {"number": number}, **more)
                if result.error is not None:
                    codes[tool, result.error.code] += 1
                elif not result.repeated:
                    made[tool] += 1

            for first in range(0, tries, AT_ONCE):
                now = range(first, min(first + AT_ONCE, tries))
                await asyncio.gather(*(call(tool, i) for i in now for tool in ALLOWED))
            report((made, codes))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("processes", "tries"), [(3, 16), pytest.param(8, 313, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])]
)
def test_what_is_allowed_a_few_times_is_done_as_often(place: Place, tmp_path: Path, processes: int, tries: int) -> None:
    work = tmp_path / "work"
    (work / ".albert").mkdir(parents=True)
    with SyncToolService.open(**options(place, work)) as service:
        for number in range(ALLOWED["asked"]):
            service.invoke("asked", {"number": number})
        for question in service.within(lambda s: s.approvals.all()):
            service.within(lambda s, q=question: s.approvals.answer(q.id, "once", by="Ada"))
        budget = Budget(calls=ALLOWED["spend"])
        _, token = service.within(lambda s: s.open_session("racer", budget=budget))
        children = [Child(race, place, work, token, tries) for _ in range(processes)]
        assert [child.hear() for child in children] == ["ready"] * processes
        (work / "go").touch()
        made, codes = Counter[str](), Counter[tuple[str, str]]()
        for child in children:
            of_child, codes_of_child = child.hear(patience=2900)
            made += of_child
            codes += codes_of_child
        assert [child.wait() for child in children] == [0] * processes
        record = service.service.ledger
        assert verify(record.place).problems == ()  # type: ignore[union-attr]
    assert made == ALLOWED
    refused = {("spend", "budget_exceeded"), ("limited", "rate_limited"), ("asked", "suspended")}
    assert {*codes} <= refused | {("asked", "permission_denied"), ("asked", "rate_limited")}
