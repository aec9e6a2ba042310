"""Connections to addresses that were judged, under the names that they are for.

`httpcore` asks its backend for a connection to a host. This one resolves the name, judges what comes out and connects to that;
the name stays what TLS verifies and what the request says. What a stream delivers between two writes is counted: header lines
that never end, interim answers, chunks of nothing all come to an end there, whatever layer would have waited for more.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from albert_tools.builtins.net.resolving import Resolver, reachable
from albert_tools.engine.govern.addresses import Network

#: Seconds for one address, so that one that swallows packets leaves time for the next.
CONNECT_SECONDS = 10.0


class TooMuch(Exception):
    """A server has sent more than a response may have in all."""


class PinningBackend(httpcore.AsyncNetworkBackend):
    """Connects only where the rules allow. `most` is in bytes, of one response with all its packing."""

    def __init__(self, named: tuple[Network, ...], resolve: Resolver, most: int) -> None:
        self._named = named
        self._resolve = resolve
        self._most = most
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
                return _Counted(stream, self._most)
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
    def __init__(self, stream: httpcore.AsyncNetworkStream, most: int) -> None:
        self._stream = stream
        self._most = most
        self._read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(max_bytes, timeout)
        self._read += len(data)
        if self._read > self._most:
            raise TooMuch
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._read = 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout or CONNECT_SECONDS)
        return _Counted(stream, self._most)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
