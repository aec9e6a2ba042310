"""The agent's own tools, what an agent is offered, and which saved tools are active."""

from __future__ import annotations

import json
from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.agent.tool_specs import spec_name, tool_name
from albert_tools.engine.model.reserved_names import AGENT_TOOLS, READING_TOOLS
from tests.engine.conftest import one

SHOUT = '''
def shout(text: str) -> str:
    """Make a text loud.

    Args:
        text: Any text.
    """
    return text.upper()
'''


def token_of(bench: Any, **lease: Any) -> str:
    return str(bench.service.within(lambda s: s.open_session("test", **lease))[1])


def output(bench: Any, name: str, arguments: dict[str, Any], token: str | None) -> Any:
    return bench.service.invoke(name, arguments, session=token).value()


def names(bench: Any, token: str | None = None) -> list[str]:
    return [offer.name for offer in bench.service.offered(session=token)]


@pytest.fixture
def bench(make_bench: Any) -> Any:
    return make_bench()


def test_an_agent_defines_finds_describes_runs_and_removes_a_tool(bench: Any) -> None:
    token = token_of(bench)
    defined = output(bench, "define_tool", {"source": SHOUT}, token)
    assert (defined["name"], defined["outcome"]) == ("shout", "saved")
    later = token_of(bench)
    (found,) = output(bench, "search_tools", {"query": "loud"}, later)["tools"]
    assert (found["name"], found["kind"], found["description"]) == ("shout", "composite", "Make a text loud.")
    assert output(bench, "describe_tool", {"name": "shout"}, later)["source"] == SHOUT
    assert output(bench, "run_tool", {"name": "shout", "arguments": {"text": "a"}}, later) == "A"
    assert output(bench, "run_source", {"source": SHOUT, "arguments": {"text": "b"}}, later) == "B"
    assert [run["state"] for run in output(bench, "list_runs", {}, later)["runs"]] == ["done", "done"]
    assert output(bench, "list_runs", {}, token)["runs"] == []
    assert output(bench, "remove_tool", {"name": "shout"}, token) == {"removed": "shout"}
    assert output(bench, "search_tools", {"query": "loud"}, later)["tools"] == []


def test_a_new_tool_that_does_nearly_the_same_as_another_is_named(bench: Any) -> None:
    first, source = token_of(bench), SHOUT.replace("def shout", "def loud_text")
    assert output(bench, "define_tool", {"source": SHOUT.replace("def shout", "def make_loud")}, first)["similar"] == []
    assert output(bench, "define_tool", {"source": source}, first)["similar"] == ["make_loud"]
    narrow = token_of(bench, tools=["define_tool"])
    assert output(bench, "define_tool", {"source": source.replace("loud_text", "text_loud")}, narrow)["similar"] == []


def test_tools_outside_of_the_lease_take_no_places_among_the_similar_ones(bench: Any) -> None:
    def source(name: str) -> str:
        return SHOUT.replace("def shout", f"def {name}").replace("Make a text loud.", name.replace("_", " "))

    # Words that say nothing, so these are the most similar ones.
    for word in "all an and any are as at be by can each every for from had has have how in its many".split():
        bench.service.define(source(f"report_merger_{word}"))
    token = token_of(bench, tools=["define_tool"])
    own = [f"report_merger_{word}_{word}s" for word in ("apple", "berry", "cherry")]
    for name in own:
        output(bench, "define_tool", {"source": source(name)}, token)
    assert output(bench, "define_tool", {"source": source("report_merger")}, token)["similar"] == own


def test_tools_outside_of_the_lease_take_no_places_of_a_search(bench: Any) -> None:
    for n in range(12):
        bench.service.define(SHOUT.replace("def shout", f"def loud_{n}"))
    token = token_of(bench, tools=["define_tool"])
    output(bench, "define_tool", {"source": SHOUT.replace("def shout", "def quite_other_and_loud")}, token)
    for query, limit in (("loud", 1), ("text upper", 1), ("loud_3 loud", 1), ("", 3)):
        found = output(bench, "search_tools", {"query": query, "limit": limit}, token)["tools"]
        assert [tool["name"] for tool in found] == ["quite_other_and_loud"], query
    for name, word in (("note_a", "zebra"), ("note_b", "tiger")):
        output(bench, "define_tool", {"source": SHOUT.replace("def shout", f"def {name}").replace("loud", word)}, token)
    bench.service.define(SHOUT.replace("def shout", "def hidden").replace("loud", "zebra"))
    found = output(bench, "search_tools", {"query": "zebra tiger", "limit": 2}, token)["tools"]
    assert [tool["name"] for tool in found] == ["note_a", "note_b"]


