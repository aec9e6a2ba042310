"""The HTTP server of the pages and of MCP."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from albert_tools.surfaces import http_server
from tests.helpers.frames import no_collection


def test_a_connection_that_sends_no_whole_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_SECONDS", 0.05)
    asyncio.run(_connections())


async def test_an_answer_that_nobody_takes_is_under_way_until_its_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "IDLE_SECONDS", 0.5)
    ready, written, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    size = 20_000_000

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            written.set()
            await send({"type": "http.response.body", "body": b"x" * size})
            ended.set()

    listening, port = http_server.listen(http_server.LOOPBACK, 0)
    serving = asyncio.create_task(http_server.serve(app, listening, 8, lambda scope: "client", ready.set))
    await ready.wait()
    reader, writer = await asyncio.open_connection(http_server.LOOPBACK, port, limit=1000)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await written.wait()
    await asyncio.sleep(0.1)
    assert not ended.is_set()
    await asyncio.wait_for(ended.wait(), 30)
    received = 0
    with suppress(ConnectionResetError):
        while part := await asyncio.wait_for(reader.read(1 << 20), 30):
            received += len(part)
    assert received < size
    writer.close()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


class Server:
    """A server whose clients have no token. It answers with the size of a body, or at once for the path ``/early``."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def answers(self, *parts: bytes, wait: bool = False) -> bytes:
        """What the server sends until it closes the connection. `wait`: its first answer comes before all is sent."""
        reader, writer = await asyncio.open_connection(http_server.LOOPBACK, self.port)
        received = b""
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                if wait and not received:
                    received = await reader.readuntil(b"\r\n\r\n")
            received += await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return received


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        more, size = scope["path"] != "/early", 0
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await PlainTextResponse(f"{size} bytes")(scope, receive, send)

    ready = asyncio.Event()
    listening, port = http_server.listen(http_server.LOOPBACK, 0)
    serving = asyncio.create_task(http_server.serve(app, listening, 8, lambda _: None, ready.set))
    await ready.wait()
    # uvicorn's logger passes nothing on.
    logger = logging.getLogger("uvicorn")
    logger.addHandler(caplog.handler)
    yield Server(port)
    logger.removeHandler(caplog.handler)
    assert not any(record.exc_info for record in caplog.records)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


def chunks(number: int, size: int) -> bytes:
    return f"{size:x}\r\n{'x' * size}\r\n".encode() * number


END, LINES, CLOSE, REFUSED = b"0\r\n\r\n", b"a:\r\n" * 4000, b"Connection: close\r\n", b"HTTP/1.1 400 "
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
#: What Java's client sends with each request.
TO_HTTP2 = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


def post(path: str = "/", more: bytes = CLOSE) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n".encode() + more + b"\r\n"


async def test_a_request_that_takes_long_to_parse_is_refused(server: Server) -> None:
    assert b"300060 bytes" in await server.answers(post(), chunks(60, 1), chunks(300, 1000), END)
    assert b"The chunks of the body are too small." in await server.answers(post(), chunks(70, 1), END)
    assert (await server.answers(post(more=LINES), END)).startswith(REFUSED)
    assert (await server.answers(post(), b"0\r\n", LINES, b"\r\n")).startswith(REFUSED)
    for blank in (b" ", b"\t"):
        assert b"too many blanks" in await server.answers(post(more=b"a: b" + blank * 9000 + b"c\r\n"), END)
    assert b"too many blanks" in await server.answers(post(), b"5;b" + b" " * 9000 + b"c\r\n")


