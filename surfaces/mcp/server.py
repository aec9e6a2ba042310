"""The MCP server of one service: the handlers of all requests, for every transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from albert_tools import __version__
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.announcements import Announcements
from albert_tools.surfaces.mcp.calls import Calls
from albert_tools.surfaces.mcp.completions import complete
from albert_tools.surfaces.mcp.offers import Offers
from albert_tools.surfaces.mcp.pages import Pages
from albert_tools.surfaces.mcp.questions import state_key
from albert_tools.surfaces.mcp.request_limits import turn_limit

NAME = "albert-tools"
#: Seconds in which a client may answer a question by repeating the call. The question itself stays open for longer.
ANSWER_SECONDS = 24 * 3600.0
#: A hammer over a line of text.
ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1f4e5f"/>'
    '<path d="M4 4h6v2l2-2v4l-2-1v1H8v6H6V8H4z" fill="#fff"/></svg>'
)
_INSTRUCTIONS = """\
Tools of the user's workspace, and tools that you write yourself. Before you write a tool, look for one with `search_tools`; \
`run_tool` runs each tool that it finds. The prompt `guide` describes the language of tools, `check_tool` checks a source, and \
`define_tool` saves it. A call that says "waits for an answer" needs a person: report that, and make the same call again later."""


class _Server(Server[Any]):
    """Says which lists change. By itself the SDK tells older clients that none does, and newer ones that all do."""

    def get_capabilities(self, *_: Any, **given: Any) -> types.ServerCapabilities:
        """As in the SDK."""
        capabilities = super().get_capabilities(
            NotificationOptions(tools_changed=True, resources_changed=True), **given
        )
        assert capabilities.prompts is not None
        assert capabilities.resources is not None
        capabilities.prompts.list_changed = capabilities.resources.subscribe = False
        return capabilities


def mcp_server(
    service: ToolService, token: Callable[[], str], *, elicit: bool = False, own: bool = False
) -> Server[Any]:
    """The server, for a transport.

    Args:
        service: Makes the calls.
        token: Returns the token of the session whose request is handled.
        elicit: Whether the client's user may answer the questions of the session.
        own: Whether only the agent's own tools are listed.
    """
    offers = Offers(service, own)
    pages = Pages(service, offers, token)
    announcements = Announcements(service)

    async def list_tools(
        ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await offers.page(token(), params.cursor if params is not None else None)

    async def completion(
        ctx: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        return await complete(offers, token(), params)

    @asynccontextmanager
    async def announcing(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with anyio.create_task_group() as group:
            group.start_soon(announcements.run)
            yield {}
            group.cancel_scope.cancel()

    server: Server[Any] = _Server(
        NAME,
        title="Albert Tools",
        version=__version__,
        icons=[types.Icon(src=ICON, mime_type="image/svg+xml", sizes=["any"])],
        instructions=_INSTRUCTIONS,
        lifespan=announcing,
        # No parameter is sent as a header, so a call needs no listing of all tools.
        get_tool_input_schema=lambda name: None,
        on_list_tools=list_tools,
        on_call_tool=Calls(service, offers, token, elicit),
        on_list_resources=pages.resources,
        on_list_resource_templates=pages.templates,
        on_read_resource=pages.read,
        on_list_prompts=pages.prompts,
        on_get_prompt=pages.prompt,
        on_completion=completion,
        on_subscriptions_listen=announcements.listen,
    )
    server.add_notification_handler("notifications/initialized", types.NotificationParams, announcements.initialized)
    security = RequestStateSecurity(
        keys=[state_key(service.home.local.state)],
        ttl=ANSWER_SECONDS,
        bind_principal=lambda ctx: service.session_of(token()).id,
    )
    server.middleware += [
        turn_limit(lambda: service.client_of(token())),
        RequestStateBoundary(security, default_audience=NAME),
    ]
    return server
