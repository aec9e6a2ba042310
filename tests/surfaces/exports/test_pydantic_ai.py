"""The toolset in pydantic-ai, with its own function model and test model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolService
from tests.surfaces.exports.conftest import PARK

pytestmark = pytest.mark.surfaces


def agent_of(
    service: Any, token: str, *calls: tuple[str, Any] | list[tuple[str, Any]], seen: list[Any] | None = None
) -> Any:
    """An agent whose model makes these calls, each in one message, or several calls in one message; then it says "done"."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from albert_tools.surfaces.exports.pydantic_ai import AlbertToolset

    script = iter(calls)

    def reply(messages: list[Any], info: AgentInfo) -> ModelResponse:
        if seen is not None:
            seen.append(info)
        made = next(script, None)
        if made is None:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(*call) for call in (made if isinstance(made, list) else [made])])

    return Agent(FunctionModel(reply), toolsets=[AlbertToolset(service, session=token)])


def answers(run: Any) -> list[Any]:
    """The parts that answered the model's calls."""
    return [part for m in run.all_messages() for part in m.parts if part.part_kind in ("tool-return", "retry-prompt")]


def test_outputs_are_values(service: SyncToolService, token: str) -> None:
    run = agent_of(
        service,
        token,
        ("count_letters", {"text": "abca"}),
        ("area", '{"size": {"width": 2, "height": 3}, "unit": null}'),
        [("read_file", {"path": "notes.txt"}), ("crm-find", {"name": "Ada"}), ("search_tools", {"query": "letters"})],
    ).run_sync("Count.")
    counted, area, text, customer, found = (part.content for part in answers(run))
    assert (counted, area) == ({"a": 2, "b": 1, "c": 1}, "6 None")
    assert (text, customer) == ("a cat", "Ada of the CRM")
    assert found["tools"][0]["name"] == "count_letters"
    assert run.output == "done"


def test_failures_are_failed_results_however_many(service: SyncToolService, token: str) -> None:
    calls = [("break_down", {})] * 4 + [("area", {"size": 1}), ("write_file", {"path": "a", "content": "b"})]
    run = agent_of(service, token, *calls).run_sync("Break it.")
    broken, *_, wrong, waits = answers(run)
    assert (broken.outcome, broken.content) == (
        "failed",
        "not_found: there is nothing to break down\nhint: look elsewhere",
    )
    assert wrong.content.startswith("invalid_arguments: ")
    assert "albert approvals answer" in waits.content
    assert run.output == "done"


def test_a_tool_that_becomes_active_appears_in_the_next_step(service: SyncToolService, token: str) -> None:
    source = "def shout(text: str) -> str:\n    '''Shout.\n\n    Args:\n        text: Words.\n    '''\n    return text.upper()\n"
    seen: list[Any] = []
    agent = agent_of(service, token, ("define_tool", {"source": source}), ("shout", {"text": "a"}), seen=seen)

    async def activating() -> Any:
        async with agent.iter("Shout.") as steps:
            async for _ in steps:
                if any(tool.name == "shout" for tool in service.list(family="saved")):
                    service.approve("shout", by="a test")
            return steps.result

    run = asyncio.run(activating())
    assert [any(tool.name == "shout" for tool in step.function_tools) for step in seen] == [False, True, True]
    assert answers(run)[-1].content == "A"


def test_tools_that_change_something_run_one_after_the_other(service: SyncToolService, token: str) -> None:
    seen: list[Any] = []
    agent_of(service, token, seen=seen).run_sync("Nothing.")
    sequential = {tool.name: tool.sequential for tool in seen[0].function_tools}
    assert (sequential["write_file"], sequential["read_file"]) == (True, False)


def test_the_test_model_calls_every_tool(service: SyncToolService) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from albert_tools.surfaces.exports.pydantic_ai import AlbertToolset

    _, token = service.open_session("a test", tools=["read_file", "count_letters", "area"])
    agent = Agent(TestModel(), toolsets=[AlbertToolset(service, session=token, id="albert")])
    run = agent.run_sync("Call everything.")
    assert {"read_file", "count_letters", "area", "run_tool"} <= {part.tool_name for part in answers(run)}


async def test_an_asynchronous_service(tmp_path: Path, folder: Path) -> None:
    async with ToolService.open(home=tmp_path / "home", workspace=folder) as service:
        _, token = service.open_session("a test")
        run = await agent_of(service, token, ("read_file", {"path": "notes.txt"})).run("Read.")
        assert answers(run)[0].content == "a cat"


async def test_a_cancelled_agent_cancels_the_call(service: SyncToolService, token: str) -> None:
    PARK.entered.clear()
    agent = asyncio.create_task(agent_of(service, token, ("wait_long", {})).run("Wait."))
    assert await asyncio.to_thread(PARK.entered.wait, 30)
    agent.cancel()
    assert await asyncio.to_thread(PARK.cancelled.wait, 30)
