"""The pipeline looks up, validates, authorizes, executes and records each request. Every request gets one result."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools import CallContext, ToolService, primitive
from albert_tools.engine.authority.projections import Projections
from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.model import threads
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.protocols import Summary
from albert_tools.engine.model.result import ToolInvocation
from albert_tools.engine.model.threads import running_on
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.sandbox.worker import boundary_values
from albert_tools.store.record.record import Record
from albert_tools.telemetry.counters import Counters
from albert_tools.testing import registry, scratch_workspace
from tests.engine.conftest import Deeper
from tests.helpers.children import PATIENCE
from tests.helpers.effort import examples
from tests.helpers.gate import GATE, until, until_async
from tests.helpers.versions import version_of

CATCH = "try:\n        {call}\n    except ToolError as e:\n        return [e.code, e.tool, e.message, e.retryable]"


def catching(call: str) -> str:
    return CATCH.format(call=call)


# Look up


@pytest.mark.parametrize(
    ("name", "version", "code", "message"),
    [
        ("read_fil", None, "unknown_tool", "no tool named 'read_fil'; did you mean 'read_file'?"),
        ("", None, "unknown_tool", "no tool named ''"),
        ("../../etc", None, "unknown_tool", "no tool named '../../etc'"),
        ("\0", None, "unknown_tool", "no tool named '\\x00'"),
        ("x" * 100_000, None, "unknown_tool", "no tool named '" + "x" * 299 + "…'"),
        ("nothing", "0" * 64, "unknown_tool", None),
        ("read_file", "old", "unknown_tool", "read_file is a primitive and has no version 'old'"),
        (None, None, "invalid_arguments", "the name of a tool must be a string, not NoneType"),
        (["t"], None, "invalid_arguments", "the name of a tool must be a string, not list"),
        ("read_file", 3, "invalid_arguments", "the version of a tool must be a string, not int"),
    ],
)
def test_unknown_tools_and_versions(
    bench: Any, failed: Any, name: Any, version: Any, code: str, message: str | None
) -> None:
    for options in ({}, {"dedupe_key": f"{name}{version}"}):
        error = failed(bench.service.invoke(name, {}, version=version, **options))
        assert error.code == code
        assert message is None or error.message == message


def test_calling_a_version(bench: Any) -> None:
    bench.define("return 1", "v")
    first = bench.service.describe("v").definition.version
    bench.define("return 2", "v")
    assert bench.service.invoke("v", version=first).value() == 1
    assert bench.service.invoke("v", version=first).version == first
    assert bench.service.describe("v", first).source.endswith("return 1\n")
    look = bench.service.describe("look").definition.version
    assert bench.service.invoke("look", version=look).value() == "door"
    assert bench.service.describe("look", look).definition.name == "look"


# Validate


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ([], ["expected an object, the arguments by name; got list"]),
        ("text", ["expected an object, the arguments by name; got str"]),
        (0, ["expected an object, the arguments by name; got int"]),
        ({"at": {"a": [1, float("nan")]}}, ["at.a[1]: the float nan can't be an argument: JSON has no such number"]),
        ({"at": {1}}, ["at: a set can't be an argument: sorted(…) makes a list of it"]),
        (
            {"at": b""},
            ["at: a bytes can't be an argument: decode it: value.decode(), or base64.b64encode(value).decode()"],
        ),
        ({"at": 2**64}, ["at: an int beyond 64 bits can't be an argument: convert it with str(…)"]),
        ({"at": "\ud800"}, ["at: text with a lone surrogate can't be an argument: it is not valid Unicode"]),
        ({1: 2}, ["the key 1 can't be an argument: keys are strings: convert them with str(…)"]),
        ({"at": "x" * (105 * 1024 * 1024)}, ["the argument is larger than 109,051,904 bytes"]),
        ({"at": 1, "too": 2}, ["at: expected str, got int 1", "too: unknown name"]),
    ],
)
def test_invalid_arguments(bench: Any, failed: Any, arguments: Any, messages: list[str]) -> None:
    assert [v["message"] for v in bench.service.validate("look", arguments)] == messages
    error = failed(bench.service.invoke("look", arguments))
    assert error.code == "invalid_arguments"
    assert error.message == "look: " + "; ".join(messages)
    # If only one value is invalid, the result has its message.
    whole = 'call the tool as look(at: str = "door") -> str'
    assert error.hint == ("look takes at: str" if all(m.startswith("at") for m in messages) else whole)
    assert [v["message"] for v in error.details["violations"]] == messages
    assert bench.done == []


def test_deep_and_shared_arguments(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_values, "MAX_NODES", 20_000)  # counting to a million takes long
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert "nests deeper than 200 levels" in bench.error("look", at=deep).message
    many: Any = 1
    for _ in range(40):
        many = [many, many]
    assert "has more than 20,000 values" in bench.error("look", at=many).message


def test_a_function_gets_its_own_copy(bench: Any) -> None:
    mine = [1]
    assert bench.value("grow", items=mine) == [[1, 0], [0]]
    assert bench.value("grow", items=mine) == [[1, 0], [0]]
    assert mine == [1]


class Hostile(Mapping[str, Any]):
    """Arguments that raise an exception when they are read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        return iter(["at"])

    def __len__(self) -> int:
        return 1


