"""Calls in sessions: leases, budgets under concurrency, and the secrecy of tokens."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from albert_tools import CallContext, Failure, primitive
from albert_tools.engine.model.session_budget import Budget
from albert_tools.engine.model.telemetry import Ended, Span, Started

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}


@primitive(effects=["write"], timeout=5)
async def pour(
    name: str, size: int, context: CallContext, files: int = 1, seconds: float = 0.0, fail: bool = False
) -> int:
    """Write some bytes without reporting an effect."""
    for n in range(files):
        await asyncio.sleep(seconds)
        context.workspace.replace(f"{name}{n}", b"x" * size)
    if fail:
        raise Failure("io_error", "it went wrong behind it")
    return size


@primitive(effects=["read"])
async def rest(seconds: float = 0.0) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "rested"


class Watch:
    """Records all notices."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def started(self, span: Span, call: Started) -> None:
        self.told.append(("started", span, call))

    def ended(self, span: Span, call: Ended) -> None:
        self.told.append(("ended", span, call))


@pytest.fixture
def make(make_bench: Any) -> Any:
    def made(rules: Any = None, **options: Any) -> Any:
        return make_bench(governance=rules or {}, primitives=[pour, rest], **options)

    return made


def opened(bench: Any, **options: Any) -> tuple[Any, str]:
    found: tuple[Any, str] = bench.service.within(lambda s: s.open_session("client", **options))
    return found


def code(result: Any) -> Any:
    return result.error and (result.error.rule or result.error.code)


def used(bench: Any, session: Any) -> dict[str, float]:
    (found,) = [s for s in bench.service.within(lambda s: s.sessions.all()) if s.id == session.id]
    return dict(found.used)


def test_tokens_of_sessions(make: Any) -> None:
    bench = make()
    session, token = opened(bench, tools=["rest"])
    assert bench.service.invoke("rest", session=token).ok
    # Only the token identifies a session.
    for wrong in (session.id, "x", f"run:{session.id}", token[:-1], token.upper()):
        assert code(bench.service.invoke("rest", session=wrong)) == "session.unknown"
    assert code(bench.service.invoke("list_directory", session=token)) == "lease.tools"
    bench.service.within(lambda s: s.sessions.end(session.id))
    assert code(bench.service.invoke("rest", session=token)) == "session.ended"


def composites(bench: Any) -> None:
    bench.define('return tools.pour(name="a", size=1)', "part")
    bench.define("return [tools.rest(), tools.part()]", "deploy")
    bench.define("return tools.deploy()", "around")
    bench.define("return tools.rest()", "other")


def test_a_lease_covers_the_calls_of_a_composite_that_it_names(make: Any) -> None:
    bench = make()
    composites(bench)
    _, token = opened(bench, tools=["deploy"])
    assert bench.service.invoke("deploy", session=token).value() == ["rested", 1]
    # Directly, or through a composite that the lease does not name, nothing of it is covered.
    for name in ("rest", "pour", "part", "around", "other"):
        arguments = {"name": "b", "size": 1} if name == "pour" else {}
        assert code(bench.service.invoke(name, arguments, session=token)) == "lease.tools", name
    assert [path.name for path in bench.work.glob("[ab]*")] == ["a0"]
    # An application may name every tool by itself instead.
    assert bench.service.invoke("other", session=opened(bench, tools=["other", "rest"])[1]).ok


def test_a_lent_composite_gives_only_its_result(make: Any) -> None:
    bench = make()
    (bench.work / "salaries.csv").write_text("Ann 17000")
    bench.define('return tools.read_bytes(path="salaries.csv")["size_bytes"]', "total")
    token = opened(bench, tools=["total", "read_result"])[1]
    result = bench.service.invoke("total", session=token)
    assert result.output == 9
    assert [e.as_dict() for e in result.effects] == [
        {"kind": "read", "tool": "read_bytes", "path": "salaries.csv", "size_bytes": 9}
    ]
    handle = bench.service.invoke("total").effects[0].facts["handle"]
    (step,) = bench.service.show_run(result.run_id, session=token).steps
    assert {*step} == {"step", "tool", "version", "state", "began", "at", "effects"}
    assert step["effects"] == [{"kind": "read", "tool": "read_bytes"}]
    (listed,) = bench.service.list_runs(session=token)
    assert [*listed.steps] == [step]
    assert handle in str(bench.service.show_run(result.run_id).steps)


