"""Rules on hosts and HTTP methods. A host that the owner's rules don't list needs approval.

The addresses of a host name are checked when the connection is made (`addresses`). This module checks the address only if the URL
contains one, so that a person isn't asked about a call that would be refused later. Only the owner's file can permit non-public
addresses: under `allowed_addresses`, or as a literal address or ``localhost`` in `allowed_hosts` or `free_hosts`. A host name there
permits no non-public address, because the owner of the name controls its addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from socket import inet_aton, inet_ntoa
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource, rule_id, sections_of
from albert_tools.engine.policy.rule_kind import Examined, Finding, ListKey, NameRule, RuleKind, same_word

if TYPE_CHECKING:
    from albert_tools.engine.policy.addresses import AddressRules, Network

#: The rule that refuses non-public addresses.
UNREACHABLE = "shipped.addresses"

#: A name or an IPv4 address. A pattern of another form, such as ``.example.org``, would match no host.
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?", re.ASCII)
_BRACKETED = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
#: The last part of an IPv4 address in any form that the system's resolver accepts. No host name ends like this.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

#: The methods of HTTP. Other methods of a tool are rules on its operations.
_HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")

_PLAIN = "write it as https://example.org/…"


def read_host(text: str) -> str:
    """The normal form of a host pattern.

    Raises:
        ValueError: the text is not a host pattern.
    """
    if text == "*":
        return text
    if ":" in text:
        from ipaddress import IPv6Address

        with suppress(ValueError):
            return str(IPv6Address(text.removeprefix("[").removesuffix("]")))
    if not _NAME.fullmatch(text.removeprefix("*.")):
        raise ValueError("a host is a name such as example.org, *.example.org for all below it, or * for every host")
    return text.lower()


def _address(text: str) -> str:
    from ipaddress import ip_network

    try:
        return str(ip_network(text))
    except ValueError:
        raise ValueError("an address is one such as 10.0.0.7, or a network such as 10.0.0.0/24 or fd00::/8") from None


def is_host(host: str, pattern: str) -> bool:
    """Whether `pattern` matches `host`: ``example.org``, ``*.example.org`` for all subdomains, ``*`` for every host."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:].rstrip(".").lower())
    return host == plain_host(pattern)


def _method(text: str) -> str:
    method = text.upper()
    if method not in _HTTP_METHODS:
        near = did_you_mean(method, _HTTP_METHODS) or f"; use {', '.join(_HTTP_METHODS)}"
        raise ValueError(f"there is no HTTP method {text!r}{near}")
    return method


ALLOWED = ListKey(
    "allowed_hosts",
    read_host,
    253,
    '[example.org, "*.example.org"]',
    "the only hosts that may be reached; `*.example.org` is every host below it, `*` every host",
)
FORBIDDEN = ListKey("forbidden_hosts", read_host, 253, "[ads.example.org]", "hosts that are denied")
FREE = ListKey(
    "free_hosts",
    read_host,
    253,
    "[docs.example.org]",
    "hosts that need no approval, while other hosts still ask; in the owner's file alone",
)
METHODS = ListKey(
    "allowed_methods",
    _method,
    32,
    "[GET, HEAD]",
    "the only HTTP methods that may be used; for git, list the allowed operations instead",
)
ADDRESSES = ListKey(
    "allowed_addresses",
    _address,
    64,
    '[10.20.0.0/16, "fd12::/64"]',
    "addresses and networks that may be reached although they aren't public ([more](#the-network))",
)

_HOSTS = NameRule("host", is_host, ALLOWED, forbidden=FORBIDDEN)
_METHODS = NameRule("method", same_word, METHODS)


