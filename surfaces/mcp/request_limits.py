"""What one client may have under way at once. So a client that floods the server uses its own share, and the others go on.

A client is a session: all connections with the same token count together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from mcp import types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

#: Bytes of one message. A source may have 1 MiB; HTTP has the same limit.
MAX_MESSAGE = 4 * 1024 * 1024
#: The requests of one client that are not answered yet. Further requests are refused over HTTP, and not read over stdio.
MAX_REQUESTS = 256
#: The calls of one client that run. Further calls wait for their turn.
MAX_CALLS = 32


class _Client:
    def __init__(self) -> None:
        self.requests = 0
        self.calls = asyncio.Semaphore(MAX_CALLS)


class RequestLimits:
    """Middleware that applies the limits. `client` returns the name of the client whose request is handled."""

    def __init__(self, client: Callable[[], str]) -> None:
        self._client = client
        self._clients: dict[str, _Client] = {}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle one message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        name = self._client()
        client = self._clients.setdefault(name, _Client())
        if client.requests >= MAX_REQUESTS:
            raise MCPError(
                types.INTERNAL_ERROR, f"{MAX_REQUESTS} requests of this session are under way; wait for their answers"
            )
        client.requests += 1
        try:
            async with client.calls if ctx.method == "tools/call" else nullcontext():
                return await call_next(ctx)
        finally:
            client.requests -= 1
            if not client.requests:
                self._clients.pop(name, None)
