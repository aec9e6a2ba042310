"""An agent in the OpenAI Agents SDK writes a tool. When a person has approved it, the agent calls it by its name.

The model is a script, so that the example runs everywhere: leave out `model` to use OpenAI's. Run it with
``python examples/frameworks/openai_agents_agent.py``, after ``pip install 'albert-tools[openai-agents]'``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from albert_tools import SyncToolService
from albert_tools.surfaces.exports.openai_agents import openai_agents_tools

SOURCE = '''def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()
'''


class Scripted(Model):
    """A model whose answers are known. It calls a tool only if it was offered."""

    def __init__(self, *answers: str | tuple[str, dict[str, str]]) -> None:
        self._answers = iter(answers)

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: list[Any], *_: Any, **__: Any
    ) -> ModelResponse:
        answer = next(self._answers)
        output: Any
        if isinstance(answer, str):
            said = answer.format(input[-1].get("output", "") if isinstance(input, list) else "")
            text = ResponseOutputText(annotations=[], text=said, type="output_text")
            output = ResponseOutputMessage(
                id="message", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            name, arguments = answer
            assert name in [tool.name for tool in tools], f"{name} is not offered"
            output = ResponseFunctionToolCall(
                call_id=name, name=name, arguments=json.dumps(arguments), type="function_call"
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield


def main() -> None:
    """Two messages of a user, with a review between them."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with SyncToolService.open(home=Path(folder, "albert"), workspace=workspace) as service:
            _, token = service.open_session("the OpenAI agent")
            model = Scripted(
                ("define_tool", {"source": SOURCE}), "It is defined.", ("shout", {"text": "hello"}), "It says {}."
            )
            # The SDK reads the list at each turn, so it has what was approved meanwhile.
            agent = Agent(
                name="Albert",
                model=model,
                tools=openai_agents_tools(service, session=token),
                instructions=service.guide(session=token),
            )
            config = RunConfig(tracing_disabled=True)
            first = Runner.run_sync(agent, "Write a tool that shouts.", run_config=config)
            print(first.final_output)
            service.approve("shout", by="a person, who has read it")
            message: Any = {"role": "user", "content": "Shout: hello"}
            print(Runner.run_sync(agent, [*first.to_input_list(), message], run_config=config).final_output)


if __name__ == "__main__":
    main()