@pytest.mark.parametrize("name", ["define_tool", "run_source"])
def test_a_refused_source_comes_back_as_text_and_as_data(bench: Any, name: str) -> None:
    error = bench.service.invoke(name, {"source": SHOUT.replace("text.upper()", "txt")}, session=token_of(bench)).error
    assert error.code == "invalid_source"
    assert "error[unknown-name]" in error.message
    assert [d["code"] for d in error.details["diagnostics"]] == ["unknown-name"]


def test_check_tool_reports_findings_and_saves_nothing(bench: Any) -> None:
    token = token_of(bench)
    assert output(bench, "check_tool", {"source": SHOUT}, token) == {"ok": True, "text": "", "diagnostics": []}
    bad = output(bench, "check_tool", {"source": "x = ["}, token)
    assert (bad["ok"], bad["diagnostics"][0]["code"]) == (False, "syntax")
    assert output(bench, "search_tools", {"query": "loud"}, token)["tools"] == []


@pytest.mark.parametrize("name", AGENT_TOOLS)
def test_wrong_arguments_are_reported_and_recorded(bench: Any, name: str) -> None:
    error = bench.service.invoke(name, {"nonsense": 1}, session=token_of(bench)).error
    assert error.code == "invalid_arguments"
    assert "nonsense" in error.message
    (entry,) = bench.service.records(["denied"])
    assert (entry.data["tool"], entry.data["code"]) == (name, "invalid_arguments")


@pytest.mark.parametrize("name", AGENT_TOOLS)
def test_a_program_cannot_call_them(bench: Any, name: str) -> None:
    with pytest.raises(Exception, match=name):
        bench.service.define(one(f"return tools.{name}()", "outer"))


def test_run_tool_runs_none_of_the_agents_own_tools(bench: Any) -> None:
    arguments = {"name": "define_tool", "arguments": {"source": SHOUT}}
    result = bench.service.invoke("run_tool", arguments, session=token_of(bench))
    assert (result.error.code, "call it itself" in result.error.message) == ("invalid_arguments", True)
    (entry,) = bench.service.records(["denied"])
    assert (entry.data["tool"], entry.data["trace"].split("-")[1]) == ("run_tool", result.trace_id)
    assert bench.service.invoke("run_tool", arguments, session="alb_no").error.rule == "session.unknown"


def test_every_call_is_recorded_with_its_session(bench: Any) -> None:
    session, token = bench.service.within(lambda s: s.open_session("test"))
    for name, arguments in (("search_tools", {}), ("check_tool", {"source": ""}), ("define_tool", {"source": SHOUT})):
        bench.service.invoke(name, arguments, session=token)
    calls = [dict(e.data) for e in bench.service.records(["call"])]
    assert [(c["tool"], c["session"]) for c in calls] == [
        (name, session.id) for name in ("search_tools", "check_tool", "define_tool")
    ]


def test_record_and_result_have_the_trace_the_decision_and_the_costs_of_a_request(bench: Any) -> None:
    token = token_of(bench)
    trace, bad = "0af7651916cd43dd8448eb211c80319c", SHOUT.replace("text.upper()", "txt")
    requests: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("define_tool", {"source": SHOUT}, 1),
        ("define_tool", {"source": bad}, 0),
        ("run_source", {"source": SHOUT, "arguments": {"text": "a"}}, 2),
        ("run_source", {"source": bad}, 0),
        ("remove_tool", {"name": "shout"}, 1),
    )
    for n, (name, arguments, charged) in enumerate(requests):
        result = bench.service.invoke(name, arguments, session=token, trace=trace, request_id=f"R{n}")
        assert (result.trace_id, result.request_id) == (trace, f"R{n}"), name
        assert result.policy["allowed"] == result.ok == bool(charged), name
        assert result.budget_consumed["calls"] >= charged, name
        entries = [e.data for e in bench.service.records(["call", "denied"]) if e.data["request_id"] == f"R{n}"]
        assert len(entries) == (charged or 1), name
        assert all(e["trace"].split("-")[1] == trace for e in entries), name
    assert bench.service.within(lambda s: s.session_of(token).used["calls"]) == sum(r[2] for r in requests)


def test_a_request_without_a_trace_has_one_trace_for_the_permission_and_the_run(bench: Any) -> None:
    result = bench.service.invoke("run_source", {"source": SHOUT, "arguments": {"text": "a"}}, session=token_of(bench))
    assert [e.data["trace"].split("-")[1] for e in bench.service.records(["call"])] == [result.trace_id] * 2


def test_a_person_who_is_asked_about_a_definition_sees_the_reason_while_its_session_lasts(make_bench: Any) -> None:
    bench = make_bench()
    bench.service.define(SHOUT)
    louder = SHOUT.replace("text.upper()", "text.upper() + '!'")
    token = token_of(bench, seconds=3600)
    bench.service.invoke("define_tool", {"source": louder}, session=token, reason="it was too quiet")
    (question,) = bench.service.within(lambda s: s.approvals.all())
    assert question.reason == "it was too quiet"
    # Nobody could use an answer later.
    assert question.expires == bench.service.within(lambda s: s.session_of(token).lease.expires)