# Authorize


def test_an_error_during_authorization_denies_the_call(bench: Any, failed: Any) -> None:
    error = failed(bench.service.invoke("look", Hostile()))
    assert (error.code, error.rule) == ("governance_unavailable", "fault")
    assert error.message == "the call can't be judged, so it is denied: RuntimeError: no"
    assert error.hint == "this is a fault of the service or of its configuration, not of the tool"
    assert bench.done == []


class BrokenStore:
    """A store that raises an exception other than `Failure`."""

    def load(self, name: str, version: str | None = None) -> Any:
        raise MemoryError

    def list(self) -> list[Summary]:
        return []


def pipeline(
    work: Any, record: Record, rules: Any = None, clock: Any = time.monotonic, store: Any = None
) -> tuple[Pipeline, ServiceContext]:
    async def none(*_: Any) -> Any:
        raise AssertionError("no program runs here")

    store = store or BrokenStore()
    made = Pipeline(registry(), store, none, none, clock)
    return made, ServiceContext(work, RulesSource(rules or Governance(), None), projections=Projections(record, store))


def test_an_error_of_the_store_denies_the_call(tmp_path: Path) -> None:
    with scratch_workspace() as scratch, Record(tmp_path) as record:
        made, around = pipeline(scratch.workspace, record)
        result = asyncio.run(made.invoke(ToolInvocation("t", {}), around))
        assert result.error is not None
        assert (result.error.code, result.error.message) == (
            "governance_unavailable",
            "the call can't be judged, so it is denied: MemoryError",
        )


class Yielding:
    """A check that is never executed, because its call only makes a generator."""

    def __call__(self, *_: Any) -> Any:
        yield


@pytest.mark.parametrize("option", ["deny", "refuse"])
def test_a_check_that_is_not_executed_denies_the_call(make_bench: Any, option: str) -> None:
    @primitive(effects=["read"], **{option: Yielding()})
    def checked() -> None:
        """Fail: nobody may come here."""
        raise AssertionError

    error = make_bench(primitives=[checked]).service.invoke("checked").error
    assert error.denied
    assert f"`{option}` of checked must return None, not generator" in error.message


def test_unusable_rules_deny_every_call(tmp_path: Path) -> None:
    with scratch_workspace() as scratch, Record(tmp_path) as record:
        made, around = pipeline(scratch.workspace, record, rules=object())
        result = asyncio.run(made.invoke(ToolInvocation("list_directory", {}), around))
        assert result.error is not None
        assert result.error.code == "governance_unavailable"
        assert "can't be judged, so it is denied" in result.error.message


class FakeClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def test_a_caller_without_time_left(tmp_path: Path) -> None:
    clock = FakeClock()

    class Slow(BrokenStore):
        def load(self, name: str, version: str | None = None) -> Any:
            clock.advance(1000)
            catalog = registry()
            return version_of(check_or_raise('def t() -> int:\n    """One."""\n    return 1\n', catalog))

    with scratch_workspace() as scratch, Record(tmp_path) as record:
        made, around = pipeline(scratch.workspace, record, clock=clock, store=Slow())
        result = asyncio.run(made.invoke(ToolInvocation("t", {}), around))
        assert result.error is not None
        assert (result.error.code, result.error.message) == ("run_limit", "no time was left for t")
        assert result.seconds == 1000
        made, around = pipeline(scratch.workspace, record, clock=lambda: clock.advance(100) or clock())  # type: ignore[func-returns-value]
        result = asyncio.run(made.invoke(ToolInvocation("list_directory", {}), around))
        assert result.error is None
        made, around = pipeline(scratch.workspace, record, clock=lambda: clock.advance(700) or clock())  # type: ignore[func-returns-value]
        result = asyncio.run(made.invoke(ToolInvocation("list_directory", {}), around))
        assert result.error is not None
        assert (result.error.code, result.error.message) == ("run_limit", "no time was left for list_directory")


def test_a_repeated_denial_does_not_grow_its_traceback(make_bench: Any) -> None:
    bench = make_bench(governance={"nonsense": 1})
    kept = bench.service.service.governance
    before = kept.__traceback__
    errors = [bench.error("look") for _ in range(3)]
    assert len({id(e) for e in errors}) == 3
    assert len({e.message for e in errors}) == 1
    assert kept.__traceback__ is before


def test_nested_calls_are_authorized_like_direct_ones(make_bench: Any) -> None:
    bench = make_bench(governance={"deny": ["look", "inner"]})
    bench.define("return 1", "inner")
    for name in ("look", "inner", "secret"):
        bench.define(catching(f"tools.{name}()"))
        code, tool, message, retryable = bench.value("t")
        assert (code, tool, retryable) == ("permission_denied", name, False)
        direct = bench.error(name)
        assert (direct.code, direct.message) == (code, message)
    bench.define(catching("tools.look(at=int('3'))"))
    # Invalid arguments are reported before the denial. Neither call has an effect.
    assert bench.value("t")[0] in ("invalid_arguments", "permission_denied")
    assert bench.done == []


def test_gated_primitives(make_bench: Any) -> None:
    bench = make_bench()
    error = bench.error("secret")
    assert (error.code, error.rule, error.denied) == ("permission_denied", "gated", True)
    assert error.hint == "the owner can add `allow: [secret]` to governance.yaml (`albert doctor` shows the path)"
    with bench.again(governance={"allow": ["secret"]}) as allowed:
        assert allowed.invoke("secret").value() == "xyzzy"
    with bench.again(governance={"allow": ["secret"], "deny": ["secret"]}) as denied:
        assert denied.invoke("secret").error.rule == "deny"  # type: ignore[union-attr]


def test_depth_is_limited_at_run_time(bench: Any, one: Any) -> None:
    inner = bench.service.service
    bench.define("return 0", "d1")
    for i in range(2, 10):
        checked = check_or_raise(one(f"return tools.d{i - 1}() + 1", f"d{i}"), Deeper(inner))
        inner.store.save(version_of(checked))
    assert bench.value("d8") == 7
    error = bench.error("d9")
    assert (error.code, error.tool) == ("depth_limit", "d8")
    assert error.message == "saved tools call each other more than 8 levels deep"


def waiting_for(going_on: threading.Event) -> Any:
    """Make a primitive that doesn't end in its time if it is told to wait."""

    @primitive(timeout=0.2)
    def stubborn(forever: bool) -> int:
        """Return 1, perhaps later."""
        if forever:
            assert going_on.wait(PATIENCE)
        return 1

    return stubborn


def test_a_thread_that_exceeds_its_time_is_counted(make_bench: Any) -> None:
    going_on = threading.Event()
    stubborn = waiting_for(going_on)
    counters = Counters()
    bench = make_bench(primitives=[stubborn], telemetry=counters)
    assert bench.value("stubborn", forever=False) == 1
    assert counters.snapshot()["running_on"] == {}
    assert bench.error("stubborn", forever=True).code == "timeout"
    assert counters.snapshot()["running_on"] == {"stubborn": 1}
    going_on.set()
    until(lambda: running_on() == {})


