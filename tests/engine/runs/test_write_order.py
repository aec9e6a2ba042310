"""The order of writes: a decision is on the disk before its effect, and a result before any other write relies on it.

What a program reads is written with the next entry that must be written. The ledger and the journal of the service record the order
of appends, syncs and effects. Each test compares the complete list. So a missing, moved or added sync fails the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from albert_tools import CallContext, ToolResult, primitive
from albert_tools.engine.call import entries
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.session_budget import Budget
from albert_tools.engine.service import ToolService
from tests.helpers.kill_points import Place, Points, pointed

ASK = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}
LIMIT = {"tools": {"put": {"rate_limit_per_hour": 9}}}
PROGRAM = '''
def program(name: str) -> str:
    """Count, then put."""
    CALLS
    return name
'''
#: A call of `put` by hand, and the same call as a step of a run. A step is committed together with the next entry of its run.
BY_HAND = ["append call", "sync ledger", "effect of put", "append result"]
ENDED = ["journal end", "append result", "sync journal"]
EFFECT = ["effect of put", *ENDED]
STEP = ["journal begin", "append call", "sync ledger", *EFFECT]
#: The beginning of a program is written with its first effect.
BEGUN = ["create journal", "journal enter"]
FIRST = ["journal begin", "append call", "append call", "sync ledger", *EFFECT]
#: The end of a program with an effect.
CLOSED = ["journal state", "append result", "append run", "close journal"]


def written(names: list[str]) -> list[str]:
    """The appends, syncs and effects among the points. A sync counts when it has returned, an effect when it begins."""
    found: list[str] = []
    for name in names:
        match name.split(" ", 1):
            case ["after", "the log's sync"]:
                found.append("sync ledger")
            case ["after", "the journal's sync"]:
                found.append("sync journal")
            case ["after", "the journal's flush"]:
                found.append("flush journal")
            case ["after", "the journal's close"]:
                found.append("close journal")
            case ["after", "a run's beginning"]:
                found.append("create journal")
            case ["after", other] if other.startswith("the entry "):
                found.append(other.replace("the entry", "append"))
            case ["after", other] if other.startswith("the journal's "):
                found.append(other.replace("the journal's", "journal"))
            case ["before", other] if other.startswith("the effect "):
                found.append(other.removeprefix("the "))
        # The two syncs are awaited together, so either one may return first.
        if sorted(found[-2:]) == ["sync journal", "sync ledger"]:
            found[-2:] = ["sync both"]
    return found


class Writes:
    """A service, and the writes of one piece of work."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.points = Points()

    def opened(self, governance: Any = None) -> ToolService:
        return pointed(self._place, self.points, observed=False, governance=governance)

    async def of(self, work: Awaitable[ToolResult]) -> tuple[ToolResult, list[str]]:
        """Return the result of `work`, and the writes until it returned."""
        self.points.names.clear()
        result = await work
        return result, written(self.points.names)


@pytest.fixture
def writes(place: Place, monkeypatch: pytest.MonkeyPatch) -> Writes:
    # On a busy machine, a short program takes long, too.
    monkeypatch.setattr(entries, "LATEST", 3600.0)
    return Writes(place)


async def test_a_change_by_hand(writes: Writes) -> None:
    async with writes.opened() as service:
        result, order = await writes.of(service.invoke("put", {"name": "a"}))
    assert result.ok
    assert order == BY_HAND


async def test_a_read_by_hand_is_not_synced(writes: Writes) -> None:
    async with writes.opened() as service:
        _, order = await writes.of(service.invoke("count"))
    assert order == ["effect of count", "append call"]


async def test_a_session_is_charged_in_the_same_sync(writes: Writes) -> None:
    async with writes.opened(LIMIT) as service:
        writes.points.names.clear()
        _, token = service.open_session("a test")
        assert written(writes.points.names) == ["append session", "sync ledger"]
        result, order = await writes.of(service.invoke("put", {"name": "a"}, session=token))
    assert result.ok
    assert order == BY_HAND


async def test_a_change_in_a_program(writes: Writes) -> None:
    async with writes.opened() as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)\n    tools.put(name='then')"))
        result, order = await writes.of(service.invoke("program", {"name": "a"}))
    assert result.ok
    # The end of the first call is on the disk before the second call begins.
    assert order == [*BEGUN, *FIRST, *STEP, *CLOSED]


async def test_a_change_that_fails_in_a_program(writes: Writes, place: Place) -> None:
    place.into.unlink()
    place.into.mkdir()
    async with writes.opened() as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)"))
        result, order = await writes.of(service.invoke("program", {"name": "a"}))
    assert result.error is not None
    assert order == [*BEGUN, *FIRST, *CLOSED]


async def test_a_read_in_a_program_is_not_synced(writes: Writes) -> None:
    async with writes.opened() as service:
        await service.define(PROGRAM.replace("CALLS", "tools.count()"))
        _, order = await writes.of(service.invoke("program", {"name": "a"}))
    read = ["effect of count", "journal end"]
    assert order == [*BEGUN, *read, "journal state", "append call", "append call", "append run", "close journal"]


