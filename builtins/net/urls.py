"""URLs that every parser reads in the same way.

URL parsers disagree, so the checked host might not be the contacted host. Ambiguous URLs are therefore refused. All other URLs are
normalised, and the normalised URL is checked, connected to and sent.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import parsed
from albert_tools.engine.policy.host_rules import host_of

#: Characters of a URL; servers accept hardly more.
MAX_URL = 8192

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\Z")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_PORTS = {"http": 80, "https": 443}


class Url(NamedTuple):
    """`text` is the normalised URL without a fragment; `host` has no brackets and no final dot."""

    text: str
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: the server."""
        return self.scheme, self.host, self.port

    @property
    def place(self) -> str:
        """Host and port, as messages show them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_url(text: str, field: str = "url") -> Url:
    """Parse and normalise a URL.

    Raises:
        Failure: `invalid_arguments`.
    """
    if len(text) > MAX_URL:
        raise refused_argument(field, f"a URL can have at most {MAX_URL:,} characters")
    if any(c <= " " or c == "\x7f" or c == "\\" or "\ud800" <= c <= "\udfff" for c in text):
        raise refused_argument(
            field, "a URL can't contain spaces, control characters or backslashes; escape them, as %20"
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise refused_argument(field, f"this is not a URL: {error}") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not host:
        raise refused_argument(field, "the URL must begin with http:// or https:// and name a host")
    if "@" in parts.netloc:
        raise refused_argument(field, "a URL can't contain a user name or password; send an authorization header")
    plain = host_of(text)
    if plain is None:
        raise refused_argument(field, "the host is ambiguous; write it in ASCII, international names in the xn-- form")
    if parsed(plain) is None and (not _NAME.match(plain) or _NUMBER.fullmatch(plain.rpartition(".")[2])):
        raise refused_argument(field, f"{plain[:100]!r} is neither a host name nor an address")
    if port == 0:
        raise refused_argument(field, "port 0 is not valid")
    number = _PORTS[scheme] if port is None else port
    shown = f"[{plain}]" if ":" in plain else plain
    place = shown if number == _PORTS[scheme] else f"{shown}:{number}"
    return Url(urlunsplit((scheme, place, parts.path or "/", parts.query, "")), scheme, plain, number)


def joined(base: Url, location: str) -> Url:
    """Returns the target of a redirect.

    Raises:
        Failure: `network_error`: the target is invalid.
    """
    try:
        return read_url(urljoin(base.text, location.strip()[: 2 * MAX_URL]))
    except (Failure, ValueError) as error:
        raise Failure(
            "network_error",
            f"{base.place} redirects to an invalid URL: {error}",
            hint="request it without `follow`",
        ) from None
