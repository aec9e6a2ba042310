"""Requests that must be refused (URLs, names and redirects from a table) and servers that misbehave, over real sockets."""

from __future__ import annotations

import gzip
import socket
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from albert_tools.builtins.net.bounds import MAX_BODY
from albert_tools.builtins.net.client import Client, HttpRequest
from albert_tools.builtins.net.web import http_request
from albert_tools.engine.model.failure import Failure
from tests.helpers.network import Authorities, Calling, Raw, answer, called, calling, hello, raw, resolving

TABLE = yaml.safe_load((Path(__file__).parent / "ssrf.yaml").read_text())

EVERY_HOST = {"tools": {"http_request": {"allowed_hosts": ["*"]}}}
#: Rules that name one address of this machine.
ONE_ADDRESS = {"tools": {"http_request": {"allowed_hosts": ["*"], "allowed_addresses": ["127.0.0.1"]}}}


STATUSES = ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client(resolving({"inside.example": ["10.0.0.1"], "localhost": ["127.0.0.2"]}))
    yield client
    await client.aclose()


@pytest.fixture(scope="module")
def bystander() -> Iterator[Raw]:
    """A server on every address of this machine. No call may connect to it."""
    with raw(hello, host="::") as server:
        yield server


async def fetch(
    client: Client, url: str, rules: dict[str, Any], seconds: float = 30, **more: Any
) -> tuple[Any, Calling]:
    return await called(http_request, {"url": url, **more}, rules, client, seconds)


def test_the_table_is_large() -> None:
    assert len(TABLE["urls"]) + len(TABLE["names"]) + len(TABLE["redirects"]) >= 100


@pytest.mark.parametrize(("url", "code"), TABLE["urls"])
async def test_a_forbidden_url(bystander: Raw, url: str, code: str) -> None:
    before = bystander.connections
    client = Client()  # With the system's resolver.
    outcome, context = await fetch(client, url.format(port=bystander.port), EVERY_HOST)
    await client.aclose()
    assert isinstance(outcome, Failure)
    assert outcome.code == code
    assert (outcome.rule == "shipped.addresses") == (code == "permission_denied")
    assert context.effects == []
    assert bystander.connections == before


@pytest.mark.parametrize("addresses", TABLE["names"], ids=str)
async def test_a_name_with_a_forbidden_address(bystander: Raw, addresses: list[str]) -> None:
    before = bystander.connections
    client = Client(resolving({"name.example": addresses}))
    outcome, context = await fetch(client, f"http://name.example:{bystander.port}/", EVERY_HOST)
    await client.aclose()
    assert (outcome.code, outcome.rule) == ("permission_denied", "shipped.addresses")
    assert context.effects == []
    assert bystander.connections == before


@pytest.mark.parametrize(
    ("target", "code", "status"),
    [(*row, STATUSES[i % len(STATUSES)]) for i, row in enumerate(TABLE["redirects"])],
)
async def test_a_forbidden_redirect(client: Client, bystander: Raw, target: str, code: str, status: str) -> None:
    before = bystander.connections
    location = f"Location: {target.format(port=bystander.port)}"
    with raw(lambda head, c: c.sendall(answer(b"", status, [location]))) as server:
        outcome, context = await fetch(client, f"http://127.0.0.1:{server.port}/", ONE_ADDRESS, follow=5)
    assert outcome.code == code
    assert len(server.seen) == 1
    # The first request is recorded.
    assert [facts["status"] for _, facts in context.effects] == [int(status[:3])]
    assert bystander.connections == before


async def test_an_address_that_the_owner_opened_is_refused_for_a_redirect() -> None:
    client = Client(resolving({"inside.example": ["127.0.0.1"]}))
    with raw(hello) as inside:
        location = f"Location: http://inside.example:{inside.port}/"
        with raw(lambda head, c: c.sendall(answer(b"", "302 Found", [location]))) as server:
            url = f"http://127.0.0.1:{server.port}/"
            context = calling(http_request, {"url": url}, EVERY_HOST, client)
            with pytest.raises(Failure) as caught:
                await client.fetch(context, HttpRequest("GET", url, follow=1, by_owner=True))
    await client.aclose()
    assert (caught.value.code, caught.value.rule) == ("permission_denied", "shipped.addresses")
    assert (len(server.seen), inside.connections) == (1, 0)