def test_a_session_whose_threads_run_on_leaves_threads_for_others(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_LEFT_OF_CLIENT", 2)
    going_on = threading.Event()
    stubborn = waiting_for(going_on)
    bench = make_bench(primitives=[stubborn], governance={"allow": ["stubborn"]})
    one = bench.service.open_session("one")[1]
    within_it = bench.service.open_session("within it", within=one)[1]
    other = bench.service.open_session("other")[1]
    for token in (one, within_it):
        assert bench.service.invoke("stubborn", {"forever": True}, session=token).error.code == "timeout"
    for token in (one, within_it):
        error = bench.service.invoke("stubborn", {"forever": False}, session=token).error
        assert error.message.endswith("still run after their time, so stubborn did not begin")
    for token in (other, None):
        assert bench.service.invoke("stubborn", {"forever": False}, session=token).value() == 1
    going_on.set()
    until(lambda: running_on() == {})
    assert bench.service.invoke("stubborn", {"forever": False}, session=one).value() == 1


def test_a_primitive_knows_its_place_in_the_trace(make_bench: Any) -> None:
    @primitive(effects=["read"])
    def place(context: CallContext) -> str:
        """Return the traceparent."""
        return context.trace

    bench = make_bench(primitives=[place])
    bench.define("return tools.place()")
    given = f"00-{'a1' * 16}-{'b2' * 8}-00"
    for name in ("place", "t"):
        found = bench.service.invoke(name, trace=given).value()
        # The call is a span of its own. That the caller does not sample is passed on.
        assert (found.startswith(f"00-{'a1' * 16}-"), found.endswith("-00"), "b2" * 8 in found) == (True, True, False)
    result = bench.service.invoke("place")
    assert result.value().split("-")[1:3] == [result.trace_id, result.span_id]


def test_a_call_that_was_not_checked_is_denied(bench: Any, one: Any) -> None:
    from msgspec.structs import replace

    inner = bench.service.service
    version = version_of(check_or_raise(one(catching("tools.look()"), "unpinned"), inner.registry))
    inner.store.save(replace(version, calls=(), version="").named())
    assert bench.value("unpinned")[:3] == ["permission_denied", "look", "unpinned was not checked to call 'look'"]
    assert bench.done == []


# Outdated


def test_a_callee_that_can_not_be_loaded(make_bench: Any) -> None:
    bench = make_bench()
    bench.define("return 1", "inner")
    bench.define("return tools.inner()", "outer")
    entry = next((bench.home / "tools").rglob("inner.json"))
    entry.write_text("{}")
    assert bench.error("outer").code == "outdated"
    listed = {t.name: t for t in bench.service.list()}
    assert "inner can't be loaded" in str(listed["outer"].outdated)
    assert listed["inner"].problem
    assert bench.service.describe("outer").outdated == listed["outer"].outdated
    assert bench.error("inner").code == "damaged"


# Execute


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("key", "odd failed because of a fault in its code: KeyError: 'a'"),
        ("bare", "odd failed because of a fault in its code: OSError"),
        ("timeout", "odd failed because of a fault in its code: TimeoutError: connect"),
        ("stop", "odd failed because of a fault in its code: RuntimeError: it raised StopIteration"),
        ("exit", "odd failed because of a fault in its code: RuntimeError: it called sys.exit(3)"),
        ("key pressed", "odd failed because of a fault in its code: RuntimeError: it raised KeyboardInterrupt"),
        ("end", "odd failed because of a fault in its code: RuntimeError: it raised GeneratorExit"),
        ("base group", "odd failed because of a fault in its code: RuntimeError: it raised BaseExceptionGroup"),
        ("half a pair", "odd failed because of a fault in its code: ValueError: \\ud800"),
        ("group", "odd failed because of a fault in its code: ExceptionGroup: many (1 sub-exception)"),
        ("unspeakable", "odd failed because of a fault in its code: Unspeakable"),
        ("long", "odd failed because of a fault in its code: ValueError: " + "x" * 299 + "…"),
    ],
)
def test_errors_of_primitives(bench: Any, kind: str, message: str) -> None:
    error = bench.error("odd", kind=kind)
    assert (error.code, error.message, error.tool) == ("internal_error", message, "odd")
    assert error.hint == "the fault is in the tool, not in the call; report it to the tool's author"
    bench.define(catching(f'tools.odd(kind="{kind}")'))
    assert bench.value("t") == ["internal_error", "odd", message, False]


