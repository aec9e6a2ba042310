"""An agent in LangChain writes a tool. When a person has approved it, the agent calls it by its name.

The model is a script, so that the example runs everywhere: put a chat model of LangChain in its place. Run it with
``python examples/frameworks/langchain_agent.py``, after ``pip install 'albert-tools[langchain]'``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from albert_tools import SyncToolService
from albert_tools.surfaces.exports.langchain import langchain_tools

SOURCE = '''def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()
'''


class Scripted(BaseChatModel):
    """A model whose answers are known. It calls a tool only if it was offered."""

    answers: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(offered=[tool.name for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, offered: list[str], **__: Any) -> ChatResult:
        answer = self.answers.pop(0)
        if not isinstance(answer, str):
            name, arguments = answer
            assert name in offered, f"{name} is not offered"
            message = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])
        else:
            message = AIMessage(answer.format(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=message)])


def main() -> None:
    """Two messages of a user, with a review between them."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with SyncToolService.open(home=Path(folder, "albert"), workspace=workspace) as service:
            _, token = service.open_session("the LangChain agent")
            tools = langchain_tools(service, session=token)
            model = Scripted(
                answers=[
                    ("define_tool", {"source": SOURCE}),
                    "It is defined.",
                    ("shout", {"text": "hello"}),
                    "It says {}.",
                ]
            )
            messages: list[BaseMessage] = [SystemMessage(service.guide(session=token))]

            def ask(text: str) -> str:
                messages.append(HumanMessage(text))
                while True:
                    # Binding the list again offers what was approved meanwhile.
                    answer = model.bind_tools(tools).invoke(messages)
                    messages.append(answer)
                    if not answer.tool_calls:
                        return str(answer.content)
                    named = {tool.name: tool for tool in tools}
                    messages.extend(named[call["name"]].invoke(call) for call in answer.tool_calls)

            print(ask("Write a tool that shouts."))
            service.approve("shout", by="a person, who has read it")
            print(ask("Shout: hello"))


if __name__ == "__main__":
    main()
