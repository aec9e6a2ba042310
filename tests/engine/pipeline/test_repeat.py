"""Dedupe keys. A call under a key is made once, also across processes. A call that was not made frees its key."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from albert_tools import CallContext, SyncToolService, primitive
from albert_tools.engine.authority.idempotency import key_of
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.session_budget import Budget
from tests.helpers.children import Child, Report
from tests.helpers.gate import until

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}


@primitive(effects=["write"])
async def add(context: CallContext, name: str = "count", seconds: float = 0.1) -> int:
    """Add one to what a file counts."""
    path = context.workspace.root / name
    count = int(path.read_text() or 0) + 1 if path.exists() else 1
    await asyncio.sleep(seconds)
    context.workspace.replace(name, str(count).encode())
    return count


@pytest.fixture
def make(make_bench: Any) -> Any:
    def made(rules: Any = None, **options: Any) -> Any:
        return make_bench(governance=rules or {}, primitives=[add], **options)

    return made


def recorded(bench: Any, kind: str) -> list[dict[str, Any]]:
    ledger = bench.service.service.ledger
    return [e.data for e in ledger.entries({kind})]


def opened(bench: Any, **options: Any) -> str:
    return str(bench.service.within(lambda s: s.open_session("client", **options))[1])


def answered(bench: Any, choice: str = "once") -> None:
    (question,) = bench.service.within(lambda s: s.approvals.all(("open",)))
    bench.service.within(lambda s: s.approvals.answer(question.id, choice, "ada"))


def test_many_at_once_in_two_services(make: Any) -> None:
    bench = make()
    with bench.again() as other, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: (bench.service, other)[n % 2].invoke("add", dedupe_key="k"), range(8)))
    assert [r.value() for r in found] == [1] * 8
    assert sorted(r.repeated for r in found) == [False] + [True] * 7
    assert len({r.run_id for r in found}) == 1
    first = next(r for r in found if not r.repeated)
    told = recorded(bench, "repeated")
    # Each request is recorded. The first is recorded with its result, the others with the run whose result they got.
    assert [(e["of"], e["tool"], e["ok"], e["result_hash"]) for e in told] == [
        (first.run_id, "add", True, first.result_hash)
    ] * 7
    assert len({e["call"] for e in told} | {first.run_id}) == 8
    assert len(recorded(bench, "call")) == len(recorded(bench, "result")) == 1


def test_the_entry_of_a_repeat(make: Any) -> None:
    bench = make()
    token = opened(bench, tools={"add"}, budget=Budget(calls=1))
    for number in range(2):
        result = bench.service.invoke(
            "add", {"name": "no/folder"}, session=token, dedupe_key="k", request_id=f"r{number}"
        )
        assert (result.error.code, result.repeated) == ("not_found", number == 1)
    (entry,) = recorded(bench, "repeated")
    (session,) = bench.service.within(lambda s: s.sessions.all())
    assert (entry["ok"], entry["code"], entry["session"]) == (False, "not_found", session.id)
    assert entry["request_id"] == "r1"
    # It has its own place in a trace, not that of the first request.
    assert entry["trace"].split("-")[1:3] == [result.trace_id, result.span_id]
    assert session.used["calls"] == 1


def adding(report: Report, home: Path, work: Path, go: Path, seconds: float) -> None:
    """Call `add` under the key as soon as the file `go` exists."""
    with SyncToolService.open(home=home, workspace=work, primitives=[add], governance={}) as service:
        report("ready")
        until(go.exists)
        report(service.invoke("add", {"seconds": seconds}, dedupe_key="k").value())


def processes(bench: Any, count: int, seconds: float) -> list[Child]:
    """Start processes that call `add` at the same time."""
    go = bench.home.with_name("go")
    children = [Child(adding, bench.home, bench.work, go, seconds) for _ in range(count)]
    assert [child.hear() for child in children] == ["ready"] * count
    go.touch()
    return children


def test_two_processes(make: Any) -> None:
    bench = make()
    both = processes(bench, 2, 0.1)
    assert [child.hear() for child in both] == [1, 1]
    assert (bench.work / "count").read_text() == "1"


def test_the_process_that_made_the_call_has_died(make: Any) -> None:
    bench = make()
    (other,) = processes(bench, 1, 30.0)
    until(lambda: recorded(bench, "repeat"))
    other.kill()
    for _ in range(2):
        error = bench.service.invoke("add", {"seconds": 30.0}, dedupe_key="k").error
        assert (error.code, error.retryable) == ("unknown_outcome", False)
    assert not (bench.work / "count").exists()
    assert bench.service.invoke("add", {"seconds": 0.0}, dedupe_key="new").ok


def test_other_arguments_conflict_and_other_sessions_do_not(make: Any) -> None:
    bench = make()
    tokens = [None, opened(bench), opened(bench)]
    for token in tokens:
        assert not bench.service.invoke("add", dedupe_key="k", session=token).repeated
        assert bench.service.invoke("add", {"seconds": 0.1}, dedupe_key="k", session=token).repeated
        error = bench.service.invoke("add", {"name": "other"}, dedupe_key="k", session=token).error
        assert (error.code, error.category) == ("dedupe_conflict", "validation")
    assert (bench.work / "count").read_text() == "3"
    for key in ("", None):
        assert not bench.service.invoke("add", dedupe_key=key).repeated
    assert not bench.service.invoke("list_directory", dedupe_key="k").repeated


def test_replacing_the_tool_does_not_change_the_request(make: Any) -> None:
    bench = make()
    bench.define("return tools.add()")
    first = bench.service.invoke("t", dedupe_key="k")
    bench.define("return tools.add() + 100")
    again = bench.service.invoke("t", dedupe_key="k")
    assert (again.repeated, again.value(), again.run_id) == (True, 1, first.run_id)
    # The same call with a version is another request.
    assert bench.service.invoke("t", dedupe_key="k", version=first.version).error.code == "dedupe_conflict"


def test_a_refused_call_drops_its_key(make: Any) -> None:
    bench = make({"tools": {"add": {"allowed_in_modes": ["ALERT"]}}})
    assert bench.service.invoke("add", dedupe_key="k").error.denied
    bench.service.service.modes.switch("ALERT", "ada", "")
    result = bench.service.invoke("add", dedupe_key="k")
    assert (result.repeated, result.value()) == (False, 1)


def test_a_denial_after_an_effect_keeps_the_key(make: Any) -> None:
    bench = make({"deny": ["write_file"]})
    bench.define('tools.add()\n    tools.write_file(path="a", content="")\n    return 1')
    for repeated in (False, True, True):
        result = bench.service.invoke("t", dedupe_key="k")
        assert (result.repeated, result.error.code, result.error.rule) == (repeated, "permission_denied", "deny")
    assert (bench.work / "count").read_text() == "1"


def test_a_failure_is_returned_again(make: Any) -> None:
    bench = make()
    bench.define('tools.add()\n    raise ToolError("no")')
    told = [bench.service.invoke("t", dedupe_key="k") for _ in range(2)]
    assert [(r.repeated, r.error.code, r.error.message) for r in told] == [
        (False, "tool_error", told[0].error.message),
        (True, "tool_error", told[0].error.message),
    ]
    assert (bench.work / "count").read_text() == "1"


def test_a_repeat_is_neither_charged_nor_asked_about(make: Any) -> None:
    asked = []

    async def ask(question: Any) -> bool:
        asked.append(question)
        return True

    rules = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"], "rate_limit_per_hour": 1}}}
    bench = make(rules, ask=ask)
    token = opened(bench, budget=Budget(calls=1))
    given = {"path": "a", "content": "x"}
    told = [bench.service.invoke("write_file", given, session=token, dedupe_key="k") for _ in range(3)]
    assert [(r.ok, r.repeated) for r in told] == [(True, False), (True, True), (True, True)]
    assert len(asked) == 1
    (session,) = bench.service.within(lambda s: s.sessions.all())
    assert session.used["calls"] == 1
    # The session is still checked: after its end the result is not returned.
    bench.service.within(lambda s: s.sessions.end(session.id))
    assert bench.service.invoke("write_file", given, session=token, dedupe_key="k").error.rule == "session.ended"


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("name", ["write_file", "t"])
def test_a_repeat_of_a_suspended_call(make: Any, in_session: bool, name: str) -> None:
    bench = make(ASKS)
    bench.define("return tools.write_file(path=path, content=content)", "t", "path: str, content: str")
    token = opened(bench) if in_session else None
    given = {"path": "a", "content": "x"}

    def call() -> Any:
        return bench.service.invoke(name, given, session=token, dedupe_key="k")

    first, second = call(), call()
    assert (first.error.code, second.error.code, second.repeated) == ("suspended", "suspended", True)
    assert second.run_id == first.run_id
    answered(bench)
    with bench.again() as other:
        result = other.resume(first.run_id)
    assert result.value()["path"] == "a"
    again = call()
    assert (again.repeated, again.value(), again.run_id) == (True, result.value(), first.run_id)


def test_a_key_is_not_stored(make: Any) -> None:
    bench = make()
    key = "my key is hunter2, honestly"
    token = opened(bench)
    for arguments in ({}, {}, {"name": "other"}):
        told = bench.service.invoke("add", arguments, session=token, dedupe_key=key)
        assert key not in repr(told)
    files = [p.read_bytes() for p in bench.home.rglob("*") if p.is_file()]
    assert not any(b"hunter2" in content for content in files)


def test_waiting_for_the_first_call_times_out(make: Any) -> None:
    bench = make()
    token = opened(bench, budget=Budget(wall_seconds=0.3))
    (session,) = bench.service.within(lambda s: s.sessions.all())
    digest = hashlib.sha256(canonical(["add", None, {"name": "count", "seconds": 0.1}])).hexdigest()
    with bench.again() as other:
        # A living process has begun the call.
        other.service._context.record.dedupe_keys.begin(key_of(session.id, "k"), digest, "0" * 16)
        error = bench.service.invoke("add", session=token, dedupe_key="k").error
        assert (error.code, error.retryable, error.details) == ("timeout", True, {"run": "0" * 16})
    assert not (bench.work / "count").exists()
