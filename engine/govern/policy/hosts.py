"""Which hosts a tool may reach, and by which methods. A host that no rule of the owner's names is asked about."""

from __future__ import annotations

import re
from socket import inet_aton, inet_ntoa
from urllib.parse import urlsplit

from albert_tools.engine.govern.policy.decision import Decision
from albert_tools.engine.govern.policy.layers import Layer, Resource
from albert_tools.engine.model.definition import ToolDefinition

#: What the last part of an address looks like, as the system's resolver reads it; no name ends so.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


def judge_url(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of a URL; None where they allow it."""
    host = host_of(resource.name)
    named = False
    for layer in layers:
        for place, section in layer.sections(definition):
            # What a project's file names only tightens; a host is named by the owner.
            named = named or (layer.owner and section.allowed_hosts is not None)
            if host is None and (section.forbidden_hosts or section.allowed_hosts is not None):
                rule = f"{place}.{'forbidden_hosts' if section.forbidden_hosts else 'allowed_hosts'}"
                hint = "write it as https://example.org/…, with a name in other letters in its xn-- form"
                return Decision("deny", rule, "host", "the URL doesn't say plainly which host is meant", hint)
            host = host or ""
            if any(_is_host(host, pattern) for pattern in section.forbidden_hosts):
                return Decision("deny", f"{place}.forbidden_hosts", "host", f"the host {host!r} is forbidden")
            if section.allowed_hosts is not None and not any(_is_host(host, p) for p in section.allowed_hosts):
                message = f"the host {host!r} is not among those that {definition.name} may reach"
                return Decision("deny", f"{place}.allowed_hosts", "host", message, "ask the owner to add it")
            methods = section.allowed_methods
            if methods is not None and resource.use.upper() not in methods:
                message = f"{definition.name} may not use {resource.use.upper()}; it may use {', '.join(methods)}"
                return Decision("deny", f"{place}.allowed_methods", "method", message)
    if named:
        return None
    method, shown = resource.use.upper(), repr(host) if host else "a host that the URL doesn't say plainly"
    return Decision(
        "ask",
        "shipped.new_host_asks",
        "approval_required",
        f"no rule names {shown}, which {definition.name} would reach",
        f"the owner can name it under tools.{definition.name}.allowed_hosts",
        f"{method} {host}" if host else "",
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
    # What isn't ASCII becomes another name on the way, and so may what is escaped; a user's name can look like a host.
    if not host or not parts.scheme or "@" in parts.netloc or "%" in host or not host.isascii():
        return None
    return _plain_host(host)


def _plain_host(host: str) -> str:
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


def _is_host(host: str, pattern: str) -> bool:
    """Whether `pattern` (``example.org``, ``*.example.org`` for all below, ``*`` for all there are) names `host`."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:].rstrip(".").lower())
    return host == _plain_host(pattern)
