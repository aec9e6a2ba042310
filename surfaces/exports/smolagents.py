"""Tools for smolagents. A failure is an exception, which smolagents reports to the model, and which a program of a code agent can
catch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from smolagents import Tool
from smolagents.tools import AUTHORIZED_TYPES

from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.agent.texts import failure_text
from albert_tools.service import SyncToolService
from albert_tools.surfaces.exports.agent import Agent, LiveTools


def smolagents_tools(service: SyncToolService, *, session: str) -> SmolagentsTools:
    """The tools that a session is offered, in the service's order. A code agent reads about new ones when its next run begins.

    Args:
        service: An open service. smolagents calls tools synchronously, so this is a `SyncToolService`.
        session: The token of the session in which the agent works.
    """
    agent = Agent(service, session)
    return SmolagentsTools(agent, partial(_Tool, agent))


class SmolagentsTools(LiveTools[Tool]):
    """The tools as a list. An agent copies it, and `update` brings the copy up to date: ``step_callbacks=[tools.update]``."""

    def update(self, step: object, agent: Any) -> None:
        """Give an agent the tools that are offered now. smolagents calls this after a step; call it with None before a run."""
        kept = {name: tool for name, tool in agent.tools.items() if not isinstance(tool, _Tool)}
        agent.tools = {tool.name: tool for tool in self} | kept


class ToolFailed(Exception):
    """A failure of a tool: its code, its message and what to do."""


class _Tool(Tool):
    output_type = "any"
    # The parameters of `forward` are those of the service's tool.
    skip_forward_signature_validation = True

    def __init__(self, agent: Agent, name: str, offer: Offer) -> None:
        self.agent, self.offer = agent, offer
        # A code agent calls a tool as a function, so its name is a name of Python.
        self.name, self.description = name.replace("-", "__"), offer.description
        required = offer.parameters.get("required", ())
        self.inputs = {
            key: _input(schema, key in required) for key, schema in offer.parameters.get("properties", {}).items()
        }
        if offer.result.get("type") == "object":
            self.output_schema = offer.result
        super().__init__()

    def forward(self, **arguments: Any) -> Any:
        # Models pass null for a parameter that they leave out.
        given = {k: v for k, v in arguments.items() if v is not None or self.inputs[k]["type"] == "any"}
        result = self.agent.call(self.offer, given)
        if result.error is not None:
            raise ToolFailed(failure_text(result.error))
        return result.output


def _input(schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    """A parameter as smolagents declares it. It knows the plain types of JSON Schema; any other type is ``any``."""
    kind = schema.get("type", "any")
    known = kind if isinstance(kind, str) and kind in AUTHORIZED_TYPES else "any"
    nullable = {} if required else {"nullable": True}
    return {"type": known, "description": schema.get("description", ""), **nullable}
