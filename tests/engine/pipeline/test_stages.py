"""Every stage of the pipeline: the calls that it allows, denies or asks about, and the order of the stages.

Each row is a call on its own bench. A denial leaves one entry, `denied`, with its rule, and no effect. The decision of an
allowed call is in the ledger before its result. A call that asks becomes a suspended run. It has no effect before the answer,
and one effect after a yes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from albert_tools import Budget, CallContext, Failure, SyncToolService, primitive
from albert_tools.engine.check.checker import check_or_raise
from tests.engine.conftest import DONE, PRIMITIVES, Bench, Deeper, one
from tests.helpers.versions import version_of


@primitive(effects=["write"], paths={"path": "write"})
def mark(path: str, context: CallContext, size: int = 1) -> str:
    """Write a file of `size` bytes."""
    context.workspace.replace(path, b"x" * size)
    context.effect("write", path=path, size_bytes=size)
    DONE.append(path)
    return path


@primitive(effects=["network"], urls={"url": "method"})
def send(url: str, method: str = "GET") -> str:
    """Send something."""
    DONE.append(url)
    return url


@primitive(effects=["delete"])
def shred(name: str) -> str:
    """Delete something, so shipped rules ask."""
    DONE.append(name)
    return name


@primitive(effects=["write"], allowed_modes=["ALERT"])
def alarm() -> str:
    """A tool for ALERT only."""
    DONE.append("alarm")
    return "rung"


@primitive(effects=["read"], approval=True)
def confide() -> str:
    """Ask each time."""
    DONE.append("confide")
    return "whispered"


TOOLS = [*PRIMITIVES, mark, send, shred, alarm, confide]
READERS = {tool.name for tool in TOOLS if set(tool.definition.effects) <= {"read"}}
LAUNCH = ("launch", {"name": "a"})
SHIPPED = "shipped.categories"


@dataclass(frozen=True)
class Row:
    """A call, its circumstances and the expected decision: allow, deny or ask."""

    stage: str
    verdict: str
    call: tuple[str, dict[str, Any]] = LAUNCH
    rules: Any = None
    code: str = ""
    rule: str | None = None
    why: str | None = None
    mode: str = "NORMAL"
    #: Options of the service and of the call. Or a function that prepares the bench and returns the options of the call.
    service: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] | Callable[[Any], dict[str, Any]] = field(default_factory=dict)
    effects: int = 1

    def __str__(self) -> str:
        return f"{self.stage}-{self.verdict}-{self.rule or self.code or 'plain'}"


def deny(stage: str, code: str, rule: str | None = None, why: str | None = None, **more: Any) -> Row:
    return Row(stage, "deny", code=code, rule=rule, why=why, **{"effects": 0, **more})


def allow(stage: str, rule: str = f"{SHIPPED}.system_write.allowed_in_modes", **more: Any) -> Row:
    return Row(stage, "allow", rule=rule, why="allowed", **more)


def ask(stage: str, rule: str, why: str = "approval_required", **more: Any) -> Row:
    return Row(stage, "ask", code="suspended", rule=rule, why=why, **more)


def opened(**lease: Any) -> Callable[[Bench], dict[str, Any]]:
    """Open a session with that lease."""

    def prepare(bench: Bench) -> dict[str, Any]:
        return {"session": bench.service.within(lambda s: s.open_session("test", **lease))[1]}

    return prepare


def revoked(bench: Bench) -> dict[str, Any]:
    session, token = bench.service.within(lambda s: s.open_session("test"))
    bench.service.within(lambda s: s.sessions.end(session.id))
    return {"session": token}


def expired(bench: Bench) -> dict[str, Any]:
    options = opened(seconds=0.02)(bench)
    time.sleep(0.03)
    return options


def withdrawn(bench: Bench) -> dict[str, Any]:
    """Revoke the only version of a tool."""
    bench.define("return tools.launch(name='a')")
    version = bench.service.describe("t").definition.version
    bench.service.within(lambda s: s.reviews.revoke("t", version, "ann"))
    return {}


def elsewhere(bench: Bench) -> dict[str, Any]:
    return {"session": bench.service.within(lambda s: s.sessions.open("test", "/elsewhere"))[1]}


def before(arguments: dict[str, Any], **options: Any) -> Callable[[Bench], dict[str, Any]]:
    """Call the tool once with these arguments, before the tested call."""

    def prepare(bench: Bench) -> dict[str, Any]:
        assert bench.service.invoke("launch", arguments, **options).ok
        return options

    return prepare


def has_seen(**saw: str) -> Callable[[Bench], dict[str, Any]]:
    """Open a session that has seen this."""

    def prepare(bench: Bench) -> dict[str, Any]:
        session, token = bench.service.within(lambda s: s.open_session("test"))
        bench.service.within(lambda s: s.ledger.append("result", {"session": session.id, "saw": saw}))
        return {"session": token}

    return prepare


FAILING = ("read_file", {"path": "missing"})


def failing(times: int, options: Callable[[Bench], dict[str, Any]] = lambda bench: {}) -> Callable[..., dict[str, Any]]:
    """Make a call that fails this many times, before the tested call."""

    def prepare(bench: Bench) -> dict[str, Any]:
        found = options(bench)
        for _ in range(times):
            assert bench.service.invoke(*FAILING, **found).error.code == "not_found"
        return found

    return prepare


def of(tool: str, **section: Any) -> dict[str, Any]:
    return {"tools": {tool: section}}


NORMAL = ["NORMAL"]
SEND = ("send", {"url": "https://a.example/"})
EXAMPLES = of("send", allowed_hosts=["*.example"])
LONG = "k" * 257
ROWS = [
    # 1. Look up
    allow("look up"),
    deny("look up", "unknown_tool", "unknown_tool", "unknown_tool", call=("lunch", {"name": "a"})),
    # 2. Validate
    deny("validate", "invalid_arguments", options={"dedupe_key": LONG}),
    deny("validate", "invalid_arguments", call=("launch", {"name": 3, "more": 1})),
    deny(
        "validate", "permission_denied", "path_traversal", "outside_workspace",
        call=("write_file", {"path": "../a", "content": ""}),
    ),
    # 3. Session and lease
    allow("session", options=opened()),
    deny("session", "permission_denied", "session.unknown", "session", options={"session": "alb_" + "0" * 64}),
    deny("session", "permission_denied", "session.ended", "session", options=revoked),
    deny("session", "permission_denied", "session.expired", "session", options=expired),
    deny("session", "permission_denied", "session.workspace", "session", options=elsewhere),
    allow("lease", options=opened(tools=["launch"])),
    deny("lease", "permission_denied", "lease.tools", "lease", options=opened(tools=["look"])),
    # Repeats
    allow("repeat", options={"dedupe_key": "k"}),
    allow("repeat", options=before({"name": "a"}, dedupe_key=""), effects=2),
    deny("repeat", "dedupe_conflict", options=before({"name": "b"}, dedupe_key="k"), effects=1),
    # Budget: checked after rules and rate limits, and before a question
    allow("budget", options=opened(budget=Budget(calls=1, wall_seconds=60))),
    *(
        deny("budget", "budget_exceeded", f"lease.budget.{unit}", "budget", options=opened(budget=Budget(**{unit: 0})))
        for unit in ("calls", "wall_seconds", "bytes_written", "network_bytes", "model_tokens", "model_cost")
    ),
    # Workspace and rules
    deny(
        "workspace", "governance_unavailable", "governance_unavailable", "unavailable",
        service={"workspace": "/nowhere/at/all"},
    ),
    deny("rules", "governance_unavailable", "governance_unavailable", "unavailable", rules={"allowed": []}),
    # Modes
    ask("mode", f"{SHIPPED}.system_write.requires_approval_in_modes", mode="ALERT"),
    ask("mode", f"{SHIPPED}.system_write.requires_approval_in_modes", mode="DEGRADED"),
    deny("mode", "permission_denied", f"{SHIPPED}.system_write.forbidden_in_modes", "mode", mode="LOCKDOWN"),
    allow("definition", "tools.alarm.allowed_in_modes", call=("alarm", {}), mode="ALERT",
          rules=of("alarm", allowed_in_modes=["ALERT"])),
    deny("definition", "permission_denied", "definition.allowed_modes", "tool_mode", call=("alarm", {})),
    ask("definition", "definition.approval", call=("confide", {})),
    # Reviews
    deny("reviewed", "permission_denied", "revoked", "revoked", call=("t", {}), options=withdrawn),
    # Policy, by tool and category
    allow("tool", "tools.launch.allowed_in_modes", rules=of("launch", allowed_in_modes=NORMAL)),
    ask("tool", "tools.launch.requires_approval_in_modes", rules=of("launch", requires_approval_in_modes=NORMAL)),
    deny(
        "tool", "permission_denied", "tools.launch.forbidden_in_modes", "mode",
        rules=of("launch", allowed_in_modes=NORMAL, requires_approval_in_modes=NORMAL, forbidden_in_modes=NORMAL),
    ),
    deny("tool", "permission_denied", "no_rule", "no_rule", rules=of("launch", allowed_in_modes=["ALERT"])),
    deny("tool", "permission_denied", "deny", "denied", rules={"deny": ["launch"]}),
    deny("tool", "permission_denied", "gated", "off_by_default", call=("secret", {})),
    allow("tool", "allow.allowed_in_modes", call=("secret", {}), rules={"allow": ["secret"]}),
    allow(
        "category", "categories.system_write.allowed_in_modes",
        rules={"categories": {"system_write": {"allowed_in_modes": NORMAL}}},
    ),
    ask("category", f"{SHIPPED}.system_delete.requires_approval_in_modes", call=("shred", {"name": "a"})),
    deny(
        "category", "permission_denied", "categories.system_write.forbidden_in_modes", "mode",
        rules={"categories": {"system_write": {"forbidden_in_modes": NORMAL}}, **of("launch", allowed_in_modes=NORMAL)},
    ),
    # Policy, by paths, hosts, commands and sizes
    allow("path", call=("mark", {"path": "a.md"}), rules=of("mark", allowed_paths=["*.md"])),
    deny(
        "path", "permission_denied", "tools.mark.allowed_paths", "path",
        call=("mark", {"path": "a.txt"}), rules=of("mark", allowed_paths=["*.md"]),
    ),
    deny(
        "path", "permission_denied", "tools.mark.forbidden_paths", "path",
        call=("mark", {"path": "a.md"}), rules=of("mark", allowed_paths=["*.md"], forbidden_paths=["a*"]),
    ),
    deny("path", "permission_denied", "outside_workspace", "outside_workspace", call=("mark", {"path": "/etc/motd"})),
    allow("host", f"{SHIPPED}.network.allowed_in_modes", call=("send", {"url": "https://a.example/"}),
          rules=of("send", allowed_hosts=["*.example"])),
    deny(
        "host", "permission_denied", "tools.send.allowed_hosts", "host",
        call=("send", {"url": "https://b.invalid/"}), rules=of("send", allowed_hosts=["*.example"]),
    ),
    deny(
        "host", "permission_denied", "tools.send.forbidden_hosts", "host",
        call=("send", {"url": "https://a.example/"}), rules=of("send", forbidden_hosts=["a.example"]),
    ),
    ask("host", f"{SHIPPED}.network.requires_approval_in_modes", call=("send", {"url": "https://a.example/"}), mode="ALERT"),
    ask("host", "shipped.new_host_asks", call=("send", {"url": "https://a.example/"})),
    deny(
        "method", "permission_denied", "tools.send.allowed_methods", "method",
        call=("send", {"url": "https://a.example/", "method": "DELETE"}), rules=of("send", allowed_methods=["GET"]),
    ),
    allow("size", call=("mark", {"path": "a", "size": 1000}), rules=of("mark", max_file_size_mb=0.001)),
    # Flows from what the session has seen
    allow("flow", f"{SHIPPED}.network.allowed_in_modes", call=SEND, rules=EXAMPLES, options=has_seen(private=".env")),
    ask("flow", "shipped.ask_flow.1", "flow", call=SEND, rules=EXAMPLES, options=has_seen(private=".env", outside="a page")),
    deny(
        "flow", "permission_denied", "deny_flow.0", "flow", call=SEND, options=has_seen(private=".env"),
        rules=EXAMPLES | {"deny_flow": [{"from": {"session": ["private"]}, "to": {"effects": ["network"]}}]},
    ),
    # Loops
    deny(
        "loop", "rate_limited", "loops.identical_failures", "rate_limit", call=FAILING,
        rules={"loops": {"identical_failures": 2}}, options=failing(2),
    ),
    deny(
        "loop", "rate_limited", "loops.requests_per_hour", "rate_limit",
        rules={"loops": {"requests_per_hour": 2}}, options=failing(2, opened()), effects=0,
    ),
    # Rate limits
    allow("rate", rules=of("launch", rate_limit_per_hour=2), options=before({"name": "b"}), effects=2),
    deny(
        "rate", "rate_limited", "rate_limit.tool:launch", "rate_limit",
        rules=of("launch", rate_limit_per_hour=1), options=before({"name": "b"}), effects=1,
    ),
    deny(
        "rate", "rate_limited", "rate_limit.category:system_write", "rate_limit",
        rules={"categories": {"system_write": {"rate_limit_per_hour": 1}}}, options=before({"name": "b"}), effects=1,
    ),
    deny(
        "rate", "rate_limited", "rate_limit.all", "rate_limit",
        rules={"rate_limit_per_hour": 1}, options=before({"name": "b"}), effects=1,
    ),
]  # fmt: skip


def entries(bench: Bench, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    ledger = bench.service.service.ledger
    return [(e.kind, dict(e.data)) for e in ledger.entries() if e.kind in kinds]  # type: ignore[union-attr]


def since(bench: Bench, seen: int) -> list[tuple[str, dict[str, Any]]]:
    return entries(bench, "call", "result", "denied", "asked")[seen:]


@pytest.fixture(name="staged")
def _staged(make_bench: Any) -> Callable[..., Bench]:
    def make(row: Row) -> Bench:
        options = {"governance": row.rules, "primitives": TOOLS, **row.service}
        workspace = options.pop("workspace", None)
        bench: Bench = make_bench(**options)
        if workspace is not None:
            bench.service.close()
            bench.service = SyncToolService.open(home=bench.home, workspace=workspace, primitives=TOOLS)
        if row.mode != "NORMAL":
            bench.service.within(lambda s: s.modes.switch(row.mode, "a test", "to see"))
        return bench

    return make


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_stage(row: Row, staged: Callable[[Row], Bench]) -> None:
    bench = staged(row)
    options = row.options(bench) if callable(row.options) else row.options
    seen = len(since(bench, 0))
    tool, arguments = row.call
    result = bench.service.invoke(tool, arguments, **options)
    found = since(bench, seen)
    if row.verdict == "deny":
        assert result.error is not None, result.output
        assert (result.error.code, result.error.rule) == (row.code, row.rule)
        assert result.error.message
        assert result.error.rationale == row.why
        # What no rule has judged is not allowed either.
        rule, why = (row.rule, row.why) if result.error.denied else ("unjudged", "unjudged")
        assert {"allowed": False, "rule_id": rule, "rationale_code": why}.items() <= result.policy.items()
        assert result.strict()["policy"].items() <= result.as_dict()["policy"].items()
        (kind, data), *more = found
        assert (kind, data["tool"], data["code"], data["rule_id"]) == ("denied", tool, row.code, row.rule)
        assert data.get("rationale_code") == result.error.rationale
        assert more == []
        assert result.effects == ()
        assert len(bench.done) == row.effects
        return
    if row.verdict == "ask":
        assert result.error is not None, result.output
        assert (result.error.code, result.error.rule) == ("suspended", row.rule)
        assert [kind for kind, _ in found] == ["asked"]
        assert found[0][1]["rule_id"] == row.rule
        assert result.policy["allowed"] is False
        assert bench.done == []
        approval = result.error.details["approval"]
        bench.service.within(lambda s: s.approvals.answer(approval, "once", "a test"))
        result = bench.service.resume(result.run_id or "")
        found = since(bench, seen + 1)
    assert result.ok, result.error
    assert {"verdict": row.verdict, "allowed": True, "rule_id": row.rule}.items() <= result.policy.items()
    assert result.strict()["policy"].items() <= result.as_dict()["policy"].items()
    # A call that only reads has one entry with decision and result.
    only_reads = row.call[0] in READERS and row.verdict == "allow"
    assert [kind for kind, _ in found] == (["call"] if only_reads else ["call", "result"])
    decided, ended = found[0][1], found[-1][1]
    assert (decided["verdict"], decided["rule_id"], decided["rationale_code"]) == (row.verdict, row.rule, row.why)
    assert (decided["mode"], decided["tool"]) == (row.mode, tool)
    assert bool(decided.get("approval")) == (row.verdict == "ask")
    assert (ended["call"], ended["ok"]) == (decided["call"], True)
    assert len(bench.done) == row.effects


def test_the_size_limit_applies_when_the_file_is_written(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS, governance=of("mark", max_file_size_mb=0.001))
    error = bench.error("mark", path="a", size=2000)
    assert error.rule == "max_file_size_mb"
    # The call began, so the ledger contains a failed call.
    assert [kind for kind, _ in since(bench, 0)] == ["call", "result"]
    assert since(bench, 0)[1][1]["ok"] is False
    assert list(bench.work.glob("a*")) == []


def test_a_path_outside_the_workspace(make_bench: Any, tmp_path: Any) -> None:
    beyond = tmp_path.resolve() / "beyond"
    beyond.mkdir()
    bench = make_bench(primitives=TOOLS, governance=of("mark", allowed_paths=["$WORKSPACE", f"{beyond}/**"]))
    error = bench.error("mark", path=f"{beyond}/a")
    assert (error.code, error.rule) == ("suspended", "shipped.outside_workspace_asks")
    assert list(beyond.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "code", "rationale"),
    [("no", "permission_denied", "refused"), (None, "permission_denied", "approval_required"), ("once", None, None)],
)
def test_an_approval(make_bench: Any, answer: str | None, code: str | None, rationale: str | None) -> None:
    async def person(question: Any) -> Any:
        assert bench.done == []
        return answer

    asked = {"ask": person} if answer is not None else {"patience": None}
    bench = make_bench(primitives=TOOLS, **asked)
    result = bench.service.invoke("shred", {"name": "a"})
    assert (result.error.code if result.error else None) == code
    kinds = [kind for kind, _ in since(bench, 0)]
    if code is None:
        assert kinds == ["asked", "call", "result"]
        assert bench.done == ["a"]
        return
    assert result.error.rule == f"{SHIPPED}.system_delete.requires_approval_in_modes"
    assert result.error.rationale == rationale
    assert kinds == (["asked", "denied"] if answer else ["denied"])
    assert bench.done == []


def test_a_repeat_gets_the_first_result(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS, governance=of("launch", rate_limit_per_hour=1))
    options = opened(budget=Budget(calls=1))(bench)
    first = bench.service.invoke("launch", {"name": "a"}, dedupe_key="k", **options)
    seen = len(since(bench, 0))
    again = bench.service.invoke("launch", {"name": "a"}, dedupe_key="k", **options)
    # The repeat is neither charged nor counted: budget and rate limit are used up, but the repeat succeeds.
    assert (again.repeated, again.output, first.repeated) == (True, "a", False)
    assert since(bench, seen) == []
    assert bench.done == ["a"]


def test_an_outdated_tool(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS)
    bench.define('return tools.launch(name="a")')
    with bench.again(primitives=[_other_launch()]) as changed:
        error = changed.invoke("t").error
        assert error is not None
        assert error.code == "outdated"
    ((kind, data),) = since(bench, 0)
    assert (kind, data["code"], bench.done) == ("denied", "outdated", [])


def _other_launch() -> Any:
    @primitive(effects=["write"])
    def launch(name: str, twice: bool = False) -> str:
        """Launch something, perhaps twice."""
        DONE.append(name)
        return name

    return launch


def test_nesting_too_deep(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS, governance={"deny": ["d1"]})
    inner = bench.service.service
    bench.define('return tools.launch(name="a")', "d1")
    for i in range(2, 10):
        checked = check_or_raise(one(f"return tools.d{i - 1}()", f"d{i}"), Deeper(inner))
        inner.store.save(version_of(checked))
    # The depth is checked before the rules for the tool.
    assert bench.error("d9").code == "depth_limit"
    assert [(d["tool"], d["code"]) for k, d in since(bench, 0) if k == "denied"] == [("d1", "depth_limit")]
    assert bench.error("d8").rule == "deny"
    assert bench.done == []


def test_the_owner_sets_the_depth(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS, governance={"limits": {"depth": 2}})
    bench.define('return tools.launch(name="a")', "d1")
    bench.define("return tools.d1()", "d2")
    message = "saved tools call each other more than 2 levels deep"
    with pytest.raises(Failure, match=message):
        bench.define("return tools.d2()", "d3")
    # A tool that was saved before is refused before it has an effect.
    inner = bench.service.service
    checked = check_or_raise(one('tools.launch(name="b")\n    return tools.d2()', "d3"), inner.registry)
    inner.store.save(version_of(checked))
    error = bench.error("d3")
    assert (error.code, error.message, bench.done) == ("depth_limit", message, [])
    assert (bench.value("d2"), bench.done) == ("a", ["a"])


def test_the_owner_sets_the_time_of_a_call(make_bench: Any) -> None:
    @primitive(effects=["read"], timeout=3600)
    def left(context: CallContext) -> int:
        """Return the seconds that the call has left."""
        return round(context.remaining)

    hour = {"limits": {"call_seconds": 3600, "run_seconds": 3600}}
    for rules, seconds in (({}, 300), (hour, 3600), (hour | of("left", timeout_seconds=1000), 1000)):
        bench = make_bench(primitives=[left], governance={"allow": ["left"], **rules})
        assert bench.value("left") == seconds


def test_the_order_of_the_stages(make_bench: Any) -> None:
    """A call fails every check. Correcting one mistake at a time shows the order of the checks."""
    bench = make_bench(primitives=TOOLS)
    bench.define("return tools.launch(name=name)", parameters="name: str")
    ask_and_limit = of("t", requires_approval_in_modes=NORMAL, rate_limit_per_hour=1)
    both = {"deny": ["t"], **ask_and_limit}
    ended = revoked(bench)["session"]
    other = opened(tools=["look"], budget=Budget(calls=0))(bench)["session"]
    spent = opened(budget=Budget(calls=2))(bench)["session"]
    free = opened()(bench)["session"]
    assert bench.service.invoke("t", {"name": "b"}, session=spent, dedupe_key="k").ok
    assert bench.done == ["b"]
    with bench.again(governance=ask_and_limit, ask=_yes) as limited:
        # This is the one call that the rate limit allows.
        assert limited.invoke("t", {"name": "b"}, session=free).ok
    bench.done.clear()
    old = [*(p for p in TOOLS if p.name != "launch"), _other_launch()]
    good = {"name": "a"}
    steps: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], tuple[str, str | None]]] = [
        (
            "u",
            {},
            {"session": ended, "reason": "x" * 10_001},
            {"primitives": old},
            ("permission_denied", "session.ended"),
        ),
        (
            "u",
            {},
            {"session": other, "reason": "x" * 10_001},
            {"primitives": old},
            ("permission_denied", "lease.tools"),
        ),
        ("u", {}, {"session": spent, "reason": "x" * 10_001}, {"primitives": old}, ("unknown_tool", "unknown_tool")),
        ("t", {}, {"session": spent, "reason": "x" * 10_001}, {"primitives": old}, ("invalid_arguments", None)),
        ("t", {}, {"session": spent, "dedupe_key": "k"}, {"primitives": old}, ("invalid_arguments", None)),
        ("t", good, {"session": spent, "dedupe_key": "k"}, {"primitives": old}, ("dedupe_conflict", None)),
        ("t", good, {"session": free}, {"primitives": old}, ("governance_unavailable", "governance_unavailable")),
        ("t", good, {"session": free}, {"primitives": old, "governance": both}, ("permission_denied", "deny")),
        ("t", good, {"session": free}, {"primitives": old, "governance": ask_and_limit}, ("outdated", None)),
        ("t", good, {"session": free}, {"governance": ask_and_limit}, ("rate_limited", "rate_limit.tool:t")),
        ("t", good, {"session": spent}, {"governance": ask_and_limit}, ("budget_exceeded", "lease.budget.calls")),
        ("t", good, {}, {"governance": ask_and_limit}, ("suspended", "tools.t.requires_approval_in_modes")),
    ]
    for tool, arguments, options, service, told in steps:
        seen = len(since(bench, 0))
        with bench.again(**{"governance": {"nonsense": 1}, **service}) as opened_now:
            error = opened_now.invoke(tool, arguments, **options).error
        assert error is not None
        assert (error.code, error.rule) == told
        assert [kind for kind, _ in since(bench, seen)] == ["asked" if told[0] == "suspended" else "denied"]
        assert bench.done == []


async def _yes(question: Any) -> bool:
    return True


def test_a_session_that_ends_during_a_question_denies(make_bench: Any) -> None:
    async def person(question: Any) -> bool:
        bench.service.service.sessions.end(session.id)
        return True

    bench = make_bench(primitives=TOOLS, ask=person)
    session, token = bench.service.within(lambda s: s.open_session("test"))
    error = bench.service.invoke("shred", {"name": "a"}, session=token).error
    assert error is not None
    assert (error.code, error.rule) == ("permission_denied", "session.ended")
    assert bench.done == []


def test_a_grant_has_the_rights_of_its_session(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS)
    bench.define('return tools.shred(name="t")')
    options = opened()(bench)

    def answered(tool: str, arguments: dict[str, Any], choice: Any, **more: Any) -> Any:
        result = bench.service.invoke(tool, arguments, **options, **more)
        bench.service.within(lambda s: s.approvals.answer(result.error.details["approval"], choice, "a test"))
        return bench.service.resume(result.run_id)

    # One answer is enough, and the key stays the same.
    assert answered("shred", {"name": "a"}, "once", dedupe_key="k").value() == "a"
    assert bench.service.invoke("shred", {"name": "a"}, dedupe_key="k", **options).repeated
    # An answer for the session does not apply to calls of the owner.
    assert answered("t", {}, "session").value() == "t"
    assert bench.error("t").code == "suspended"
    assert bench.service.invoke("t", **options).value() == "t"
    assert bench.done == ["a", "t", "t"]


def test_an_approval_allows_the_call_that_was_shown_once(make_bench: Any) -> None:
    bench = make_bench(primitives=TOOLS, governance=of("mark", requires_approval_in_modes=NORMAL))
    call = {"path": "a", "size": 3}

    def asked(result: Any) -> Any:
        assert result.error.code == "suspended"
        bench.service.within(lambda s: s.approvals.answer(result.error.details["approval"], "once", "a test"))
        return result

    first = asked(bench.service.invoke("mark", call))
    # Between the answer and the effect another process creates the file.
    (bench.work / "a").write_text("mine")
    again = bench.service.resume(first.run_id)
    assert again.error.code == "suspended"
    assert again.error.details["approval"] != first.error.details["approval"]
    assert (bench.work / "a").read_text() == "mine"
    assert bench.service.resume(asked(again).run_id).ok
    assert (bench.work / "a").read_text() == "xxx"
    # The answer is used up. For other arguments there is no answer.
    assert bench.service.invoke("mark", call).error.code == "suspended"
    assert bench.service.invoke("mark", {**call, "size": 4}).error.code == "suspended"
    assert bench.done == ["a"]