def test_a_lease_covers_the_version_that_the_composite_had(make: Any) -> None:
    bench = make()
    _, early = opened(bench, tools=["deploy", "around"])
    composites(bench)
    _, token = opened(bench, tools=["deploy"])
    leased = bench.service.describe("deploy").definition.version
    # Its pinned version of `part` is still covered after `part` has changed.
    bench.define("return tools.rest(seconds=0)", "part")
    assert bench.service.invoke("deploy", session=token).ok
    bench.define("return tools.part()", "deploy")
    error = bench.service.invoke("deploy", session=token).error
    assert (error.rule, error.tool) == ("lease.tools", "part")
    assert error.hint == "deploy has changed since the session was opened; a new session covers its calls again"
    assert bench.service.invoke("deploy", version=leased, session=token).ok
    assert bench.service.invoke("deploy", session=opened(bench, tools=["deploy"])[1]).ok
    # A name in a lease covers nothing if the composite was defined later, also not through another composite.
    for name in ("deploy", "around"):
        assert code(bench.service.invoke(name, session=early)) == "lease.tools"
    # A session within another covers what both cover.
    assert (
        code(bench.service.invoke("deploy", session=opened(bench, tools=["deploy"], within=token)[1])) == "lease.tools"
    )
    bench.define("return [tools.rest(), tools.part()]", "deploy")
    assert code(bench.service.invoke("deploy", session=opened(bench, within=token)[1])) == "lease.tools"


def test_rules_and_budget_apply_to_the_calls_that_a_lease_covers(make: Any) -> None:
    bench = make({"deny": ["pour"]})
    composites(bench)
    assert code(bench.service.invoke("deploy", session=opened(bench, tools=["deploy"])[1])) == "deny"
    _, token = opened(bench, tools=["deploy"], budget=Budget(calls=1))
    assert code(bench.service.invoke("deploy", session=token)) == "lease.budget.calls"


def test_a_run_ends_with_its_session(make: Any) -> None:
    bench = make()
    bench.define("for _ in range(50):\n        tools.rest(seconds=0.05)\n    return 1")
    above, above_token = opened(bench)
    _, token = opened(bench, within=above_token)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(bench.service.invoke, "t", session=token)
        while not bench.service.service._pipeline.active:
            pass
        bench.service.within(lambda s: s.sessions.end(above.id))
        assert code(running.result()) == "session.ended"


def test_waiting_for_an_answer_does_not_stop_the_clock_of_the_lease(make: Any) -> None:
    async def ask(question: Any) -> bool:
        bench.service.service.sessions._clock = lambda: session.lease.expires + 1
        return True

    bench = make(ASKS, ask=ask)
    session, token = opened(bench)
    assert code(bench.service.invoke("write_file", {"path": "a", "content": ""}, session=token)) == "session.expired"
    assert not (bench.work / "a").exists()


def test_a_lease_that_was_prolonged_while_a_person_decided(make: Any) -> None:
    async def ask(question: Any) -> bool:
        service, expires = bench.service.service, session.lease.expires
        service.sessions._clock = lambda: expires + 1
        service.ledger.append("session_times", {"session": session.id, "expires": expires + 9, "until": expires + 99})
        return True

    bench = make(ASKS, ask=ask)
    session, token = opened(bench, seconds=3600)
    assert bench.service.invoke("write_file", {"path": "a", "content": ""}, session=token).ok


def test_a_working_directory(make: Any) -> None:
    bench = make()
    (bench.work / "src").mkdir()
    _, token = opened(bench, cwd="src")
    assert (
        bench.service.invoke("write_file", {"path": "a", "content": "x"}, session=token).effects[0].facts["path"]
        == "src/a"
    )
    assert (bench.work / "src" / "a").read_text() == "x"
    assert code(bench.service.invoke("write_file", {"path": "../b", "content": "x"}, session=token)) == "path_traversal"
    for wrong in ("..", "/etc", "nothing"):
        with pytest.raises(Failure):
            opened(bench, cwd=wrong)
    # A folder that was replaced by a link is refused.
    (bench.work / "src" / "a").unlink()
    (bench.work / "src").rmdir()
    (bench.work / "src").symlink_to("/tmp")
    assert bench.service.invoke("write_file", {"path": "a", "content": "x"}, session=token).error.denied


