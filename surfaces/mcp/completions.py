"""Completes the arguments of the prompt and the variable parts of resources' addresses: names of tools, topics of the help."""

from __future__ import annotations

from mcp import types

from albert_tools.engine.agent.language_help import topics
from albert_tools.surfaces.mcp.offers import Offers
from albert_tools.surfaces.mcp.pages import HELP_URI, TOOL_URI

#: The most values of an answer, which MCP says.
MAX_VALUES = 100


async def complete(offers: Offers, token: str, params: types.CompleteRequestParams) -> types.CompleteResult:
    """The values that begin with what is written. Raises MCPError if the session has ended."""
    written, before = params.argument.value, ""
    match params.ref, params.argument.name:
        case types.PromptReference(), "tools":
            # The argument has several names. The last one is completed.
            before, comma, written = written.rpartition(",")
            before += comma
            known = await offers.names(token)
        case types.ResourceTemplateReference(uri=uri), "name" if uri.startswith(TOOL_URI):
            known = await offers.names(token)
        case types.ResourceTemplateReference(uri=uri), "topic" if uri.startswith(HELP_URI):
            known = [*topics()]
        case _:
            known = []
    matches = [before + value for value in known if value.startswith(written.strip())]
    completion = types.Completion(values=matches[:MAX_VALUES], total=len(matches), has_more=len(matches) > MAX_VALUES)
    return types.CompleteResult(completion=completion)
