"""What one client may have under way at once. So a client that floods the server uses its own share, and the others go on.

A client is a session with those within it: all connections with their tokens count together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from albert_tools.engine.model.turns import Turns

#: Bytes of one message. A source may have 1 MiB.
MAX_MESSAGE = 4 * 1024 * 1024
#: The requests of one client without an answer, and their bytes. Further ones are refused over HTTP, and not read over stdio.
MAX_REQUESTS, MAX_BYTES = 256, 16 * 1024 * 1024
#: The calls and the other requests of one client that are handled at once. Further ones wait for their turn. The others use
#: threads, which all clients share, and have long answers.
MAX_CALLS, MAX_OTHERS = 32, 2
#: Lasts as long as its connection, and does nothing by itself.
_LISTEN = "subscriptions/listen"
#: Where the scope of a request over HTTP has the future of its end: the client has taken the answer, or is gone.
_END = "albert_tools.end"
#: Where it has the future of its handling, which goes on in an older revision when the client is gone.
_HANDLED = "albert_tools.handled"


def turn_limit(client: Callable[[], str | None]) -> ServerMiddleware[Any]:
    """Middleware that lets requests wait. `client` returns the client whose request is handled; None for one without a session.

    Over HTTP, a turn lasts until the client has taken the answer. So answers that wait in memory are bounded like what makes them.
    """
    calls, others = Turns(MAX_CALLS), Turns(MAX_OTHERS)

    async def limited(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        # A notification has no id, and needs little.
        if ctx.request_id is None or ctx.method == _LISTEN:
            return await call_next(ctx)
        handled, end = asyncio.get_running_loop().create_future(), None
        if ctx.request is not None:
            end = ctx.request.scope.get(_END)
            ctx.request.scope[_HANDLED] = handled
        turn = (calls if ctx.method == "tools/call" else others).of(client())
        try:
            await turn.acquire()
        except BaseException:
            handled.set_result(None)
            raise
        try:
            return await call_next(ctx)
        finally:
            handled.set_result(None)
            if end is not None:
                end.add_done_callback(lambda _: turn.release())
            else:
                turn.release()

    return limited


class RequestLimit:
    """An application that refuses requests over HTTP before their bodies are read, if their client has too many.

    `client_of` returns the client of a token; None if the token is not active. Then the token counts for itself.
    """

    def __init__(self, app: ASGIApp, client_of: Callable[[str], str | None]) -> None:
        self._app = app
        self._client_of = client_of
        self._open: dict[str, list[int]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        size = MAX_MESSAGE if scope["method"] == "POST" else 0
        # A body in chunks may be longer than a length that is declared as well.
        if declared.isdecimal() and len(declared) < 10 and "transfer-encoding" not in headers:
            size = min(int(declared), size)
        # The word before the token can be spelled in many ways, and all of them are the same client.
        token = headers.get("authorization", "").partition(" ")[2]
        client = self._client_of(token) or token
        known = self._open.setdefault(client, [])
        if len(known) >= MAX_REQUESTS or sum(known) + size > MAX_BYTES:
            message = "too many requests of this session are under way; wait for their answers"
            await PlainTextResponse(message, 429)(scope, receive, send)
            return
        known.append(size)
        end = scope[_END] = asyncio.get_running_loop().create_future()

        def leave(_: object = None) -> None:
            known.remove(size)
            if not known:
                self._open.pop(client, None)

        try:
            await self._app(scope, receive, send)
        finally:
            end.set_result(None)
            # It counts until it is handled, too: it may still wait for its turn, with all of its text.
            handled = scope.get(_HANDLED)
            if handled is None:
                leave()
            else:
                handled.add_done_callback(leave)
