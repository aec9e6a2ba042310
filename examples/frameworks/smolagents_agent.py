"""An agent in smolagents writes a tool. When a person has approved it, the agent calls it by its name.

The model is a script, so that the example runs everywhere: put a model of smolagents in its place. Run it with
``python examples/frameworks/smolagents_agent.py``, after ``pip install 'albert-tools[smolagents]'``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from smolagents import LogLevel, Model, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from albert_tools import SyncToolService
from albert_tools.surfaces.exports.smolagents import smolagents_tools

SOURCE = '''def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()
'''


class Scripted(Model):
    """A model whose calls are known. It calls a tool only if it was offered."""

    def __init__(self, *calls: tuple[str, dict[str, str]]) -> None:
        super().__init__()
        self._calls = iter(calls)

    def generate(self, messages: Any, *, tools_to_call_from: Any = (), **_: Any) -> ChatMessage:
        name, arguments = next(self._calls)
        assert name in [tool.name for tool in tools_to_call_from], f"{name} is not offered"
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), name, "function")
        return ChatMessage(MessageRole.ASSISTANT, "", [call])


def main() -> None:
    """Two messages of a user, with a review between them."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with SyncToolService.open(home=Path(folder, "albert"), workspace=workspace) as service:
            _, token = service.open_session("the smolagents agent")
            model = Scripted(
                ("define_tool", {"source": SOURCE}),
                ("final_answer", {"answer": "It is defined."}),
                ("shout", {"text": "hello"}),
                ("final_answer", {"answer": "It says HELLO."}),
            )
            tools = smolagents_tools(service, session=token)
            agent = ToolCallingAgent(
                tools=tools,
                model=model,
                instructions=service.guide(session=token),
                step_callbacks=[tools.update],
                verbosity_level=LogLevel.OFF,
            )
            print(agent.run("Write a tool that shouts."))
            service.approve("shout", by="a person, who has read it")
            # The agent has a copy of the list. It is updated after each step, and here before the next one.
            tools.update(None, agent)
            print(agent.run("Shout: hello", reset=False))
            print(agent.memory.steps[-2].observations)


if __name__ == "__main__":
    main()
