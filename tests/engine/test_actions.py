"""Actions: what a session may do with tools, runs, sessions and records, and what it must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from albert_tools import Failure, SourceError
from albert_tools.checkup import mistakes
from albert_tools.engine.actions import ACTIONS
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record import runs
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.engine.conftest import DONE, one

DEPLOY = one('return tools.launch(name="deploy")', "deploy")
EVIL = one('return tools.launch(name="evil")', "deploy")
ASKS = {"tools": {"launch": {"requires_approval_in_modes": ["NORMAL"]}}}
#: The actions that the shipped rules turn off.
CONTROL = [action.name for action in ACTIONS if action.gated]


def opened(bench: Any, **lease: Any) -> tuple[str, str]:
    """Return the id and the token of a new session."""
    session, token = bench.service.within(lambda s: s.open_session("test", **lease))
    return session.id, token


def refused(action: Callable[[], object]) -> Failure:
    with pytest.raises(Failure) as caught:
        action()
    return caught.value


def entries(bench: Any, *kinds: str) -> list[dict[str, Any]]:
    return [dict(e.data) for e in bench.service.records(kinds)]


def answer(bench: Any, failure: Failure, choice: str = "once") -> None:
    assert failure.code == "suspended", failure
    assert str(failure.hint).endswith("then make the same request again")
    bench.service.within(lambda s: s.approvals.answer(failure.details["approval"], choice, "ann"))


def waiting_run(bench: Any, session: str | None = None) -> str:
    """Return a run of `deploy` that waits for an answer."""
    result = bench.service.invoke("deploy", session=session)
    assert result.error.code == "suspended", result
    return str(result.run_id)


def attempts(bench: Any, token: str) -> dict[str, Callable[[], object]]:
    """Everything that a session must not do to what belongs to others, by the action."""
    service, (other, _), run = bench.service, opened(bench), waiting_run(bench)
    return {
        "define_tool": lambda: service.define(EVIL, session=token),
        "remove_tool": lambda: service.remove("deploy", session=token),
        "revoke_session": lambda: service.revoke_session(other, session=token),
        "cancel_run": lambda: service.cancel_run(run, "me", session=token),
        "resume_run": lambda: service.resume(run, session=token),
        "read_records": lambda: service.records(session=token),
        "read_records of a run": lambda: service.show_run(run, session=token),
    }


def untouched(bench: Any) -> None:
    """Require that everything of the owner is as it was."""
    service = bench.service
    assert "deploy" in service.describe("deploy").definition.name
    assert [run.state for run in service.list_runs()] == ["suspended"]
    assert not any(s.ended for s in service.within(lambda s: s.sessions.all()))
    assert service.within(lambda s: s.store.load("deploy").source) == DEPLOY
    assert DONE == []


def test_a_session_leased_to_one_tool_can_do_nothing_else(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    bench.service.define(DEPLOY)
    _, token = opened(bench, tools=["read_file"])
    for what, attempt in attempts(bench, token).items():
        failure = refused(attempt)
        assert (failure.code, failure.rule, failure.tool) == ("permission_denied", "lease.tools", what.split()[0])
    assert bench.service.list_runs(session=token) == []
    assert [s.client for s in bench.service.within(lambda s: s.list_sessions(session=token))] == ["test"]
    untouched(bench)
    # Each refusal is in the ledger.
    assert [e["tool"] for e in entries(bench, "denied")] == [a.split()[0] for a in attempts(bench, token)]


def test_a_session_without_a_list_of_tools_controls_nothing_of_others(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    bench.service.define(DEPLOY)
    _, token = opened(bench)
    for what, attempt in attempts(bench, token).items():
        failure = refused(attempt)
        if what in ("define_tool", "remove_tool"):
            assert (failure.code, failure.rule) == ("suspended", "another_author")
        else:
            assert (failure.code, failure.rule) == ("permission_denied", "gated")
            assert failure.hint.startswith(f"the owner can add `allow: [{what.split()[0]}]`")
    untouched(bench)


@pytest.mark.parametrize("wrong", [5, None, ["x"]])
def test_an_id_that_is_not_a_text_is_refused(make_bench: Any, wrong: Any) -> None:
    bench = make_bench()
    service, (_, token) = bench.service, opened(bench)
    attempts = (
        lambda: service.show_run(wrong, session=token),
        lambda: service.cancel_run(wrong, "me", session=token),
        lambda: service.revoke_session(wrong, session=token),
    )
    for attempt in attempts:
        assert refused(attempt).code in ("invalid_arguments", "permission_denied")


def test_a_session_may_control_others_if_lease_and_rules_name_the_action(make_bench: Any) -> None:
    bench = make_bench(governance={**ASKS, "allow": CONTROL})
    bench.service.define(DEPLOY)
    _, token = opened(bench, tools=CONTROL)
    other, _ = opened(bench)
    run = waiting_run(bench)
    service = bench.service
    assert service.revoke_session(other, session=token).ended
    assert service.show_run(run, session=token).tool == "deploy"
    assert {e.kind for e in service.records(session=token)} >= {"session_ended", "call"}
    assert service.resume(run, session=token).error.code == "suspended"
    assert service.cancel_run(run, "me", session=token).state == "cancelled"
    actions = [e for e in entries(bench, "call") if e["tool"] in RESERVED]
    assert [e["tool"] for e in actions] == [
        "revoke_session",
        "read_records",
        "read_records",
        "resume_run",
        "cancel_run",
    ]
    assert {(e["verdict"], e["rule_id"]) for e in actions} == {("allow", "allow.allowed_in_modes")}


@pytest.mark.parametrize(
    ("rules", "mode", "code", "rule"),
    [
        ({}, "LOCKDOWN", "permission_denied", "shipped.categories.system_write.forbidden_in_modes"),
        ({}, "DEGRADED", "suspended", "shipped.categories.system_write.requires_approval_in_modes"),
        ({"deny": ["define_tool"]}, "NORMAL", "permission_denied", "deny"),
        ({"nonsense": 1}, "NORMAL", "governance_unavailable", "governance_unavailable"),
    ],
)
def test_mode_and_rules_judge_an_action(make_bench: Any, rules: Any, mode: str, code: str, rule: str) -> None:
    bench = make_bench(governance=rules)
    if mode != "NORMAL":
        bench.service.within(lambda s: s.modes.switch(mode, "a test", "to see"))
    _, token = opened(bench)
    failure = refused(lambda: bench.service.define(DEPLOY, session=token))
    assert (failure.code, failure.rule) == (code, rule)
    assert [t.name for t in bench.service.list() if t.kind == "composite"] == []
    # The owner's own definitions pass no pipeline, and are recorded.
    bench.service.define(DEPLOY)
    assert entries(bench, "definition")[-1]["tool"] == "deploy"


@pytest.mark.parametrize(
    ("rules", "budget", "rule"),
    [
        ({}, Budget(calls=1), "lease.budget.calls"),
        ({"tools": {"define_tool": {"rate_limit_per_hour": 1}}}, None, "rate_limit.tool:define_tool"),
    ],
)
def test_budgets_and_rate_limits_count_actions(make_bench: Any, rules: Any, budget: Any, rule: str) -> None:
    bench = make_bench(governance=rules)
    _, token = opened(bench, budget=budget)
    bench.service.define(one("return 1", "a"), session=token)
    # The source is not even checked.
    assert refused(lambda: bench.service.define("no source", session=token)).rule == rule


def test_a_session_works_with_its_own_things(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    service = bench.service
    mine, token = opened(bench, tools=["define_tool", "remove_tool", "look"])
    inner, inner_token = opened(bench, within=token)
    for source in (one("return tools.look()", "peek"), one('return tools.look(at="sea")', "peek")):
        assert service.define(source, session=token).name == "peek"
    assert [e["by"] for e in entries(bench, "definition")] == [mine, mine]
    # It can call what it has defined. For its sources, tools outside of the lease do not exist.
    assert service.invoke("peek", session=token).value() == "sea"
    service.define(one("return 1", "of_the_owner"))
    for source in (DEPLOY, one("return tools.of_the_owner()")):
        with pytest.raises(SourceError, match="unknown-tool"):
            service.define(source, session=token)
    assert service.invoke("peek", session=inner_token).error.rule == "lease.tools"
    # The outer session may change what the inner one has defined, not the other way round.
    service.define(one("return 1", "part"), session=inner_token)
    service.define(one("return 2", "part"), session=token)
    assert refused(lambda: service.remove("part", session=inner_token)).rule == "lease.tools"
    service.remove("part", session=token)
    assert service.revoke_session(inner, session=token).ended
    assert service.revoke_session(mine, session=token).ended


#: Names outside of a lease, equally long: a primitive, a saved tool, a removed one, one of another session, and none.
OUTSIDE = ("launch", "deploy", "fallen", "others", "absent")


def test_a_session_can_not_find_out_which_tools_exist_outside_of_its_lease(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    service.define(DEPLOY)
    for name in ("fallen", "others"):
        service.define(one("return 1", name), session=opened(bench)[1] if name == "others" else None)
    service.remove("fallen")
    _, token = opened(bench, tools=["look", "define_tool", "run_source", "remove_tool"])

    def told(name: str) -> list[str]:
        """All answers about a name, with the name left out."""
        wrong = {"no": "such", "parameter": 1}
        source = one(f"return tools.{name}(no=1)", "mine")
        ways: list[tuple[str, dict[str, Any]]] = [
            (name, wrong),
            ("run_tool", {"name": name, "arguments": wrong}),
            ("run_tool", {"name": name, "arguments": {}, "version": "0"}),
            ("describe_tool", {"name": name}),
            ("describe_tool", {"name": name, "version": "0"}),
            ("check_tool", {"source": source}),
            ("run_source", {"source": source}),
            ("define_tool", {"source": source}),
            ("search_tools", {"query": name}),
            ("remove_tool", {"name": name}),
            ("remove_tool", {"name": f"{name}s"}),
        ]
        answers = []
        for tool, arguments in ways:
            result = service.invoke(tool, arguments, session=token)
            error = result.error
            said = error.as_dict() if error is not None else result.output
            answers.append(repr([tool, said, result.version if tool == name else "", result.family]).replace(name, "X"))
        with pytest.raises(Failure) as caught:
            service.guide([name], session=token)
        return [*answers, repr(caught.value.as_dict()).replace(name, "X")]

    expected = told("absent")
    assert not any("did you mean" in answer for answer in expected)
    for name in OUTSIDE:
        assert told(name) == expected, name
    assert service.invoke("look", {"att": 1}, session=token).error.code == "invalid_arguments"


def test_similar_names_are_suggested_to_a_session_from_its_lease_alone(make_bench: Any) -> None:
    bench = make_bench()
    bench.service.define(DEPLOY)
    _, token = opened(bench, tools=["deplo", "look", "loook", "describe_tool"])

    def said(*call: Any, session: str | None = token) -> list[str]:
        return [bench.service.invoke(*call, session=session).error.message]

    assert said("deplo", {}, session=None) == ["no tool named 'deplo'; did you mean 'deploy'?"]
    assert said("deplo", {}) + said("describe_tool", {"name": "deplo"}) == ["no tool named 'deplo'"] * 2
    assert said("loook", {}) == ["no tool named 'loook'; did you mean 'look'?"]


def test_of_a_free_name_a_session_sees_only_its_own_versions(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    service.define(one("return 4711", "pay"))
    before = service.describe("pay").definition.version
    service.remove("pay")
    _, token = opened(bench, tools=["define_tool"])
    mine = service.define(one("return 1", "pay"), session=token).version
    seen = service.describe("pay", session=token)
    assert ([each.version for each in seen.versions], seen.total) == ([mine], 1)
    assert service.describe("pay", mine, session=token).source == seen.source
    outside = refused(lambda: service.describe("other", session=token)).as_dict()
    expected = {
        name: value.replace("other", "pay") if isinstance(value, str) else value for name, value in outside.items()
    }
    for version in (before, before[:8], "0"):
        described = refused(lambda version=version: service.describe("pay", version, session=token))
        called = service.invoke("pay", version=version, session=token).error
        assert described.as_dict() == called.as_dict() == expected
    assert service.describe("pay").total == 2
    assert service.describe("pay", session=opened(bench, tools=["pay"])[1]).total == 2


def test_a_session_may_use_its_own_version_of_a_tool_that_the_owner_has_replaced(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    _, token = opened(bench, tools=["define_tool"])
    mine = service.define(one("return 1", "pay"), session=token).version
    service.define(one("return 4711", "pay"))
    assert service.invoke("pay", version=mine, session=token).value() == 1
    assert service.invoke("run_tool", {"name": "pay", "version": mine[:12]}, session=token).value() == 1
    # Two versions can begin with fewer digits, and one of them can be the owner's.
    assert service.invoke("pay", version=mine[:11], session=token).error.rule == "lease.tools"
    assert service.invoke("pay", session=token).error.rule == "lease.tools"
    service.remove("pay")
    assert service.invoke("pay", session=token).error.rule == "lease.tools"
    # Of a tool that is removed, a session may know that, if the last version is its own.
    service.define(one("return 1", "pay"), session=token)
    service.remove("pay")
    error = service.invoke("pay", session=token).error
    assert (error.code, error.details) == ("unknown_tool", {"removed": True, "last": mine})


def test_a_session_does_not_see_the_version_that_a_name_means_after_its_own_was_revoked(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    service.define(one("return 4711", "pay"))
    service.within(lambda s: s.reviews.approve(s.store.load("pay"), "ann"))
    _, token = opened(bench, tools=["define_tool"])
    answer(bench, refused(lambda: service.define(one("return 1", "pay"), session=token)))
    mine = service.define(one("return 1", "pay"), session=token).version
    service.within(lambda s: s.reviews.revoke("pay", mine, "ann"))
    assert service.describe("pay").source == one("return 4711", "pay")
    assert refused(lambda: service.describe("pay", session=token)).rule == "lease.tools"


def test_rules_for_a_tool_do_not_apply_to_a_source_that_chooses_its_name(make_bench: Any) -> None:
    """A session could otherwise find out which names the rules list."""
    service = make_bench(governance={"deny": ["hidden"]}).service
    assert service.run_source(one("return 1", "hidden")).value() == 1
    service.define(one("return 1", "hidden"))
    assert service.invoke("hidden").error.rule == "deny"


def test_a_session_reads_and_controls_its_own_runs(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LISTED", 1)  # However many runs of others are newer.
    bench = make_bench(governance=ASKS)
    service = bench.service
    service.define(DEPLOY)
    mine, token = opened(bench, tools=["deploy"])
    _, inner = opened(bench, tools=["deploy"], within=token)
    first, others, second = waiting_run(bench, token), waiting_run(bench), waiting_run(bench, inner)
    assert [run.id for run in service.list_runs(session=token)] == [second, first]
    assert [run.id for run in service.list_runs(1, session=token)] == [second]
    assert [run.id for run in service.list_runs(session=inner)] == [second]
    assert service.show_run(first, session=token).session == mine
    assert refused(lambda: service.show_run(first, session=inner)).rule == "lease.tools"
    assert refused(lambda: service.show_run(others[:6], session=token)).rule == "lease.tools"
    cancelled = service.cancel_run(second, "me", session=token)
    assert (cancelled.state, cancelled.history[-1]["by"]) == ("cancelled", f"the session {mine}")
    assert service.resume(first, session=token).error.code == "suspended"
    service.revoke_session(mine)
    assert refused(lambda: service.show_run(first, session=token)).rule == "session.ended"


def test_a_run_of_a_session_s_own_tool_is_resumed(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    _, token = opened(bench, tools=["define_tool", "launch"])
    bench.service.define(DEPLOY, session=token)
    waits = bench.service.invoke("deploy", session=token)
    bench.service.within(lambda s: s.approvals.answer(waits.error.details["approval"], "once", "ann"))
    assert bench.service.resume(waits.run_id, session=token).value() == "deploy"


def test_rules_may_name_actions(make_bench: Any) -> None:
    named = {action.name: {"allowed_in_modes": ["NORMAL"]} for action in ACTIONS}
    bench = make_bench(governance={"allow": CONTROL, "tools": named})
    assert bench.service.within(lambda s: mistakes(s, s.governance)) == []


def test_each_request_about_an_open_question_has_its_trace_in_the_ledger(make_bench: Any) -> None:
    bench = make_bench(governance={"tools": {"define_tool": {"requires_approval_in_modes": ["NORMAL"]}}})
    token = opened(bench)[1]
    for _ in range(3):
        refused(lambda: bench.service.define(DEPLOY, session=token))
    assert len(entries(bench, "asked")) == 1
    waits = entries(bench, "waits")
    assert [(e["tool"], "used" in e) for e in waits] == [("define_tool", True)] * 3
    assert len({e["trace"] for e in waits}) == 3


def test_replacing_what_another_defined_needs_a_yes(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    service.define(DEPLOY)
    mine, token = opened(bench, tools=["define_tool", "remove_tool", "launch"])
    # The same source changes nothing, so nobody is asked.
    assert service.define(DEPLOY, session=token).name == "deploy"
    failure = refused(lambda: service.define(EVIL, session=token))
    assert failure.message == (
        "deploy was defined by the owner; replacing it needs a person's approval; it waits for the answer"
    )
    question = service.within(lambda s: s.approvals.get(failure.details["approval"]))
    assert service.within(lambda s: s.contents(None).get(question.arguments["stored_source"])) == EVIL.encode()
    answer(bench, failure, "no")
    assert refused(lambda: service.define(EVIL, session=token)).code == "permission_denied"
    assert service.describe("deploy").source == DEPLOY
    # A yes is for one source in place of one version.
    failure = refused(lambda: service.define(EVIL, session=token))
    answer(bench, failure)
    other = one('return tools.launch(name="worse")', "deploy")
    assert refused(lambda: service.define(other, session=token)).details != failure.details
    service.define(DEPLOY.replace("Do it", "Deploy it"))
    assert refused(lambda: service.define(EVIL, session=token)).details != failure.details
    answer(bench, refused(lambda: service.define(EVIL, session=token)))
    service.define(EVIL, session=token)
    versions = service.describe("deploy").versions
    assert [(v.author, v.current) for v in versions] == [(mine, True), ("", False), ("", False)]
    # Nor does a yes cover the same source with another callee.
    calls = one("return tools.part()", "deploy")
    service.define(one("return 1", "part"), session=token)
    service.define(DEPLOY)
    answer(bench, failure := refused(lambda: service.define(calls, session=token)))
    service.define(one('return tools.launch(name="evil")', "part"), session=token)
    assert refused(lambda: service.define(calls, session=token)).details != failure.details


def test_the_name_of_a_removed_tool_is_free_and_its_history_stays(make_bench: Any) -> None:
    bench = make_bench()
    service = bench.service
    (author, first), (other, second) = opened(bench), opened(bench)
    service.define(DEPLOY, session=first)
    service.remove("deploy", session=first)
    service.define(EVIL, session=second)
    # It is now the other's.
    failure = refused(lambda: service.define(DEPLOY, session=first))
    assert failure.message.startswith(f"deploy was defined by the session {other}; replacing it needs")
    service.remove("deploy", session=second)
    service.define(DEPLOY, session=first)
    assert [(v.author, v.current) for v in service.describe("deploy").versions] == [(author, True), (other, False)]
    # Also one of the owner's.
    service.define(one("return 1", "deploy"))
    service.remove("deploy")
    service.define(EVIL, session=second)
    assert {v.author for v in service.describe("deploy").versions} == {author, other, ""}


def test_a_removed_tool_that_comes_back_while_its_name_is_taken(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()
    _, token = opened(bench)
    bench.service.define(DEPLOY)
    bench.service.remove("deploy")
    store = bench.service.service.store
    version, save = store.load("deploy", store.history("deploy", 1)[0][0].version), store.save

    def racing(*arguments: Any) -> Any:
        monkeypatch.undo()
        save(version)
        return save(*arguments)

    monkeypatch.setattr(store, "save", racing)
    assert refused(lambda: bench.service.define(EVIL, session=token)).code == "exists"
    assert bench.service.describe("deploy").source == DEPLOY


def test_removing_what_another_defined_needs_a_yes(make_bench: Any) -> None:
    async def ask(question: Any) -> bool:
        asked.append(question.decision.message)
        return len(asked) > 1

    asked: list[str] = []
    bench = make_bench(ask=ask)
    _, first = opened(bench)
    author, second = opened(bench)
    bench.service.define(DEPLOY, session=second)
    assert refused(lambda: bench.service.remove("deploy", session=first)).code == "permission_denied"
    assert bench.service.describe("deploy").source == DEPLOY
    bench.service.remove("deploy", session=first)
    assert refused(lambda: bench.service.describe("deploy")).code == "unknown_tool"
    assert set(asked) == {f"deploy was defined by the session {author}; removing it needs a person's approval"}


def test_a_tool_that_changes_while_a_person_decides(make_bench: Any) -> None:
    async def ask(question: Any) -> bool:
        asked.append(question.arguments["replaces"])
        await bench.service.service.define(one(f"return {len(asked)}", "deploy"))
        return True

    asked: list[str] = []
    bench = make_bench(ask=ask)
    bench.service.define(DEPLOY)
    _, token = opened(bench)
    failure = refused(lambda: bench.service.define(EVIL, session=token))
    assert failure.message == "what define_tool would do changed each time a person was asked about it"
    # Each question was about the version of that time.
    assert len(set(asked)) == len(asked) > 1
    assert f"return {len(asked)}" in bench.service.describe("deploy").source


def test_a_tool_that_changes_after_the_last_check(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench()
    store = bench.service.service.store
    _, token = opened(bench)
    for source in (DEPLOY, EVIL):
        bench.service.define(source, session=token)
    first, second = (store.load("deploy", v.version) for v in reversed(bench.service.describe("deploy").versions))
    for change in ("save", "delete"):
        real = getattr(store, change)

        def racing(*arguments: Any, real: Any = real, change: str = change) -> Any:
            monkeypatch.undo()
            store.save(first)
            return real(*arguments)

        monkeypatch.setattr(store, change, racing)
        defines = lambda: bench.service.define(one("return 1", "deploy"), session=token)  # noqa: E731
        removes = lambda: bench.service.remove("deploy", session=token)  # noqa: E731
        failure = refused(defines if change == "save" else removes)
        assert (failure.code, failure.message) == ("exists", "the tool 'deploy' was changed in the meantime")
        assert store.load("deploy").version == first.version
        store.save(second)


def test_errors_of_a_source_are_those_of_the_owner(make_bench: Any) -> None:
    bench = make_bench()
    _, token = opened(bench)
    with pytest.raises(SourceError) as caught:
        bench.service.define("def t() -> int:\n    return open(1)\n", session=token)
    assert caught.value.diagnostics
    deep: dict[str, Any] = {}
    # Deeper than any Python recurses.
    for _ in range(100_000):
        deep = {"a": deep}
    assert refused(lambda: bench.service.define(deep, session=token)).code == "invalid_arguments"
    schema = {"type": "object", "properties": {"a": {"enum": [deep]}}}
    form = {"name": "t", "description": "T.", "parameters": schema, "implementation": "return 1"}
    for session in (token, None):
        assert refused(lambda s=session: bench.service.check(form, session=s)).message == "the form is nested too deep"
    failing = one("return 1", above="@example(arguments={}, result=2)\n")
    assert refused(lambda: bench.service.define(failing, session=token)).code == "example_failed"
    assert refused(lambda: bench.service.remove("nothing", session=token)).code == "unknown_tool"
    assert [e["code"] for e in entries(bench, "denied")] == ["invalid_source", "example_failed"]


def test_an_example_reads_the_machine_only_within_the_lease(make_bench: Any) -> None:
    bench = make_bench()
    seen = one("return tools.look()", above='@example(arguments={}, result="?")\n')
    inside = one('return tools.read_file(path="a")', above='@example(arguments={}, files={"a": "x"}, result="x")\n')
    lent = one("return tools.look()", "lent")
    bench.service.define(lent)
    (_, narrow), (_, wide) = (opened(bench, tools=["define_tool", "read_file", n]) for n in ("lent", "look"))
    # The lease covers the calls of `lent`, but not in an example of another tool.
    failure = refused(lambda: bench.service.define(seen.replace("look", "lent"), session=narrow))
    assert "look is not among the tools of the session's lease" in failure.message
    assert failure.details["examples"][0]["hint"] == 'give its answer in the example: stubs={"look": …}'
    assert bench.done == []
    assert bench.service.define(inside, session=narrow).name == "t"
    assert "an example can't call look for real" in refused(lambda: bench.service.define(seen, session=wide)).message


def test_a_session_can_not_take_the_name_of_a_primitive_outside_of_its_lease(bench: Any) -> None:
    _, token = opened(bench, tools=["define_tool"])
    with pytest.raises(SourceError, match="'bash' is a tool already"):
        bench.service.define(one("return 1", "bash"), session=token)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_the_name_of_an_action_is_reserved(bench: Any, name: str) -> None:
    with pytest.raises(SourceError, match="name-taken"):
        bench.service.define(one("return 1", name))
    with pytest.raises(ValueError, match="the name of an action"):
        bench.service.register(primitive(name=name)(lambda: None))


def test_a_program_can_not_call_an_action(bench: Any) -> None:
    with pytest.raises(SourceError, match="'remove_tool' is for the agent; a program can't call it"):
        bench.service.define(one('return tools.remove_tool(name="deploy")'))
    assert bench.service.invoke("remove_tool", {"name": "deploy"}).error.code == "unknown_tool"


def test_whoever_calls_a_changed_tool_is_told(make_bench: Any) -> None:
    async def ask(question: Any) -> bool:
        return True

    bench = make_bench(ask=ask)
    service = bench.service
    service.define(DEPLOY)
    _, early = opened(bench)
    _, leased = opened(bench, tools=["deploy"])
    assert service.invoke("deploy").metadata == service.invoke("deploy", session=early).metadata == {}
    mine, token = opened(bench)
    before = service.describe("deploy").definition.version
    service.define(EVIL, session=token)
    for session in (None, early, leased):
        changed = service.invoke("deploy", session=session).metadata["changed"]
        assert (changed["by"], changed["before"]) == (mine, before)
        assert changed["message"].startswith(f"deploy was changed by the session {mine} at 2")
    # Its author and a session that was opened later know the version.
    for session in (token, opened(bench)[1], opened(bench, tools=["deploy"])[1]):
        assert service.invoke("deploy", session=session).metadata == {}
    assert service.invoke("deploy", version=before).metadata == {}
    service.define(DEPLOY)
    assert service.invoke("deploy").metadata == {}
    assert (
        service.invoke("deploy", session=token)
        .metadata["changed"]["message"]
        .startswith("deploy was changed by the owner")
    )
    # A new tool replaces nothing.
    service.define(one("return 1", "fresh"), session=token)
    assert service.invoke("fresh", session=early).metadata == service.invoke("fresh").metadata == {}


def test_no_approval_outlives_a_removed_tool(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_bench().service
    service.define(DEPLOY)
    service.approve("deploy", "ann")
    delete = TinyToolStore.delete

    def killed(*arguments: Any) -> None:
        delete(*arguments)
        raise Failure("io_error", "killed")

    monkeypatch.setattr(TinyToolStore, "delete", killed)
    refused(lambda: service.remove("deploy"))
    service.define(DEPLOY)
    assert service.review("deploy").state.state == "pending"