def judge_url(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on a URL; None if no rule objects."""
    # Denials come first: a person isn't asked about a URL that can't be reached.
    if resource.name.partition(":")[0].lower() not in ("http", "https"):
        return Decision("deny", "shipped.schemes", "host", "only http:// and https:// addresses can be reached", _PLAIN)
    host = host_of(resource.name)
    if host is None:
        message = "the URL doesn't say unambiguously which host it means"
        hint = f"{_PLAIN}, without a user's name, and an international name in its xn-- form"
        return Decision("deny", "shipped.plain_hosts", "host", message, hint)
    method = resource.use.upper()
    denial = (
        _HOSTS.judge(layers, definition, host)
        or _METHODS.judge(layers, definition, method)
        or _address_denial(layers, definition, host)
    )
    if denial is not None or _HOSTS.owner_lists(layers, definition):
        return denial
    if any(is_host(host, pattern) for pattern in _owners(layers, definition, FREE)):
        return None
    return Decision(
        "ask",
        "shipped.new_host_asks",
        "approval_required",
        f"no rule lists the host {host!r}, which {definition.name} would reach",
        f"the owner can list it under `tools.{definition.name}.{FREE.name}`",
        f"{method} {host}",
    )


def lists_host(layers: tuple[Layer, ...], definition: ToolDefinition, host: str) -> bool:
    """Whether the owner's rules list a host for a tool by name, as allowed or free. ``*`` names none."""
    return any(is_host(host, pattern) for pattern in _owners(layers, definition, ALLOWED, FREE) if pattern != "*")


def _owners(layers: tuple[Layer, ...], definition: ToolDefinition, *keys: ListKey) -> Iterator[str]:
    """The hosts that the owner's rules list for a tool under these keys."""
    sections = (section for layer, _, section in sections_of(layers, definition) if layer.owner)
    return (pattern for section in sections for key in keys for pattern in key.of(section) or ())


def address_rules(layers: tuple[Layer, ...], definition: ToolDefinition) -> AddressRules:
    """The addresses that the rules name for a tool. Non-public ones must be in the owner's rules. If the project's file has
    `allowed_addresses`, they must be in the project's list too."""
    from ipaddress import ip_network

    from albert_tools.engine.policy.addresses import AddressRules, networks_of

    networks: list[Network] = []
    forbidden: list[Network] = []
    for layer in layers:
        sections = [s for _, s in layer.sections(definition)]
        forbidden += [n for s in sections for host in FORBIDDEN.of(s) or () for n in networks_of(plain_host(host))]
        listed = [ip_network(a, strict=False) for s in sections for a in ADDRESSES.of(s) or ()]
        if layer.owner:
            networks += listed
            for host in _owners((layer,), definition, ALLOWED, FREE):
                networks += networks_of(plain_host(host))
        elif any(ADDRESSES.name in s for s in sections):
            networks = [n for n in networks if any(n.version == m.version and n.subnet_of(m) for m in listed)]  # type: ignore[arg-type]
    return AddressRules(tuple(dict.fromkeys(networks)), tuple(dict.fromkeys(forbidden)))


def _address_denial(layers: tuple[Layer, ...], definition: ToolDefinition, host: str) -> Decision | None:
    """The denial of a host that is a non-public address."""
    from albert_tools.engine.policy.addresses import parsed

    address = parsed(host)
    kind = address_rules(layers, definition).refusal(address) if address is not None else None
    return unreached(host, kind, definition.name) if kind is not None else None


def unreached(shown: str, kind: str, tool: str) -> Decision:
    """The denial of an address that is forbidden or not public. `shown` is the address, or the host name that resolves to it."""
    if kind == "forbidden":
        return Decision("deny", FORBIDDEN.name, "host", f"{shown!r} leads to an address under `{FORBIDDEN.name}`")
    article = "an" if kind[0] in "aeiou" else "a"
    return Decision(
        "deny",
        UNREACHABLE,
        "host",
        f"{shown!r} is {article} {kind} address, which the owner's rules don't permit",
        f"the owner can list it under `tools.{tool}.allowed_addresses`",
    )


def _lint(examined: Examined) -> Iterator[Finding]:
    """Find lists of free hosts without effect."""
    rule = rule_id(examined.place, FREE.name)
    if FREE.of(examined.section) is None:
        return
    if not examined.layer.owner:
        yield rule, "it has no effect: only the owner's file lists free hosts"
    elif ALLOWED.of(examined.section) is not None:
        yield rule, "it has no effect: `allowed_hosts` beside it denies all other hosts"


HOSTS = RuleKind(
    (ALLOWED, FREE, FORBIDDEN, METHODS, ADDRESSES),
    {"url": judge_url},
    effects=frozenset({"network"}),
    uses=frozenset({"url"}),
    not_for="doesn't use the network",
    lint=_lint,
)


def host_of(url: str) -> str | None:
    """The host of a URL in its normal form; None if two parsers could find different hosts in the URL."""
    if any(c <= " " or c == "\x7f" or c == "\\" for c in url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if "[" in parts.netloc and not _BRACKETED.fullmatch(parts.netloc):
        return None
    # Non-ASCII letters and escapes can change the name in a later step, and a user name can look like a host.
    if not host or not parts.scheme or "@" in parts.netloc or "%" in host or not host.isascii():
        return None
    return plain_host(host)


def plain_host(host: str) -> str:
    """A name without its final dot. An address can have many spellings (``127.1``, ``0x7f000001``); it is returned in its normal
    form."""
    host = host.lower().rstrip(".")
    if ":" in host:
        from ipaddress import IPv6Address

        try:
            address = IPv6Address(host)
        except ValueError:
            return host
        return str(address.ipv4_mapped or address)
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return inet_ntoa(inet_aton(host))
        except OSError:
            return host
    return host