# Budgets


def test_the_call_budget_is_exact_for_concurrent_calls(make: Any) -> None:
    bench = make()
    session, token = opened(bench, budget=Budget(calls=20))
    inner = opened(bench, within=token, budget=Budget(calls=15))[1]
    without_budget = opened(bench, within=token)[1]
    bench.define("return [tools.rest() for _ in range(4)]")
    with bench.again() as other, ThreadPoolExecutor(8) as threads:

        def call(n: int) -> Any:
            service = (bench.service, other)[n % 2]
            return service.invoke("t" if n % 5 == 0 else "rest", session=(token, inner, without_budget)[n % 3])

        found = list(threads.map(call, range(40)))
    assert used(bench, session)["calls"] == 20
    assert {code(r) for r in found} >= {None, "lease.budget.calls"}


def test_the_byte_budget_is_never_exceeded(make: Any) -> None:
    bench = make()
    session, token = opened(bench, budget=Budget(bytes_written=100))
    inner = opened(bench, within=token)[1]
    with bench.again() as other, ThreadPoolExecutor(8) as threads:

        def call(n: int) -> Any:
            given = {"name": f"f{n}-", "size": 30, "seconds": 0.01}
            return (bench.service, other)[n % 2].invoke("pour", given, session=(token, inner)[n // 2 % 2])

        found = list(threads.map(call, range(12)))
    assert sum(r.ok for r in found) == 3
    assert {code(r) for r in found} == {None, "lease.budget.bytes_written"}
    assert sum(p.stat().st_size for p in bench.work.glob("f*")) == 90
    assert used(bench, session)["bytes_written"] == 90


@pytest.mark.parametrize(("files", "fail", "left"), [(4, False, 3), (2, True, 2), (3, False, 3)])
def test_all_writes_of_one_call_count(make: Any, files: int, fail: bool, left: int) -> None:
    bench = make()
    session, token = opened(bench, budget=Budget(bytes_written=100))
    given = {"name": "f", "size": 30, "files": files, "fail": fail}
    result = bench.service.invoke("pour", given, session=token)
    assert result.ok is (files == 3)
    # Bytes without a recorded effect count too, and bytes that were written before a failure.
    assert used(bench, session)["bytes_written"] == 30 * left == sum(p.stat().st_size for p in bench.work.glob("f*"))


def test_a_thread_can_not_write_after_its_call_ended(make: Any, make_bench: Any) -> None:
    import threading

    go = threading.Event()
    came: list[BaseException] = []

    @primitive(effects=["write"], timeout=0.1)
    def late(context: CallContext) -> None:
        """Write after the call has ended."""
        go.wait(5)
        try:
            context.workspace.replace("late", b"x")
        except Failure as failure:
            came.append(failure)
            raise

    bench = make_bench(primitives=[late])
    assert bench.error("late").code == "timeout"
    go.set()
    for _ in range(100):
        if came:
            break
        go.wait(0.01)
        threading.Event().wait(0.02)
    assert [f.code for f in came] == ["cancelled"]  # type: ignore[attr-defined]
    assert not (bench.work / "late").exists()


def test_a_short_lease_with_short_limits(make: Any) -> None:
    bench = make({"limits": {"run_seconds": 20}})
    assert bench.service.invoke("rest", session=opened(bench, seconds=5)[1]).ok


# Suspended runs


def test_a_request_that_waits_for_an_answer_is_charged_for_its_time(make: Any) -> None:
    bench = make(ASKS)
    session, token = opened(bench)
    result = bench.service.invoke("write_file", {"path": "a", "content": ""}, session=token)
    assert result.error.code == "suspended"
    assert list(used(bench, session)) == ["bytes_stored", "wall_seconds"]


def test_a_resumed_run_covers_the_calls_of_its_composite(make: Any) -> None:
    bench = make({"tools": {"pour": {"requires_approval_in_modes": ["NORMAL"]}}})
    composites(bench)
    waits = bench.service.invoke("deploy", session=opened(bench, tools=["deploy"])[1])
    bench.service.within(lambda s: s.approvals.answer(waits.error.details["approval"], "once", "ann"))
    assert bench.service.resume(waits.run_id).value() == ["rested", 1]


def test_the_calls_of_a_queued_run_are_charged(make: Any) -> None:
    bench = make()
    bench.define("return [tools.rest(), tools.rest()]")
    session, token = opened(bench)
    run = bench.service.enqueue("t", session=token)
    before = used(bench, session).get("calls", 0)
    assert bench.service.resume(run).ok
    assert used(bench, session)["calls"] == before + 3
    assert used(bench, session)["wall_seconds"] > 0


async def test_a_session_that_ends_while_a_request_waits_for_its_turn_gets_no_recorded_result(make: Any) -> None:
    bench = make()
    session, token = opened(bench)
    assert bench.service.invoke("rest", session=token, dedupe_key="k").ok

    async def race(service: Any) -> Any:
        others = [asyncio.create_task(service.invoke("rest", {"seconds": 1.0}, session=token)) for _ in range(16)]
        await asyncio.sleep(0.2)
        again = asyncio.create_task(service.invoke("rest", session=token, dedupe_key="k"))
        await asyncio.sleep(0.2)
        service.sessions.end(session.id)
        await asyncio.gather(*others)
        return await again

    assert code(await bench.service.arun(race)) == "session.ended"


def test_a_request_that_waits_counts_once(make: Any) -> None:
    bench = make({**ASKS, "loops": {"requests_per_hour": 3}})
    service, (_, token) = bench.service, opened(bench)
    asked = [service.invoke("write_file", {"path": "a", "content": "x"}, session=token) for _ in range(4)]
    assert [each.error.code for each in asked] == ["suspended"] * 3 + ["rate_limited"]
    service.within(lambda s: s.approvals.answer(asked[0].error.details["approval"], "once", "ann"))
    assert service.resume(asked[0].run_id).ok


def test_a_run_that_waits_on_keeps_its_session(make: Any) -> None:
    bench = make(ASKS)
    token = opened(bench)[1]
    waiting = bench.service.invoke("write_file", {"path": "a", "content": "x"}, session=token)
    sessions = len(bench.service.within(lambda s: s.list_sessions()))
    assert [bench.service.resume(waiting.run_id).error.code for _ in range(3)] == ["suspended"] * 3
    assert len(bench.service.within(lambda s: s.list_sessions())) == sessions


async def test_requests_for_a_queue_at_the_same_time_keep_to_the_limit(make: Any) -> None:
    bench = make({"loops": {"requests_per_hour": 5}})
    bench.define("return 1")
    token = opened(bench)[1]

    async def queue(service: Any) -> Any:
        requests = (service.enqueue("t", session=token) for _ in range(20))
        return await asyncio.gather(*requests, return_exceptions=True)

    ids = await bench.service.arun(queue)
    assert sorted(getattr(each, "rule", "queued") for each in ids) == ["loops.requests_per_hour"] * 15 + ["queued"] * 5
    assert len(bench.service.within(lambda s: s.runs.list(100))) == 5


def test_a_suspended_run_can_continue_after_the_lease(make: Any) -> None:
    bench = make(ASKS)
    bench.define('return [tools.write_file(path=str(n), content="x")["path"] for n in range(2)]')
    session, token = opened(bench, seconds=3600, budget=Budget(calls=5, bytes_written=3))
    waiting = bench.service.invoke("t", session=token)
    assert waiting.error.code == "suspended"
    bench.service.service.sessions._clock = lambda: session.lease.expires + 60
    assert code(bench.service.invoke("rest", session=token)) == "session.expired"
    for _ in range(2):
        (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
        assert question.session == session.id
        bench.service.within(lambda s, q=question: s.approvals.answer(q.id, "once", "ada"))
        result = bench.service.resume(waiting.run_id)
    # The run used the rest of the lease.
    assert result.value() == ["0", "1"]
    assert used(bench, session)["bytes_written"] == 2


def test_a_suspended_run_ends_with_a_revoked_session(make: Any) -> None:
    bench = make(ASKS)
    above, above_token = opened(bench)
    _, token = opened(bench, within=above_token)
    waiting = bench.service.invoke("write_file", {"path": "a", "content": "x"}, session=token)
    (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
    bench.service.within(lambda s: s.approvals.answer(question.id, "once", "ada"))
    bench.service.within(lambda s: s.sessions.end(above.id))
    assert code(bench.service.resume(waiting.run_id)) == "session.ended"
    assert not (bench.work / "a").exists()


def test_a_resumed_run_has_the_rest_of_the_lease(make: Any) -> None:
    bench = make(ASKS)
    bench.define('tools.rest()\n    tools.write_file(path="a", content="x")\n    return tools.rest()')
    session, token = opened(bench, budget=Budget(calls=3))
    waiting = bench.service.invoke("t", session=token)
    (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
    bench.service.within(lambda s: s.approvals.answer(question.id, "once", "ada"))
    # Two calls are used. Resuming costs no call, the write is the third call, and a fourth call is not allowed.
    assert code(bench.service.resume(waiting.run_id)) == "lease.budget.calls"
    assert used(bench, session)["calls"] == 3
    assert (bench.work / "a").exists()


# Limits


def test_rate_limits_count_calls_of_programs_and_of_suspended_runs(make: Any) -> None:
    rules = {"tools": {"rest": {"rate_limit_per_hour": 4}, "write_file": {**ASKS["tools"]["write_file"]}}}
    bench = make(rules)
    bench.define("return [tools.rest() for _ in range(3)]")
    bench.define('tools.write_file(path="a", content="")\n    return [tools.rest() for _ in range(3)]', "waits")
    token = opened(bench)[1]
    assert bench.service.invoke("t", session=token).ok
    waiting = bench.service.invoke("waits", session=token)
    (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
    bench.service.within(lambda s: s.approvals.answer(question.id, "once", "ada"))
    # The resumed run counts in the same window, although it has its own grant.
    error = bench.service.resume(waiting.run_id).error
    assert (error.code, error.rule) == ("rate_limited", "rate_limit.tool:rest")
    with bench.again() as other:
        inner = opened(bench, within=token)[1]
        assert other.invoke("rest", session=inner).error.code == "rate_limited"
        assert [other.invoke("rest").ok, other.invoke("rest", session=opened(bench)[1]).ok] == [True, True]


LIMITED = """
import sys
from albert_tools import SyncToolService
home, work = sys.argv[1:]
rules = {"tools": {"list_directory": {"rate_limit_per_hour": 7}}}
with SyncToolService.open(home=home, workspace=work, governance=rules) as service:
    print(sum(service.invoke("list_directory").ok for _ in range(6)))
"""


def test_rate_limits_apply_across_processes(make: Any) -> None:
    bench = make()
    command = [sys.executable, "-c", LIMITED, str(bench.home), str(bench.work)]
    racers = [subprocess.Popen(command, stdout=-1, text=True) for _ in range(2)]
    assert sum(int(racer.communicate(timeout=60)[0]) for racer in racers) == 7


# The token


def test_the_token_is_not_stored(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    bench = make(ASKS, telemetry=watch)
    caplog.set_level(logging.DEBUG)
    bench.define('tools.rest()\n    return tools.write_file(path="a", content="x")["path"]')
    session, token = opened(bench)
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    results = [
        bench.service.invoke("t", session=token, dedupe_key="k"),
        bench.service.invoke("rest", session=wrong),
        bench.service.invoke("nothing", session=token),
        bench.service.invoke("rest", {"x": 1}, session=token),
        bench.service.invoke("read_file", {"path": "a", "encoding": f"my {token}!"}, session=token),
    ]
    bench.service.within(lambda s: s.sessions.end(session.id))
    results.append(bench.service.invoke("rest", session=token))
    results.pop(
        4
    )  # A caller who writes the token into an argument gets it back, and so do observers. The records never contain it.
    watch.told = [t for t in watch.told if "encoding" not in repr(t)]
    told = "".join([str(r.as_dict()) for r in results] + [repr(r) for r in results] + [repr(watch.told), caplog.text])
    for secret in (token, wrong):
        assert secret not in told
        files = [p.read_bytes() for p in bench.home.rglob("*") if p.is_file()]
        assert not any(secret.encode() in content for content in files)
