"""A toolset for pydantic-ai. Each step of an agent's run lists the tools anew, so a newly activated tool appears at once."""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext, ToolDefinition, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from albert_tools.engine.agent.texts import failure_text, plain
from albert_tools.surfaces.exports.agent import Agent, Service

#: The service checks the arguments, and reports all mistakes at once.
_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema())


class AlbertToolset(AbstractToolset[Any]):
    """The tools that a session is offered. A failure is a failed tool result, which the model reads.

    Args:
        service: An open service.
        session: The token of the session in which the agent works.
        id: The toolset's name for durable execution.
    """

    def __init__(self, service: Service, *, session: str, id: str | None = None) -> None:
        self._agent = Agent(service, session)
        self._id = id

    @property
    def id(self) -> str | None:
        """The toolset's name."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools that the session is offered now. Tools that change something run one after the other."""
        tools = {}
        for name, offer in (await self._agent.aoffers()).items():
            definition = ToolDefinition(
                name=name,
                description=offer.description,
                parameters_json_schema=offer.parameters,
                return_schema=offer.result or None,
                sequential=not offer.reads_only,
                metadata={"offer": offer},
            )
            tools[name] = ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=_ANY_ARGUMENTS)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool, and return its output.

        Raises:
            ToolFailed: The failure, for the model.
        """
        assert tool.tool_def.metadata is not None
        result = await self._agent.acall(tool.tool_def.metadata["offer"], tool_args)
        if result.error is not None:
            raise ToolFailed(failure_text(result.error))
        return plain(result.output)
