"""Serves an ASGI application over HTTP until the process is asked to stop.

Everybody on the machine can connect, so nobody must be able to take all connections. A connection belongs to the *client* whose
token or cookie its last request has shown. Until then it is a *stranger*, for a few seconds. Strangers have a share of their own,
and one more closes the oldest. So who shows a token at once always gets in, however many half-sent requests others hold open.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast

import h11
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from albert_tools.engine.model.bounds import KiB, MiB

LOOPBACK = "127.0.0.1"
#: Seconds that requests have to end when the server is stopped.
GRACE_SECONDS = 3
#: Seconds that a connection may be open without a request, and seconds that a stranger may stay.
IDLE_SECONDS = 10
#: Strangers at a time: more than a client that has just connected and has not sent its requests yet. Connections of one client.
MAX_STRANGERS, MAX_OF_CLIENT = 512, 256
#: Bytes that are parsed at a time, because all other connections wait. Lines of a head that may be left after that.
_PARSED, _MAX_LINES = KiB, 100
#: h11 takes quadratic time for a row of blanks.
_MAX_BLANKS = 99
_BLANKS = re.compile(rb"(?<![ \t])[ \t]{%d}" % (_MAX_BLANKS + 1))
#: Bytes that are read of a stranger's request after it was answered: all, and those that belong to no body of declared length,
#: because they are parsed. If the connection was closed earlier, the client could miss that it has to sign in again.
_MAX_DROPPED, _MAX_LATE = 8 * MiB, 256 * KiB
#: Chunks of a body that may be small, and the bytes for each further one.
_SMALL_CHUNKS, _CHUNK_BYTES = 64, 512
#: The states of a client whose request is read.
_READ = (h11.IDLE, h11.SEND_BODY)
#: Bytes of a head. It may have a token of an identity provider.
_MAX_HEAD = 64 * KiB

#: The name of the client whose token or cookie a request has; None if it has none that is valid.
ClientOf = Callable[[Scope], str | None]
#: Finds out whose request it is, if that takes time, and changes the request so that `ClientOf` knows it. Returns the application
#: that answers the request; None for the server's.
Admit = Callable[[Scope], Awaitable[ASGIApp | None]]


async def admit_all(scope: Scope) -> None:
    """There is nothing more to find out about a request."""


def listen(host: str, port: int) -> tuple[socket.socket, int]:
    """Listen on a port of an address, as a URL has it. Returns the socket and the port; `port` is 0 for any free one.

    Raises:
        OSError: The server can't listen there.
    """
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    listening = socket.create_server((host.strip("[]"), port), family=family)
    # Its connections inherit this. asyncio sets it only for sockets whose protocol is named, and each answer would wait 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening, int(listening.getsockname()[1])


async def serve(
    app: object,
    listening: socket.socket,
    connections: int,
    client_of: ClientOf,
    ready: Callable[[], object],
    admit: Admit = admit_all,
) -> None:
    """Serve the application on a listening socket.

    Args:
        app: The ASGI application.
        listening: The socket.
        connections: The most connections of all clients at a time.
        client_of: Returns the client of a request.
        ready: Called as soon as clients can connect.
        admit: Called for each request before the application.
    """
    shares = _Shares(client_of)
    config = uvicorn.Config(
        cast(Any, app),
        http=cast(Any, lambda *given, **named: _Protocol(shares, admit, *given, **named)),
        log_level="warning",
        access_log=False,
        # Those that are being closed count, too.
        limit_concurrency=connections + 2 * MAX_STRANGERS,
        # asyncio accepts this many connections before it reads from any. Among more strangers, one that has sent its request
        # would be closed as the oldest.
        backlog=MAX_STRANGERS // 2,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=IDLE_SECONDS,
        server_header=False,
    )
    await _Server(config, ready).serve(sockets=[listening])


class _Shares:
    """Which connections belong to which client."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of
        #: The connections that belong to no client, the oldest first, and the clients of the others.
        self._strangers: dict[_Protocol, None] = {}
        self._clients: dict[_Protocol, str] = {}
        self._known = Counter[str]()

    def enter(self, connection: _Protocol) -> None:
        """A new connection is a stranger."""
        self._strangers[connection] = None
        if len(self._strangers) > MAX_STRANGERS:
            oldest = next(iter(self._strangers))
            # `abort` reports the loss only later.
            self.leave(oldest)
            oldest.transport.abort()

    def show(self, connection: _Protocol, scope: Scope) -> bool:
        """The connection has a request. Returns whether its client has room for the connection."""
        client = self._client_of(scope)
        if self.is_left(connection) or self._clients.get(connection) == client:
            return True
        if client is None:
            self.leave(connection)
            self._strangers[connection] = None
            return True
        if self._known[client] >= MAX_OF_CLIENT:
            return False
        self.leave(connection)
        self._clients[connection] = client
        self._known[client] += 1
        return True

    def is_left(self, connection: _Protocol) -> bool:
        """Whether the connection has ended."""
        return connection not in self._strangers and connection not in self._clients

    def is_stranger(self, connection: _Protocol) -> bool:
        """Whether the connection belongs to no client."""
        return connection not in self._clients

    def leave(self, connection: _Protocol) -> None:
        """The connection has ended. Calling this again does nothing."""
        self._strangers.pop(connection, None)
        client = self._clients.pop(connection, None)
        if client is not None:
            self._known[client] -= 1
            if not self._known[client]:
                del self._known[client]