def test_a_session_sees_and_uses_only_what_its_lease_covers(bench: Any) -> None:
    bench.service.define(SHOUT)
    token = token_of(bench, tools=["look"])
    assert names(bench, token) == [n for n in AGENT_TOOLS if n in READING_TOOLS or n == "run_tool"] + ["look"]
    assert output(bench, "search_tools", {"query": "loud"}, token)["tools"] == []
    for name, arguments in (
        ("describe_tool", {"name": "shout"}),
        ("run_tool", {"name": "shout", "arguments": {"text": "a"}}),
        ("define_tool", {"source": SHOUT}),
        ("remove_tool", {"name": "shout"}),
        ("run_source", {"source": SHOUT, "arguments": {"text": "a"}}),
    ):
        assert bench.service.invoke(name, arguments, session=token).error.rule == "lease.tools", name


def test_only_the_owners_approval_changes_what_is_offered(bench: Any) -> None:
    token, service = token_of(bench), bench.service
    before, changed = names(bench, token), service.within(lambda s: s.offers_changed())
    output(bench, "define_tool", {"source": SHOUT}, token)
    assert (names(bench, token), service.within(lambda s: s.offers_changed())) == (before, changed)
    first = service.approve("shout", "ann")
    assert names(bench, token) == [*before, "shout"]
    assert service.within(lambda s: s.offers_changed()) != changed
    output(bench, "define_tool", {"source": SHOUT.replace("loud", "very loud")}, token)
    offer = service.offered(session=token)[-1]
    assert (offer.version, offer.description) == (first.version, "Make a text loud.")
    service.approve("shout", "ann")
    assert service.offered(session=token)[-1].description == "Make a text very loud."
    service.deprecate("shout", "ann")
    assert names(bench, token) == before
    assert [e.data["by"] for e in service.records(["review"])] == ["ann"] * 3


def test_a_session_needs_a_person_to_remove_what_the_owner_has_approved(bench: Any) -> None:
    token = token_of(bench)
    output(bench, "define_tool", {"source": SHOUT}, token)
    bench.service.approve("shout", "ann")
    error = bench.service.invoke("remove_tool", {"name": "shout"}, session=token).error
    assert (error.code, error.rule) == ("suspended", "another_author")
    assert "shout is active" in error.message
    assert names(bench)[-1] == "shout"


def test_a_removed_tool_is_no_longer_active(bench: Any) -> None:
    bench.service.define(SHOUT)
    bench.service.approve("shout", "ann")
    bench.service.remove("shout")
    bench.service.define(SHOUT)
    assert "shout" not in names(bench)


def test_the_author_reads_why_a_version_was_sent_back(bench: Any) -> None:
    token = token_of(bench)
    defined = output(bench, "define_tool", {"source": SHOUT}, token)
    assert defined["review"] == "pending"
    bench.service.within(lambda s: s.reviews.send_back("shout", defined["version"], "ann", "use two words"))
    assert output(bench, "define_tool", {"source": SHOUT}, token)["review"] == "draft: sent back: use two words"
    assert "sent back: use two words" in json.dumps(output(bench, "describe_tool", {"name": "shout"}, token))


@pytest.mark.parametrize(("name", "code"), [("look", "invalid_arguments"), ("nothing", "unknown_tool")])
def test_only_saved_tools_can_be_approved(bench: Any, name: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        bench.service.approve(name, "ann")
    assert caught.value.code == code


def test_specs_are_deterministic_and_have_a_form_for_each_provider(bench: Any) -> None:
    service = bench.service
    service.define(SHOUT)
    service.approve("shout", "ann")
    openai, anthropic, mcp, schemas = (
        service.tool_specs(form) for form in ("openai", "anthropic", "mcp", "json-schema")
    )
    assert json.dumps(mcp) == json.dumps(service.tool_specs("mcp"))
    assert (
        [s["function"]["name"] for s in openai]
        == [s["name"] for s in anthropic]
        == [spec_name(n) for n in names(bench)]
    )
    assert openai[-1]["function"]["parameters"] == anthropic[-1]["input_schema"] == mcp[-1]["inputSchema"]
    assert mcp[-1]["outputSchema"]["properties"]["result"] == schemas[-1]["result"] == {"type": "string"}
    assert mcp[-1]["annotations"]["readOnlyHint"] is True
    reading = [spec["name"] for spec in mcp[: len(AGENT_TOOLS)] if spec["annotations"]["readOnlyHint"]]
    assert reading == [name for name in AGENT_TOOLS if name in READING_TOOLS]
    assert tool_name(spec_name("crm.find")) == "crm.find"
    with pytest.raises(Failure, match="no form 'yaml'"):
        service.tool_specs("yaml")
