"""The one way out: every request that a primitive makes.

Nothing happens behind the caller's back. No proxy, cookie, credential or `.netrc` of the machine goes into a request, nothing
is tried twice, and a redirect is followed only if that was asked for, each as a request of its own: judged, resolved,
connected and recorded anew, without what was meant for another server. Bytes, headers and time have bounds that the other side
can't move.

It is httpx and its httpcore, without the parts that remember. What is remembered is connections, for a few seconds and only
for calls that the same addresses are open to, and the hosts that want to be left alone.

Import it where it is used: httpx takes long to load.
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
from albert_tools.builtins.net.host_limits import Courtesy
from albert_tools.builtins.net.pinned_connections import METER, Meter, PinningBackend, TooMuch
from albert_tools.builtins.net.resolve_host import Resolver, system_resolver
from albert_tools.builtins.net.secrets import Secrets
from albert_tools.builtins.net.urls import Url, joined, read_url
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext, NetworkRules
from albert_tools.engine.policy.addresses import Network

#: What may go wrong on the way; whether anything was sent, the request's body knows.
_UNREACHED = {
    errno.ECONNREFUSED: "the connection was refused, so nothing listens at that port",
    errno.EHOSTUNREACH: "the host can't be reached",
    errno.ENETUNREACH: "there is no way to its network",
}
_BROKEN = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ConnectionNotAvailable)


class Call(NamedTuple):
    """A request to be made. `by_owner`: its URL stands in the owner's configuration, which names host and address."""

    method: str
    url: str
    headers: Headers = MappingProxyType({})
    body: bytes | None = None
    #: How many redirects to follow, bytes of the body to take, unpacked.
    follow: int = 0
    most: int = MAX_BODY
    by_owner: bool = False


class Answer(NamedTuple):
    """What came back. `headers` are by lower-case names, those of one name joined; `secrets` takes out of text what was sent."""

    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool
    url: str
    charset: str | None
    retry_after_ms: int | None
    secrets: Secrets


class Response:
    """An answer whose body is still to come. `pieces` gives it as it comes, packed as `headers` say."""

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
        """The head has come."""
        self.status = answer.status
        self.headers = httpx.Headers(answer.headers)
        self._stream = answer.stream  # type: ignore[assignment]

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        assert self._stream is not None
        async for piece in self._stream:
            self._size += len(piece)
            yield piece
            # Thousands of tiny ones may have come at once; others have their turn in between.
            await asyncio.sleep(0)

    @property
    def charset(self) -> str | None:
        """What the content-type says."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return message.get_content_charset()

    def facts(self) -> dict[str, Any]:
        """What the record says of it; of what was cut short, as far as it came."""
        found: dict[str, Any] = {
            "method": self.hop.method,
            "url": self.secrets.out_of_text(self.hop.url.text),
            "status": self.status or None,
            "size_bytes": self._size if self.body is None else len(self.body),
            "sent_bytes": len(self.hop.body or b""),
        }
        if self.body is not None:
            found["sha256"] = hashlib.sha256(self.body).hexdigest()
        return found


class _Hop(NamedTuple):
    url: Url
    method: str
    headers: Headers
    body: bytes | None


class _Time(NamedTuple):
    """Until when, by the loop's clock, and how many seconds that was in all."""

    deadline: float
    seconds: float