@pytest.mark.parametrize("limited", ["", "requests", "budget"])
async def test_what_a_session_reads_is_written_before_it_only_if_it_draws_on_a_limit(
    writes: Writes, limited: str
) -> None:
    rules = {"loops": {"requests_per_hour": 200}} if limited == "requests" else {}
    async with writes.opened(rules) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.count()"))
        within = service.open_session("a test", budget=Budget(calls=9) if limited == "budget" else None)[1]
        token = service.open_session("a test", within=within)[1]
        _, order = await writes.of(service.invoke("program", {"name": "a"}, session=token))
    read = ["effect of count", "journal end", "journal state"]
    calls = {
        "": [*read, "append call", "append call"],
        # The program is a request, and its call is none.
        "requests": ["append call", *read, "append call", "append result"],
        "budget": ["append call", "append call", *read, "append result", "append result"],
    }
    assert order == [*BEGUN, *calls[limited], "append run", "close journal"]


async def test_a_program_that_takes_long_is_written_before_its_end(
    writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LATEST", 0.02)
    async with writes.opened() as service:
        await service.define(PROGRAM.replace("CALLS", "tools.sleep(seconds=0.5)"))
        _, order = await writes.of(service.invoke("program", {"name": "a"}))
    begun = [*BEGUN, "append call", "append call", "journal end"]
    assert order[: len(begun)] == begun
    # On a busy machine, the first of the results can be late, too.
    rest = ["journal state", "append result", "append result", "append run", "close journal"]
    assert sorted(order[len(begun) :]) == sorted(rest)


@pytest.mark.parametrize("is_program", [True, False])
async def test_what_is_read_slowly_is_written_before_its_end(place: Place, is_program: bool) -> None:
    @primitive(effects=["read"])
    async def late(number: int) -> bool:
        """Wait until the record has so many calls."""
        for _ in range(500):
            if len(await service.records(["call"])) == number:
                return True
            await asyncio.sleep(0.01)
        return False

    async with pointed(place, Points(), observed=False) as service:
        service.register(late)
        # The second call of the program is written by a timer of its own.
        await service.define(PROGRAM.replace("CALLS", "assert tools.late(number=2) and tools.late(number=3)"))
        if is_program:
            result = await service.invoke("program", {"name": "a"})
        else:
            result = await service.invoke("late", {"number": 1}, session=service.open_session("a test")[1])
    assert result.value() == ("a" if is_program else True)


async def test_what_a_print_shows_is_written_before_it(writes: Writes) -> None:
    async with writes.opened() as service:
        await service.define(PROGRAM.replace("CALLS", "print(tools.count())"))
        shown: list[list[str]] = []
        log = lambda *_: shown.append(written(writes.points.names))  # noqa: E731
        await writes.of(service.invoke("program", {"name": "a"}, log=log))
    assert shown == [[*BEGUN, "effect of count", "journal end", "append call", "append call"]]


@primitive(effects=["read"])
async def tell(context: CallContext) -> None:
    """Show something while it runs."""
    assert context.progress is not None
    context.progress("half")


async def test_what_a_primitive_shows_while_it_runs_is_written_before_it(writes: Writes) -> None:
    async with writes.opened() as service:
        service.register(tell)
        await service.define(PROGRAM.replace("CALLS", "tools.count()\n    tools.tell()"))
        shown: list[list[str]] = []
        log = lambda *_: shown.append(written(writes.points.names))  # noqa: E731
        result, _ = await writes.of(service.invoke("program", {"name": "a"}, log=log))
    assert result.ok
    assert shown == [[*BEGUN, "effect of count", "journal end", "append call", "append call", "append call"]]


async def test_what_an_observer_is_told_is_written_before(place: Place) -> None:
    points = Points()
    async with pointed(place, points) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.count()"))
        points.names.clear()
        await service.invoke("program", {"name": "a"})
    told = [name for name in points.names if "telling" in name or name.startswith("after the entry")]
    begun = ["after the entry call", "before the telling of a beginning"] * 2
    ended = ["after the entry result", "before the telling of an end"] * 2
    assert told == [*begun, *ended, "after the entry run"]


async def test_a_result_under_a_dedupe_key_is_on_the_disk_before_the_answer(writes: Writes) -> None:
    async with writes.opened() as service:
        result, order = await writes.of(service.invoke("put", {"name": "a"}, dedupe_key="k"))
        assert result.ok
        begun = ["append repeat", *BEGUN, "journal begin", "append call", "sync ledger"]
        ended = ["journal state", "append run", "sync journal", "close journal", "append repeat"]
        assert order == [*begun, *EFFECT, *ended]
        again, order = await writes.of(service.invoke("put", {"name": "a"}, dedupe_key="k"))
    assert again.repeated
    assert order == ["append repeated"]


@pytest.fixture(params=["put", "program"])
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_question_is_on_the_disk_before_the_answer(writes: Writes, tool: str) -> None:
    async with writes.opened(ASK) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)"))
        result, order = await writes.of(service.invoke(tool, {"name": "a"}))
    assert result.error is not None
    assert result.error.code == "suspended"
    question = ["append asked", "sync ledger"]
    synced = ["append run", "sync journal", "close journal"]
    if tool == "put":
        assert order == [*question, "create journal", "journal state", *synced]
    else:
        asked = [*question, "journal ask", "flush journal"]
        assert order == [*BEGUN, "append call", *asked, "journal state", "append result", *synced]


