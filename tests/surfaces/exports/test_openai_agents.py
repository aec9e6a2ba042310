"""The tools in the OpenAI Agents SDK, with a model that is a script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolService

pytestmark = pytest.mark.surfaces


def run(service: Any, token: str, *calls: tuple[str, str]) -> Any:
    """Run an agent whose model makes these calls and then says "done"."""
    from agents import Runner

    agent, config = _agent(service, token, calls)
    return Runner.run_sync(agent, "Do it.", run_config=config)


def _agent(service: Any, token: str, calls: Any) -> Any:
    from agents import Agent, Model, ModelResponse, RunConfig, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from albert_tools.surfaces.exports.openai_agents import openai_agents_tools

    script = iter(enumerate(calls))

    class Scripted(Model):
        async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
            made = next(script, None)
            output: Any
            if made is None:
                text = ResponseOutputText(annotations=[], text="done", type="output_text")
                output = ResponseOutputMessage(
                    id="end", content=[text], role="assistant", status="completed", type="message"
                )
            else:
                number, (name, arguments) = made
                output = ResponseFunctionToolCall(
                    call_id=f"c{number}", name=name, arguments=arguments, type="function_call"
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            raise NotImplementedError
            yield

    tools = openai_agents_tools(service, session=token)
    return Agent(name="Albert", model=Scripted(), tools=tools), RunConfig(tracing_disabled=True)


def outputs(result: Any) -> list[str]:
    """The texts that answered the model's calls."""
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def test_outputs_and_failures_are_texts(service: SyncToolService, token: str) -> None:
    result = run(
        service,
        token,
        ("count_letters", json.dumps({"text": "äa"})),
        ("read_file", json.dumps({"path": "notes.txt"})),
        ("crm-find", json.dumps({"name": "Ada"})),
        ("break_down", ""),
        ("area", '{"size": '),
        ("area", "[1]"),
        ("write_file", json.dumps({"path": "a", "content": "b"})),
    )
    counted, text, customer, broken, cut, listed, waits = outputs(result)
    assert (counted, text, customer) == ('{"a":1,"ä":1}', "a cat", "Ada of the CRM")
    assert broken == "not_found: there is nothing to break down\nhint: look elsewhere"
    assert cut.startswith("invalid_arguments: the arguments are not JSON")
    assert listed.startswith("invalid_arguments: ")
    assert "albert approvals answer" in waits
    assert result.final_output == "done"


def test_schemas_keep_their_optional_parameters(service: SyncToolService, token: str) -> None:
    from albert_tools.surfaces.exports.openai_agents import openai_agents_tools

    tool = next(t for t in openai_agents_tools(service, session=token) if t.name == "area")
    assert not tool.strict_json_schema
    assert tool.params_json_schema["required"] == ["size"]


async def test_an_asynchronous_service(tmp_path: Path, folder: Path) -> None:
    from agents import Runner

    async with ToolService.open(home=tmp_path / "home", workspace=folder) as service:
        _, token = service.open_session("a test")
        agent, config = _agent(service, token, [("read_file", '{"path": "notes.txt"}')])
        result = await Runner.run(agent, "Read.", run_config=config)
        assert outputs(result) == ["a cat"]
