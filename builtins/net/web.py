"""Sends one HTTP request and returns its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from albert_tools.builtins.net.bounds import MAX_FOLLOWED
from albert_tools.builtins.net.headers import check_headers, demand_secrets
from albert_tools.builtins.net.secrets import SecretReference
from albert_tools.builtins.net.urls import MAX_URL, read_url
from albert_tools.builtins.text_encoding import decode, encode
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext, NetworkRules

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

#: Hint for a body that is not text.
_BINARY = "only text can be returned; ask for another representation with the header accept"


class HttpResponse(TypedDict):
    """Result of `http_request`."""

    status: int
    headers: dict[str, str]
    body: str
    truncated: bool
    url: str
    retry_after_ms: int | None


def _refuse(arguments: Mapping[str, Any]) -> None:
    read_url(arguments["url"])
    check_headers(arguments["headers"] or {})


def _deny(arguments: Mapping[str, Any], settings: Mapping[str, Any], network: NetworkRules) -> None:
    demand_secrets(arguments["headers"] or {}, arguments["url"], network)


@primitive(
    effects=["network"],
    schemas={"url": {"minLength": 1, "maxLength": MAX_URL}, "follow": {"minimum": 0, "maximum": MAX_FOLLOWED}},
    urls={"url": "method"},
    uses={"body": "payload", "headers": "payload"},
    outputs={".status": "little", ".truncated": "little", ".retry_after_ms": "little"},
    source="web",
    refuse=_refuse,
    deny=_deny,
    settings={"ca_file": {"type": "string", "minLength": 1}},
)
async def http_request(
    context: CallContext,
    url: str,
    method: Method = "GET",
    body: str | None = None,
    headers: dict[str, str | SecretReference] | None = None,
    follow: int = 0,
) -> HttpResponse:
    """Send one HTTP request and return the response, whatever its status.

    Returns {"status", "headers", "body", "truncated", "url", "retry_after_ms"}. A 404 or 500 is a result, not a failure:
    check "status". Redirects are not followed unless `follow` is set: a 301 is returned as such, with "location" in
    "headers". Header names are in lower case; repeated headers are joined by ", ". "body" is text, decoded by the charset of
    the content-type or as UTF-8; of a body over 1 MiB the first 1 MiB is returned and "truncated" is true. JSON is not
    parsed: use json.loads(response["body"]). "url" is the address that answered. "retry_after_ms" is null unless the server
    asked for a pause (429 or 503); a call during the pause waits if the rest is short. Otherwise nothing is sent, and the
    call fails with `rate_limited`.

    Only http:// and https:// URLs without user name and password are allowed. The body is sent as UTF-8, without a
    content-type unless `headers` has one. No cookies, proxies or credentials are added. Addresses that are not public (this
    machine, private networks) are refused unless the owner's rules name them. A header may be {"secret": "NAME"}, or
    {"secret": "NAME", "prefix": "Bearer "}: the value is added when the request is sent, if the owner allows the secret for the
    host, and removed from the response. Each redirect is checked like a separate call; to another server it keeps only harmless
    headers (accept, content-type, …). POST becomes GET except for 307 and 308.

    Fails with `network_error` (no such host, refused, cut off, bad certificate), `timeout`, `encoding_error` (the body is not
    text), `too_large` (a request body over 10 MiB, too many response headers), `invalid_arguments` (URL or headers),
    `not_found` (a secret without a value), `rate_limited`, `permission_denied` (a URL, address, redirect or secret that the
    rules do not allow; the failure names the new host of a redirect, so that it can be requested directly). "retryable" is
    true if a retry cannot do anything twice.

    Args:
        url: The full address with its query, for example "https://example.org/search?q=cats".
        method: The HTTP method.
        body: The body; null for none.
        headers: Additional headers by name, for example {"content-type": "application/json"}.
        follow: How many redirects to follow.
    """
    data = None if body is None else encode(body, "the body")

    from albert_tools.builtins.net.client import Client, HttpRequest

    answer = await context.keep(Client).fetch(context, HttpRequest(method, url, headers or {}, data, follow))
    text = decode(answer.body, answer.charset or "utf-8", "the body", cut=answer.truncated, hint=_BINARY)
    if answer.secrets:
        # The charset may have hidden a secret. A truncated body may end with a part of a secret.
        text = answer.secrets.out_of_text(text)
        text = text[: len(text) - answer.secrets.longest] if answer.truncated else text
    return {
        "status": answer.status,
        "headers": answer.headers,
        "body": text,
        "truncated": answer.truncated,
        "url": answer.url,
        "retry_after_ms": answer.retry_after_ms,
    }
