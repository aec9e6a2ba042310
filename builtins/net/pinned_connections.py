"""Connections to addresses that the rules allow.

`httpcore` asks its network backend for a connection to a host. This backend resolves the name, checks the addresses and connects to
one of them. TLS and the request still use the name. The backend also counts the bytes that a request reads. Therefore endless
headers, interim responses and empty chunks fail, no matter which layer reads them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import httpcore

from albert_tools.builtins.net.resolve_host import Resolver, reachable
from albert_tools.engine.policy.addresses import AddressRules

#: Seconds for one address. If an address drops packets, time is left for the next address.
CONNECT_SECONDS = 10.0


class TooMuch(Exception):
    """A server sent more bytes than a request may read."""


class Meter:
    """The bytes that one request may still read from its connection."""

    def __init__(self, left: int) -> None:
        self.left = left


#: The meter of this task's request.
METER: ContextVar[Meter] = ContextVar("METER")


class PinningBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that the rules allow."""

    def __init__(self, rules: AddressRules, resolve: Resolver) -> None:
        self._rules = rules
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
        """Connect to the first address of the host that answers."""
        addresses = await reachable(host, port, self._rules, self._resolve)
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
        """Refuse."""
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