@pytest.mark.parametrize("kind", ["exit", "cancelled", "timeout", "key pressed", "end", "else"])
def test_errors_of_async_primitives(bench: Any, kind: str) -> None:
    error = bench.error("odd_too", kind=kind)
    assert error.code == "internal_error"
    assert error.message.startswith("odd_too failed because of a fault in its code: ")
    assert bench.value("look") == "door"


def test_a_failure_of_a_primitive_keeps_its_details(bench: Any) -> None:
    error = bench.error("odd", kind="failure")
    assert (error.code, error.message, error.tool, error.retryable, error.retry_after_ms) == (
        "network_error", "nobody answers", "odd", True, 50,
    )  # fmt: skip
    bench.define(catching('tools.odd(kind="failure")'))
    assert bench.value("t") == ["network_error", "odd", "nobody answers", True]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("set", "the output holds a set"),
        ("nan", "the output holds the float nan"),
        ("bytes", "the output holds a bytes"),
        ("big", "the output holds an int beyond 64 bits"),
        ("keys", "the output holds the key 1"),
        ("surrogate", "the output holds text with a lone surrogate"),
        ("deep", "the output nests deeper than 200 levels"),
        ("huge", "the output is larger than 109,051,904 bytes"),
    ],
)
def test_outputs_that_are_not_json(bench: Any, kind: str, said: str) -> None:
    error = bench.error("odd", kind=kind)
    assert error.code == "invalid_result"
    said = said.replace("the output", "the output of odd")
    assert error.message.startswith(said)
    bench.define(catching(f'tools.odd(kind="{kind}")'))
    code, tool, message, _ = bench.value("t")
    assert (code, tool) == ("invalid_result", "odd")
    assert message.startswith(said)


@pytest.mark.parametrize("name", ["slow", "stuck"])
def test_timeouts(bench: Any, name: str) -> None:
    error = bench.error(name, seconds=0.6)
    seconds = "0.3" if name == "slow" else "0.2"
    assert (error.code, error.message) == ("timeout", f"{name} did not answer within {seconds} s")
    assert error.hint == "ask for less in one call; it may have had an effect"
    assert bench.value(name, seconds=0.0) == "done"
    bench.define(catching(f"tools.{name}(seconds=0.6)"))
    assert bench.value("t")[0] == "timeout"


def test_the_context_of_a_primitive(make_bench: Any) -> None:
    rules = {"limits": {"call_seconds": 5.0}, "primitives": {"budget": {"colour": "red"}}}
    bench = make_bench(governance=rules)
    told = bench.value("budget")
    assert told["settings"] == {"colour": "red"}
    assert 4 < told["left"] <= 5
    bench.define("return tools.budget()", above="@tool(timeout=2)\n")
    assert 0 < bench.value("t")["left"] <= 2


def test_effects_are_in_order_also_after_a_failure(bench: Any) -> None:
    bench.define('tools.note(text="a")\n    tools.write_file(path="b", content="b")\n    raise ToolError("later")')
    result = bench.service.invoke("t")
    assert [(e.tool, e.facts["path"]) for e in result.effects] == [("note", "note.txt"), ("write_file", "b")]
    assert result.error is not None


def test_failures_of_saved_tools(bench: Any) -> None:
    bench.define('x = [1]\n    raise ToolError("no more", code="not_found", retryable=True)', "inner")
    bench.define(catching("tools.inner()"))
    assert bench.value("t") == ["not_found", "inner", "no more", True]
    bench.define("return tools.inner()", "outer")
    error = bench.error("outer")
    # The error has the line and the tools on the way to it.
    assert (error.code, error.message, error.line) == ("not_found", "no more", 4)
    assert error.as_dict()["source"] == {"tool": "inner", "line": 4}
    assert error.details["trail"] == [{"tool": "outer", "line": 3}, {"tool": "inner", "line": 4}]
    bench.define("return [][0]", "broken")
    bench.define(catching("tools.broken()"))
    assert bench.value("t") == ["exception", "broken", "IndexError: list index out of range", False]
    bench.define('raise ToolError("x", code="sandbox_violation")', "liar")
    assert bench.error("liar").code == "tool_error"


