"""Clients that flood, send junk, half-close, or use what is not theirs. Memory stays bounded, and the others go on."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import psutil
import pytest
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from albert_tools.surfaces.http_server import MAX_OF_CLIENT
from albert_tools.surfaces.mcp.http import MAX_OLDER_OF_CLIENT, MAX_OLDER_SESSIONS, _share_older_sessions
from albert_tools.surfaces.mcp.request_limits import (
    MAX_BYTES,
    MAX_CALLS,
    MAX_MESSAGE,
    MAX_OTHERS,
    MAX_REQUESTS,
    RequestLimit,
    turn_limit,
)
from tests.surfaces.mcp.conftest import PATIENCE, Place, make_place, until

NEW = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: Megabytes by which a server may grow while it is attacked. A quarter of them is one garbage collection away.
GROWTH = 120


def request(number: int, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": NEW}}
    return json.dumps(message).encode() + b"\n"


def read_file(number: int) -> bytes:
    return request(number, "tools/call", name="read_file", arguments={"path": "notes.md"})


class Pipe:
    """A server over stdio, and its raw pipes."""

    def __init__(self, place: Place) -> None:
        self.process = place.albert.serve("mcp", pipes="stdin stdout")
        self.to, self.back = self.process.stdin, self.process.stdout
        self.rest = self.received = b""

    def send(self, data: bytes) -> None:
        self.to.write(data)
        self.to.flush()

    def fill(self, data: bytes, most: int) -> int:
        """Send the data again and again until the server has stopped reading, at most `most` times. Returns how often it was sent
        whole."""
        os.set_blocking(self.to.fileno(), False)
        sent, left = 0, data
        while sent < most:
            if not select.select([], [self.to], [], 2)[1]:
                break
            left = left[os.write(self.to.fileno(), left) :]
            if not left:
                sent, left = sent + 1, data
        os.set_blocking(self.to.fileno(), True)
        self.rest = left if left != data else b""
        return sent

    def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        while b"\n" not in self.received:
            assert select.select([self.back], [], [], PATIENCE)[0], "the server does not answer"
            data = os.read(self.back.fileno(), 1 << 20)
            assert data, "the server has ended"
            self.received += data
        line, _, self.received = self.received.partition(b"\n")
        return dict(json.loads(line))

    def answers(self, last: int) -> list[int]:
        """The numbers of the requests that the server answers, up to the `last` one."""
        found = [self.receive().get("id", -1)]
        while found[-1] != last:
            found.append(self.receive().get("id", -1))
        return found

    def memory(self) -> float:
        return psutil.Process(self.process.pid).memory_info().rss / 2**20


@contextmanager
def piped(place: Place) -> Iterator[Pipe]:
    """A server that has answered."""
    pipe = Pipe(place)
    pipe.send(read_file(0))
    assert pipe.receive()["result"]["structuredContent"] == {"result": "hello"}
    yield pipe
    pipe.process.kill()
    pipe.process.wait()


@pytest.fixture(scope="module")
def pipe(served: Place) -> Iterator[Pipe]:
    """A server that survives one attack after the other."""
    with piped(served) as pipe:
        yield pipe


def test_a_client_that_sends_without_reading_is_not_read_any_more(pipe: Pipe):
    before = pipe.memory()
    big = request(1, "tools/list", cursor="0", more="x" * 500_000)
    assert pipe.fill(big, 200) < 60
    assert pipe.memory() - before < GROWTH
    # As soon as it reads, all goes on.
    pipe.rest += b"\n" + read_file(2)
    while pipe.rest:
        if select.select([], [pipe.to], [], 0)[1]:
            pipe.rest = pipe.rest[os.write(pipe.to.fileno(), pipe.rest[:4096]) :]
        elif select.select([pipe.back], [], [], 0.01)[0]:
            pipe.receive()
    assert pipe.answers(2)[-1] == 2


def test_long_calls_block_neither_a_large_request_nor_their_own_cancellation(pipe: Pipe):
    source = 'def t() -> str:\n    """Wait."""\n    tools.bash(command="sleep 3000", timeout=3000)\n    return ""\n'
    numbers = range(300, 320)
    for number in numbers:
        pipe.send(request(number, "tools/call", name="run_source", arguments={"source": source}))
    large = {"source": f'def t() -> int:\n    """{"x" * 200_000}"""\n    return 1\n'}
    pipe.send(request(320, "tools/call", name="check_tool", arguments=large))
    assert not {*numbers} & {*pipe.answers(320)}
    for number in numbers:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        pipe.send(json.dumps(cancelled).encode() + b"\n")
    pipe.send(read_file(321))
    assert pipe.answers(321) == [321]


@pytest.mark.slow
def test_thousands_of_requests_at_once_are_all_answered(pipe: Pipe):
    before = pipe.memory()
    numbers = {*range(1000, 1000 + 4 * MAX_REQUESTS)}
    flood = b"".join(map(read_file, numbers))
    answered = set[int]()
    while len(answered) < len(numbers):
        can_read, can_write, _ = select.select([pipe.back], [pipe.to], []) if flood else (True, False, None)
        if can_write:
            flood = flood[os.write(pipe.to.fileno(), flood[:4096]) :]
        if can_read:
            answered.add(pipe.receive()["id"])
    assert answered == numbers
    assert pipe.memory() - before < GROWTH


def test_junk_and_giant_lines_are_skipped(pipe: Pipe):
    before = pipe.memory()
    junk = [
        b"\n",
        b"no json\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{}\n",
        b'{"jsonrpc": "2.0", "id": {}, "method": []}\n',
        b'{"jsonrpc": "2.0", "id": 7, "result": {}}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}\n',
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": '
        + b'{"a":' * 5000
        + b"1"
        + b"}" * 5001
        + b"\n",
    ]
    for line in junk:
        pipe.send(line)
    for number in (3, 4):
        # A line without an end, much longer than a message may be. Its end is a message, which is part of the line.
        for _ in range(8):
            pipe.send(b"x" * MAX_MESSAGE)
        pipe.send(request(99, "tools/list"))
        pipe.send(read_file(number))
        assert pipe.answers(number) == [number]
    assert pipe.memory() - before < GROWTH


@pytest.mark.parametrize("closed", ["to", "back"])
def test_the_server_ends_when_its_client_closes_one_of_the_pipes(place: Place, closed: str):
    with piped(place) as pipe:
        getattr(pipe, closed).close()
        if closed == "back":
            # It finds out when it writes.
            pipe.send(read_file(1))
        assert pipe.process.wait(PATIENCE) == 0


HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
#: The headers and the first request of a client of an older revision, which has a session of the protocol.
OLDER = {"MCP-Protocol-Version": "2025-11-25"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}


def http(place: Place, token: str = "", **headers: str) -> httpx2.AsyncClient:
    own = {"Authorization": f"Bearer {token or place.token}", **HEADERS, **headers}
    # Loading certificates is slow, and plain HTTP needs none.
    return httpx2.AsyncClient(headers=own, timeout=PATIENCE, verify=False)


async def post(client: httpx2.AsyncClient, place: Place, method: str, **params: Any) -> httpx2.Response:
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": NEW}}
    return await client.post(place.url, json=body, headers={"Mcp-Method": method, **named})


async def test_only_a_session_of_this_workspace_gets_in(place: Place):
    ended = place.session("--client", "soon gone")
    async with http(place) as client:
        assert (await post(client, place, "tools/list")).status_code == 200
        assert (await client.get(place.url.replace("/mcp", "/"))).status_code == 404
    async with http(place, token=ended) as client:
        assert (await post(client, place, "tools/list")).status_code == 200
        (found,) = [s for s in sessions(place) if s["client"] == "soon gone"]
        place.albert("session", "revoke", found["session"])
        refused = await post(client, place, "tools/list")
        assert refused.status_code == 401
        assert "`albert session new` makes one" in refused.json()["error_description"]
        assert "`albert session new` makes one" in refused.headers["www-authenticate"]
    for token in ("alb_wrong", "x y", "x" * 10_000):
        async with http(place, token=token) as client:
            assert (await post(client, place, "tools/list")).status_code in (400, 401)
    for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)):
        async with http(place, **headers) as client:
            assert (await post(client, place, "tools/list")).status_code == status


async def test_the_log_says_that_a_session_is_of_another_workspace(tmp_path: Path):
    place = make_place(tmp_path)
    other = tmp_path / "other"
    (other / ".albert").mkdir(parents=True)
    token = place.session("--workspace", str(other))
    place.serve()
    try:
        async with http(place, token=token) as client:
            assert (await post(client, place, "tools/list")).status_code == 401
        assert place.process is not None
        said = f"refused the token of a session (401): the session is for another workspace, {other}\n"
        assert place.process.stderr.readline().decode() == said
    finally:
        place.stop()


def sessions(place: Place) -> list[dict[str, Any]]:
    return list(place.albert("session", "list", "--json").document()["sessions"])


async def test_the_connection_of_another_session_can_not_be_used(place: Place):
    async with http(place, **OLDER) as client:
        connection = (await client.post(place.url, json=INITIALIZE)).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    for token, status in ((place.token, 200), (place.session(), 404)):
        async with http(place, token, **OLDER, **{"mcp-session-id": connection}) as client:
            assert (await client.post(place.url, json=listing)).status_code == status


async def test_a_client_that_floods_over_http_uses_its_own_share(place: Place):
    assert place.process is not None
    server = psutil.Process(place.process.pid)
    before = server.memory_info().rss
    flooding = place.session()
    limits = httpx2.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {flooding}", **HEADERS}
    source = 'def t() -> str:\n    """Wait."""\n    tools.bash(command="sleep 3000", timeout=3000)\n    return ""\n'
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, limits=limits, verify=False) as flood,
        http(place) as client,
    ):
        calls = [
            asyncio.create_task(post(flood, place, "tools/call", name="run_source", arguments={"source": source}))
            for _ in range(MAX_REQUESTS + 40)
        ]
        refused, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert {call.result().status_code for call in refused} == {429}
        answer = await post(client, place, "tools/call", name="read_file", arguments={"path": "notes.md"})
        assert answer.json()["result"]["structuredContent"] == {"result": "hello"}
        # It did not have to wait for the flood.
        assert not all(call.done() for call in calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        giant = await client.post(
            place.url, content=b"x" * (MAX_MESSAGE + 1), headers={"Content-Type": "application/json"}
        )
        assert giant.status_code == 413
        for body in (b"", b"no json", b"[]", b"{}", b"[" * 100_000, b'{"id": 1}'):
            junk = await client.post(place.url, content=body, headers={"Content-Type": "application/json"})
            assert junk.status_code == 400
    assert (server.memory_info().rss - before) / 2**20 < GROWTH


async def test_a_flood_of_guides_leaves_threads_to_the_others(place: Place):
    limits = httpx2.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {place.session()}", **HEADERS}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, limits=limits, verify=False) as flood,
        http(place) as client,
    ):
        guides = [
            asyncio.create_task(post(flood, place, "prompts/get", name="guide")) for _ in range(MAX_REQUESTS - 16)
        ]
        await asyncio.wait(guides, return_when=asyncio.FIRST_COMPLETED)
        command = await post(client, place, "tools/call", name="bash", arguments={"command": "seq 1"})
        assert command.json()["result"]["structuredContent"]["stdout"] == "1\n"
        assert {guide.status_code for guide in await asyncio.gather(*guides)} == {200}


async def test_few_requests_of_a_client_that_are_no_calls_are_handled_at_once():
    client, begun, go_on = "flood", list[str](), asyncio.Event()
    limited = turn_limit(lambda: client)

    async def handle(ctx: Any) -> None:
        begun.append(ctx.method)
        await go_on.wait()

    def request(method: str) -> asyncio.Task[Any]:
        return asyncio.create_task(limited(SimpleNamespace(request_id=1, method=method, request=None), handle))

    guides = [request("prompts/get") for _ in range(20)]
    await until(lambda: len(begun) == MAX_OTHERS)
    # Neither its calls nor the requests of others wait for them.
    guides.append(request("tools/call"))
    await until(lambda: len(begun) == MAX_OTHERS + 1)
    client = "another"
    guides.append(request("prompts/get"))
    await until(lambda: len(begun) == MAX_OTHERS + 2)
    assert begun == ["prompts/get"] * MAX_OTHERS + ["tools/call", "prompts/get"]
    go_on.set()
    await asyncio.gather(*guides)
    assert len(begun) == len(guides)


async def test_answers_that_nobody_takes_are_bounded(place: Place):
    token = place.session()
    # JSON writes each of these characters as six.
    (place.albert.project / "control.txt").write_text("\x01" * 4_000_000)
    async with place.connect("http", token=token) as client:
        content = (await client.call_tool("read_file", {"path": "control.txt"})).content
    (uri,) = [block.uri for block in content if isinstance(block, types.ResourceLink)]
    host, port = place.url.split("/")[2].split(":")
    body = request(1, "resources/read", uri=uri)
    named = {**HEADERS, "Authorization": f"Bearer {token}", "Mcp-Method": "resources/read", "Mcp-Name": uri}
    headers = {**named, "Host": f"{host}:{port}", "Content-Type": "application/json", "Content-Length": str(len(body))}
    headers["Connection"] = "close"
    head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    sockets = []
    try:
        for _ in range(12):
            sockets.append(socket.socket())
            # Before it connects, so that the server can send little.
            sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sockets[-1].connect((host, int(port)))
            sockets[-1].sendall(f"{head}\r\n".encode() + body)

        def begun() -> list[socket.socket]:
            return select.select(sockets, [], [], 0)[0]

        await until(lambda: len(begun()) == MAX_OTHERS)
        async with http(place) as client:
            assert (await post(client, place, "tools/list")).status_code == 200
        # Long enough for another answer to begin, if there were no bound.
        await asyncio.sleep(2)
        taken, _ = begun()
        # The next answer is made when one of these is taken.
        sockets.remove(taken)
        taken.settimeout(PATIENCE)
        await asyncio.to_thread(lambda: [*iter(lambda: taken.recv(1 << 20), b"")])
        await until(lambda: len(begun()) == MAX_OTHERS)
        taken.close()
    finally:
        for each in sockets:
            each.close()


async def test_a_request_whose_client_is_gone_counts_until_it_is_handled(place: Place):
    async with http(place, token=place.session(), **OLDER) as client:
        begun = await client.post(place.url, json=INITIALIZE)
        client.headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]

        async def dropped(number: int, name: str, **arguments: Any) -> int:
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
            body = {**call, "params": {"name": name, "arguments": arguments}}
            async with client.stream("POST", place.url, json=body) as response:
                return response.status_code

        for number in range(MAX_CALLS):
            assert await dropped(number, "sleep", seconds=20) == 200
        codes = [await dropped(100 + n, "current_time", timezone="x" * 3_900_000) for n in range(6)]
        assert codes == [200] * 4 + [429] * 2


async def test_the_bodies_of_a_client_are_bounded_together(place: Place):
    over = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        # Its length is not declared, so the largest one is counted.
        yield b"x"
        await over.wait()

    async with http(place) as client:
        bodies = []
        async with asyncio.timeout(PATIENCE):
            # One of them is refused, too, if it arrives together with the small request.
            while (await post(client, place, "tools/list")).status_code != 429:
                bodies.append(asyncio.create_task(client.post(place.url, content=body())))
        over.set()
        await asyncio.gather(*bodies, return_exceptions=True)
        assert (await post(client, place, "tools/list")).status_code == 200


@pytest.mark.parametrize(
    "change", [lambda n: {"Authorization": "BEARER"[:n] + "bearer"[n:]}, lambda n: {"Content-Length": "0"}]
)
async def test_no_header_makes_a_client_s_share_larger(change: Callable[[int], dict[str, str]]):
    over, begun = asyncio.Event(), 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun
        begun += 1
        await over.wait()

    async def send(message: Message) -> None:
        assert message.get("status", 429) == 429

    limit, receive = RequestLimit(app, lambda token: None), AsyncMock()
    requests = []
    for n in range(6):
        headers = {"Authorization": "bearer", "Transfer-Encoding": "chunked"} | change(n)
        headers["Authorization"] += " token"
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "headers": raw}
        requests.append(asyncio.create_task(limit(scope, receive, send)))
    await asyncio.sleep(0)
    assert begun == MAX_BYTES // MAX_MESSAGE
    over.set()
    await asyncio.gather(*requests)


@contextmanager
def half_sent(url: str, count: int, more: str) -> Iterator[None]:
    """Connections whose request is never complete."""
    host, port = url.split("/")[2].split(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(count)]
    try:
        for each in sockets:
            with suppress(OSError):
                each.sendall(f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\n{more}X: ".encode())
        yield
    finally:
        for each in sockets:
            each.close()


@pytest.mark.parametrize("more", ["", "Authorization: Bearer alb_0\r\n"])
async def test_requests_that_are_never_complete_lock_nobody_out(place: Place, more: str):
    with half_sent(place.url, 1100, more):
        async with http(place) as client:
            for _ in range(3):
                assert (await post(client, place, "tools/list")).status_code == 200


async def test_one_token_has_a_share_of_the_older_sessions(place: Place):
    greedy = place.session()
    async with http(place, greedy, **OLDER) as client:
        answers = [await client.post(place.url, json=INITIALIZE) for _ in range(MAX_OLDER_OF_CLIENT + 2)]
        assert [a.status_code for a in answers] == [200] * MAX_OLDER_OF_CLIENT + [503] * 2
        # One that ends makes room.
        ended = {"mcp-session-id": answers[0].headers["mcp-session-id"]}
        assert (await client.delete(place.url, headers=ended)).status_code == 200
        assert (await client.post(place.url, json=INITIALIZE)).status_code == 200
    async with http(place, **OLDER) as client:
        assert (await client.post(place.url, json=INITIALIZE)).status_code == 200


async def test_sessions_within_a_session_share_its_older_sessions(place: Place):
    outer = place.session()
    inner = place.session("--within", outer)
    codes = []
    for token, count in ((inner, MAX_OLDER_OF_CLIENT), (place.session("--within", inner), 1), (outer, 1)):
        async with http(place, token, **OLDER) as client:
            codes += [(await client.post(place.url, json=INITIALIZE)).status_code for _ in range(count)]
    assert codes == [200] * MAX_OLDER_OF_CLIENT + [503] * 2
    async with http(place, **OLDER) as client:
        assert (await client.post(place.url, json=INITIALIZE)).status_code == 200
    # Those of a session that has ended make room.
    async with http(place, outer, **OLDER) as client:
        place.albert("session", "revoke", [s["session"] for s in sessions(place) if s["parent"]][-1])
        assert (await client.post(place.url, json=INITIALIZE)).status_code == 200


async def test_a_new_older_session_asks_only_about_the_owners_of_others():
    manager = StreamableHTTPSessionManager(Server("test"), max_sessions=MAX_OLDER_SESSIONS)
    asked = list[str]()
    _share_older_sessions(manager, lambda session: asked.append(session) or session != "ended")

    def admit(client: str, session: str) -> bool:
        return manager._admit_session({"client_id": client, "issuer": None, "subject": session}) is not None

    clients = MAX_OLDER_SESSIONS // MAX_OLDER_OF_CLIENT
    assert all(admit(f"c{n % clients}", f"s{n % clients}") for n in range(MAX_OLDER_SESSIONS - 1))
    assert admit("c7", "ended")
    assert not asked
    # There is no room for anybody, so those make room whose session has ended.
    assert admit("c8", "s8")
    assert sorted(asked) == ["ended", *(f"s{n}" for n in range(8))]
    del manager._session_owners[next(iter(manager._session_owners))]
    asked.clear()
    # There is room, but not for this client.
    assert not admit("c1", "s1")
    assert asked == ["s1"]


@pytest.mark.parametrize("within", [0, 3])
async def test_one_token_has_a_share_of_the_connections(place: Place, within: int):
    """Sessions within its session have no share of their own."""
    host, port = place.url.split("/")[2].split(":")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    # Each is complete but for its body, so the server waits for it.
    head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    outer = place.session()
    tokens = [place.session("--within", outer) for _ in range(within)] or [outer]
    sockets = []
    try:
        for n in range(MAX_OF_CLIENT + 5):
            sockets.append(socket.create_connection((host, int(port)), PATIENCE))
            mine = f"Host: {host}:{port}\r\nAuthorization: Bearer {tokens[n % len(tokens)]}\r\n{head}"
            sockets[-1].sendall(f"POST /mcp HTTP/1.1\r\n{mine}".encode())
        loop = asyncio.get_running_loop()
        refused = await asyncio.wait_for(loop.run_in_executor(None, sockets[-1].recv, 100), PATIENCE)
        assert b" 429 " in refused
        async with http(place) as client:
            assert (await post(client, place, "tools/list")).status_code == 200
    finally:
        for each in sockets:
            each.close()
