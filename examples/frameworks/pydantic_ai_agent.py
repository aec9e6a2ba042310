"""An agent in pydantic-ai writes a tool. When a person has approved it, the agent calls it by its name.

The model is a script, so that the example runs everywhere: name a model of yours in its place. Run it with
``python examples/frameworks/pydantic_ai_agent.py``, after ``pip install 'albert-tools[pydantic-ai]'``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from albert_tools import SyncToolService
from albert_tools.surfaces.exports.pydantic_ai import AlbertToolset

SOURCE = '''def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()
'''


def scripted(*answers: str | tuple[str, dict[str, str]]) -> FunctionModel:
    """A model whose answers are known. It calls a tool only if it was offered."""
    script = iter(answers)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = next(script)
        if isinstance(said, str):
            last: Any = messages[-1].parts[-1]
            return ModelResponse([TextPart(said.format(last.content))])
        name, arguments = said
        assert name in [tool.name for tool in info.function_tools], f"{name} is not offered"
        return ModelResponse([ToolCallPart(name, arguments)])

    return FunctionModel(answer)


def main() -> None:
    """Two messages of a user, with a review between them."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with SyncToolService.open(home=Path(folder, "albert"), workspace=workspace) as service:
            _, token = service.open_session("the pydantic-ai agent")
            model = scripted(
                ("define_tool", {"source": SOURCE}), "It is defined.", ("shout", {"text": "hello"}), "It says {}."
            )
            # The toolset lists the tools before each step, so it has what was approved meanwhile.
            agent = Agent(
                model,
                toolsets=[AlbertToolset(service, session=token)],
                instructions=service.guide(session=token),
            )
            first = agent.run_sync("Write a tool that shouts.")
            print(first.output)
            service.approve("shout", by="a person, who has read it")
            print(agent.run_sync("Shout: hello", message_history=first.all_messages()).output)


if __name__ == "__main__":
    main()
