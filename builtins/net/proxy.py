"""A proxy that gives a confined command access to the hosts that the rules allow.

The only network of a confined command is a socket to this proxy. The proxy accepts ``CONNECT host:port`` and plain HTTP in absolute
form. It asks `judge` about each URL, resolves the name itself and connects to an allowed address, as `client` does. So a command
can name hosts, but it cannot choose an address, send a DNS query or use a protocol other than TCP. The content of a tunnel is
encrypted, so only its destination is checked.

Each connection carries one request. The proxy parses the request and writes it anew. Otherwise a server could read two requests
where the proxy read one (request smuggling). h11 parses both sides.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import ClassVar, NamedTuple

import h11

from albert_tools.builtins.net.bounds import MAX_HEADERS
from albert_tools.builtins.net.resolve_host import Resolver, reachable, system_resolver
from albert_tools.builtins.net.urls import Url, read_url
from albert_tools.engine.model.bounds import GiB, KiB
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import AddressRules

#: Called with each URL and its method. For a tunnel the method is ``CONNECT`` and the URL ``https://host:port/``. Raises Failure to
#: refuse the URL.
Judge = Callable[[str, str], Awaitable[None]]

#: Hop-by-hop headers, and headers that would reveal the machine.
_DROPPED = frozenset(
    b"connection proxy-connection keep-alive proxy-authorization proxy-authenticate te trailer upgrade host "
    b"transfer-encoding content-length forwarded x-forwarded-for via expect".split()
)
_PIECE = 64 * KiB
#: Interim responses before the final one.
_MAX_INTERIM = 20
_HEAD_END = re.compile(rb"\n\r?\n")
#: Connections over the limit get an answer that refuses them, up to this many times `at_once`. Further connections are just closed.
_REFUSED_TIMES = 4
#: Connections that wait to be accepted. Each connection uses a file descriptor of the service.
_BACKLOG = 16
#: All commands together may use this fraction (one in 16) of the process's descriptors. Each command may always use a few.
_PART_OF_DESCRIPTORS, _FEW = 16, 4
#: File descriptors. A higher limit of the process is treated as this value.
_MAX_DESCRIPTORS = 1 << 16


class ProxyBounds(NamedTuple):
    """The limits of one command: connections at once and in total, bytes in both directions together, seconds.

    `ports` are the allowed ports of tunnels; None allows all.
    """

    at_once: int = 32
    connections: int = 10_000
    bytes: int = 1 * GiB
    head_bytes: int = 64 * KiB
    head_seconds: float = 30.0
    connect_seconds: float = 10.0
    idle_seconds: float = 60.0
    ports: frozenset[int] | None = frozenset({443})


class Seen(NamedTuple):
    """One request, for the record. `refused` is the code of its failure, `size_bytes` the number of bytes received."""

    method: str
    url: str
    refused: str | None
    sent_bytes: int
    size_bytes: int


class FilteringProxy:
    """A proxy that runs inside a `with` block: ``async with FilteringProxy(judge) as proxy: proxy.address``.

    Args:
        judge: Decides whether a URL is allowed.
        address_rules: Called for each connection; returns the rules on addresses.
        listening: A listening socket, perhaps of another network namespace; by default the proxy listens on a port of the loopback
            interface.
        resolve: Resolves host names.
        bounds: The limits.
        still: Called before each piece that the command sends in a request that has begun. Raises Failure to end it.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        address_rules: Callable[[], AddressRules],
        listening: socket.socket | None = None,
        resolve: Resolver = system_resolver,
        bounds: ProxyBounds | None = None,
        still: Callable[[], None] = lambda: None,
    ) -> None:
        self._judge = judge
        self._still = still
        self._address_rules = address_rules
        self._listening = listening
        self._resolve = resolve
        self._bounds = bounds or ProxyBounds()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._count = 0
        self._bytes = 0
        #: The last thousand requests, in order.
        self.seen: list[Seen] = []
        #: Its host and port.
        self.address: tuple[str, int] = "", 0

    #: The proxies of this process.
    _running: ClassVar[set[FilteringProxy]] = set()

    async def __aenter__(self) -> FilteringProxy:
        await self._listen()
        self._running.add(self)
        return self

    async def _listen(self) -> None:
        if self._listening is not None:
            self._server = await asyncio.start_server(self._accept, sock=self._listening, backlog=_BACKLOG)
            self.address = self._listening.getsockname()[:2]
        else:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=_BACKLOG)
            self.address = self._server.sockets[0].getsockname()[:2]

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._running.discard(self)
        self._server.close()
        self.hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def asked(self) -> None:
        """A call begins: its connections and bytes are counted anew."""
        self._count = self._bytes = 0

    def hang_up(self) -> None:
        """End the open connections, but for that of this task."""
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # The client may close the connection while its response is written.
            with suppress(OSError):
                await self._serve(_Side(reader, writer, self._bounds.idle_seconds, _Pulse()))
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, client: _Side) -> None:
        self._count += 1
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._bounds.head_bytes)
        method, asked_url = "", ""
        try:
            if self._crowded():
                return
            async with asyncio.timeout(self._bounds.head_seconds):
                request = await _event(parser, client, _Head())
            if not isinstance(request, h11.Request):
                return
            if len(self._tasks) > self._bounds.at_once or self._count > self._bounds.connections:
                raise Failure("rate_limited", "the command has too many connections", rule="proxy.connections")
            method, url = self._asked(request)
            asked_url = url.text
            await self._judge(url.text, method)
            upstream = await self._connected(url, client.pulse)
        except (Failure, TimeoutError, h11.RemoteProtocolError) as problem:
            failure = _failure(problem)
            self._record(Seen(method, asked_url, failure.code, 0, 0))
            await _refuse(client, failure)
            return
        try:
            if method == "CONNECT":
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._tunnel(client, upstream, parser.trailing_data[0])
            else:
                await self._forward(client, upstream, parser, request, url)
        except (
            Failure,
            OSError,
            TimeoutError,
            h11.RemoteProtocolError,
            h11.LocalProtocolError,
            asyncio.IncompleteReadError,
        ) as problem:
            if isinstance(problem, Failure):
                # Which connections end, and when, would tell something, too.
                self.hang_up()
            if not client.sent:
                await _refuse(client, _failure(problem))
        finally:
            upstream.writer.close()
            self._record(Seen(method, asked_url, None, upstream.sent, upstream.received))

    def _crowded(self) -> bool:
        """Whether there are too many connections to answer, of this command or of all commands of the process."""
        most = _descriptors() // _PART_OF_DESCRIPTORS
        share = max(most // len(self._running or {self}), _FEW)
        own = len(self._tasks)
        if own > min(_REFUSED_TIMES * self._bounds.at_once, share):
            return True
        return own > _FEW and sum(len(proxy._tasks) for proxy in self._running) > 2 * most

    def _asked(self, request: h11.Request) -> tuple[str, Url]:
        """Returns the method and the URL of a request.

        Raises:
            Failure: the request is not a request to a proxy.
        """
        method = request.method.decode("ascii")
        target = request.target.decode("ascii")
        if method == "CONNECT":
            url = read_url(f"https://{target}/", "target")
            if url.text not in (f"https://{url.place}/", f"https://{target}/") or "/" in target or "?" in target:
                raise Failure("invalid_arguments", "CONNECT takes a host and a port")
            if self._bounds.ports is not None and url.port not in self._bounds.ports:
                raise Failure(
                    "permission_denied",
                    f"tunnels to port {url.port} are not allowed",
                    hint=f"allowed: {', '.join(map(str, sorted(self._bounds.ports)))}",
                    rule="proxy.ports",
                )
            return method, url
        url = read_url(target, "target")
        if url.scheme != "http":
            raise Failure("invalid_arguments", "https needs a tunnel: use CONNECT")
        return method, url

    async def _connected(self, url: Url, pulse: _Pulse) -> _Side:
        async with asyncio.timeout(self._bounds.connect_seconds):
            addresses = await reachable(url.host, url.port, self._address_rules(), self._resolve)
        problem: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(self._bounds.connect_seconds):
                    ends = await asyncio.open_connection(address, url.port)
                return _Side(*ends, self._bounds.idle_seconds, pulse)
            except TimeoutError as error:
                problem = OSError(str(error) or "no answer")
            except OSError as error:
                problem = error
        raise Failure("network_error", f"no connection to {url.place!r}: {problem}")

    async def _forward(
        self, client: _Side, upstream: _Side, parser: h11.Connection, request: h11.Request, url: Url
    ) -> None:
        """Forward one request, rewritten from its parsed form, and the response."""
        outgoing = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._bounds.head_bytes)
        target = url.text.removeprefix(f"http://{url.place}") or "/"
        dropped = _dropped_headers(request.headers) - {b"content-length", b"transfer-encoding"}
        headers = [(n, v) for n, v in request.headers if n not in dropped]
        headers = [(b"host", url.place.encode()), *headers, (b"connection", b"close")]
        await upstream.send(outgoing.send(h11.Request(method=request.method, target=target, headers=headers)) or b"")

        async def send() -> None:
            if parser.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await client.send(parser.send(go_on) or b"")
            while True:
                event = await _event(parser, client)
                if isinstance(event, h11.Data):
                    self._count_bytes(len(event.data))
                    self._still()
                    await upstream.send(outgoing.send(h11.Data(data=event.data)) or b"")
                elif isinstance(event, h11.EndOfMessage):
                    self._still()
                    await upstream.send(outgoing.send(h11.EndOfMessage()) or b"")
                    return
                else:
                    raise h11.RemoteProtocolError("the request ended too early")

        async def receive() -> None:
            head, interim = _Head(), 0
            while True:
                event = await _event(outgoing, upstream, head)
                if isinstance(event, h11.InformationalResponse):
                    interim += 1
                    if interim > _MAX_INTERIM:
                        raise h11.RemoteProtocolError("too many interim responses")
                    continue
                if isinstance(event, h11.Response):
                    _demand_few(len(event.headers))
                    dropped = _dropped_headers(event.headers)
                    if not any(n == b"transfer-encoding" for n, _ in event.headers):
                        dropped -= {b"content-length"}
                    headers = [(n, v) for n, v in event.headers if n not in dropped]
                    answer = h11.Response(
                        status_code=event.status_code,
                        reason=event.reason,
                        headers=[*headers, (b"connection", b"close")],
                    )
                    await client.send(parser.send(answer) or b"")
                elif isinstance(event, h11.Data):
                    self._count_bytes(len(event.data))
                    await client.send(parser.send(h11.Data(data=event.data)) or b"")
                elif isinstance(event, h11.EndOfMessage):
                    await client.send(parser.send(h11.EndOfMessage()) or b"")
                    return
                else:
                    raise h11.RemoteProtocolError("the response ended too early")

        sending = asyncio.ensure_future(send())
        receiving = asyncio.ensure_future(receive())
        try:
            # The response may arrive before the whole request was sent. Then the exchange ends.
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not receiving.done() and isinstance(refused := sending.exception(), Failure):
                raise refused
            await receiving
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _tunnel(self, client: _Side, upstream: _Side, first: bytes) -> None:
        if first:
            self._count_bytes(len(first))
            self._still()
            await upstream.send(first)

        async def pump(source: _Side, sink: _Side) -> None:
            while data := await source.receive():
                self._count_bytes(len(data))
                if sink is upstream:
                    self._still()
                await sink.send(data)
            if sink is upstream:
                self._still()
            with suppress(OSError):
                sink.writer.write_eof()

        pumps = [asyncio.ensure_future(pump(client, upstream)), asyncio.ensure_future(pump(upstream, client))]
        try:
            await asyncio.gather(*pumps)
        finally:
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def _count_bytes(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._bounds.bytes:
            raise OSError("the command exceeded its limit of bytes")

    def _record(self, seen: Seen) -> None:
        self.seen.append(seen)
        del self.seen[:-1000]


def _descriptors() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, _MAX_DESCRIPTORS)