async def test_a_name_that_answers_differently_the_second_time(bystander: Raw) -> None:
    turns = count()
    client = Client(resolving({"turns.example": lambda: ["127.0.0.1"] if next(turns) == 0 else ["127.0.0.2"]}))
    with raw(lambda head, c: (c.sendall(answer(b"first", headers=["Connection: close"])), c.close())) as server:
        url = f"http://turns.example:{server.port}/"
        first, _ = await fetch(client, url, ONE_ADDRESS)
        second, _ = await fetch(client, url, ONE_ADDRESS)
    await client.aclose()
    # There is one lookup for each connection, and the connection uses the authorized address.
    assert first["body"] == "first"
    assert b"Host: turns.example" in server.seen[0].replace(b"host:", b"Host:")
    assert (second.code, second.rule) == ("permission_denied", "shipped.addresses")
    assert next(turns) == 2
    assert len(server.seen) == 1


async def test_new_rules_apply_to_an_open_connection(client: Client) -> None:
    with raw(hello) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert (await fetch(client, url, ONE_ADDRESS))[0]["body"] == "hello"
        outcome, _ = await fetch(client, url, EVERY_HOST)
        assert (outcome.code, outcome.rule) == ("permission_denied", "shipped.addresses")
        assert len(server.seen) == 1


# Servers that misbehave.