class Client:
    """The way out of one service. For its loop.

    Args:
        resolve: What turns names into addresses.
        trust: Which certificates are believed; those that browsers believe where nothing is given.
    """

    def __init__(self, resolve: Resolver = system_resolver, trust: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._trust = trust
        self._courtesy = Courtesy()
        self._pools: OrderedDict[tuple[Any, ...], httpcore.AsyncConnectionPool] = OrderedDict()

    async def aclose(self) -> None:
        """Close every connection."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.aclose()

    async def fetch(self, context: CallContext, call: Call) -> Answer:
        """Make the request, and follow as many redirects as it says; the last answer.

        Each request that was sent is an effect of the call, also one that failed.

        Raises:
            Failure: `network_error`, `timeout`, `too_large`, `encoding_error`, `invalid_arguments`, `permission_denied`,
                `rate_limited`, `not_found` (a secret without a value).
        """
        async with self.stream(context, call) as response:
            packing = response.headers.get("content-encoding", "")
            body, truncated = await unpacked(response.pieces(), packing, call.most)
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
    async def stream(self, context: CallContext, call: Call) -> AsyncIterator[Response]:
        """As `fetch`, for a body that is read as it comes. Whoever reads it takes the secrets out."""
        rules = context.network
        if rules is None:
            raise Failure("permission_denied", "there are no rules for the network here", rule="network")
        url = read_url(call.url)
        if call.body is not None and len(call.body) > MAX_SENT:
            message = f"the body has {len(call.body):,} bytes, and {MAX_SENT:,} is the most that can be sent"
            raise Failure("too_large", message)
        named = rules.named
        if call.by_owner:
            rules.demand(url.text, call.method, by_owner=True)
            named = rules.named_by(url.text)
        hop, secrets = _Hop(url, call.method, call.headers, call.body), Secrets()
        seconds = max(0.0, context.remaining - MARGIN)
        time = _Time(asyncio.get_running_loop().time() + seconds, seconds)
        try:
            for left in range(min(call.follow, MAX_FOLLOWED), -1, -1):
                async with self._sent(context, rules, hop, named, secrets, time, call.most) as response:
                    location = response.headers.get("location")
                    if not left or response.status not in REDIRECTS or location is None:
                        yield response
                        return
                hop = _followed(hop, response.status, location)
                rules.demand(hop.url.text, hop.method)
                # What the owner's configuration leads to is not what it names.
                named = rules.named
        except Failure as failure:
            secrets.out_of_failure(failure)
            raise

    @asynccontextmanager
    async def _sent(
        self,
        context: CallContext,
        rules: NetworkRules,
        hop: _Hop,
        named: tuple[Network, ...],
        secrets: Secrets,
        time: _Time,
        most: int,
    ) -> AsyncIterator[Response]:
        """One request; while the block lasts, its response."""
        url, place, host = hop.url, hop.url.place, (hop.url.host, hop.url.port)
        headers = written(hop.headers, url, hop.method, hop.body, rules, secrets)
        body, response = _Body(hop.body), Response(hop, secrets)
        timer, meter = asyncio.timeout_at(time.deadline), Meter(MAX_HEAD)
        metering = METER.set(meter)
        try:
            async with timer, self._courtesy.turn(host, time.seconds):
                pool = await self._pool(url.scheme, named, context.settings)
                raw = httpx.URL(url.text)
                target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=raw.raw_path)
                request = httpcore.Request(hop.method, target, headers=headers, content=body)
                answer = await pool.handle_async_request(request)
                meter.left = WIRE_TIMES * most + WIRE_MORE
                try:
                    response.begin(answer)
                    retry_after = response.headers.get("retry-after")
                    response.retry_after_ms = self._courtesy.told(host, answer.status, retry_after)
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
                hint="whether the request was carried out is unknown" if body.begun else "nothing was sent",
                retryable=not body.begun or hop.method in IDEMPOTENT,
            ) from None
        except TooMuch:
            message = (
                f"{place!r} sent far more bytes than {'its headers' if not response.status else 'its body'} may have"
            )
            raise Failure("too_large", message, hint="ask for less at once") from None
        except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise refused_argument("url", secrets.out_of_text(f"the request can't be sent: {error}")) from None
        except (*_BROKEN, OSError) as error:
            why = secrets.out_of_text(_reason(error)) or type(error).__name__
            raise Failure(
                "network_error",
                f"no answer from {place!r}: {why}",
                hint="whether the request was carried out is unknown" if body.begun else None,
                retryable=not body.begun or hop.method in IDEMPOTENT,
            ) from None
        finally:
            METER.reset(metering)
            if body.begun:
                context.effect("network", **response.facts())

    async def _pool(
        self, scheme: str, named: tuple[Network, ...], settings: Mapping[str, Any]
    ) -> httpcore.AsyncConnectionPool:
        further = str(settings.get("ca_file") or "") if scheme == "https" else ""
        key = scheme, named, further
        trust = None
        if key not in self._pools and scheme == "https":
            # Loading the certificates takes long, and a plain request never needs them.
            trust = self._trust or await asyncio.to_thread(_certificates, further)
        if key not in self._pools:
            # Nobody else was quicker.
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=trust,
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_CONNECTIONS // 2,
                keepalive_expiry=KEEP_SECONDS,
                network_backend=PinningBackend(named, self._resolve),
            )
            for old in list(self._pools)[:-MAX_POOLS]:
                # The rules were others then. One that is in use ends with its last connection.
                if all(c.is_idle() for c in self._pools[old].connections):
                    await self._pools.pop(old).aclose()
        return self._pools[key]


class _Body:
    """A body to be sent, which knows whether anything was: it is asked for when the headers are out."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self.begun = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.begun = True
        if self._data:
            yield self._data


def _followed(hop: _Hop, status: int, location: str) -> _Hop:
    """The request that a redirect asks for, as browsers understand it."""
    url = joined(hop.url, location)
    keeps = status in (307, 308) or hop.method in ("GET", "HEAD") or (status != 303 and hop.method != "POST")
    method = hop.method if keeps else "GET"
    body = hop.body if keeps else None
    return _Hop(url, method, carried(hop.headers, same=url.origin == hop.url.origin, body=body is not None), body)


def _bounded(headers: Any, place: str) -> None:
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        message = f"{place!r} sent {len(headers)} headers of {size:,} bytes; {MAX_HEADERS} and {MAX_HEADER_BYTES:,} are the most"
        raise Failure("too_large", message)


def _certificates(further: str) -> ssl.SSLContext:
    """What browsers believe, and what the owner's configuration adds.

    Raises:
        Failure: `io_error`.
    """
    trust = httpx.create_ssl_context(trust_env=False)
    if further:
        try:
            trust.load_verify_locations(further)
        except (OSError, ssl.SSLError) as error:
            raise Failure(
                "io_error",
                f"the certificates that the configuration names can't be used: {error}",
                hint="mend `ca_file` in governance.yaml",
            ) from None
    return trust


def _reason(error: BaseException) -> str:
    """Why there is no connection: as the system says it, where several addresses were tried in vain."""
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