def test_an_uncaught_failure_is_reported_once(bench: Any) -> None:
    bench.define("return [][0]", "inner")
    bench.define("return tools.inner()", "outer")
    assert bench.error("outer").message == "IndexError: list index out of range"


def test_a_result_must_fit_its_type(bench: Any) -> None:
    bench.service.define('import json\n\ndef wrong() -> int:\n    """Do it."""\n    return json.loads(\'"s"\')\n')
    error = bench.error("wrong")
    assert (error.code, error.tool) == ("invalid_result", "wrong")
    assert error.message == 'the output of wrong doesn\'t fit its result type: expected int, got str "s"'
    bench.define(catching("tools.wrong()"))
    assert bench.value("t")[:2] == ["invalid_result", "wrong"]
    assert (
        bench.error("untrue").message == 'the output of untrue doesn\'t fit its result type: expected int, got str "no"'
    )


def test_budgets_span_nested_runs(make_bench: Any) -> None:
    bench = make_bench(governance={"limits": {"calls": 10, "log_bytes": 100}})
    bench.define("for i in range(4):\n        tools.look()", "four")
    bench.define("tools.four()\n    tools.four()\n    tools.four()", "twelve")
    error = bench.error("twelve")
    assert error.code == "call_limit"
    assert len(bench.done) == 8
    bench.define("return [tools.four(), tools.four()]", "eight")
    assert bench.service.invoke("eight").calls == 10
    again = "        try:\n            tools.four()\n        except ToolError as e:\n            out.append(e.code)\n"
    bench.define("out = []\n    for i in range(9):\n" + again + "    return out", "stubborn")
    bench.done.clear()
    # A program that catches the error gets it again at the next call.
    assert bench.value("stubborn") == ["call_limit"] * 7
    assert len(bench.done) == 8
    bench.define('print("x" * 59)', "talk")
    bench.define("tools.talk()\n    tools.talk()", "talks")
    result = bench.service.invoke("talks")
    assert result.error.code == "log_limit"
    assert result.log == "x" * 59 + "\n"


