"""One HTTP request, exactly as asked for, and its answer.

Nothing happens behind the caller's back: no redirect is followed (it might lead to a host that nobody
allowed), no proxy or credential is taken from the environment, nothing is tried twice. What is received is
bounded before it is unpacked and after.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal, TypedDict
from urllib.parse import urlsplit

from albert_tools.builtins.text import decode, encode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

if TYPE_CHECKING:
    import httpx

#: Bytes of an answer's body that are returned, unpacked.
MAX_BODY = 1 * MiB

#: Bytes of a body that is sent.
MAX_SENT = 10 * MiB

#: Seconds kept back from what the caller has left, to answer with a failure of our own.
_MARGIN = 0.1

#: Headers that say how the message is carried; setting them could make the request another than the one
#: judged.
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer"}
    | {"accept-encoding"}
)

#: Methods that can be repeated without doing more than once.
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class HttpResponse(TypedDict):
    """What `http_request` answers."""

    status: int
    headers: dict[str, str]
    body: str
    truncated: bool
    url: str


@primitive(
    effects=["network"],
    gated=True,
    schemas={"url": {"minLength": 1, "maxLength": 8192}},
    urls={"url": "method"},
)
async def http_request(
    context: CallContext,
    url: str,
    method: Method = "GET",
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """Send one HTTP request and return the answer, whatever its status.

    Returns {"status", "headers", "body", "truncated", "url"}. A 404 or 500 is an answer, not a failure: look
    at "status". Redirects are not followed: a 301 comes back as such, with "location" in "headers". Header
    names are in lower case; a header that occurs several times is joined by ", ". "body" is text, decoded by
    the charset of the content-type, or as UTF-8; of more than 1 MiB the first 1 MiB is kept and "truncated"
    is true. JSON is not parsed: use json.loads(answer["body"]).

    Only http:// and https:// URLs, without a user name or password in them. The body is sent as UTF-8,
    without a content-type unless the headers give one. No cookies, proxies or credentials are added.

    Fails with `network_error` (no such host, refused, cut off, bad certificate), `timeout`, `encoding_error`
    (the body is not text), `too_large` (a body to send of more than 10 MiB), `invalid_arguments` (URL or
    headers), `permission_denied`. "retryable" is true where nothing can have been done twice by trying again.

    Args:
        url: The full address, with its query, for example "https://example.org/search?q=cats".
        method: What to do.
        body: What to send; nothing when null.
        headers: Further headers by name, for example {"content-type": "application/json"}.
    """
    import asyncio

    import httpx

    _check_url(url)
    _check_headers(headers or {})
    data = None if body is None else encode(body, "the body")
    if data is not None and len(data) > MAX_SENT:
        raise Failure("too_large", f"the body has {len(data)} bytes, and {MAX_SENT} is the most that can be sent")
    limit = max(0.0, context.remaining - _MARGIN)
    sent = {"accept-encoding": "identity", "user-agent": "albert-tools", **(headers or {})}
    # Loading the certificates takes long, and without redirects a plain request never needs them.
    secure = url.lower().startswith("https:")
    try:
        async with (
            asyncio.timeout(limit),
            httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=None, verify=secure) as client,
            client.stream(method, url, content=data, headers=sent) as response,
        ):
            received, truncated = await _body(response)
    except TimeoutError:
        raise Failure(
            "timeout",
            f"no complete answer from {_host(url)} within {limit:g} s",
            hint="whether the request was carried out is unknown",
            retryable=method in _IDEMPOTENT,
        ) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError) as error:
        raise _invalid("url", f"the request can't be sent: {error}") from None
    except (httpx.HTTPError, OSError) as error:
        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise Failure(
            "network_error",
            f"no answer from {_host(url)}: {str(error) or type(error).__name__}",
            hint=None if unsent else "whether the request was carried out is unknown",
            retryable=unsent or method in _IDEMPOTENT,
        ) from None
    context.effect(
        "network",
        method=method,
        url=url,
        status=response.status_code,
        size_bytes=len(received),
        sha256=hashlib.sha256(received).hexdigest(),
    )
    # After the record: that the answer is no text doesn't undo the request.
    text = decode(received, response.charset_encoding or "utf-8", "the body", cut=truncated)
    return {
        "status": response.status_code,
        "headers": dict(response.headers),
        "body": text,
        "truncated": truncated,
        "url": str(response.url),
    }


async def _body(response: httpx.Response) -> tuple[bytes, bool]:
    """The body, unpacked, up to `MAX_BODY`, and whether there was more."""
    received = bytearray()
    async for piece in _unpacked(response):
        received += piece
        if len(received) > MAX_BODY:
            return bytes(received[:MAX_BODY]), True
    return bytes(received), False


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body's pieces. Some servers pack it though asked not to; unpacking is bounded, for a few bytes can
    hold many."""
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing in ("identity", ""):
        async for piece in response.aiter_raw():
            yield piece
        return
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise Failure("encoding_error", f"the body is packed as {packing!r}, though it was asked for as it is")
    unpack = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is.
    try:
        async for piece in response.aiter_raw():
            yield unpack.decompress(piece, MAX_BODY + 1)
    except zlib.error:
        raise Failure("encoding_error", f"the body is not the {packing} data that its header says") from None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _invalid("url", f"this is not a URL: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise _invalid("url", "the URL must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise _invalid("url", "a URL can't hold a user name or password; send an authorization header")
    if any(c <= " " or c == "\x7f" or c == "\\" for c in url):
        raise _invalid("url", "a URL can't hold spaces, control characters or backslashes; write %20 and so on")


def _check_headers(headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not name or not all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name) or not name.isascii():
            raise _invalid("headers", f"{name[:80]!r} is not a header's name")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise _invalid("headers", f"the header {name!r} is set by Albert itself")
        if not value.isascii() or any(c < " " and c != "\t" for c in value) or "\x7f" in value:
            raise _invalid("headers", f"the header {name!r} must be printable ASCII, without line breaks")


def _host(url: str) -> str:
    return repr(urlsplit(url).netloc)


def _invalid(field: str, message: str) -> Failure:
    violation = {"field": field, "rule": field, "message": f"{field}: {message}"}
    return Failure("invalid_arguments", message, details={"violations": [violation]})
