"""The filtering proxy with real clients and servers: the requests that it forwards, and the requests that it refuses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from albert_tools.builtins.net.client import Client
from albert_tools.builtins.net.proxy import FilteringProxy, ProxyBounds
from albert_tools.builtins.net.web import http_request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import LOCALHOST, AddressRules
from tests.helpers.gate import until_async
from tests.helpers.network import Authorities, answer, calling, hello, raw, resolving

TABLE = yaml.safe_load((Path(__file__).parent / "ssrf.yaml").read_text())
ANY_PORT = ProxyBounds(ports=None)


async def everything(url: str, method: str) -> None:
    """Allow every URL."""


@asynccontextmanager
async def proxied(judge: Any = everything, **more: Any) -> Any:
    given = {"bounds": ANY_PORT, "address_rules": lambda: AddressRules(LOCALHOST), **more}
    async with FilteringProxy(judge, **given) as proxy:
        yield proxy


def through(proxy: FilteringProxy, trust: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    host, port = proxy.address
    return httpx.AsyncClient(proxy=f"http://{host}:{port}", verify=trust, trust_env=False, timeout=30)


async def spoken(proxy: FilteringProxy, data: bytes, seconds: float = 30) -> bytes:
    """Return the answer of the proxy to these bytes."""
    reader, writer = await asyncio.open_connection(*proxy.address)
    try:
        async with asyncio.timeout(seconds):
            writer.write(data)
            return await reader.read()
    finally:
        writer.close()


async def test_plain_http_is_forwarded_and_recorded() -> None:
    asked: list[tuple[str, str]] = []

    async def judge(url: str, method: str) -> None:
        asked.append((method, url))

    body = b"x" * 300_000
    with raw(lambda head, c: c.sendall(answer(body, headers=["X-A: 1", "Connection: X-B", "X-B: 2"]))) as server:
        async with proxied(judge) as proxy, through(proxy) as client:
            url = f"http://127.0.0.1:{server.port}/a?b=c"
            got = await client.get(url, headers={"x-mine": "1", "proxy-authorization": "Basic eA=="})
    assert got.content == body
    assert got.headers["x-a"] == "1"
    assert "x-b" not in got.headers
    assert asked == [("GET", url)]
    (seen,) = proxy.seen
    assert (seen.method, seen.url, seen.refused) == ("GET", url, None)
    assert seen.size_bytes > len(body)
    head = server.seen[0].lower()
    assert head.startswith(b"get /a?b=c http/1.1\r\nhost: 127.0.0.1:%d\r\n" % server.port)
    assert b"x-mine: 1" in head
    assert b"proxy-" not in head
    assert b"via" not in head


@pytest.mark.parametrize("content", [b"", b"some", b"x" * 1_000_000, "chunked"])
async def test_a_body_is_forwarded(content: Any) -> None:
    received = bytearray()

    def echo(head: bytes, connection: socket.socket) -> None:
        data = head.partition(b"\r\n\r\n")[2]
        if b"chunked" in head.lower():
            while b"0\r\n\r\n" not in data:
                data += connection.recv(65536)
        else:
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            while len(data) < length:
                data += connection.recv(65536)
        received.extend(data)
        connection.sendall(answer(str(len(data)).encode()))

    async def pieces() -> Any:
        for _ in range(3):
            yield b"piece"

    with raw(echo) as server:
        async with proxied() as proxy, through(proxy) as client:
            given = pieces() if content == "chunked" else content
            got = await client.post(f"http://127.0.0.1:{server.port}/", content=given)
    assert got.status_code == 200
    assert (received.count(b"piece") == 3) if content == "chunked" else (received == content)


async def test_a_tunnel(tmp_path: Path) -> None:
    authorities = Authorities(tmp_path)
    resolve = resolving({"good.example": ["127.0.0.1"]})
    with raw(hello, authorities.server("good.example")) as server:
        async with proxied(resolve=resolve) as proxy, through(proxy, authorities.client()) as client:
            url = f"https://good.example:{server.port}/"
            assert (await client.get(url)).text == "hello"
    assert [(s.method, s.url, s.refused) for s in proxy.seen] == [("CONNECT", url, None)]


async def test_a_refused_url_is_not_connected_to() -> None:
    async def judge(url: str, method: str) -> None:
        raise Failure("permission_denied", f"not {url}", rule="some.rule", hint="ask")

    with raw(hello) as server:
        async with proxied(judge) as proxy, through(proxy) as client:
            got = await client.get(f"http://127.0.0.1:{server.port}/")
            with pytest.raises(httpx.ProxyError, match="403"):
                await client.get(f"https://127.0.0.1:{server.port}/")
    assert (got.status_code, got.text.split(":")[0]) == (403, "permission_denied [some.rule]")
    assert server.connections == 0
    assert [s.refused for s in proxy.seen] == ["permission_denied"] * 2


async def test_the_rules_of_the_call_apply() -> None:
    hosts = {
        "forbidden_hosts": ["evil.example", "127.0.0.5"],
        "allowed_addresses": ["127.0.0.0/8"],
        "free_hosts": ["to5.example"],
    }
    rules = {"tools": {"http_request": hosts}}
    resolve = resolving({f"{n}.example": [f"127.0.0.{5 if n == 'to5' else 1}"] for n in ("good", "evil", "new", "to5")})
    with raw(hello) as server:
        going = calling(http_request, {"url": f"http://good.example:{server.port}/"}, rules, Client()).network
        assert going is not None

        async def judge(url: str, method: str) -> None:
            going.demand(url, method)

        async with (
            proxied(judge, address_rules=lambda: going.address_rules, resolve=resolve) as proxy,
            through(proxy) as client,
        ):
            found = {h: await client.get(f"http://{h}.example:{server.port}/") for h in ("good", "evil", "new", "to5")}
        assert len(server.seen) == 1
    assert found["good"].text == "hello"
    assert "[tools.http_request.forbidden_hosts]" in found["evil"].text
    assert "[shipped.new_host_asks]" in found["new"].text
    assert "[forbidden_hosts]: the host 'to5.example' leads to 127.0.0.5, which is forbidden" in found["to5"].text


@pytest.mark.parametrize("tunnel", [False, True])
async def test_every_url_of_the_table_is_refused(tunnel: bool) -> None:
    with raw(hello, host="::") as server:
        async with proxied(address_rules=AddressRules) as proxy:
            for url, _ in TABLE["urls"]:
                target = url.format(port=server.port)
                if tunnel:
                    rest = target.partition("//")[2].partition("/")[0]
                    line = f"CONNECT {rest if ':' in rest else rest + ':443'} HTTP/1.1\r\nHost: x\r\n\r\n"
                else:
                    line = f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"
                said = await spoken(proxy, line.encode())
                assert said.split()[1] in (b"400", b"403"), url
        assert server.connections == 0


@pytest.mark.parametrize("addresses", TABLE["names"], ids=str)
async def test_every_name_of_the_table_is_refused(addresses: list[str]) -> None:
    with raw(hello, host="::") as server:
        async with proxied(address_rules=AddressRules, resolve=resolving({"name.example": addresses})) as proxy:
            for line in ("GET http://name.example:%d/", "CONNECT name.example:%d"):
                said = await spoken(proxy, (line % server.port).encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"[shipped.addresses]" in said
        assert server.connections == 0


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", b"400"),
        (b"GET https://127.0.0.1:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT 127.0.0.1:{port}/x HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT user@127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT http://127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", b"400"),
        (
            b"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            b"400",
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"SSH-2.0-x\r\n\r\n", b"400"),
        (b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000, b"400"),
    ],
)
async def test_a_malformed_request_is_refused(request_bytes: bytes, status: bytes) -> None:
    with raw(hello) as server:
        async with proxied() as proxy:
            said = await spoken(proxy, request_bytes.replace(b"{port}", b"%d" % server.port))
        assert said.split()[1] == status
        assert server.connections == 0


async def test_a_second_request_in_the_same_connection_is_not_forwarded() -> None:
    smuggled = b"GET http://127.0.0.1:%d/%s HTTP/1.1\r\nHost: a\r\n\r\n"
    with raw(hello) as server:
        async with proxied() as proxy:
            await spoken(proxy, smuggled % (server.port, b"first") + smuggled % (server.port, b"second"))
        assert len(server.seen) == 1
        assert b"second" not in server.seen[0]


async def test_a_tunnel_leads_only_to_allowed_ports() -> None:
    with raw(hello) as server:
        async with proxied(bounds=ProxyBounds()) as proxy:
            said = await spoken(proxy, b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: a\r\n\r\n" % server.port)
        assert b"[proxy.ports]" in said
        assert server.connections == 0


async def test_bytes_are_bounded_both_ways() -> None:
    def endless(head: bytes, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    bounds = ANY_PORT._replace(bytes=1_000_000)
    with raw(endless) as server:
        async with proxied(bounds=bounds) as proxy:
            url = b"127.0.0.1:%d" % server.port
            plain = await spoken(proxy, b"GET http://" + url + b"/ HTTP/1.1\r\nHost: a\r\n\r\n", 60)
        async with proxied(bounds=bounds) as proxy:
            tunnel = await spoken(proxy, b"CONNECT " + url + b" HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n", 60)
    for said in (plain, tunnel):
        assert 900_000 < len(said) < 2_000_000


async def test_a_silent_peer_times_out() -> None:
    def silent(head: bytes, connection: socket.socket) -> None:
        time.sleep(20)

    bounds = ANY_PORT._replace(head_seconds=0.3, idle_seconds=0.3)
    with raw(silent) as server:
        url = b"127.0.0.1:%d" % server.port
        requests = (
            b"GET http://127.0.0.1/ HT",
            b"GET http://" + url + b"/ HTTP/1.1\r\nHost: a\r\n\r\n",
            b"CONNECT " + url + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        async with proxied(bounds=bounds) as proxy:
            half, whole, tunnel = await asyncio.gather(*(spoken(proxy, request) for request in requests))
    assert b"504" in half
    assert b"504" in whole
    assert tunnel == b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.mark.parametrize("tunnel", [False, True])
async def test_what_is_sent_later_in_a_request_is_judged_again(tunnel: bool) -> None:
    received, is_over = bytearray(), False

    def keep(head: bytes, connection: socket.socket) -> None:
        received.extend(head)
        while data := connection.recv(65536):
            received.extend(data)

    def still() -> None:
        if is_over:
            raise Failure("permission_denied", "it may send nothing more")

    with raw(keep) as server:
        async with proxied(still=still) as proxy:
            reader, writer = await asyncio.open_connection(*proxy.address)
            place = b"127.0.0.1:%d" % server.port
            request = b"POST http://%b/ HTTP/1.1\r\nHost: %b\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"
            if tunnel:
                request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\nGET / HTTP/1.1\r\n\r\nsome"
            writer.write(request % (place, place))
            await until_async(lambda: b"some" in received)
            is_over = True
            writer.write(b"6\r\nsecret\r\n")
            said = await asyncio.wait_for(reader.read(), 30)
            writer.close()
    assert said.startswith(b"HTTP/1.1 200" if tunnel else b"HTTP/1.1 403")
    assert b"secret" not in received


async def test_a_tunnel_is_idle_only_if_both_directions_are() -> None:
    def slow(head: bytes, connection: socket.socket) -> None:
        for _ in range(10):
            connection.sendall(b"tick")
            time.sleep(0.13)
        connection.close()

    with raw(slow) as server:
        async with proxied(bounds=ANY_PORT._replace(idle_seconds=1.0)) as proxy:
            url = b"127.0.0.1:%d" % server.port
            said = await spoken(proxy, b"CONNECT " + url + b" HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert said.endswith(b"tick" * 10)


async def test_connections_are_bounded() -> None:
    bounds = ANY_PORT._replace(at_once=3)
    async with proxied(bounds=bounds) as proxy:
        waiting = [await asyncio.open_connection(*proxy.address) for _ in range(3)]
        while len(proxy._tasks) < len(waiting):
            await asyncio.sleep(0.001)
        assert b"429" in await spoken(proxy, b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        for _, writer in waiting:
            writer.close()
    async with proxied(bounds=ANY_PORT._replace(connections=1), resolve=resolving({})) as proxy:
        first = await spoken(proxy, b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        second = await spoken(proxy, b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b"502" in first
    assert b"429" in second


async def test_ending_the_proxy_closes_every_connection() -> None:
    def silent(head: bytes, connection: socket.socket) -> None:
        time.sleep(20)

    with raw(silent) as server:
        async with proxied() as proxy:
            reader, writer = await asyncio.open_connection(*proxy.address)
            writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: a\r\n\r\nx" % server.port)
            await reader.readuntil(b"\r\n\r\n")
            address = proxy.address
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError):
            await asyncio.open_connection(*address)


async def test_too_many_headers_are_refused_unparsed() -> None:
    with raw(hello) as server:
        first = f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: a\r\n".encode()
        async with proxied() as proxy:
            for many, status in ((100, b"200"), (9_000, b"400")):
                said = await spoken(proxy, first + b"a: b\r\n" * many + b"Connection: close\r\n\r\n")
                assert said.split()[1] == status
        assert server.connections == 1


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 9_000 + b"\r\n", b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n" * 9_000]
)
async def test_a_server_with_endless_headers(head: bytes) -> None:
    with raw(lambda _, c: c.sendall(head)) as server:
        async with proxied() as proxy:
            said = await spoken(proxy, f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert said.split()[1] == b"400"
    assert b"many" in said or b"more than 200 headers" in said


async def test_a_body_in_tiny_chunks_does_not_starve_other_tasks() -> None:
    def swallow(head: bytes, connection: socket.socket) -> None:
        while not head.endswith(b"0\r\n\r\n"):
            head = head[-5:] + connection.recv(65536)
        connection.sendall(answer(b"all"))

    turns, over = 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    with raw(swallow) as server:
        first = (
            f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        async with proxied() as proxy, asyncio.TaskGroup() as group:
            reader, writer = await asyncio.open_connection(*proxy.address)
            writer.write(first + b"1\r\na\r\n" * 9_000)
            await writer.drain()
            group.create_task(others())
            writer.write(b"0\r\n\r\n")
            said = await asyncio.wait_for(reader.read(), 60)
            over.set()
            writer.close()
    assert said.split()[1] == b"200"
    assert turns > 5_000


def closed(connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> int:
    """Return how many of the connections the proxy has closed."""
    return sum(reader.at_eof() for reader, _ in connections)


async def test_many_commands_share_the_descriptors_of_the_process() -> None:
    import resource
    from contextlib import AsyncExitStack

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    held: list[asyncio.StreamWriter] = []
    try:
        with raw(hello) as server:
            async with AsyncExitStack() as stack:
                proxies = [await stack.enter_async_context(proxied()) for _ in range(20)]
                for proxy in proxies:
                    # Both ends of a connection are descriptors of this process. The proxies close the connections above the
                    # limit.
                    mine = [await asyncio.open_connection(*proxy.address) for _ in range(40)]
                    async with asyncio.timeout(20):
                        while proxy._count < len(mine) or closed(mine) < len(mine) - len(proxy._tasks):
                            await asyncio.sleep(0.001)
                    for reader, writer in mine:
                        if reader.at_eof():
                            writer.close()
                        else:
                            held.append(writer)
                assert 0 < len(held) <= 128 + 5 * len(proxies)
                # A command with few connections is still served.
                async with proxied() as another:
                    said = await spoken(
                        another, f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode()
                    )
                assert said.split()[1] == b"200"
    finally:
        for writer in held:
            writer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
