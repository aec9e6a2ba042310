"""The tools in LangChain: its own tool node's protocol, with a scripted model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolService
from tests.surfaces.exports.conftest import PARK

pytestmark = pytest.mark.surfaces


def tools_of(service: Any, token: str) -> dict[str, Any]:
    from albert_tools.surfaces.exports.langchain import langchain_tools

    return {tool.name: tool for tool in langchain_tools(service, session=token)}


def called(tool: Any, **arguments: Any) -> Any:
    """The tool message that answers a model's call."""
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})


def test_an_agent_loop_of_a_scripted_model(service: SyncToolService, token: str, folder: Path) -> None:
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    tools = tools_of(service, token)
    source = "def shout(text: str) -> str:\n    '''Shout.\n\n    Args:\n        text: Words.\n    '''\n    return text.upper()\n"
    calls = [("define_tool", {"source": source}), ("run_tool", {"name": "shout", "arguments": {"text": "hello"}})]
    script = [AIMessage("", tool_calls=[{"name": n, "args": a, "id": n}]) for n, a in calls]
    model = FakeMessagesListChatModel(responses=[*script, AIMessage("done")])
    messages: list[Any] = [HumanMessage("Write a tool that shouts, and use it.")]
    while calls_of := (messages.append(model.invoke(messages)) or messages[-1].tool_calls):
        messages += [tools[call["name"]].invoke(call) for call in calls_of]
    assert [m.content for m in messages[-2:]] == ["HELLO", "done"]
    assert messages[-2].artifact["run_id"]


def test_a_model_gets_the_schemas(service: SyncToolService, token: str) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    spec = convert_to_openai_tool(tools_of(service, token)["area"])["function"]
    assert spec["description"] == "Compute an area."
    scale = {"type": "integer", "description": "A factor.", "default": 1}
    assert spec["parameters"]["properties"]["scale"] == scale
    assert spec["parameters"]["required"] == ["size"]


def test_the_session_decides_what_is_offered(service: SyncToolService) -> None:
    _, token = service.open_session("a test", tools=["read_file", "count_letters"])
    offered = set(tools_of(service, token))
    assert {"search_tools", "run_tool", "read_file", "count_letters"} <= offered
    assert offered.isdisjoint({"define_tool", "write_file", "area"})


def test_the_list_is_up_to_date_and_keeps_unchanged_tools(service: SyncToolService, token: str) -> None:
    from albert_tools.surfaces.exports.langchain import langchain_tools

    tools = langchain_tools(service, session=token)
    before = [*tools]
    service.define('def shout() -> str:\n    """Shout."""\n    return "HEY"\n')
    assert [*tools] == before
    service.approve("shout", by="a test")
    after = [*tools]
    assert [tool.name for tool in after if tool not in before] == ["shout"]
    assert all(any(new is old for new in after) for old in before)


def test_outputs_are_text_and_the_result_is_the_artifact(service: SyncToolService, token: str) -> None:
    tools = tools_of(service, token)
    counted = called(tools["count_letters"], text="abca", config="a")
    assert (counted.content, counted.status) == ('{"a":2}', "success")
    assert (counted.artifact["output"], counted.artifact["log"]) == ({"a": 2}, "counting\n")
    assert tools["read_file"].invoke({"path": "notes.txt"}) == "a cat"
    assert tools["crm-find"].invoke({"name": "Ada"}) == "Ada of the CRM"


def test_failures_are_messages_with_a_hint(service: SyncToolService, token: str, folder: Path) -> None:
    tools = tools_of(service, token)
    broken = called(tools["break_down"])
    assert (broken.status, broken.content) == (
        "error",
        "not_found: there is nothing to break down\nhint: look elsewhere",
    )
    assert called(tools["area"], size={"width": "2"}, scael=1).content.startswith("invalid_arguments: ")
    refused = called(tools["define_tool"], source="def t(:\n")
    assert refused.status == "error"
    assert "invalid_source: " in refused.content
    waits = called(tools["write_file"], path="new.txt", content="x")
    assert "albert approvals answer" in waits.content
    assert not (folder / "new.txt").exists()


def test_an_answered_question_lets_the_call_pass(service: SyncToolService, token: str, folder: Path) -> None:
    write = tools_of(service, token)["write_file"]
    called(write, path="new.txt", content="x")
    (question,) = service.within(lambda inner: inner.approvals.all(["open"]))
    service.within(lambda inner: inner.approvals.answer(question.id, "once", by="a test"))
    assert called(write, path="new.txt", content="x").status == "success"
    assert (folder / "new.txt").read_text() == "x"


def test_a_waiting_tool_goes_on_where_it_waits(service: SyncToolService, token: str, folder: Path) -> None:
    source = (
        "def two(path: str) -> str:\n    '''Write two files.\n\n    Args:\n        path: A name.\n    '''\n"
        "    tools.write_file(path=path, content='1', create_only=True)\n"
        "    tools.write_file(path=f'{path}2', content='2', create_only=True)\n    return 'written'\n"
    )
    service.define(source)
    run = tools_of(service, token)["run_tool"]
    for _ in range(2):
        waits = called(run, name="two", arguments={"path": "a"})
        assert "; then make the same call again" in waits.content
        (question,) = service.within(lambda inner: inner.approvals.all(["open"]))
        service.within(lambda inner, id=question.id: inner.approvals.answer(id, "once", by="a test"))
    assert called(run, name="two", arguments={"path": "a"}).content == "written"
    assert ((folder / "a").read_text(), (folder / "a2").read_text()) == ("1", "2")


async def test_an_asynchronous_service_serves_asynchronous_agents(tmp_path: Path, folder: Path) -> None:
    async with ToolService.open(home=tmp_path / "home", workspace=folder) as service:
        _, token = service.open_session("a test")
        read = tools_of(service, token)["read_file"]
        assert await read.ainvoke({"path": "notes.txt"}) == "a cat"
        with pytest.raises(TypeError, match="open a SyncToolService"):
            read.invoke({"path": "notes.txt"})


async def test_a_cancelled_agent_cancels_the_call(service: SyncToolService, token: str) -> None:
    agent = asyncio.create_task(tools_of(service, token)["wait_long"].ainvoke({}))
    await asyncio.to_thread(PARK.entered.wait, 30)
    agent.cancel()
    await asyncio.to_thread(PARK.cancelled.wait, 30)
    assert PARK.cancelled.is_set()