ENDLESS = {
    "a list that grows": "for x in xs:\n            xs.append(x)",
    "an alias": "ys = xs\n        for i, x in enumerate(xs):\n            ys += [x]",
    "a helper": "for x in xs:\n            _add(xs, x)",
    "a nested function": "def add():\n            xs.append(1)\n        for x in xs:\n            add()",
    "a comprehension": "return len([_add(xs, x) for x in xs])",
    "a generator in a name": "ys = (x for x in xs)\n        for y in ys:\n            _add(xs, y)",
    "while": "while xs:\n            n = 1",
    "a while in parallel": "return parallel(_spin() for x in [1, 2])",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_without_end_ends_the_run(bench: Any, body: str) -> None:
    above = "def _add(xs, x):\n    xs.append(x)\n\n\ndef _spin():\n    n = 1\n    while n:\n        n += 1\n    return n\n\n\n"
    handlers = "except Exception:\n        return 1\n    except:\n        return 2\n    finally:\n        print(3)"
    handled = f"try:\n        {body}\n    {handlers}"
    bench.define(f"xs = [1]\n    {handled}\n    return xs", "endless", above=above)
    result = bench.service.invoke("endless")
    assert (result.error.code, result.log) == ("loop_limit", "")
    assert result.error.message == "stopped after 1,000,000 rounds of its loops"


def test_the_rounds_of_all_loops_of_a_run_count_together(bench: Any) -> None:
    counted = "n = 0\n    while n < {0}:\n        n += 1\n"
    once = counted + "    xs = [0]\n    for x in xs:\n        if x < {0}:\n            xs.append(x + 1)\n"
    bench.define(once.format(500_000) + "    return len(xs)", "enough")
    assert bench.value("enough") == 500_001
    bench.define(once.format(500_001) + "    return len(xs)", "more")
    assert bench.service.invoke("more").error.code == "loop_limit"
    # Rounds over what a list had before the loop are free.
    bench.define(
        "n, xs, ys = 0, [0] * 1_500_000, []\n    for x in xs:\n        n += 1\n        ys += [x][:0]\n    return n",
        "free",
    )
    assert bench.value("free") == 1_500_000


def test_prints(bench: Any) -> None:
    told: list[tuple[str, str]] = []
    bench.define('print("inside", 1)', "inner")
    bench.define('print("a")\n    tools.inner()\n    print("ü", end="")')
    result = bench.service.invoke("t", log=lambda tool, text: told.append((tool, text)))
    assert told == [("t", "a\n"), ("inner", "inside 1\n"), ("t", "ü")]
    assert result.log == "a\ninside 1\nü"


def test_watch_gets_each_call_when_it_begins(bench: Any) -> None:
    bench.define("return tools.look()", "inner")
    bench.define("return [tools.inner(), tools.look()]")
    told: list[str] = []
    service = bench.service.service
    run = service.invoke("t", watch=told.append)
    asyncio.run_coroutine_threadsafe(run, bench.service._loop).result()
    assert told == ["inner", "look", "look"]


def test_a_listener_that_fails_does_not_end_the_run(bench: Any) -> None:
    bench.define('print("a")\n    return parallel(tools.look(at=x) for x in ["a", "b"])')
    heard: list[Any] = []
    loop = bench.service._loop
    loop.call_soon_threadsafe(loop.set_exception_handler, lambda _, context: heard.append(context["exception"]))

    def fail(*_: str) -> None:
        raise BrokenPipeError("gone")

    run = bench.service.service.invoke("t", log=fail, watch=fail)
    assert asyncio.run_coroutine_threadsafe(run, loop).result(5).value() == ["a", "b"]
    loop.call_soon_threadsafe(loop.set_exception_handler, None)
    assert [type(e) for e in heard] == [BrokenPipeError] * 3


def test_many_at_once(bench: Any) -> None:
    bench.define("return [n, tools.look(at=str(n))]", "echo", "n: int")
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda n: bench.value("echo", n=n), range(60)))
    assert found == [[n, str(n)] for n in range(60)]


