"""What an address is: one of the public internet, or something that a request from outside must never reach.

A name leads wherever its owner says, so names are no fence; addresses are. The table follows IANA's registries of
special-purpose addresses. Of IPv6 only what is global unicast counts as public, whatever else there may be one day. Addresses
that carry an IPv4 address within them (mapped, translated, tunnelled) are refused as disguises: what they reach is not what
they look like.

Pure: nothing is resolved here, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kind(NamedTuple):
    """Addresses of one kind, in a word."""

    name: str
    network: Network


def _kinds(table: str) -> tuple[Kind, ...]:
    rows = (line.split() for line in table.split("\n") if line.strip())
    return tuple(Kind(name, ip_network(network)) for name, *networks in rows for network in networks)


#: The first that fits says what an address is. Clouds answer for their metadata at the addresses of the first rows.
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

#: What ``localhost`` names, as every system has it.
LOCALHOST: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


@lru_cache(maxsize=1024)
def kind_of(address: Address) -> str | None:
    """What is special about an address, in a word (``loopback``, ``private``, ``metadata``, ``disguised``, …); None for a public
    one."""
    if isinstance(address, IPv4Address):
        return next((k.name for k in _IPV4 if address in k.network), None)
    found = next((k.name for k in _IPV6 if address in k.network), None)
    if found is not None:
        return found
    if address not in _GLOBAL:
        return "reserved"
    return "disguised" if _isatap(address) else None


def within(address: Address) -> tuple[Address, ...]:
    """The IPv4 addresses that an IPv6 address carries, as far as its form says."""
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
        # RFC 6052 lets the prefix have several lengths; the address may stand at the end or round the reserved byte.
        return last, IPv4Address((number >> 64 & 0xFFFF) << 16 | (number >> 40 & 0xFFFF))
    return (last,) if _isatap(address) else ()


def refusal(address: Address, named: Iterable[Network] = ()) -> str | None:
    """Why an address may not be reached, in a word; None where it may: it is public, or `named` has it.

    Of a disguise both must be named, what it is and what it carries.
    """
    kind = kind_of(address)
    if kind is None:
        return None
    networks = tuple(named)
    if not any(address.version == n.version and address in n for n in networks):
        return kind
    return next((why for inner in within(address) if (why := refusal(inner, networks))), None)


def parsed(text: str) -> Address | None:
    """The address that a text plainly is; None for a name, or with a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address


def _isatap(address: IPv6Address) -> bool:
    """Whether it is of a tunnel within a site, which can stand under any prefix (RFC 5214)."""
    return (int(address) >> 32) & 0xFDFFFFFF == 0x00005EFE
