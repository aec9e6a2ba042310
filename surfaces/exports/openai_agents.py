"""Tools for the OpenAI Agents SDK. A failure is the text that the tool returns, which the model reads."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.agent.texts import failure_text, output_text
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.exports.agent import Agent, LiveTools, Service


def openai_agents_tools(service: Service, *, session: str) -> LiveTools[FunctionTool]:
    """The tools that a session is offered, in the service's order. Each iteration brings the list up to date.

    Args:
        service: An open service.
        session: The token of the session in which the agent works.
    """
    agent = Agent(service, session)
    return LiveTools(agent, partial(_tool, agent))


def _tool(agent: Agent, name: str, offer: Offer) -> FunctionTool:
    async def invoke(context: ToolContext[Any], given: str) -> str:
        try:
            arguments = json.loads(given or "{}")
        except (ValueError, RecursionError) as error:
            message = f"the arguments are not JSON: {error}"
            return failure_text(Failure("invalid_arguments", message, hint="write one JSON object"))
        result = await agent.acall(offer, arguments)
        return output_text(result.output) if result.error is None else failure_text(result.error)

    # The strict mode of schemas knows no optional parameters.
    return FunctionTool(name, offer.description, offer.parameters, invoke, strict_json_schema=False)
