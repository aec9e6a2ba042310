"""The headers of a request: which headers a caller may set, which the client adds, and which a redirect retains."""

from __future__ import annotations

from collections.abc import Mapping

from albert_tools.builtins.net.secrets import SecretReference, Secrets
from albert_tools.builtins.net.urls import Url
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import NetworkRules

#: Values by header name. A value is text or a reference to a secret.
Headers = Mapping[str, "str | SecretReference"]

#: Headers of one request, and characters of a value.
MAX_SET, MAX_VALUE = 100, 16 * 1024

#: Headers of the transport. A caller that sets them could change the request after it was checked.
_RESERVED = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer"}
    | {"accept-encoding", "expect", "http2-settings"}
)
#: Headers that are also sent when a redirect leads to another server. Any other header may be a credential.
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent", "range", "cache-control"})


def check_headers(headers: Headers) -> None:
    """Check the headers of a caller.

    Raises:
        Failure: `invalid_arguments`.
    """
    if len(headers) > MAX_SET:
        raise refused_argument("headers", f"a request can have at most {MAX_SET} headers")
    seen = set()
    for name, value in headers.items():
        if not name or not all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name) or not name.isascii():
            raise refused_argument("headers", f"{name[:80]!r} is not a valid header name")
        if name.lower() in _RESERVED or name.lower().startswith("proxy-"):
            raise refused_argument("headers", f"the header {name!r} is set by Albert Tools")
        if name.lower() in seen:
            raise refused_argument("headers", f"the header {name!r} is given twice")
        seen.add(name.lower())
        text = value if isinstance(value, str) else value.get("prefix", "")
        if not text.isascii() or any(c < " " and c != "\t" for c in text) or "\x7f" in text or len(text) > MAX_VALUE:
            raise refused_argument(
                "headers",
                f"the header {name!r} must be printable ASCII without line breaks, at most {MAX_VALUE:,} characters",
            )


def demand_secrets(headers: Headers, url: str, rules: NetworkRules) -> None:
    """Require that the rules allow to send the secrets among the headers to a URL.

    Raises:
        Failure: `permission_denied`.
    """
    for value in headers.values():
        if not isinstance(value, str):
            rules.demand_secret(value.get("secret", ""), url)


def written(
    headers: Headers, url: Url, method: str, body: bytes | None, rules: NetworkRules, secrets: Secrets
) -> list[tuple[bytes, bytes]]:
    """Returns the headers to send, with the values of the secrets that the rules allow for this URL.

    Raises:
        Failure: `permission_denied`, `not_found`, `invalid_arguments`.
    """
    demand_secrets(headers, url.text, rules)
    sent = [("host", url.place), ("accept-encoding", "identity")]
    names = {name.lower() for name in headers}
    sent += [(n, v) for n, v in (("user-agent", "albert-tools"), ("accept", "*/*")) if n not in names]
    for name, value in headers.items():
        if isinstance(value, str):
            sent.append((name, value))
        else:
            sent.append((name, secrets.take(value["secret"], value.get("prefix", ""))))
    if body is not None or method in ("POST", "PUT", "PATCH"):
        sent.append(("content-length", str(len(body or b""))))
    try:
        return [(name.encode("ascii"), value.strip(" \t").encode("ascii")) for name, value in sent]
    except UnicodeError:
        raise Failure("invalid_arguments", "a header is not ASCII") from None


def carried(headers: Headers, *, same: bool, body: bool) -> Headers:
    """The headers for the request after a redirect.

    The `same` server gets all, another server only those that cannot be credentials.
    """
    return {
        name: value
        for name, value in headers.items()
        if (same or (name.lower() in _HARMLESS and isinstance(value, str))) and (body or name.lower() != "content-type")
    }
