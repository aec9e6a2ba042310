"""Completes the arguments of the prompt and the variable parts of resources' addresses: names of tools, topics of the help."""

from __future__ import annotations

from mcp import types

from albert_tools.engine.agent.language_help import topics
from albert_tools.surfaces.mcp.offers import Offers
from albert_tools.surfaces.mcp.pages import HELP_URI, TOOL_URI

#: The most values of an answer, which MCP says, and the characters that they may repeat. Each value repeats what is written before
#: it, so there are fewer values after a long list of names.
MAX_VALUES, MAX_REPEATED = 100, 100_000


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
    matches = [value for value in known if value.startswith(written.strip())]
    values = [before + value for value in matches[: min(MAX_VALUES, MAX_REPEATED // max(1, len(before)))]]
    completion = types.Completion(values=values, total=len(matches), has_more=len(values) < len(matches))
    return types.CompleteResult(completion=completion)
