"""Serves an ASGI application over HTTP until the process is asked to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = "127.0.0.1"
#: Seconds that requests have to end when the server is stopped.
GRACE_SECONDS = 3
#: Seconds that a connection may be open without a request.
IDLE_SECONDS = 10


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


async def serve(app: object, listening: socket.socket, connections: int, ready: Callable[[], object]) -> None:
    """Serve the application on a listening socket.

    Args:
        app: The ASGI application.
        listening: The socket.
        connections: The most connections at a time.
        ready: Called as soon as clients can connect.
    """
    config = uvicorn.Config(
        cast(Any, app),
        http=_Protocol,
        log_level="warning",
        access_log=False,
        limit_concurrency=connections,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    await _Server(config, ready).serve(sockets=[listening])


class _Protocol(H11Protocol):
    """Closes a connection that stays without a whole request. uvicorn waits for ever for the first one, and for the rest of one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def _wait(self) -> None:
        self.loop.call_later(IDLE_SECONDS, self._close_if_idle, self.cycle)

    def _close_if_idle(self, last: object) -> None:
        """Close the connection if it has had no other request since the last one, and that was answered."""
        if self.transport.is_closing():
            return
        if self.cycle is last and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
        else:
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
