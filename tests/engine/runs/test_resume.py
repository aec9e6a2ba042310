"""A resumed run is the same request. It has the same session, dedupe key, approvals, charges and result."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolResult
from albert_tools.engine.authority.approvals import Approvals
from albert_tools.engine.model.session_budget import Budget
from albert_tools.engine.service import ToolService
from tests.helpers.children import Child, Report
from tests.helpers.kill_points import Place, Points, pointed

ASKS = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}

MANY = '''
def many(names: list[str]) -> int:
    """Put many."""
    for name in names:
        tools.put(name=name)
    return len(names)
'''
OUTER = '''
def outer(names: list[str]) -> int:
    """Put many, then one more."""
    tools.many(names=names)
    tools.put(name="last")
    return len(names) + 1
'''
DENIED = '''
def denied_late(name: str) -> str:
    """Put one, then try what is off."""
    tools.put(name=name)
    tools.bash(command="ls")
    return name
'''


def opened(place: Place, governance: Any = None, *sources: str, **options: Any) -> SyncToolService:
    service = SyncToolService.open(**place.options(governance, **options))
    for source in sources or (MANY,):
        service.define(source)
    return service


def code(result: ToolResult) -> str | None:
    return result.error.code if result.error is not None else None


def answer(service: SyncToolService, result: ToolResult, choice: str) -> None:
    assert code(result) == "suspended"
    assert result.error is not None
    question = result.error.details["approval"]
    service.within(lambda s: s.approvals.answer(question, choice, "a person"))  # type: ignore[arg-type]


def soon(service: SyncToolService, *arguments: Any, **options: Any) -> ToolResult:
    """Return the result of a call. The call must end in time."""
    found: list[ToolResult] = []
    thread = threading.Thread(target=lambda: found.append(service.invoke(*arguments, **options)), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it waits for what never comes"
    return found[0]


def dying(base: Path, kill: str, governance: Any, work: Callable[[ToolService], Awaitable[ToolResult]]) -> None:
    """Call `work` with a service, and die at a point."""

    def at(number: int, name: str, before: bool) -> None:
        if points.names[-1] == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    points = Points(at)

    async def main() -> None:
        async with pointed(Place(base), points, governance=governance) as service:
            await work(service)

    asyncio.run(main())


def invoked_and_killed(report: Report, base: Path, kill: str, governance: Any, *call: Any) -> None:
    name, arguments, options = call
    dying(base, kill, governance, lambda service: service.invoke(name, arguments, **options))


def resumed_and_killed(report: Report, base: Path, kill: str, governance: Any, run: str) -> None:
    dying(base, kill, governance, lambda service: service.resume(run))


def killed(place: Place, kill: str, name: str, arguments: Any, governance: Any = None, **options: Any) -> None:
    child = Child(invoked_and_killed, place.base, kill, governance, name, arguments, options)
    assert child.wait() == -signal.SIGKILL


def only_run(service: SyncToolService) -> str:
    (run,) = service.within(lambda s: s.runs.list())
    return run.id


def test_a_resumed_run_keeps_the_answers_keys_and_limits_of_its_session(place: Place) -> None:
    asks = {"tools": {"put": {**ASKS["tools"]["put"], "rate_limit_per_hour": 2}}}
    with opened(place, asks) as service:
        _, token = service.within(lambda s: s.open_session("c", budget=Budget(calls=3)))
        result = service.invoke("many", {"names": ["a", "b"]}, session=token, dedupe_key="k")
        run = result.run_id
        assert run is not None
        answer(service, result, "session")
        # Three calls in all. The program itself was charged before it was suspended, and is not charged again.
        result = service.resume(run)
        assert (result.error, place.done) == (None, ["a", "b"])
        assert service.within(lambda s: s.sessions.all())[-1].used["calls"] == 3
        # A repeat costs nothing, so the used budget has no effect on it.
        again = soon(service, "many", {"names": ["a", "b"]}, session=token, dedupe_key="k")
        assert (again.repeated, again.output) == (True, 2)
        # The effects of the run are charged to its session.
        _, wide = service.within(lambda s: s.open_session("c", within=None))
        result = service.invoke("many", {"names": ["c", "d", "e"]}, session=wide)
        answer(service, result, "session")
        assert result.run_id is not None
        result = service.resume(result.run_id)
        assert code(result) == "rate_limited"
        assert place.done == ["a", "b", "c", "d"]
        result = service.invoke("put", {"name": "f"}, session=wide)
        assert code(result) == "rate_limited"


def test_a_repeat_of_a_cancelled_run_is_cancelled(place: Place) -> None:
    with opened(place, ASKS) as service:
        result = service.invoke("many", {"names": ["a"]}, dedupe_key="k")
        run = result.run_id
        assert run is not None
        service.within(lambda s: s.runs.cancel(run, "a person"))
        again = soon(service, "many", {"names": ["a"]}, dedupe_key="k")
        assert again.error is not None
        assert (again.error.code, again.repeated, again.run_id) == ("cancelled", True, run)
        assert again.error.details == {"applied": 0, "unknown": []}
        assert place.done == []


def test_a_program_that_was_denied_after_an_effect_is_not_run_again(place: Place) -> None:
    with opened(place, {"deny": ["bash"]}, MANY, DENIED) as service:
        first, second = (service.invoke("denied_late", {"name": "a"}, dedupe_key="k") for _ in range(2))
        for result in (first, second):
            assert code(result) == "permission_denied"
        assert (first.repeated, second.repeated, place.done) == (False, True, ["a"])


def test_a_denial_drops_its_key(place: Place) -> None:
    with opened(place, {"deny": ["put"]}) as service:
        for _ in range(2):
            result = service.invoke("many", {"names": ["a"]}, dedupe_key="k")
            assert (code(result), result.repeated) == ("permission_denied", False)
    with opened(place) as service:
        assert service.invoke("many", {"names": ["a"]}, dedupe_key="k").value() == 1


@pytest.mark.parametrize("kill", ["before the effect of put", "after the effect of put"])
def test_an_interrupted_call_asks(place: Place, kill: str) -> None:
    killed(place, kill, "put", {"name": "a"}, dedupe_key="k")
    done = list(place.done)
    with opened(place) as service:
        result = soon(service, "put", {"name": "a"}, dedupe_key="k")
        assert code(result) == "unknown_outcome"
        run = only_run(service)
        result = service.resume(run)
        assert result.error is not None
        assert (result.error.rule, place.done) == ("interrupted", done)
        answer(service, result, "once")
        assert service.resume(run).value() == "a"
        assert place.done == [*done, "a"]
        again = soon(service, "put", {"name": "a"}, dedupe_key="k")
        assert (again.repeated, again.output, place.done) == (True, "a", [*done, "a"])


def test_an_unreturned_result_is_returned_and_the_call_is_not_made_again(place: Place) -> None:
    killed(place, "before the journal's state", "put", {"name": "a"}, dedupe_key="k")
    with opened(place) as service:
        assert service.resume(only_run(service)).value() == "a"
        again = soon(service, "put", {"name": "a"}, dedupe_key="k")
        assert (again.repeated, again.output, place.done) == (True, "a", ["a"])
        # Resuming the run again does nothing.
        assert service._wait(service.service.runs.replay(only_run(service))).value() == "a"
        assert place.done == ["a"]


def test_a_key_of_a_call_that_never_began_is_free(place: Place) -> None:
    killed(place, "before the entry repeat", "put", {"name": "a"}, dedupe_key="k")
    with opened(place) as service:
        result = soon(service, "put", {"name": "a"}, dedupe_key="k")
        assert (result.repeated, result.output, place.done) == (False, "a", ["a"])


def test_a_result_counts_without_an_entry_about_its_key(place: Place) -> None:
    killed(place, "after the journal's close", "put", {"name": "a"}, dedupe_key="k")
    with opened(place) as service:
        result = soon(service, "put", {"name": "a"}, dedupe_key="k")
        assert (result.repeated, result.output, place.done) == (True, "a", ["a"])


def test_a_lasting_answer_does_not_cover_an_interrupted_call(place: Place) -> None:
    with opened(place, ASKS) as service:
        result = service.invoke("many", {"names": ["a"]})
        answer(service, result, "always")
        assert result.run_id is not None
        service.resume(result.run_id).value()
    killed(place, "after the effect of put", "many", {"names": ["b"]}, ASKS)
    assert place.done == ["a", "b"]
    with opened(place, ASKS) as service:
        (run,) = (r.id for r in service.within(lambda s: s.runs.list()) if r.state == "interrupted")
        result = service.resume(run)
        assert result.error is not None
        assert (result.error.code, result.error.rule, place.done) == ("suspended", "interrupted", ["a", "b"])
        question = service.within(lambda s: s.approvals.all(("open",)))[0]
        assert question.choices == ("once", "no")
        answer(service, result, "no")
        result = service.resume(run)
        assert code(result) == "permission_denied"
        assert place.done == ["a", "b"]


def test_effects_of_called_tools_are_in_the_resumed_result(place: Place) -> None:
    with opened(place, {"tools": {"many": {"requires_approval_in_modes": ["NORMAL"]}}}, MANY, OUTER) as service:
        result = service.invoke("outer", {"names": ["a", "b"]})
        answer(service, result, "once")
        assert result.run_id is not None
        result = service.resume(result.run_id)
        assert result.value() == 3
    asks_last = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}
    with opened(place, asks_last, MANY, OUTER) as service:
        result = service.invoke("outer", {"names": ["c"]})
        answer(service, result, "once")
        assert result.run_id is not None
        result = service.resume(result.run_id)
        answer(service, result, "once")
        assert result.run_id is not None
        result = service.resume(result.run_id)
        assert result.value() == 2
        assert [e.facts["path"] for e in result.effects] == ["c", "last"]
        assert result.calls == 3
    assert place.done == ["a", "b", "last", "c", "last"]


def test_of_two_lasting_answers_one_applies_until_both_are_revoked(place: Place) -> None:
    with opened(place, ASKS) as service:
        # Both questions are open before the first answer.
        results = [service.invoke("many", {"names": [name]}) for name in "ab"]
        for result in results:
            answer(service, result, "always")
        first, second = (r.error.details["approval"] for r in results if r.error is not None)
        service.within(lambda s: s.approvals.revoke(second))
        assert service.invoke("many", {"names": ["c"]}).value() == 1
        loaded = service.within(lambda s: Approvals(s.ledger))  # type: ignore[arg-type]
        assert [a.id for a in loaded.all(("standing",))] == [first]
        service.within(lambda s: s.approvals.revoke(first))
        result = service.invoke("many", {"names": ["d"]})
        assert code(result) == "suspended"
        assert place.done == ["c"]


def test_a_short_session_with_short_runs_keeps_its_time(place: Place) -> None:
    with opened(place, {"limits": {"run_seconds": 60}}) as service:
        _, token = service.within(lambda s: s.open_session("c", seconds=30))
        assert service.invoke("many", {"names": ["a"]}, session=token).value() == 1


def test_a_no_leaves_the_outcome_unknown(place: Place) -> None:
    with opened(place):
        pass
    killed(place, "after the effect of put", "many", {"names": ["a"]}, dedupe_key="k")
    with opened(place) as service:
        run = only_run(service)
        answer(service, service.resume(run), "no")
        assert code(service.resume(run)) == "permission_denied"
        (step,) = service.within(lambda s: s.runs.show(run)).steps
        assert step["state"] == "unknown"
        again = soon(service, "many", {"names": ["a"]}, dedupe_key="k")
        assert (code(again), again.repeated, place.done) == ("permission_denied", True, ["a"])


def test_a_run_that_lost_its_key_is_not_resumed(place: Place) -> None:
    with opened(place):
        pass
    killed(place, "before the effect of put", "many", {"names": ["a"]}, dedupe_key="k")
    with opened(place) as service:
        run = only_run(service)
        # As if the process had died after the denial, before it recorded the end.
        repeats = service.service._context.record.dedupe_keys
        assert repeats is not None
        (entry,) = service.service.ledger.entries({"repeat"})  # type: ignore[union-attr]
        repeats.finish(entry.data["key"], run, "dropped")
        assert service.invoke("many", {"names": ["a"]}, dedupe_key="k").value() == 1
        assert code(service.resume(run)) == "dedupe_conflict"
        assert place.done == ["a"]


def test_an_unused_yes_does_not_answer_for_an_interrupted_call(place: Place) -> None:
    with opened(place, ASKS) as service:
        first, second = (service.invoke("many", {"names": [name]}) for name in "ab")
        answer(service, first, "once")
        # The lasting answer allows the call, so the answer to the first question is not used.
        answer(service, second, "always")
    child = Child(resumed_and_killed, place.base, "after the effect of put", ASKS, first.run_id)
    assert child.wait() == -signal.SIGKILL
    assert place.done == ["a"]
    with opened(place, ASKS) as service:
        assert first.run_id is not None
        result = service.resume(first.run_id)
        assert result.error is not None
        assert (result.error.code, result.error.rule, place.done) == ("suspended", "interrupted", ["a"])


PRINTS = [
    '''
def innermost(name: str) -> str:
    """Print."""
    print("innermost", name)
    return name
''',
    '''
def inner(name: str) -> str:
    """Print, let another tool print, and fail if told to."""
    print("before", name)
    tools.innermost(name=name)
    print("after", name)
    if name == "b":
        raise ToolError("b")
    return tools.put(name=name)
''',
    '''
def outer(names: list[str]) -> int:
    """Print before and after other tools."""
    for name in names:
        print("outer", name)
        try:
            tools.inner(name=name)
        except ToolError as e:
            print("failed", e.message)
    return len(names)
''',
]


def test_prints_of_called_tools_are_in_the_resumed_result(place: Place) -> None:
    names = ["a", "b", "c"]
    with opened(place, None, *PRINTS) as service:
        whole = service.invoke("outer", {"names": names})
        assert whole.ok
    asks_last = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}}
    heard: list[tuple[str, str]] = []
    with opened(place, asks_last, *PRINTS) as service:
        result = service.invoke("outer", {"names": names})
        answer(service, result, "once")
        assert result.run_id is not None
        # Both the failed and the successful call are in the journal before the last call asks.
        result = service.resume(result.run_id)
        answer(service, result, "once")
        result = service.resume(result.run_id or "", log=lambda tool, text: heard.append((tool, text)))
    assert result.value() == 3
    assert result.log == whole.log == "".join(text for _, text in heard)
    assert result.log.count("innermost") == 3
    assert ("inner", "before a\ninnermost a\nafter a\n") in heard
