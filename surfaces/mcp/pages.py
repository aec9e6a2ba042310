"""Resources and prompts: the guide, pages about the language, sources of saved tools, and outputs that were too large.

Each is read by a call of one of the agent's own tools in the client's session, so the lease and the rules apply, and the record
shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from albert_tools.engine.agent.texts import failure_text, plain
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.offers import NUMBER, Offers, page_of
from albert_tools.surfaces.mcp.results import RESULT_URI

GUIDE_URI, HELP_URI, TOOL_URI = "albert://guide", "albert://help/", "albert://tools/"
#: Bytes of a large output that one reading returns. `read_result` reads any part of a larger one.
MAX_RESOURCE = 4 * 1024 * 1024
_PART = 256 * 1024
_GUIDE = types.Prompt(
    name="guide",
    description="How to find, run and write tools here. Give it to a model as its instructions.",
    arguments=[
        types.PromptArgument(
            name="tools", description="Names of tools whose signatures it shows, separated by commas."
        ),
        types.PromptArgument(name="tokens", description="The most tokens that it may have."),
    ],
)

Context = ServerRequestContext[Any, Any]


class Pages:
    """Answers the requests about resources and prompts."""

    def __init__(self, service: ToolService, offers: Offers, token: Callable[[], str]) -> None:
        self._service = service
        self._offers = offers
        self._token = token

    async def resources(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The guide, the pages about the language, and the sources of the active saved tools."""
        resources = [
            types.Resource(uri=GUIDE_URI, name="guide", description=_GUIDE.description, mime_type="text/markdown"),
            types.Resource(uri=HELP_URI, name="help", description="The topics of the help.", mime_type="text/markdown"),
        ]
        resources += [
            types.Resource(
                uri=TOOL_URI + name, name=name, description=f"The source of {name}.", mime_type="text/x-python"
            )
            for name in await self._offers.saved(self._token())
        ]
        page, following = page_of(params.cursor if params is not None else None, resources)
        return types.ListResourcesResult(resources=page, next_cursor=following)

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The addresses that have a variable part."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=TOOL_URI + "{name}",
                    name="tool",
                    description="The source of a saved tool, or the description of a primitive.",
                ),
                types.ResourceTemplate(
                    uri_template=HELP_URI + "{topic}", name="help", description="A page about the language or a code."
                ),
                types.ResourceTemplate(
                    uri_template=RESULT_URI + "{handle}", name="result", description="An output that was too large."
                ),
            ]
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The text at an address. Raises MCPError."""
        uri = plain(params.uri)
        mime = "text/markdown"
        try:
            if uri == GUIDE_URI:
                text = await self._guide([], None)
            elif uri.startswith(HELP_URI):
                text = (await self._called("language_help", topic=unquote(uri.removeprefix(HELP_URI))))["text"]
            elif uri.startswith(TOOL_URI):
                described = await self._called("describe_tool", name=unquote(uri.removeprefix(TOOL_URI)))
                source = described.get("source")
                text = source or msgspec.json.format(msgspec.json.encode(plain(described))).decode()
                mime = "text/x-python" if source else "application/json"
            elif uri.startswith(RESULT_URI):
                text, mime = await self._result(unquote(uri.removeprefix(RESULT_URI))), "text/plain"
            else:
                raise MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri})
        except Failure as failure:
            raise MCPError(types.INVALID_PARAMS, failure_text(failure), {"uri": uri}) from failure
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=mime, text=plain(text))]
        )

    async def _result(self, handle: str) -> str:
        """A stored output."""
        parts, offset = list[str](), 0
        while True:
            part = await self._called("read_result", handle=handle, offset=offset, limit=_PART)
            if part["size_bytes"] > MAX_RESOURCE:
                raise Failure(
                    "too_large",
                    f"the output has {part['size_bytes']:,} bytes, and a resource has at most {MAX_RESOURCE:,}",
                    hint="read parts of it with the tool read_result",
                )
            parts.append(part["content"])
            if part["next_offset"] is None:
                return "".join(parts)
            offset = part["next_offset"]

    async def _called(self, tool: str, **arguments: Json) -> Any:
        return (await self._service.invoke(tool, arguments, session=self._token())).value()

    async def prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """The prompts."""
        return types.ListPromptsResult(prompts=[_GUIDE])

    async def prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A prompt. Raises MCPError."""
        given = params.arguments or {}
        tokens = given.get("tokens", "")
        if params.name != _GUIDE.name or (tokens and not re.fullmatch(NUMBER, tokens)):
            raise MCPError(types.INVALID_PARAMS, "there is the prompt guide(tools, tokens); tokens is a whole number")
        named = [name.strip() for name in given.get("tools", "").split(",") if name.strip()]
        try:
            text = await self._guide(named, int(tokens) if tokens else None)
        except Failure as failure:
            raise MCPError(types.INVALID_PARAMS, failure_text(failure)) from failure
        message = types.PromptMessage(role="user", content=types.TextContent(text=plain(text)))
        return types.GetPromptResult(description=_GUIDE.description, messages=[message])

    async def _guide(self, tools: list[str], tokens: int | None) -> str:
        return await self._service.guide(tools, tokens, session=self._token())
