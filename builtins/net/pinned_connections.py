"""Connections to addresses that were judged, under the names that they are for.

`httpcore` asks its backend for a connection to a host. This one resolves the name, judges what comes out and connects to that;
the name stays what TLS verifies and what the request says. What a request reads is metered down here: header lines that never
end, interim answers, chunks of nothing all come to an end, whatever layer would have waited for more.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import httpcore

from albert_tools.builtins.net.resolve_host import Resolver, reachable
from albert_tools.engine.policy.addresses import Network

#: Seconds for one address, so that one that swallows packets leaves time for the next.
CONNECT_SECONDS = 10.0


class TooMuch(Exception):
    """A server has sent more than there is room for."""


class Meter:
    """How many bytes one request may still read from its connection, whatever layer reads them."""

    def __init__(self, left: int) -> None:
        self.left = left


#: The meter of the request that this task makes.
METER: ContextVar[Meter] = ContextVar("METER")


class PinningBackend(httpcore.AsyncNetworkBackend):
    """Connects only where the rules allow."""

    def __init__(self, named: tuple[Network, ...], resolve: Resolver) -> None:
        self._named = named
        self._resolve = resolve
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to one of the host's addresses; the first that answers."""
        addresses = await reachable(host, port, self._named, self._resolve)
        for i, address in enumerate(addresses):
            try:
                stream = await self._backend.connect_tcp(
                    address, port, timeout or CONNECT_SECONDS, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if i + 1 == len(addresses):
                    raise
            else:
                return _Counted(stream)
        raise httpcore.ConnectError("no address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise httpcore.ConnectError("not over a Unix socket")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._backend.sleep(seconds)


class _Counted(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(max_bytes, timeout)
        meter = METER.get()
        meter.left -= len(data)
        if meter.left < 0:
            raise TooMuch
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout or CONNECT_SECONDS)
        return _Counted(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
