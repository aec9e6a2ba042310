"""The HTTP client of all primitives.

It adds nothing to a request: no proxy, cookie, credential or `.netrc` of the machine. It does not retry. It follows redirects only
if the call says so. Each redirect is a separate request: it is checked, resolved, connected and recorded, and it has no headers
that were meant for another server. Bytes, headers and time are bounded for any behaviour of the server.

It uses httpcore, and only data types of httpx. Between calls it retains two things: idle connections, for some seconds and for
calls with the same open addresses, and the pauses that hosts asked for.

Import it where it is used: httpx is slow to import.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.message import Message
from types import MappingProxyType
from typing import Any, NamedTuple

import httpcore
import httpx

from albert_tools.builtins.net.bodies import unpacked
from albert_tools.builtins.net.bounds import (
    IDEMPOTENT,
    KEEP_SECONDS,
    MARGIN,
    MAX_BODY,
    MAX_CONNECTIONS,
    MAX_FOLLOWED,
    MAX_HEAD,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_POOLS,
    MAX_SENT,
    REDIRECTS,
    WIRE_MORE,
    WIRE_TIMES,
)
from albert_tools.builtins.net.headers import Headers, carried, written
from albert_tools.builtins.net.host_limits import HostLimits
from albert_tools.builtins.net.pinned_connections import METER, Meter, PinningBackend, TooMuch
from albert_tools.builtins.net.resolve_host import Resolver, system_resolver
from albert_tools.builtins.net.secrets import Secrets
from albert_tools.builtins.net.urls import Url, joined, read_url
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext, NetworkRules
from albert_tools.engine.policy.addresses import AddressRules

#: Why no connection was made.
_UNREACHED = {
    errno.ECONNREFUSED: "the connection was refused, so nothing listens at that port",
    errno.EHOSTUNREACH: "the host can't be reached",
    errno.ENETUNREACH: "its network can't be reached",
}
_BROKEN = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ConnectionNotAvailable)


class HttpRequest(NamedTuple):
    """A request to make. `by_owner`: the URL is in the owner's configuration. The rules then permit its host and address."""

    method: str
    url: str
    headers: Headers = MappingProxyType({})
    body: bytes | None = None
    #: Redirects to follow, and bytes of the body to read, decompressed.
    follow: int = 0
    most: int = MAX_BODY
    by_owner: bool = False


class Answer(NamedTuple):
    """A response.

    `headers` maps lower-case names to values; repeated headers are joined. `secrets` removes the request's secrets from text.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool
    url: str
    charset: str | None
    retry_after_ms: int | None
    secrets: Secrets


class Response:
    """A response whose body has not been read. `pieces` yields the body as it was sent: compressed, if `headers` say so."""

    def __init__(self, hop: _Hop, secrets: Secrets) -> None:
        self.hop = hop
        self.secrets = secrets
        self.status = 0
        self.headers = httpx.Headers()
        self.retry_after_ms: int | None = None
        self.body: bytes | None = None
        self._size = 0
        self._stream: AsyncIterable[bytes] | None = None

    def begin(self, answer: httpcore.Response) -> None:
        """Set status and headers."""
        self.status = answer.status
        self.headers = httpx.Headers(answer.headers)
        self._stream = answer.stream  # type: ignore[assignment]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        assert self._stream is not None
        async for piece in self._stream:
            self._size += len(piece)
            yield piece
            # Thousands of tiny pieces may have arrived at once; let other tasks run.
            await asyncio.sleep(0)

    @property
    def charset(self) -> str | None:
        """The charset of the content-type."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return message.get_content_charset()

    def facts(self) -> dict[str, Any]:
        """The fields of the recorded effect. For an incomplete response only the known fields."""
        facts: dict[str, Any] = {
            "method": self.hop.method,
            "url": self.secrets.out_of_text(self.hop.url.text),
            "status": self.status or None,
            "size_bytes": self._size if self.body is None else len(self.body),
            "sent_bytes": len(self.hop.body or b""),
        }
        if self.body is not None:
            facts["sha256"] = hashlib.sha256(self.body).hexdigest()
        return facts


