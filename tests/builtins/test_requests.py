"""The content of requests: headers over redirects, secrets, and no data of this machine. Also the limits for each host."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.net import resolve_host
from albert_tools.builtins.net.client import Client
from albert_tools.builtins.net.host_limits import MAX_AT_ONCE, MAX_OF_SESSION, HostLimits, seconds_of
from albert_tools.builtins.net.resolve_host import system_resolver
from albert_tools.builtins.net.web import http_request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.turns import CLIENT
from tests.helpers.children import PATIENCE
from tests.helpers.network import Authorities, Calling, answer, called, calling, hello, raw, resolving

HERE = {"tools": {"http_request": {"allowed_hosts": ["*"], "allowed_addresses": ["127.0.0.0/8", "::1"]}}}
TOKEN = 'tok/en+with=odd&signs"1'


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client(resolving({"a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"]}))
    yield client
    await client.aclose()


async def fetch(
    client: Client, url: str, rules: dict[str, Any] = HERE, remaining: float = 30, **more: Any
) -> tuple[Any, Calling]:
    return await called(http_request, {"url": url, **more}, rules, client, remaining)


def redirecting(status: str, location: str) -> Any:
    """A server that redirects the first request and answers any other with its head."""

    def handle(head: bytes, connection: socket.socket) -> None:
        if head.split()[1] == b"/":
            connection.sendall(answer(b"", status, [f"Location: {location}"]))
        else:
            connection.sendall(answer(b"\n".join(head.split(b"\r\n"))))

    return handle


# Redirects.


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        ("301 Moved", "GET", "GET"),
        ("302 Found", "POST", "GET"),
        ("301 Moved", "PUT", "PUT"),
        ("303 See Other", "PUT", "GET"),
        ("303 See Other", "HEAD", "HEAD"),
        ("307 Temporary", "POST", "POST"),
        ("308 Permanent", "PATCH", "PATCH"),
    ],
)
async def test_a_redirect_is_followed_as_browsers_do(client: Client, status: str, method: Any, then: str) -> None:
    body = "sent" if method in ("POST", "PUT", "PATCH") else None
    with raw(redirecting(status, "/there")) as server:
        url = f"http://127.0.0.1:{server.port}/"
        got, context = await fetch(
            client, url, method=method, body=body, headers={"X-Mine": "1", "Content-Type": "text/x"}, follow=1
        )
    assert got["url"] == f"{url}there"
    second = server.seen[1]
    assert second.startswith(f"{then} /there ".encode())
    # The same server gets every header that still applies.
    assert b"X-Mine: 1" in second
    keeps = then == method and body is not None
    assert (b"Content-Type" in second) == keeps
    assert second.endswith(b"sent") == keeps
    assert [facts["url"] for _, facts in context.effects] == [url, f"{url}there"]


async def test_a_redirect_to_another_server_carries_no_credentials(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setenv("ALBERT_SECRET_KEY", TOKEN)
    rules = {**HERE, "secrets": {"KEY": ["127.0.0.1", "localhost"]}}
    headers = {
        "Authorization": "Bearer abc",
        "Cookie": "a=b",
        "X-Api-Key": "k",
        "X-Key": {"secret": "KEY"},
        "Accept": "text/x",
    }
    with raw(hello) as other, raw(redirecting("302 Found", f"http://127.0.0.1:{other.port}/there")) as server:
        got, _ = await fetch(client, f"http://127.0.0.1:{server.port}/", rules, headers=headers, follow=3)
    assert got["body"] == "hello"
    first, second = server.seen[0].lower(), other.seen[0].lower()
    for name in (b"authorization", b"cookie", b"x-api-key", b"x-key"):
        assert name in first
        assert name not in second
    assert b"accept: text/x" in second


async def test_a_redirect_to_a_host_that_needs_approval_names_the_host(client: Client) -> None:
    with raw(hello) as other, raw(redirecting("302 Found", f"http://b.example:{other.port}/there?token=x")) as server:
        rules = {"tools": {"http_request": {"allowed_addresses": ["127.0.0.1"]}}}
        got, context = await fetch(client, f"http://a.example:{server.port}/", rules, follow=3)
    assert (got.code, got.rule) == ("permission_denied", "shipped.new_host_asks")
    assert got.details["url"] == f"http://b.example:{other.port}/there?token=x"
    assert "b.example" in got.message
    assert other.connections == 0
    assert len(context.effects) == 1


# Secrets.


async def test_a_secret_is_sent_and_nowhere_else(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setenv("ALBERT_SECRET_KEY", TOKEN)
    rules = {**HERE, "secrets": {"KEY": ["127.0.0.1"]}}
    spellings = [
        TOKEN,
        f"Bearer {TOKEN}",
        json.dumps(TOKEN),
        "tok%2Fen%2Bwith%3Dodd%26signs%221",
        "tok/en+with=odd&amp;signs&quot;1",
        base64.b64encode(TOKEN.encode()).decode(),
        base64.b64encode(f"Bearer {TOKEN}".encode()).decode().rstrip("="),
        TOKEN.encode().hex(),
    ]
    body = " | ".join(spellings)

    def echo(head: bytes, connection: socket.socket) -> None:
        data = body.encode("utf-16")
        if b"utf16" in head:
            connection.sendall(answer(data, headers=["Content-Type: text/plain; charset=utf-16"]))
        else:
            connection.sendall(answer(body.encode(), headers=[f"X-Echo: {TOKEN}"]))

    headers = {"Authorization": {"secret": "KEY", "prefix": "Bearer "}}
    with raw(echo) as server:
        url = f"http://127.0.0.1:{server.port}/"
        got, context = await fetch(client, url, rules, headers=headers)
        wide, _ = await fetch(client, f"{url}utf16", rules, headers=headers)
    assert f"Authorization: Bearer {TOKEN}".encode() in server.seen[0]
    everything = json.dumps([got, wide, context.effects])
    for spelling in spellings:
        assert spelling not in everything
        assert json.dumps(spelling)[1:-1] not in everything
    assert got["body"].count("[redacted]") == wide["body"].count("[redacted]") == len(spellings)
    assert got["headers"]["x-echo"] == "[redacted]"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
async def test_a_secret_inside_base64_is_removed(client: Client, monkeypatch: Any, before: str) -> None:
    monkeypatch.setenv("ALBERT_SECRET_KEY", TOKEN)
    rules = {**HERE, "secrets": {"KEY": ["127.0.0.1"]}}
    told = base64.b64encode(f"{before}{TOKEN}, and more".encode()).decode()
    with raw(lambda _, connection: connection.sendall(answer(told.encode()))) as server:
        url = f"http://127.0.0.1:{server.port}/"
        got, _ = await fetch(client, url, rules, headers={"Authorization": {"secret": "KEY"}})
    before_it, _, behind_it = got["body"].partition("[redacted]")
    assert behind_it
    # The rest of the secret has at most the characters that it shares with its neighbours.
    assert len(before_it) + len(behind_it) <= len(told) - (len(TOKEN) * 8 // 6 - 1)


@pytest.mark.parametrize("location", ["http://b.example/?got={0}", "http://b.example/{0}", "no-such:{0}"])
async def test_a_secret_in_a_redirect_is_removed(client: Client, monkeypatch: Any, location: str) -> None:
    monkeypatch.setenv("ALBERT_SECRET_KEY", "a+value/that=nobody&sees")
    rules = {
        "tools": {"http_request": {"allowed_hosts": ["127.0.0.1"]}},
        "secrets": {"KEY": ["127.0.0.1"]},
    }
    told = location.format("a+value/that=nobody&sees")
    with raw(redirecting("302 Found", told)) as server:
        got, context = await fetch(
            client, f"http://127.0.0.1:{server.port}/", rules, headers={"k": {"secret": "KEY"}}, follow=1
        )
        kept, _ = await fetch(client, f"http://127.0.0.1:{server.port}/", rules, headers={"k": {"secret": "KEY"}})
    assert isinstance(got, Failure)
    assert "nobody" not in json.dumps([got.as_dict(), context.effects, kept])
    assert "[redacted]" in kept["headers"]["location"]


async def test_a_secret_at_the_end_of_a_long_body_is_removed_completely(client: Client, monkeypatch: Any) -> None:
    from albert_tools.builtins.net.bounds import MAX_BODY

    value = "0123456789abcdef" * 4
    monkeypatch.setenv("ALBERT_SECRET_KEY", value)
    rules = {**HERE, "secrets": {"KEY": ["127.0.0.1"]}}
    filled = b"x" * (MAX_BODY - 40) + value.encode() * 100
    with raw(lambda head, c: c.sendall(answer(filled))) as server:
        got, _ = await fetch(client, f"http://127.0.0.1:{server.port}/", rules, headers={"k": {"secret": "KEY"}})
    assert got["truncated"]
    assert value[:8] not in got["body"]


@pytest.mark.parametrize(
    ("reference", "environment", "code"),
    [
        ({"secret": "OTHER"}, TOKEN, "permission_denied"),
        ({"secret": "ELSEWHERE"}, TOKEN, "permission_denied"),
        ({"secret": "KEY"}, None, "not_found"),
        ({"secret": "KEY"}, "short", "invalid_arguments"),
        ({"secret": "KEY"}, "two\r\nlines: of it", "invalid_arguments"),
        ({"secret": "KEY"}, "nicht-aus-ASCII-é", "invalid_arguments"),
        ({"secret": "../KEY"}, TOKEN, "permission_denied"),
        ({"secret": "KEY", "prefix": "a\r\nb: "}, TOKEN, "invalid_arguments"),
    ],
)
async def test_a_secret_that_is_not_sent(
    client: Client, monkeypatch: Any, reference: Any, environment: str | None, code: str
) -> None:
    if environment is not None:
        for name in ("KEY", "OTHER", "ELSEWHERE"):
            monkeypatch.setenv(f"ALBERT_SECRET_{name}", environment)
    rules = {**HERE, "secrets": {"KEY": ["127.0.0.1"], "ELSEWHERE": ["api.example.org"]}}
    with raw(hello) as server:
        got, context = await fetch(client, f"http://127.0.0.1:{server.port}/", rules, headers={"k": reference})
    assert got.code == code
    assert environment is None or environment not in str(got.as_dict())
    assert server.connections == 0
    assert context.effects == []


async def test_without_an_environment_variable_the_keyring_is_asked(client: Client, monkeypatch: Any) -> None:
    import keyring

    class Ring(keyring.backend.KeyringBackend):  # type: ignore[name-defined, misc]
        priority = 1

        def get_password(self, service: str, name: str) -> str | None:
            return {("albert-tools", "KEY"): "from-the-keyring"}.get((service, name))

        def set_password(self, service: str, name: str, value: str) -> None: ...

        def delete_password(self, service: str, name: str) -> None: ...

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        rules = {**HERE, "secrets": {"KEY": ["127.0.0.1"]}}
        with raw(hello) as server:
            await fetch(client, f"http://127.0.0.1:{server.port}/", rules, headers={"k": {"secret": "KEY"}})
        assert b"k: from-the-keyring" in server.seen[0]
    finally:
        keyring.set_keyring(before)


# No data of this machine.


async def test_no_cookies_proxies_or_credentials_of_the_machine_are_used(
    client: Client, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    for name, value in {
        "HOME": str(tmp_path),
        "NETRC": str(tmp_path / ".netrc"),
        "HTTP_PROXY": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    with raw(lambda head, c: c.sendall(answer(b"x", headers=["Set-Cookie: id=1; Path=/"]))) as server:
        for _ in range(2):
            got, _ = await fetch(client, f"http://127.0.0.1:{server.port}/")
            assert got["headers"]["set-cookie"] == "id=1; Path=/"
    for head in server.seen:
        names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:] if line}
        assert names == {b"host", b"accept-encoding", b"accept", b"user-agent"}
    # Both requests used one connection.
    assert server.connections == 1


async def test_a_connection_that_the_server_has_closed_is_not_used(client: Client) -> None:
    def once(head: bytes, connection: socket.socket) -> None:
        connection.sendall(answer(b"hello"))
        connection.close()

    with raw(once) as server:
        for _ in range(3):
            got, _ = await fetch(client, f"http://127.0.0.1:{server.port}/", method="POST")
            assert got["body"] == "hello"
            connections = [c for pool in client._pools.values() for c in pool.connections]
            while not all(c.is_closed() or c.has_expired() for c in connections):
                await asyncio.sleep(0.005)


async def test_ipv6_and_a_second_address(client: Client) -> None:
    with raw(hello, host="::1") as server:
        got, _ = await fetch(client, f"http://[::1]:{server.port}/")
        assert got["body"] == "hello"
        # Nothing listens at the first address. At 127.0.0.1, another test can have the same port.
        second = Client(resolving({"two.example": ["127.8.8.8", "::1"]}))
        got, _ = await fetch(second, f"http://two.example:{server.port}/")
        await second.aclose()
        assert got["body"] == "hello"


# Limits per host.


async def test_a_host_that_asks_for_a_pause_is_not_called(client: Client) -> None:
    with raw(lambda head, c: c.sendall(answer(b"", "429 Too Many Requests", ["Retry-After: 120"]))) as server:
        url = f"http://127.0.0.1:{server.port}/"
        first, _ = await fetch(client, url)
        second, context = await fetch(client, url)
    assert (first["status"], first["retry_after_ms"]) == (429, 120_000)
    assert (second.code, second.retryable, second.rule) == ("rate_limited", True, "retry_after")
    assert 100_000 < second.retry_after_ms <= 120_001
    assert len(server.seen) == 1
    assert context.effects == []


async def test_a_short_pause_is_waited_for(client: Client) -> None:
    turns: list[float] = []

    def handle(head: bytes, connection: socket.socket) -> None:
        turns.append(time.monotonic())
        first = len(turns) == 1
        connection.sendall(answer(b"hello", "503 Busy" if first else "200 OK", ["Retry-After: 1"] if first else []))

    with raw(handle) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert (await fetch(client, url))[0]["retry_after_ms"] == 1000
        assert (await fetch(client, url))[0]["status"] == 200
    assert turns[1] - turns[0] > 0.9


def test_retry_after() -> None:
    assert seconds_of(" 30 ") == 30
    assert seconds_of("soon") is None
    assert seconds_of("-1") is None
    assert seconds_of("1e9") is None
    when = seconds_of(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True))
    assert when is not None
    assert 80 < when <= 100
    assert seconds_of(format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)) == 0
    limits = HostLimits()
    assert limits.note(("a", 80), 429, "9999999") == 3600_000
    assert limits.note(("a", 80), 200, "30") is None
    assert limits.note(("a", 80), 429, None) is None


async def test_requests_to_one_host_are_limited(client: Client) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def slow(head: bytes, connection: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.03)
        with lock:
            now -= 1
        connection.sendall(answer(b"hello"))

    with raw(slow) as server:
        found = await asyncio.gather(*(fetch(client, f"http://127.0.0.1:{server.port}/") for _ in range(20)))
    assert [got["body"] for got, _ in found] == ["hello"] * 20
    assert 1 < most <= MAX_AT_ONCE


async def test_slow_requests_of_a_session_leave_turns_of_their_host_for_others(client: Client) -> None:
    gate, arrived = threading.Event(), threading.Semaphore(0)

    def server_(head: bytes, connection: socket.socket) -> None:
        if b"/slow" in head:
            arrived.release()
            assert gate.wait(PATIENCE)
        connection.sendall(answer(b"hello"))

    async def of(session: str, path: str) -> str:
        CLIENT.set(session)
        return str((await fetch(client, f"http://127.0.0.1:{server.port}/{path}"))[0]["body"])

    with raw(server_) as server:
        slow = [asyncio.create_task(of("one", "slow")) for _ in range(MAX_AT_ONCE + 2)]
        for _ in range(MAX_OF_SESSION):
            assert await asyncio.to_thread(arrived.acquire, timeout=PATIENCE)
        assert await of("other", "quick") == "hello"
        gate.set()
        assert await asyncio.gather(*slow) == ["hello"] * len(slow)


async def test_lookups_of_a_session_that_nobody_answers_leave_places_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = threading.Event()

    def answered(host: str, port: int, **_: Any) -> list[Any]:
        if host == "slow":
            assert gate.wait(PATIENCE)
        return [(None, None, None, None, ("192.0.2.1", port))]

    async def of(session: str, host: str) -> list[str]:
        CLIENT.set(session)
        return await system_resolver(host, 80)

    monkeypatch.setattr(socket, "getaddrinfo", answered)
    slow = [asyncio.create_task(of("one", "slow")) for _ in range(resolve_host._AT_ONCE + 4)]
    await asyncio.sleep(0)
    # A lookup goes on after its call.
    slow[0].cancel()
    assert await of("other", "quick") == ["192.0.2.1"]
    gate.set()
    assert await asyncio.gather(*slow[1:]) == [["192.0.2.1"]] * (len(slow) - 1)


async def test_a_cancelled_call_closes_its_connection(client: Client) -> None:
    begun = threading.Event()

    def stall(head: bytes, connection: socket.socket) -> None:
        begun.set()
        # The end of the call closes the connection.
        assert connection.recv(1) == b""
        hung.set()

    hung = threading.Event()
    arguments = {"url": ""}
    with raw(stall) as server:
        arguments["url"] = f"http://127.0.0.1:{server.port}/"
        context = calling(http_request, arguments, HERE, client)
        task = asyncio.create_task(call_primitive(http_request, arguments, context))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(hung.wait, 20)
    # The request was sent, so it is recorded, without a status.
    assert [(facts["status"], facts["size_bytes"]) for _, facts in context.effects] == [(None, 0)]


async def test_tls_to_a_name_and_a_secret_to_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ALBERT_SECRET_KEY", TOKEN)
    authorities = Authorities(tmp_path)
    client = Client(resolving({"a.example": ["127.0.0.1"]}), authorities.client())
    rules = {**HERE, "secrets": {"KEY": ["a.example"]}}
    with raw(hello, authorities.server("a.example")) as server, raw(hello) as plain:
        secret = {"headers": {"k": {"secret": "KEY"}}}
        got, _ = await fetch(client, f"https://a.example:{server.port}/", rules, **secret)
        refused, _ = await fetch(client, f"http://a.example:{plain.port}/", rules, **secret)
    await client.aclose()
    assert got["body"] == "hello"
    assert b"k: " + TOKEN.encode() in server.seen[0]
    assert (refused.code, refused.rule) == ("permission_denied", "secrets.KEY")
    assert plain.connections == 0


async def test_a_body_in_tiny_chunks_does_not_starve_other_tasks(client: Client) -> None:
    turns = 0

    def tiny(head: bytes, connection: socket.socket) -> None:
        top = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(top + b"1\r\na\r\n" * 9_000 + b"0\r\n\r\n")

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with raw(tiny) as server:
        task = asyncio.create_task(others())
        first = await fetch(client, f"http://127.0.0.1:{server.port}/")
        task.cancel()
    assert first[0]["body"] == "a" * 9_000
    assert turns > 9_000
