"""Which hosts a tool may reach, and by which methods. A host that no rule of the owner's names is asked about.

What a host's name leads to is judged when it is connected to (`addresses`). Here only a URL that is an address already is held
against the same table, so that nobody is asked about what would be refused anyway. Which addresses that are not public a tool
may reach all the same, the owner's file says: under `allowed_addresses`, or by an address or ``localhost`` among
`allowed_hosts`, literally. A name among the hosts opens no address, since whoever owns the name says where it leads.
"""

from __future__ import annotations

import re
from socket import inet_aton, inet_ntoa
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource

if TYPE_CHECKING:
    from albert_tools.engine.policy.addresses import Network

#: The rule that refuses an address that isn't public.
UNREACHABLE = "shipped.addresses"

_BRACKETED = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
#: What the last part of an address looks like, as the system's resolver reads it; no name ends so.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


def judge_url(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of a URL; None where they allow it."""
    # Nobody is asked about what could never be reached.
    if resource.name.partition(":")[0].lower() not in ("http", "https"):
        message, hint = "only http:// and https:// addresses can be reached", "write it as https://example.org/…"
        return Decision("deny", "shipped.schemes", "host", message, hint)
    host = host_of(resource.name)
    if host is None:
        hint = "write it as https://example.org/…, without a user's name, and a name in other letters in its xn-- form"
        return Decision("deny", "shipped.plain_hosts", "host", "the URL doesn't say plainly which host is meant", hint)
    named = False
    for layer in layers:
        for place, section in layer.sections(definition):
            # What a project's file names only tightens; a host is named by the owner.
            named = named or (layer.owner and section.allowed_hosts is not None)
            if any(is_host(host, pattern) for pattern in section.forbidden_hosts):
                return Decision("deny", f"{place}.forbidden_hosts", "host", f"the host {host!r} is forbidden")
            if section.allowed_hosts is not None and not any(is_host(host, p) for p in section.allowed_hosts):
                message = f"the host {host!r} is not among those that {definition.name} may reach"
                return Decision("deny", f"{place}.allowed_hosts", "host", message, "ask the owner to add it")
            methods = section.allowed_methods
            if methods is not None and resource.use.upper() not in methods:
                message = f"{definition.name} may not use {resource.use.upper()}; it may use {', '.join(methods)}"
                return Decision(
                    "deny",
                    f"{place}.allowed_methods",
                    "method",
                    message,
                    f"the owner's rules say so, under `{place}.allowed_methods`",
                )
    unreachable = _address(layers, definition, host)
    if unreachable is not None:
        return unreachable
    if named:
        return None
    return Decision(
        "ask",
        "shipped.new_host_asks",
        "approval_required",
        f"no rule names {host!r}, which {definition.name} would reach",
        f"the owner can name it under tools.{definition.name}.allowed_hosts",
        f"{resource.use.upper()} {host}",
    )


def named_addresses(layers: tuple[Layer, ...], definition: ToolDefinition) -> tuple[Network, ...]:
    """The addresses that may be reached though they aren't public: those that the owner's rules name, and of these only those that
    a project's name too, where they say anything of addresses."""
    from ipaddress import ip_network

    from albert_tools.engine.policy.addresses import LOCALHOST, parsed

    found: list[Network] = []
    for layer in layers:
        sections = [s for _, s in layer.sections(definition)]
        said = [ip_network(a, strict=False) for s in sections for a in s.allowed_addresses or ()]
        if layer.owner:
            found += said
            for host in (h for s in sections for h in s.allowed_hosts or ()):
                if host == "localhost":
                    found += LOCALHOST
                elif (address := parsed(plain_host(host))) is not None:
                    found.append(ip_network(address))
        elif any(s.allowed_addresses is not None for s in sections):
            found = [n for n in found if any(n.version == m.version and n.subnet_of(m) for m in said)]  # type: ignore[arg-type]
    return tuple(dict.fromkeys(found))


def _address(layers: tuple[Layer, ...], definition: ToolDefinition, host: str) -> Decision | None:
    """The denial of a URL whose host is an address that isn't public."""
    from albert_tools.engine.policy.addresses import parsed, refusal

    address = parsed(host)
    if address is None:
        return None
    kind = refusal(address, named_addresses(layers, definition))
    if kind is None:
        return None
    return unreached(host, kind, definition.name)


def unreached(shown: str, kind: str, tool: str) -> Decision:
    """The denial of an address that isn't public, which `shown` is or leads to."""
    article = "an" if kind[0] in "aeiou" else "a"
    return Decision(
        "deny",
        UNREACHABLE,
        "host",
        f"{shown!r} is {article} {kind} address, which no rule of the owner's names",
        f"the owner can name it under tools.{tool}.allowed_addresses",
    )


def host_of(url: str) -> str | None:
    """The host that a URL names, in one spelling; None where two readers could take it for two different hosts."""
    if any(c <= " " or c == "\x7f" or c == "\\" for c in url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    # Between an address in brackets and the port there is nothing.
    if "[" in parts.netloc and not _BRACKETED.fullmatch(parts.netloc):
        return None
    # What isn't ASCII becomes another name on the way, and so may what is escaped; a user's name can look like a host.
    if not host or not parts.scheme or "@" in parts.netloc or "%" in host or not host.isascii():
        return None
    return plain_host(host)


def plain_host(host: str) -> str:
    """A name without its last dot; an address, which has many spellings (``127.1``, ``0x7f000001``), in the usual one."""
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


def is_host(host: str, pattern: str) -> bool:
    """Whether `pattern` (``example.org``, ``*.example.org`` for all below, ``*`` for all there are) names `host`."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:].rstrip(".").lower())
    return host == plain_host(pattern)
