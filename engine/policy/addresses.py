"""Classifies network addresses as public or not. A request can reach a non-public address only if a rule of the owner permits it.

A host name can resolve to any address, so the rules are applied to addresses too. The table follows IANA's registries of
special-purpose addresses. In IPv6, only global unicast addresses count as public. Some IPv6 addresses contain an IPv4 address
(mapped, translated, tunnelled). They are refused as ``disguised``, because packets to them reach the contained address.

This module doesn't resolve names.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kind(NamedTuple):
    """A kind of address, and a network of that kind."""

    name: str
    network: Network


def _kinds(table: str) -> tuple[Kind, ...]:
    rows = (line.split() for line in table.split("\n") if line.strip())
    return tuple(Kind(name, ip_network(network)) for name, *networks in rows for network in networks)


#: The kind of an address is the first one with a network that contains it. Clouds serve metadata at the addresses of the first row.
_IPV4 = _kinds("""
    metadata 169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32
    loopback 127.0.0.0/8
    private 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16
    link-local 169.254.0.0/16
    unspecified 0.0.0.0/8
    carrier-shared 100.64.0.0/10
    documentation 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24
    benchmarking 198.18.0.0/15
    multicast 224.0.0.0/4
    reserved 192.0.0.0/24 192.88.99.0/24 240.0.0.0/4
""")
_IPV6 = _kinds("""
    loopback ::1/128
    unspecified ::/128
    metadata fd00:ec2::254/128 fd20:ce::254/128 fd00:c1::a9fe:a9fe/128
    disguised ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32
    private fc00::/7
    link-local fe80::/10
    site-local fec0::/10
    multicast ff00::/8
    discarded 100::/64
    documentation 2001:db8::/32 3fff::/20
    reserved 2001::/23
""")
_GLOBAL = IPv6Network("2000::/3")

#: The addresses of ``localhost``.
LOCALHOST: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


@lru_cache(maxsize=1024)
def kind_of(address: Address) -> str | None:
    """The kind of an address (``loopback``, ``private``, ``metadata``, ``disguised``, …); None for a public address."""
    if isinstance(address, IPv4Address):
        return next((k.name for k in _IPV4 if address in k.network), None)
    kind = next((k.name for k in _IPV6 if address in k.network), None)
    if kind is not None:
        return kind
    if address not in _GLOBAL:
        return "reserved"
    return "disguised" if _isatap(address) else None


def within(address: Address) -> tuple[Address, ...]:
    """The IPv4 addresses that an IPv6 address contains, if its form shows them."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    last = IPv4Address(number & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo
    if address.sixtofour is not None:
        return (address.sixtofour,)
    carries = ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
    if any(address in IPv6Network(n) for n in carries) and number > 1:
        return (last,)
    if address in IPv6Network("64:ff9b:1::/48"):
        # RFC 6052 permits several prefix lengths: the IPv4 address is at the end, or it surrounds the reserved byte.
        return last, IPv4Address((number >> 64 & 0xFFFF) << 16 | (number >> 40 & 0xFFFF))
    return (last,) if _isatap(address) else ()


class AddressRules(NamedTuple):
    """The rules on addresses: the networks that may be reached although they aren't public, and those that may not be reached."""

    named: tuple[Network, ...] = ()
    forbidden: tuple[Network, ...] = ()

    def refusal(self, address: Address) -> str | None:
        """Why an address must not be reached: it is ``forbidden``, or its kind if it is neither public nor named. Otherwise None.

        A disguised address must be named itself, and the addresses that it contains must be named too.
        """
        if _in(address, self.forbidden):
            return "forbidden"
        kind = kind_of(address)
        if kind is None:
            return None
        if not _in(address, self.named):
            return kind
        return next((why for inner in within(address) if (why := self.refusal(inner))), None)

    def limited_by(self, other: AddressRules) -> AddressRules:
        """The rules that permit only what both permit."""
        # Of two networks that overlap, one contains the other.
        both = [
            n if n.subnet_of(m) else m  # type: ignore[arg-type]
            for n in self.named
            for m in other.named
            if n.version == m.version and n.overlaps(m)
        ]
        return AddressRules(tuple(dict.fromkeys(both)), (*self.forbidden, *other.forbidden))


def parsed(text: str) -> Address | None:
    """The address in a text; None if the text is a name, or an address with a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address


def networks_of(host: str) -> tuple[Network, ...]:
    """The networks that a host names in the rules: an address, or ``localhost``."""
    if host == "localhost":
        return LOCALHOST
    address = parsed(host)
    return () if address is None else (ip_network(address),)


def _in(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == n.version and address in n for n in networks)


def _isatap(address: IPv6Address) -> bool:
    """Whether this is an ISATAP address, which can have any prefix (RFC 5214)."""
    return (int(address) >> 32) & 0xFDFFFFFF == 0x00005EFE