class _Pulse:
    """The time of the last data in either direction."""

    def __init__(self) -> None:
        self.last = asyncio.get_running_loop().time()


class _Side:
    """One end of a connection. It times out when neither direction had data for `idle` seconds."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: float, pulse: _Pulse) -> None:
        self.writer = writer
        self.pulse = pulse
        self._reader = reader
        self._idle = idle
        self.sent = self.received = 0

    async def receive(self) -> bytes:
        while True:
            until = self.pulse.last + self._idle
            try:
                async with asyncio.timeout_at(until):
                    data = await self._reader.read(_PIECE)
            except TimeoutError:
                if self.pulse.last + self._idle > until:
                    continue
                raise
            self.pulse.last = asyncio.get_running_loop().time()
            self.received += len(data)
            return data

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        self.sent += len(data)
        async with asyncio.timeout(self._idle):
            await self.writer.drain()


class _Head:
    """Counts the lines of the headers before they are parsed, because parsing thousands of headers blocks the event loop."""

    def __init__(self) -> None:
        self._lines = 0
        self._tail = b""
        self._over = False

    def take(self, data: bytes) -> None:
        """Count the lines of more data.

        Raises:
            h11.RemoteProtocolError: too many headers.
        """
        if self._over:
            return
        text = self._tail + data
        end = _HEAD_END.search(text)
        self._lines += text.count(b"\n", 0, end.end() if end else len(text)) - self._tail.count(b"\n")
        self._tail, self._over = text[-2:], end is not None
        # The request line and the empty line are not headers.
        _demand_few(self._lines - 2)


def _demand_few(headers: int) -> None:
    if headers > MAX_HEADERS:
        raise h11.RemoteProtocolError(f"more than {MAX_HEADERS} headers")


async def _event(parser: h11.Connection, side: _Side, head: _Head | None = None) -> object:
    while True:
        event = parser.next_event()
        if event is not h11.NEED_DATA:
            # One piece may contain thousands of events; let other tasks run.
            await asyncio.sleep(0)
            return event
        data = await side.receive()
        if head is not None:
            head.take(data)
        parser.receive_data(data)


def _dropped_headers(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """The headers that are not passed on, including those that the connection header names."""
    listed = [v.lower().split(b",") for n, v in headers if n in (b"connection", b"proxy-connection")]
    return _DROPPED | {part.strip() for parts in listed for part in parts}


def _failure(problem: BaseException) -> Failure:
    if isinstance(problem, Failure):
        return problem
    if isinstance(problem, TimeoutError):
        return Failure("timeout", "no data arrived in time")
    if isinstance(problem, h11.ProtocolError):
        return Failure("invalid_arguments", f"invalid proxy request: {problem}")
    return Failure("network_error", f"the connection broke: {problem}")


_STATUSES = {"permission_denied": 403, "rate_limited": 429, "invalid_arguments": 400, "timeout": 504}


async def _refuse(client: _Side, failure: Failure) -> None:
    status = _STATUSES.get(failure.code, 502)
    rule = f" [{failure.rule}]" if failure.rule else ""
    hint = f"; {failure.hint}" if failure.hint else ""
    body = f"{failure.code}{rule}: {failure.message}{hint}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    with suppress(OSError, TimeoutError):
        await client.send(head.encode() + b"Connection: close\r\n\r\n" + body)