async def test_an_approval_is_used_up_before_the_effect(writes: Writes, tool: str) -> None:
    async with writes.opened(ASK) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)"))
        waiting = (await service.invoke(tool, {"name": "a"})).error
        assert waiting is not None
        service.approvals.answer(waiting.details["approval"], "once", "a test")
        result, order = await writes.of(service.resume(waiting.details["run"]))
    assert result.ok
    resumed = ["journal state", "flush journal"]
    if tool == "put":
        begun = ["append approval_used", "journal enter", "journal begin", "append call", "sync ledger"]
        assert order == [*resumed, *begun, *EFFECT, "journal state", "append run", "close journal"]
    else:
        begun = ["append approval_used", "journal begin", "append call", "append call", "sync ledger"]
        assert order == [*resumed, *begun, *EFFECT, *CLOSED]


async def test_an_approval_of_a_read_is_used_up_with_its_decision(writes: Writes) -> None:
    async with writes.opened({"tools": {"count": {"requires_approval_in_modes": ["NORMAL"]}}}) as service:
        waiting = (await service.invoke("count")).error
        assert waiting is not None
        service.approvals.answer(waiting.details["approval"], "once", "a test")
        result, order = await writes.of(service.resume(waiting.details["run"]))
    assert result.ok
    assert order.index("append call") < order.index("effect of count")


async def test_an_answer_in_the_call_is_on_the_disk_before_the_effect(writes: Writes, place: Place) -> None:
    async with pointed(place, writes.points, governance=ASK, ask=lambda question: _yes()) as service:
        result, order = await writes.of(service.invoke("put", {"name": "a"}))
    assert result.ok
    question = ["append asked", "sync ledger", "append answered", "sync ledger"]
    assert order == [*question, "append approval_used", *BY_HAND]


async def _yes() -> str:
    return "once"


def failing(*names: str) -> Callable[[int, str, bool], None]:
    def at(number: int, reached: str, before: bool) -> None:
        if before and reached in names:
            raise Failure("io_error", "the disk failed")

    return at


@pytest.mark.parametrize("broken", ["the log's sync", "the journal's begin", "the entry call"])
async def test_without_a_record_there_is_no_effect(place: Place, broken: str) -> None:
    async with pointed(place, Points()) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)"))
    async with pointed(place, Points(failing(broken))) as service:
        result = await service.invoke("program", {"name": "a"})
    assert result.error is not None
    assert result.error.code == ("unknown_outcome" if "journal" in broken else "governance_unavailable")
    assert place.done == []


async def test_a_result_that_is_not_on_the_disk_is_not_used(place: Place) -> None:
    async with pointed(place, Points()) as service:
        await service.define(PROGRAM.replace("CALLS", "tools.put(name=name)\n    tools.put(name='then')"))
    async with pointed(place, Points(failing("the journal's sync"))) as service:
        result = await service.invoke("program", {"name": "a"})
    assert result.error is not None
    assert result.error.code == "unknown_outcome"
    assert place.done == ["a"]


async def test_what_was_pushed_before_a_failed_transaction_is_written_later(place: Place) -> None:
    appended: list[str] = []

    def at(number: int, reached: str, before: bool) -> None:
        if before and reached == "the entry call":
            appended.append(reached)
            if len(appended) == 3:
                raise Failure("io_error", "the disk failed once")

    caught = "tools.count()\n    try:\n        tools.put(name=name)\n    except ToolError as e:\n        return e.code"
    async with pointed(place, Points(at), observed=False) as service:
        await service.define(PROGRAM.replace("CALLS", caught))
        appended.clear()
        result = await service.invoke("program", {"name": "a"})
        tools = [entry.data["tool"] for entry in await service.records(["call"])]
    assert result.value() == "governance_unavailable"
    assert tools == ["program", "count"]


@pytest.mark.parametrize("observed", [True, False])
async def test_a_read_that_is_not_recorded_gives_no_result(place: Place, observed: bool) -> None:
    # With an observer, the decision is written before the call; without one, at the end.
    async with pointed(place, Points(failing("the entry call")), observed=observed) as service:
        result = await service.invoke("count")
    assert result.error is not None
    assert (result.error.code, result.output) == ("governance_unavailable", None)


async def test_an_observer_is_told_of_a_refusal_that_is_not_recorded(place: Place) -> None:
    points = Points(failing("the entry call", "the entry denied"))
    async with pointed(place, points) as service:
        result = await service.invoke("count")
    assert not result.ok
    tellings = [name for name in points.names if "telling" in name]
    assert tellings == ["before the telling of a beginning", "before the telling of an end"]
