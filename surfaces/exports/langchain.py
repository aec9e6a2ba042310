"""Tools for LangChain and LangGraph. A failure is a tool message with the status ``error``, which the model reads."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.agent.texts import failure_text, output_text
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.exports.agent import Agent, LiveTools, Service


def langchain_tools(service: Service, *, session: str) -> LiveTools[BaseTool]:
    """The tools that a session is offered, in the service's order. Each iteration brings the list up to date.

    The message of a successful call contains the output as text, and its `artifact` is the result as JSON, with effects and run.
    The tools of an asynchronous service can only be called by asynchronous agents.

    Args:
        service: An open service.
        session: The token of the session in which the agent works.
    """
    agent = Agent(service, session)
    return LiveTools(agent, partial(_Tool, agent))


class _Tool(BaseTool):
    def __init__(self, agent: Agent, name: str, offer: Offer) -> None:
        super().__init__(
            name=name,
            description=offer.description,
            args_schema=offer.parameters,
            response_format="content_and_artifact",
            handle_tool_error=True,
        )
        self._call = partial(agent.call, offer)
        self._acall = partial(agent.acall, offer)

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # One positional argument, because a tool may have a parameter with a name that LangChain uses itself, such as `config`.
        return (tool_input,), {}

    def _run(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return _answer(self._call(arguments))

    async def _arun(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return _answer(await self._acall(arguments))


def _answer(result: ToolResult) -> tuple[str, dict[str, Any]]:
    if result.error is not None:
        raise ToolException(failure_text(result.error))
    return output_text(result.output), result.as_dict()
