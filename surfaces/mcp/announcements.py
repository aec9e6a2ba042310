"""Announces a changed list of tools: to clients with subscriptions, and to those of older revisions by notifications.

Another process may change what is active, so this polls. The list never changes because an agent has defined a tool.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService

#: Seconds between two polls.
POLL_SECONDS = 0.5
#: The most older clients that are notified: the newest ones. A client that has left looks like a quiet one.
MAX_OLDER_CLIENTS = 256


class Announcements:
    """Notifies the clients of one server."""

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._bus = InMemorySubscriptionBus()
        self._older: OrderedDict[str, ServerSession] = OrderedDict()
        #: Answers ``subscriptions/listen``.
        self.listen = ListenHandler(self._bus)

    async def initialized(self, ctx: ServerRequestContext[Any, Any], params: types.NotificationParams | None) -> None:
        """Remember a client that has no subscriptions."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        headers = getattr(ctx.request, "headers", {})
        self._older[headers.get("mcp-session-id", "")] = ctx.session
        while len(self._older) > MAX_OLDER_CLIENTS:
            self._older.popitem(last=False)

    async def run(self) -> None:
        """Poll until cancelled."""
        known = None
        while True:
            # While the record can't be read, calls report that.
            with suppress(Failure):
                now = self._service.offers_changed()
                if known not in (None, now):
                    await self._announce()
                known = now
            await anyio.sleep(POLL_SECONDS)

    async def _announce(self) -> None:
        await self._bus.publish(ToolsListChanged())
        await self._bus.publish(ResourcesListChanged())
        for session in [*self._older.values()]:
            # A client that does not read must not delay the others.
            with anyio.move_on_after(POLL_SECONDS):
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()