class _Hop(NamedTuple):
    url: Url
    method: str
    headers: Headers
    body: bytes | None


class _Time(NamedTuple):
    """The deadline by the loop's clock, and the seconds until it when the call began."""

    deadline: float
    seconds: float


class Client:
    """The HTTP client of one service, for use in its event loop.

    Args:
        resolve: Resolves host names.
        trust: The trusted certificates; by default those of browsers.
    """

    def __init__(self, resolve: Resolver = system_resolver, trust: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._trust = trust
        self._host_limits = HostLimits()
        self._pools: OrderedDict[tuple[Any, ...], httpcore.AsyncConnectionPool] = OrderedDict()

    async def aclose(self) -> None:
        """Close every connection."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.aclose()

    async def fetch(self, context: CallContext, request: HttpRequest) -> Answer:
        """Make the request, follow its redirects, and return the last response.

        Each request that was sent is recorded as an effect, also if it failed.

        Raises:
            Failure: `network_error`, `timeout`, `too_large`, `encoding_error`, `invalid_arguments`, `permission_denied`,
                `rate_limited`, `not_found` (a secret without a value).
        """
        async with self.stream(context, request) as response:
            packing = response.headers.get("content-encoding", "")
            body, truncated = await unpacked(response.pieces(), packing, request.most)
            response.body = body = response.secrets.out_of(body)
        secrets = response.secrets
        return Answer(
            response.status,
            {name: secrets.out_of_text(value) for name, value in response.headers.items()},
            body,
            truncated,
            secrets.out_of_text(response.hop.url.text),
            response.charset,
            response.retry_after_ms,
            secrets,
        )

    @asynccontextmanager
    async def stream(self, context: CallContext, request: HttpRequest) -> AsyncIterator[Response]:
        """Like `fetch`, but the body is read as it arrives. The reader must remove the secrets."""
        rules = context.network
        if rules is None:
            raise Failure("permission_denied", "no rules for the network apply here", rule="network")
        url = read_url(request.url)
        if request.body is not None and len(request.body) > MAX_SENT:
            message = f"the body has {len(request.body):,} bytes; at most {MAX_SENT:,} can be sent"
            raise Failure("too_large", message)
        address_rules = rules.address_rules
        if request.by_owner:
            rules.demand(url.text, request.method, by_owner=True)
            address_rules = rules.address_rules_for(url.text)
        hop, secrets = _Hop(url, request.method, request.headers, request.body), Secrets()
        seconds = max(0.0, context.remaining - MARGIN)
        time = _Time(asyncio.get_running_loop().time() + seconds, seconds)
        try:
            for left in range(min(request.follow, MAX_FOLLOWED), -1, -1):
                async with self._sent(context, rules, hop, address_rules, secrets, time, request.most) as response:
                    location = response.headers.get("location")
                    if not left or response.status not in REDIRECTS or location is None:
                        yield response
                        return
                hop = _followed(hop, response.status, location)
                rules.demand(hop.url.text, hop.method)
                # The owner's configuration permits its own address, not the address of a redirect.
                address_rules = rules.address_rules
        except Failure as failure:
            secrets.out_of_failure(failure)
            raise

    @asynccontextmanager
    async def _sent(
        self,
        context: CallContext,
        rules: NetworkRules,
        hop: _Hop,
        address_rules: AddressRules,
        secrets: Secrets,
        time: _Time,
        most: int,
    ) -> AsyncIterator[Response]:
        """Send one request and yield its response."""
        url, place, host = hop.url, hop.url.place, (hop.url.host, hop.url.port)
        headers = written(hop.headers, url, hop.method, hop.body, rules, secrets)
        body, response = _Body(hop.body), Response(hop, secrets)
        timer, meter = asyncio.timeout_at(time.deadline), Meter(MAX_HEAD)
        metering = METER.set(meter)
        try:
            async with timer, self._host_limits.turn(host, time.seconds):
                pool = await self._pool(url.scheme, address_rules, context.settings)
                raw = httpx.URL(url.text)
                target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=raw.raw_path)
                request = httpcore.Request(hop.method, target, headers=headers, content=body)
                answer = await pool.handle_async_request(request)
                meter.left = WIRE_TIMES * most + WIRE_MORE
                try:
                    response.begin(answer)
                    retry_after = response.headers.get("retry-after")
                    response.retry_after_ms = self._host_limits.note(host, answer.status, retry_after)
                    _bounded(answer.headers, place)
                    yield response
                finally:
                    await answer.aclose()
        except TimeoutError:
            if not timer.expired():
                raise
            raise Failure(
                "timeout",
                f"no complete answer from {place!r} within {time.seconds:.3g} s",
                hint="the request may have been carried out" if body.begun else "nothing was sent",
                retryable=not body.begun or hop.method in IDEMPOTENT,
            ) from None
        except TooMuch:
            part = "body" if response.status else "headers"
            raise Failure(
                "too_large", f"{place!r} sent too many bytes for its {part}", hint="ask for less at once"
            ) from None
        except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise refused_argument("url", secrets.out_of_text(f"the request can't be sent: {error}")) from None
        except (*_BROKEN, OSError) as error:
            why = secrets.out_of_text(_reason(error)) or type(error).__name__
            raise Failure(
                "network_error",
                f"no answer from {place!r}: {why}",
                hint="the request may have been carried out" if body.begun else None,
                retryable=not body.begun or hop.method in IDEMPOTENT,
            ) from None
        finally:
            METER.reset(metering)
            if body.begun:
                context.effect("network", **response.facts())

    async def _pool(
        self, scheme: str, address_rules: AddressRules, settings: Mapping[str, Any]
    ) -> httpcore.AsyncConnectionPool:
        ca_file = str(settings.get("ca_file") or "") if scheme == "https" else ""
        key = scheme, address_rules, ca_file
        trust = None
        if key not in self._pools and scheme == "https":
            # Loading certificates is slow, and plain HTTP needs none.
            trust = self._trust or await asyncio.to_thread(_certificates, ca_file)
        if key not in self._pools:
            # Another task may have created the pool in the meantime.
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=trust,
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_CONNECTIONS // 2,
                keepalive_expiry=KEEP_SECONDS,
                network_backend=PinningBackend(address_rules, self._resolve),
            )
            for old in list(self._pools)[:-MAX_POOLS]:
                # Pools of earlier rules. A pool in use is closed later.
                if all(c.is_idle() for c in self._pools[old].connections):
                    await self._pools.pop(old).aclose()
        return self._pools[key]


class _Body:
    """The body of a request. httpcore reads the body after it has sent the headers, so `begun` says whether anything was sent."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self.begun = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.begun = True
        if self._data:
            yield self._data


def _followed(hop: _Hop, status: int, location: str) -> _Hop:
    """The request that follows a redirect, as browsers make it."""
    url = joined(hop.url, location)
    keeps = status in (307, 308) or hop.method in ("GET", "HEAD") or (status != 303 and hop.method != "POST")
    method = hop.method if keeps else "GET"
    body = hop.body if keeps else None
    return _Hop(url, method, carried(hop.headers, same=url.origin == hop.url.origin, body=body is not None), body)


def _bounded(headers: Any, place: str) -> None:
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        message = f"{place!r} sent {len(headers)} headers of {size:,} bytes; the limits are {MAX_HEADERS} and {MAX_HEADER_BYTES:,}"
        raise Failure("too_large", message)


def _certificates(ca_file: str) -> ssl.SSLContext:
    """The certificates of browsers and those of the owner's file.

    Raises:
        Failure: `io_error`.
    """
    trust = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        try:
            trust.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise Failure(
                "io_error",
                f"the certificates in `ca_file` can't be used: {error}",
                hint="the owner should correct `ca_file` in governance.yaml",
            ) from None
    return trust


def _reason(error: BaseException) -> str:
    """The reason why the request failed. If several addresses were tried, the reason that the operating system gave."""
    pending: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while pending:
        each = pending.pop()
        if each is None or any(each is other for other in seen):
            continue
        seen.append(each)
        if isinstance(each, OSError) and each.errno in _UNREACHED:
            return _UNREACHED[each.errno]
        pending += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return str(error)