def test_a_cancelled_request_stops_its_program(bench: Any) -> None:
    bench.define('tools.look()\n    tools.hold()\n    tools.launch(name="late")')

    async def main() -> None:
        task = asyncio.create_task(bench.service.service.invoke("t"))
        await until_async(lambda: GATE.begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run_coroutine_threadsafe(main(), bench.service._loop).result()
    GATE.open()
    assert GATE.cancelled == 1
    assert bench.value("look", at="well") == "well"
    assert bench.done == ["look door", "look well"]


# Dedupe keys


@pytest.fixture
def asked(bench: Any, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The runs that have asked for their dedupe key."""
    keys = bench.service.service._context.record.dedupe_keys
    begin = keys.begin
    found: set[str] = set()

    def begin_and_note(key: str, digest: str, run: str, session: str | None) -> Any:
        known = begin(key, digest, run, session)
        found.add(run)
        return known

    monkeypatch.setattr(keys, "begin", begin_and_note)
    return found


def test_a_repeat_at_the_same_time_waits_for_the_first(bench: Any, asked: set[str]) -> None:
    bench.define('tools.hold()\n    return tools.launch(name="once")')
    with ThreadPoolExecutor(5) as threads:
        requests = [threads.submit(bench.service.invoke, "t", dedupe_key="same") for _ in range(5)]
        until(lambda: len(asked) == 5)
        GATE.open()
        found = [request.result() for request in requests]
    assert {r.value() for r in found} == {"once"}
    assert sorted(r.repeated for r in found) == [False, True, True, True, True]
    assert bench.done == ["once"]


def test_the_repeat_of_a_cancelled_call_is_cancelled(bench: Any, asked: set[str]) -> None:
    bench.define('tools.hold()\n    return tools.launch(name="x")')

    async def main() -> Any:
        service: ToolService = bench.service.service
        first = asyncio.create_task(service.invoke("t", dedupe_key="off"))
        await until_async(lambda: GATE.begun)
        second = asyncio.create_task(service.invoke("t", dedupe_key="off", request_id="r"))
        await until_async(lambda: len(asked) == 2)
        first.cancel()
        waited = await second
        again = await service.invoke("t", dedupe_key="off")
        return waited, again

    waited, again = asyncio.run_coroutine_threadsafe(main(), bench.service._loop).result()
    assert (waited.error.code, waited.repeated, waited.request_id) == ("cancelled", True, "r")
    assert waited.error.message == "the run was cancelled; nothing had been changed"
    assert (again.error.code, again.repeated) == ("cancelled", True)


def test_cancelling_a_repeat_leaves_the_first_call_alone(bench: Any, asked: set[str]) -> None:
    bench.define('tools.hold()\n    return tools.launch(name="x")')

    async def main() -> Any:
        service: ToolService = bench.service.service
        first = asyncio.create_task(service.invoke("t", dedupe_key="stays"))
        await until_async(lambda: GATE.begun)
        second = asyncio.create_task(service.invoke("t", dedupe_key="stays"))
        await until_async(lambda: len(asked) == 2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        GATE.open()
        return await first

    assert asyncio.run_coroutine_threadsafe(main(), bench.service._loop).result().value() == "x"


def test_a_key_conflicts_if_the_arguments_differ(bench: Any) -> None:
    def ask(arguments: Any, **options: Any) -> Any:
        return bench.service.invoke("look", arguments, dedupe_key="c", **options)

    assert ask({"at": "a"}).value() == "a"
    error = ask({"at": "b"}, request_id="r").error
    assert (error.code, error.hint) == ("dedupe_conflict", "use a new key for a new call")
    token = bench.service.within(lambda s: s.open_session("test"))[1]
    assert ask({"at": "b"}, session=token).value() == "b"
    assert bench.service.invoke("launch", {"name": "a"}, dedupe_key="of launch").value() == "a"
    # A refused call frees its key.
    refusals = [bench.service.invoke("look", {"at": {1}}, dedupe_key="odd") for _ in range(2)]
    assert [r.error.code for r in refusals] == ["invalid_arguments"] * 2
    assert [r.repeated for r in refusals] == [False, False]


def test_old_keys_are_forgotten(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert_tools.store.record.repeats.MAX_KEYS", 3)
    for key in "abcde":
        bench.service.invoke("look", dedupe_key=key)
    assert [bench.service.invoke("look", dedupe_key=key).repeated for key in "ea"] == [True, False]


# Any input


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3),
    max_leaves=6,
)
NAMES = ["look", "grow", "odd", "read_file", "list_directory", "echo", "nothing"]


@examples(40)
@given(
    name=st.sampled_from(NAMES) | JSON,
    arguments=st.dictionaries(st.sampled_from(["at", "items", "path", "n", "kind"]), JSON, max_size=3) | JSON,
    key=st.sampled_from([None, "k"]),
)
def test_one_result_with_a_known_code(bench: Any, name: Any, arguments: Any, key: str | None) -> None:
    result = bench.service.invoke(name, arguments, dedupe_key=key)
    assert result.ok or (result.error.code in CODES and result.error.message)
    json.dumps(result.as_dict())


def test_large_arguments_of_a_session_let_others_go_first(tmp_path: Path) -> None:
    order: list[str] = []

    @primitive(effects=["read"])
    async def total(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    async def call(service: ToolService, name: str, token: str, count: int) -> None:
        assert (await service.invoke("total", {"numbers": [1] * count}, session=token)).ok
        order.append(name)

    async def all_() -> None:
        (tmp_path / "work" / ".albert").mkdir(parents=True)
        opened = ToolService.open(
            home=tmp_path / "home", workspace=tmp_path / "work", primitives=[total], governance={"allow": ["total"]}
        )
        async with opened as service:
            greedy, other = (service.open_session(name)[1] for name in ("greedy", "other"))
            await asyncio.gather(
                *(call(service, f"greedy {n}", greedy, 300_000) for n in range(5)), call(service, "other", other, 1)
            )

    asyncio.run(all_())
    # As many requests of one session may run at once; but their arguments are read one after the other.
    assert order.index("other") < 3
