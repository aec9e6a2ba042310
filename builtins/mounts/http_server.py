"""The HTTP connection to a mounted server: only to its host, to an address that the rules allow, and with bounded answers.

The SDK speaks the protocol over an httpx2 client; this module is the client's transport. It resolves the name, checks the address
and connects to it, while TLS and the request still use the name. Between its calls, nothing is sent to the server,
and what it sends is not read: no call's rules and mode would apply. What waits for the next call fits the system's buffers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from albert_tools.builtins.mounts.calls_under_way import CallsUnderWay
from albert_tools.builtins.mounts.server_limits import MAX_MESSAGE, too_long, too_much
from albert_tools.builtins.net.resolve_host import reachable, system_resolver
from albert_tools.engine.model.failure import Failure

#: Seconds to connect, and to send.
_CONNECT_SECONDS = 30.0
#: With these, a server says that it does not know the session, because it was started again, or only that it refuses a message. So
#: it is asked once more.
NO_SESSION = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)


class TooLarge(httpx2.StreamError):
    """An answer was too large."""


class PinnedTransport(httpx2.AsyncBaseTransport):
    """A transport for one server.

    Args:
        calls: The calls under way.
        seen: Gets the facts about each request, for the record.
    """

    def __init__(self, calls: CallsUnderWay, seen: list[dict[str, Any]]) -> None:
        self._calls = calls
        self._seen = seen
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to an allowed address, while a call is under way.

        Raises:
            httpx2.TransportError: It was refused, or nothing answered.
        """
        await self._calls.any.wait()
        url = request.url
        text = str(url.copy_with(query=None, fragment=None))
        facts: dict[str, Any] = {
            "method": request.method,
            "url": text,
            "status": None,
            "sent_bytes": 0,
            "size_bytes": 0,
        }
        self._seen.append(facts)
        try:
            self._calls.demand(text, request.method)
            port = url.port or (443 if url.scheme == "https" else 80)
            addresses = await reachable(url.host, port, self._calls.address_rules(text), system_resolver)
        except Failure as failure:
            facts["refused"] = failure.code
            raise httpx2.ConnectError(failure.message, request=request) from failure
        body = await request.aread()
        facts["sent_bytes"] = len(body)
        headers = httpx2.Headers(request.headers)
        headers["accept-encoding"] = "identity"
        for i, address in enumerate(addresses):
            pinned = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=headers,
                content=body,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            try:
                response = await self._inner.handle_async_request(pinned)
                break
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if i + 1 == len(addresses):
                    raise
        facts["status"] = response.status_code
        self._calls.answered += response.status_code not in NO_SESSION
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the server compressed its answer although it was asked not to")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        one_message = response.headers.get("content-type", "").lower().startswith("application/json")
        response.stream = _Bounded(response.stream, facts, one_message, self._calls)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(
        self, inner: httpx2.AsyncByteStream, facts: dict[str, Any], one_message: bool, calls: CallsUnderWay
    ) -> None:
        self._inner = inner
        self._calls = calls
        self._one_message = one_message
        self._facts = facts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = 0
        async for piece in self._inner:
            await self._calls.any.wait()
            size = self._facts["size_bytes"] = self._facts["size_bytes"] + len(piece)
            # In a stream of events, each message takes three lines or so.
            lines += piece.count(b"\n")
            if self._one_message and size > MAX_MESSAGE:
                raise TooLarge(too_long())
            if not self._one_message and (why := too_much(size, lines // 3)):
                raise TooLarge(why)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_streams(url: str, calls: CallsUnderWay, seen: list[dict[str, Any]], token: str) -> AsyncIterator[Any]:
    """The streams of messages to and from a server, which pause unless a call is under way. `token` is the value of the header
    ``Authorization``; "" for none."""
    client = httpx2.AsyncClient(
        transport=PinnedTransport(calls, seen),
        headers={"authorization": token} if token else {},
        # The time limit of the call ends a read.
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
        trust_env=False,
    )
    # The connection ends when no call is under way, so the server is not told.
    how: dict[str, Any] = {"max_sse_event_size": MAX_MESSAGE, "terminate_on_close": False}
    async with client, streamable_http_client(url, http_client=client, **how) as streams:
        yield streams