class _Parser(h11.Connection):
    """Parses requests, but no body in many small chunks. `problem` says why it has refused one."""

    _chunks = _bytes = _declared = 0
    problem = ""

    @property
    def left(self) -> int:
        """The bytes that are still to come of a body whose length was declared."""
        return max(0, self._declared - self._bytes)

    def next_event(self) -> Any:
        """The next part of a request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            fields = dict(event.headers)
            self._declared = 0 if b"transfer-encoding" in fields else int(fields.get(b"content-length", 0))
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > _SMALL_CHUNKS + self._bytes // _CHUNK_BYTES:
                self.problem = "The chunks of the body are too small."
                raise h11.RemoteProtocolError(self.problem)
        return event


class _Protocol(H11Protocol):
    """A connection. It is closed if it stays without a whole request, or a stranger: uvicorn would wait for ever.

    uvicorn's faster parser, httptools, loses the body of a request that asks for HTTP/2 (Kludex/uvicorn#2722).
    """

    def __init__(self, shares: _Shares, admit: Admit, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = self._parser = _Parser(h11.SERVER, _MAX_HEAD)
        self._shares = shares
        self._admit = admit
        self._has_room = True
        #: What was received behind the present request.
        self._behind = b""
        #: The bytes of a stranger that were read after an answer: all, and those that belong to no body of declared length.
        self._dropped = self._late = 0
        #: The bytes that the client had not taken when this was looked at last.
        self._unsent = 0
        self.app = cast(Any, self._handle)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._shares.enter(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another connection, and forget this one. Its parts refer to each other, so they would stay in memory, with
        what was received, until Python looks for cycles."""
        self._shares.leave(self)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._timer.cancel()
        self.app = cast(Any, None)

    def data_received(self, data: bytes) -> None:
        """Parse a request in parts. Refuse many lines or blanks in its head or behind its body: h11 parses all of them at once."""
        at = 0
        while at < len(data):
            if self.conn.their_state not in _READ:
                # The next request waits for the answer to this one.
                self._behind += data[at:]
                self.flow.pause_reading()
                return
            left = self._parser.left
            part = data[at : at + (left or _PARSED)]
            at += len(part)
            super().data_received(part)
            if self.conn.our_state is h11.DONE and self._shares.is_stranger(self):
                self._dropped += len(part)
                if not left:
                    self._late += len(part)
                if self._dropped > _MAX_DROPPED or self._late > _MAX_LATE:
                    self.transport.close()
            if self.transport.is_closing():
                return
            rest = self.conn.trailing_data[0] if self.conn.their_state in _READ else b""
            if rest.count(b"\n") > _MAX_LINES or _BLANKS.search(rest[-_PARSED - _MAX_BLANKS :]):
                self.send_400_response("The request has too many headers, or too many blanks in them.")
                return

    def on_response_complete(self) -> None:
        """Read the next request."""
        super().on_response_complete()
        received, self._behind = self._behind, b""
        if not self.transport.is_closing():
            self.data_received(received)

    def handle_events(self) -> None:
        """Find out whose request was received, before another connection can take the place of this one."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._has_room = self._shares.show(self, cast(Scope, self.scope))

    def _should_upgrade(self) -> bool:
        """Go on with HTTP/1.1. Java's client asks for HTTP/2 with each request, and uvicorn would log each time that it refuses."""
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse what can't be read. Its request can have been answered before; otherwise it gets no other answer."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(self._parser.problem or msg)
        else:
            self.transport.close()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, if its client has not too many connections."""
        app: Any = await self._admit(scope) or self.config.loaded_app
        if self._shares.is_stranger(self):
            self._has_room = self._shares.show(self, scope)
        if not self._has_room:
            app = PlainTextResponse("too many connections of this session", 429, {"connection": "close"})

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.body" and message.get("body") and not message.get("more_body"):
                # uvicorn writes all of it at once, and waits only before it writes more. So the end is sent by itself, and the
                # request is under way until its client has taken the answer.
                await send({**message, "more_body": True})
                message = {"type": "http.response.body"}
            await send(message)

        await app(scope, receive, sent)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(IDLE_SECONDS, self._close_if_idle, self.cycle)

    def _close_if_idle(self, last: object) -> None:
        """Close a stranger, a connection that has had no other request since the last one, if that was answered, and one whose
        client takes nothing of an answer."""
        if self._shares.is_left(self):
            return
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if self._unsent and self._unsent == before:
            self.transport.abort()
            return
        idle = self.cycle is last and (self.cycle is None or self.cycle.response_complete)
        if idle or self._shares.is_stranger(self):
            # It is left as soon as the client has taken what was written.
            self.transport.close()
        self._wait()


class _Server(uvicorn.Server):
    """Reports when it accepts connections."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        self._ready()