def endless_headers(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for i in count():
        connection.sendall(b"X-%d: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" % i)


def endless_header(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"a" * 65536)


def many_headers(head: bytes, connection: socket.socket) -> None:
    connection.sendall(answer(b"", headers=[f"X-{i}: a" for i in range(1000)]))


def endless_interim_answers(head: bytes, connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)


def endless_chunk_extension(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;")
    while True:
        connection.sendall(b"a" * 65536)


def endless_trailers(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    for i in count():
        connection.sendall(b"X-%d: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" % i)


def endless_nothing_packed(head: bytes, connection: socket.socket) -> None:
    """Empty gzip members, one after the other."""
    empty = gzip.compress(b"") * 3000
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"%x\r\n%s\r\n" % (len(empty), empty))


def two_lengths(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\nhello")


def no_http(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    connection.close()


def folded_name(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n")


def hangs_up(head: bytes, connection: socket.socket) -> None:
    connection.close()


def cut_short(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    connection.close()


def cut_packed(head: bytes, connection: socket.socket) -> None:
    connection.sendall(answer(gzip.compress(b"hello" * 100)[:-9], headers=["Content-Encoding: gzip"]))


def endless_redirects(head: bytes, connection: socket.socket) -> None:
    connection.sendall(answer(b"", "302 Found", [f"Location: {head.split()[1].decode()}x"]))


def drips_head(head: bytes, connection: socket.socket) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def drips_body(head: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b"a")
        time.sleep(0.1)


def says_nothing(head: bytes, connection: socket.socket) -> None:
    time.sleep(5)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (endless_headers, "network_error"),
        (endless_header, "network_error"),
        (many_headers, "too_large"),
        (endless_interim_answers, "too_large"),
        (endless_chunk_extension, "network_error"),
        (endless_trailers, "network_error"),
        (endless_nothing_packed, "too_large"),
        (two_lengths, "network_error"),
        (no_http, "network_error"),
        (folded_name, "network_error"),
        (hangs_up, "network_error"),
        (cut_short, "network_error"),
        (cut_packed, "encoding_error"),
    ],
)
async def test_a_server_that_misbehaves(client: Client, behaviour: Any, code: str) -> None:
    with raw(behaviour) as server:
        outcome, context = await fetch(client, f"http://127.0.0.1:{server.port}/", ONE_ADDRESS, 120)
    assert isinstance(outcome, Failure)
    assert outcome.code == code
    assert len(context.effects) == 1


@pytest.mark.parametrize("behaviour", [drips_head, drips_body, says_nothing])
async def test_a_slow_server_times_out(client: Client, behaviour: Any) -> None:
    with raw(behaviour) as server:
        outcome, context = await fetch(client, f"http://127.0.0.1:{server.port}/", ONE_ADDRESS, 0.5)
    assert (outcome.code, outcome.retryable) == ("timeout", True)
    assert len(context.effects) == 1


async def test_a_server_without_a_tls_handshake_times_out(client: Client) -> None:
    with raw(hello) as server:
        # The server waits for a request, and the client waits for the certificate.
        outcome, context = await fetch(client, f"https://127.0.0.1:{server.port}/", ONE_ADDRESS, 0.5)
    assert outcome.code == "timeout"
    assert context.effects == []


async def test_redirects_without_end(client: Client) -> None:
    with raw(endless_redirects) as server:
        outcome, context = await fetch(client, f"http://127.0.0.1:{server.port}/", ONE_ADDRESS, follow=10)
    assert outcome["status"] == 302
    assert outcome["url"].endswith("/" + "x" * 10)
    assert len(server.seen) == len(context.effects) == 11


async def test_compression_bombs_are_cut(client: Client) -> None:
    once = gzip.compress(b"0" * 100_000_000, 1)
    for packed in (once, gzip.compress(once, 1) * 50):
        with raw(lambda head, c, p=packed: c.sendall(answer(p, headers=["Content-Encoding: gzip"]))) as server:  # type: ignore[misc]
            outcome, _ = await fetch(client, f"http://127.0.0.1:{server.port}/", ONE_ADDRESS, 120)
        if isinstance(outcome, Failure):
            # After one decompression the body is not text.
            assert outcome.code == "encoding_error"
        else:
            assert (len(outcome["body"]), outcome["truncated"]) == (MAX_BODY, True)


# TLS verifies the name, not the address.


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    return Authorities(tmp_path_factory.mktemp("ca"))


@pytest.mark.parametrize(
    ("names", "url", "accepted"),
    [
        (["good.example"], "https://good.example", True),
        (["127.0.0.1"], "https://127.0.0.1", True),
        (["*.good.example"], "https://www.good.example", True),
        (["other.example"], "https://good.example", False),
        # A certificate for the address is not valid for the name.
        (["127.0.0.1"], "https://good.example", False),
    ],
)
async def test_certificates_are_for_the_name(
    authorities: Authorities, names: list[str], url: str, accepted: bool
) -> None:
    client = Client(resolving({"good.example": ["127.0.0.1"], "www.good.example": ["127.0.0.1"]}), authorities.client())
    heard: list[str | None] = []
    context = authorities.server(*names)
    context.sni_callback = lambda connection, name, _: heard.append(name)  # type: ignore[assignment, func-returns-value]
    with raw(hello, context) as server:
        outcome, made = await fetch(client, f"{url}:{server.port}/", ONE_ADDRESS)
    await client.aclose()
    if accepted:
        assert outcome["body"] == "hello"
    else:
        assert outcome.code == "network_error"
        assert "certificate" in outcome.message
        assert server.seen == []
        assert made.effects == []
    assert heard == [url.partition("//")[2] if "good" in url else None]


async def test_an_unknown_authority_and_an_expired_certificate(authorities: Authorities, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authorities(tmp_path / "other")
    for trust, shown in (
        (authorities.client(), other.server("good.example")),
        (authorities.client(), authorities.server("good.example", expired=True)),
        (None, authorities.server("good.example")),
    ):
        client = Client(resolving({"good.example": ["127.0.0.1"]}), trust)
        with raw(hello, shown) as server:
            outcome, _ = await fetch(client, f"https://good.example:{server.port}/", ONE_ADDRESS)
        await client.aclose()
        assert outcome.code == "network_error"
        assert server.seen == []


async def test_the_owner_can_name_a_certificate_authority(authorities: Authorities, monkeypatch: Any) -> None:
    # The environment can't name an authority.
    monkeypatch.setenv("SSL_CERT_FILE", authorities.file)
    for settings, accepted in (({}, False), ({"ca_file": authorities.file}, True), ({"ca_file": "/none"}, False)):
        client = Client(resolving({"good.example": ["127.0.0.1"]}))
        rules = {**ONE_ADDRESS, "primitives": {"http_request": settings}}
        with raw(hello, authorities.server("good.example")) as server:
            outcome, _ = await fetch(client, f"https://good.example:{server.port}/", rules)
        await client.aclose()
        assert isinstance(outcome, dict) == accepted


async def test_old_protocols_are_refused(authorities: Authorities) -> None:
    context = authorities.server("good.example")
    with suppress(ValueError), warnings.catch_warnings(action="ignore"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    client = Client(resolving({"good.example": ["127.0.0.1"]}), authorities.client())
    with raw(hello, context) as server:
        outcome, _ = await fetch(client, f"https://good.example:{server.port}/", ONE_ADDRESS)
    await client.aclose()
    assert outcome.code == "network_error"
