"""The addresses that calls may reach, and internal addresses that the rules open by name."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import AddressRules, kind_of, parsed, within
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.outgoing import Outgoing
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance

FETCH = ToolDefinition("http_request", "", (), {}, ("network",))

KINDS = {
    "loopback": "127.0.0.1 127.255.255.254 ::1",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12:3456::1",
    "link-local": "169.254.1.1 fe80::1",
    "site-local": "fec0::1",
    "metadata": "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254",
    "unspecified": "0.0.0.0 0.1.2.3 ::",
    "carrier-shared": "100.64.0.1 100.127.255.255",
    "multicast": "224.0.0.1 239.255.255.250 ff02::1",
    "reserved": "240.0.0.1 255.255.255.255 192.0.0.1 192.88.99.1 2001:10::1 4000::1 64:ff9a::1",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "benchmarking": "198.18.0.1 198.19.255.255",
    "discarded": "100::1",
    "disguised": "::ffff:8.8.8.8 ::ffff:0:127.0.0.1 ::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::1 2002:7f00:1::1 2001:0:53aa:64c::1"
    " 2a00:1450::5efe:10.0.0.1 2a00:1450::200:5efe:127.0.0.1",
}


@pytest.mark.parametrize(("kind", "text"), [(k, a) for k, addresses in KINDS.items() for a in addresses.split()])
def test_addresses_that_are_not_public(kind: str, text: str) -> None:
    assert kind_of(ip_address(text)) == kind
    assert AddressRules().refusal(ip_address(text)) == kind


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"]
)
def test_public_addresses(text: str) -> None:
    assert AddressRules().refusal(ip_address(text)) is None


@given(st.ip_addresses())
def test_addresses_that_python_calls_special_are_not_public(address: Any) -> None:
    if kind_of(address) is None:
        special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
        assert not special
        assert not address.is_reserved
        assert not address.is_unspecified


@given(st.ip_addresses(v=4))
def test_disguised_addresses_are_refused(inner: Any) -> None:
    number = int(inner)
    carriers = [
        (0xFFFF << 32) | number,
        (0x64FF9B << 96) | number,
        (0x2002 << 112) | (number << 80) | 1,
        (0x2A001450 << 96) | (0x5EFE << 32) | number,
    ]
    for carrier in carriers:
        address = ip_address(carrier.to_bytes(16, "big"))
        assert AddressRules().refusal(address) is not None
        assert inner in within(address)
        # A rule that names the outer address does not open a refused inner address.
        assert AddressRules((ip_network("::/0"),)).refusal(address) == AddressRules().refusal(inner)


@pytest.mark.parametrize("text", ["10.0.0.7", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_forbidden_addresses_are_refused_also_where_networks_are_named(text: str) -> None:
    forbidden = tuple(ip_network(each) for each in ("10.0.0.7", "8.8.8.8", "2606:4700::1111"))
    named = tuple(ip_network(each) for each in ("10.0.0.0/8", "64:ff9b::/96"))
    rules = AddressRules(named, forbidden)
    assert rules.refusal(ip_address(text)) == "forbidden"
    assert rules.refusal(ip_address("10.0.0.8")) is None


def test_parsing_of_addresses() -> None:
    assert parsed("127.0.0.1") is not None
    for text in ("localhost", "127.1", "fe80::1%eth0", "", "1.2.3.4.5"):
        assert parsed(text) is None


def rules(owner: dict[str, Any], project: dict[str, Any] | None = None) -> Policy:
    governance = read_governance(owner)
    if project is not None:
        governance = governance.tightened(read_governance(project))
    return Policy(governance.layers(), "/workspace", "/home/user")


def verdict(policy: Policy, url: str) -> str:
    found = policy.touches(FETCH, [Resource("url", url, "GET")])
    return found[0].rule if found else "allowed"


def section(**keys: Any) -> dict[str, Any]:
    return {"tools": {"http_request": keys}}


@pytest.mark.parametrize(
    ("owner", "project", "url", "expected"),
    [
        (section(allowed_hosts=["*"]), None, "http://127.0.0.1/", "shipped.addresses"),
        (section(allowed_hosts=["*"]), None, "http://[::1]/", "shipped.addresses"),
        (section(allowed_hosts=["127.0.0.1"]), None, "http://127.0.0.1/", "allowed"),
        (section(allowed_hosts=["127.0.0.1"]), None, "http://0x7f.1/", "allowed"),
        (section(allowed_hosts=["::1"]), None, "http://[::1]/", "allowed"),
        (section(allowed_hosts=["*", "localhost"]), None, "http://127.0.0.9/", "allowed"),
        (section(allowed_hosts=["*"], allowed_addresses=["10.0.0.0/8"]), None, "http://10.1.2.3/", "allowed"),
        (
            section(allowed_hosts=["*"], allowed_addresses=["10.0.0.0/8"]),
            None,
            "http://192.168.0.1/",
            "shipped.addresses",
        ),
        (section(allowed_addresses=["10.0.0.0/8"]), None, "http://10.1.2.3/", "shipped.new_host_asks"),
        # A project's file can't open addresses, and closes the addresses that it doesn't name.
        (
            section(allowed_hosts=["*"]),
            section(allowed_addresses=["10.0.0.1"]),
            "http://10.0.0.1/",
            "shipped.addresses",
        ),
        (
            section(allowed_hosts=["*"], allowed_addresses=["10.0.0.0/8"]),
            section(allowed_addresses=["192.168.0.0/16"]),
            "http://10.0.0.1/",
            "shipped.addresses",
        ),
    ],
)
def test_addresses_that_the_rules_open(
    owner: dict[str, Any], project: dict[str, Any] | None, url: str, expected: str
) -> None:
    assert verdict(rules(owner, project), url) == expected


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (section(allowed_addresses=["localhost"]), "an address is one such as"),
        (section(allowed_addresses=["10.0.0.1/8"]), "an address is one such as"),
        ({"forbidden_hosts": [".a.example"]}, "a host is a name such as"),
        ({"forbidden_hosts": ["a.example,b.example"]}, "a host is a name such as"),
        ({"secrets": {"A-B": ["a.example"]}}, "a secret's name is"),
        ({"secrets": {"AB": ["*"]}}, "a secret is only sent to hosts that are listed by name"),
    ],
)
def test_a_mistake_in_the_rules(document: dict[str, Any], said: str) -> None:
    with pytest.raises(Failure, match=said):
        read_governance(document)


def test_a_redirect_is_followed_only_to_an_approved_host() -> None:
    policy = rules({"tools": {"http_request": {"forbidden_hosts": ["evil.example"]}}})
    going = Outgoing(policy, FETCH, [Resource("url", "https://a.example/x", "GET")])
    going.demand("https://a.example/y", "GET")
    for url, method, rule in (
        ("https://b.example/", "GET", "shipped.new_host_asks"),
        ("https://a.example/", "POST", "shipped.new_host_asks"),
        ("https://evil.example/", "GET", "tools.http_request.forbidden_hosts"),
        ("http://10.0.0.1/", "GET", "shipped.addresses"),
    ):
        with pytest.raises(Failure) as caught:
            going.demand(url, method)
        assert (caught.value.code, caught.value.rule) == ("permission_denied", rule)
        assert caught.value.details["url"] == url
    # A host in the owner's configuration needs no approval. It can still be forbidden.
    going.demand("https://b.example/", "GET", by_owner=True)
    with pytest.raises(Failure):
        going.demand("https://evil.example/", "GET", by_owner=True)
    # The configuration also opens an address that it names literally. Other calls to that address are refused.
    going.demand("http://127.0.0.1:8000/v1", "POST", by_owner=True)
    with pytest.raises(Failure) as caught:
        going.demand("http://127.0.0.1:8000/v1", "POST")
    assert caught.value.rule != "shipped.new_host_asks"


@pytest.mark.parametrize(
    ("name", "url", "rule"),
    [
        ("TOKEN", "https://api.example/", None),
        ("TOKEN", "http://127.0.0.1:8000/", None),
        ("TOKEN", "http://api.example/", "secrets.TOKEN"),
        ("TOKEN", "https://other.example/", "secrets.TOKEN"),
        ("TOKEN", "https://api.example.evil.example/", "secrets.TOKEN"),
        ("OTHER", "https://api.example/", "secrets"),
    ],
)
def test_the_hosts_of_a_secret(name: str, url: str, rule: str | None) -> None:
    going = Outgoing(rules({"secrets": {"TOKEN": ["api.example", "127.0.0.1"]}}), FETCH, [])
    if rule is None:
        going.demand_secret(name, url)
        return
    with pytest.raises(Failure) as caught:
        going.demand_secret(name, url)
    assert (caught.value.code, caught.value.rule) == ("permission_denied", rule)