async def test_each_byte_of_a_head_is_searched_for_blanks_twice_at_most(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    class Blanks:
        def search(self, text: bytes) -> object:
            searched.append(len(text))
            return blanks.search(text)

    blanks = http_server._BLANKS
    monkeypatch.setattr(http_server, "_BLANKS", Blanks())
    head = GET + b"a: b" + (b" " * 99 + b"c") * 600 + b"\r\n" + CLOSE + b"\r\n"
    assert b"0 bytes" in await server.answers(head)
    assert len(head) < sum(searched) < 2 * len(head)


async def test_what_comes_behind_an_answer_is_read_and_bounded(server: Server) -> None:
    # A client that is refused has to see why, also if it has not sent all of its body.
    head = b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"
    refused = await server.answers(head, b"x" * 4_000_000 + GET + CLOSE + b"\r\n", wait=True)
    assert refused.count(b"0 bytes") == 2
    endless = await server.answers(post("/early"), chunks(1, 1), chunks(40_000, 1), END, wait=True)
    assert endless.startswith(b"HTTP/1.1 200 ")
    sent = [chunks(300, 1000)] * 9
    assert (await server.answers(post("/early", b""), *sent, END, GET + CLOSE + b"\r\n", wait=True)).count(
        b"HTTP/1.1"
    ) == 1


async def test_a_connection_that_has_ended_keeps_nothing_in_memory(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "IDLE_SECONDS", 1000)
    bodies = [b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000, b"GET /", b""]
    with no_collection():
        for body in bodies:
            writer = (await asyncio.open_connection(http_server.LOOPBACK, server.port))[1]
            writer.write(body)
            await writer.drain()
            await asyncio.sleep(0.2)
            writer.close()
            await writer.wait_closed()
        for _ in range(100):
            left = sum(isinstance(each, http_server._Protocol) for each in gc.get_objects())
            if not left:
                break
            await asyncio.sleep(0.1)
        assert left == 0


async def test_requests_that_were_sent_before_an_answer_are_read_one_after_the_other(server: Server) -> None:
    several = [END, (GET + b"\r\n") * 200, GET + CLOSE + b"\r\n"]
    assert (await server.answers(post(more=b""), *several)).count(b"HTTP/1.1 200 ") == 202
    for more in (b"", TO_HTTP2):
        behind = (await server.answers(post(more=more), END + GET + LINES + b"\r\n")).partition(b"0 bytes")[2]
        assert behind.startswith(REFUSED)


async def test_a_client_that_asks_for_http2_is_answered_and_not_logged(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert b"5 bytes" in await server.answers(post(more=TO_HTTP2), chunks(1, 5), END, GET + CLOSE + b"\r\n")
    assert not caplog.records


async def _connections() -> None:
    ready, may_answer = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await may_answer.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"answer"})

    def client_of(scope: Any) -> str | None:
        return dict(scope["headers"]).get(b"token", b"").decode() or None

    async def admit(scope: Any) -> Any:
        scope["headers"] = [(b"token" if name == b"other" else name, value) for name, value in scope["headers"]]
        return PlainTextResponse("refused") if scope["path"] == "/refused" else None

    listening, port = http_server.listen(http_server.LOOPBACK, 0)
    serving = asyncio.create_task(http_server.serve(app, listening, 8, client_of, ready.set, admit))
    await ready.wait()

    async def connect(text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(http_server.LOOPBACK, port)
        writer.write(text)
        return reader, writer

    head = b"GET / HTTP/1.1\r\nHost: x\r\n"
    asked, asking = await connect(head + b"token: a\r\n\r\n")
    # Whose request this is turns out later.
    admitted, admitting = await connect(head + b"other: b\r\n\r\n")
    refused, refusing = await connect(head.replace(b"/ ", b"/refused ") + b"connection: close\r\n\r\n")
    assert (await asyncio.wait_for(refused.read(), 30)).endswith(b"refused")
    refusing.close()
    # The application answers none of these meanwhile: the last one has no token, so it may not wait.
    for text in (b"", head, head + b"\r\n"):
        reader, writer = await connect(text)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
    # A client that waits for an answer is not idle.
    may_answer.set()
    for reader, writer in ((asked, asking), (admitted, admitting)):
        assert (await asyncio.wait_for(reader.read(), 30)).endswith(b"answer\r\n0\r\n\r\n")
        writer.close()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
