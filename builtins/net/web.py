"""One HTTP request, exactly as asked for, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from albert_tools.builtins.net.bounds import MAX_BODY, MAX_FOLLOWED
from albert_tools.builtins.net.headers import check_headers
from albert_tools.builtins.net.secrets import SecretReference
from albert_tools.builtins.net.urls import MAX_URL
from albert_tools.builtins.text_encoding import decode, encode
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

__all__ = ["MAX_BODY", "http_request"]

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

#: What to do about a body that is no text.
_BINARY = "only text can be had; ask for another representation with the header accept"


class HttpResponse(TypedDict):
    """What `http_request` answers."""

    status: int
    headers: dict[str, str]
    body: str
    truncated: bool
    url: str
    retry_after_ms: int | None


def _refuse(arguments: Mapping[str, Any]) -> None:
    from albert_tools.builtins.net.urls import read_url

    read_url(arguments["url"])
    check_headers(arguments["headers"] or {})


@primitive(
    effects=["network"],
    schemas={"url": {"minLength": 1, "maxLength": MAX_URL}, "follow": {"minimum": 0, "maximum": MAX_FOLLOWED}},
    urls={"url": "method"},
    refuse=_refuse,
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
    """Send one HTTP request and return the answer, whatever its status.

    Returns {"status", "headers", "body", "truncated", "url", "retry_after_ms"}. A 404 or 500 is an answer, not a
    failure: look at "status". Redirects are not followed unless `follow` says how many: a 301 comes back as such, with
    "location" in "headers". Header names are in lower case. "body" is text; of more than 1 MiB the first 1 MiB is kept
    and "truncated" is true. JSON is not parsed: use json.loads(answer["body"]).

    "url" is the address that answered. A header that occurs several times is joined by ", ". The body is decoded by
    the charset of the content-type, or as UTF-8. "retry_after_ms" is null unless the server, with 429 or 503, asked
    not to be called for so long; calls within that time wait if it is short, or fail with `rate_limited` before
    anything is sent.

    Only http:// and https:// URLs, without a user name or password in them. The body is sent as UTF-8,
    without a content-type unless the headers give one. No cookies, proxies or credentials are added. Addresses that
    are not public (this machine, private networks) are refused unless the owner's rules name them. A header may be
    {"secret": "NAME"}, or {"secret": "NAME", "prefix": "Bearer "}: the value is put in on the way, for hosts that
    the owner has bound it to, and is taken out of the answer. Each redirect is judged like a call of its own and
    gets none of the headers but harmless ones (accept, content-type, …) if it leads to another server; POST becomes
    GET except for 307 and 308.

    Fails with `network_error` (no such host, refused, cut off, bad certificate), `timeout`, `encoding_error`
    (the body is not text), `too_large` (a body to send of more than 10 MiB, an answer with too many headers),
    `invalid_arguments` (URL or headers), `not_found` (a secret without a value), `rate_limited`, `permission_denied`
    (a URL, address, redirect or secret that the rules don't allow; a redirect to a new host names it, so that it can
    be called by itself). "retryable" is true where nothing can have been done twice by trying again.

    Args:
        url: The full address, with its query, for example "https://example.org/search?q=cats".
        method: What to do.
        body: What to send; nothing when null.
        headers: Further headers by name, for example {"content-type": "application/json"}.
        follow: How many redirects to follow; of the last one the answer itself is returned.
    """
    data = None if body is None else encode(body, "the body")

    from albert_tools.builtins.net.client import Call, Client

    answer = await context.keep(Client).fetch(context, Call(method, url, headers or {}, data, follow))
    # After the record: that the answer is no text doesn't undo the request.
    text = decode(answer.body, answer.charset or "utf-8", "the body", cut=answer.truncated, hint=_BINARY)
    if answer.secrets:
        # In an encoding of its own, perhaps; and at the end the beginning of one may stand.
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
