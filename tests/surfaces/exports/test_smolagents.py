"""The tools in smolagents: an agent that makes calls, and one that writes code, with models that are scripts."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import SyncToolService

pytestmark = pytest.mark.surfaces


def model_of(*messages: Any) -> Any:
    """A model that says these messages: a text, or a call as name and arguments."""
    from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model

    script = iter(messages)

    class Scripted(Model):
        def generate(self, *_: Any, **__: Any) -> ChatMessage:
            said = next(script)
            if isinstance(said, str):
                return ChatMessage(MessageRole.ASSISTANT, said)
            name, arguments = said
            call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), name, "function")
            return ChatMessage(MessageRole.ASSISTANT, "", [call])

    return Scripted()


def tools_of(service: SyncToolService, token: str) -> list[Any]:
    from albert_tools.surfaces.exports.smolagents import smolagents_tools

    return smolagents_tools(service, session=token)


def test_an_agent_that_makes_calls(service: SyncToolService, token: str) -> None:
    from smolagents import LogLevel, ToolCallingAgent

    calls = [
        ("count_letters", {"text": "abca", "config": "a"}),
        ("area", {"size": {"width": 2, "height": 3}, "unit": None, "scale": None}),
        ("break_down", {}),
        ("write_file", {"path": "a", "content": "b"}),
        ("final_answer", {"answer": "done"}),
    ]
    agent = ToolCallingAgent(tools=tools_of(service, token), model=model_of(*calls), verbosity_level=LogLevel.OFF)
    assert agent.run("Do it.") == "done"
    counted, area, broken, waits, _ = agent.memory.steps[1:]
    assert (counted.observations, area.observations) == ("{'a': 2}", "6 None")
    assert "not_found: there is nothing to break down\nhint: look elsewhere" in broken.error.message
    assert "albert approvals answer" in waits.error.message


def test_a_program_of_a_code_agent_gets_values_and_catches_failures(service: SyncToolService, token: str) -> None:
    from smolagents import CodeAgent, LogLevel

    program = (
        "try:\n    break_down()\nexcept Exception as error:\n    print(error)\n"
        "final_answer([count_letters(text=read_file(path='notes.txt'))['a'], crm__find(name='Ada')])"
    )
    agent = CodeAgent(
        tools=tools_of(service, token), model=model_of(f"<code>{program}</code>"), verbosity_level=LogLevel.OFF
    )
    assert agent.run("Count.") == [2, "Ada of the CRM"]
    assert "not_found: there is nothing to break down" in agent.memory.steps[1].observations


def test_every_offered_tool_is_a_tool_of_smolagents(service: SyncToolService, token: str) -> None:
    tools = tools_of(service, token)
    assert [t.name for t in tools] == [o.name.replace(".", "__") for o in service.offered(session=token)]
    area = next(t for t in tools if t.name == "area")
    assert area.inputs == {
        "size": {"type": "object", "description": "The size."},
        "unit": {"type": "any", "description": "Its unit.", "nullable": True},
        "scale": {"type": "integer", "description": "A factor.", "nullable": True},
    }
    assert "def area(" in area.to_code_prompt()
