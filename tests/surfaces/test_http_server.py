"""The HTTP server of the pages and of MCP."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from albert_tools.surfaces import http_server


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


async def test_a_request_that_takes_long_to_parse_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    ready = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        # One path is answered before its body was read.
        more, size = scope["path"] != "/early", 0
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await PlainTextResponse(f"{size} bytes")(scope, receive, send)

    listening, port = http_server.listen(http_server.LOOPBACK, 0)
    serving = asyncio.create_task(http_server.serve(app, listening, 8, lambda _: None, ready.set))
    await ready.wait()
    # uvicorn's logger passes nothing on.
    logging.getLogger("uvicorn").addHandler(caplog.handler)

    async def answer(path: str, *parts: bytes, more: bytes = b"Connection: close\r\n") -> bytes:
        reader, writer = await asyncio.open_connection(http_server.LOOPBACK, port)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n".encode() + more + b"\r\n"
        received = b""
        with suppress(ConnectionError):
            for part in (head, *parts):
                writer.write(part)
                await writer.drain()
                if path == "/early" and not received:
                    received = await reader.readuntil(b"\r\n\r\n")
            received += await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return received

    def chunks(number: int, size: int) -> bytes:
        return f"{size:x}\r\n{'x' * size}\r\n".encode() * number

    end, lines, refused = b"0\r\n\r\n", b"a:\r\n" * 4000, b"HTTP/1.1 400 "
    assert b"300060 bytes" in await answer("/", chunks(60, 1), chunks(300, 1000), end)
    assert b"The chunks of the body are too small." in await answer("/", chunks(70, 1), end)
    assert (await answer("/", end, more=lines)).startswith(refused)
    assert (await answer("/", b"0\r\n", lines, b"\r\n")).startswith(refused)
    for blanks in (b"a:" + b" " * 9000 + b"\0\r\n", b"a:" + b"\t" * 9000 + b"\0\r\n"):
        assert (await answer("/", end, more=blanks)).startswith(refused)
    assert (await answer("/", b"5;" + b" " * 9000 + b"\n\r\n")).startswith(refused)
    assert (await answer("/early", chunks(1, 1), chunks(40_000, 1), end)).startswith(b"HTTP/1.1 200 ")
    # Requests that were sent before the answer are read one after the other.
    get = b"GET / HTTP/1.1\r\nHost: x\r\n"
    several = [end, (get + b"\r\n") * 200, get + b"Connection: close\r\n\r\n"]
    assert (await answer("/", *several, more=b"")).count(b"HTTP/1.1 200 ") == 202
    to_http2 = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    # A client that asks for HTTP/2 is answered, and logged no more than another.
    before = len(caplog.records)
    assert b"5 bytes" in await answer("/", chunks(1, 5), end, get + b"Connection: close\r\n\r\n", more=to_http2)
    assert len(caplog.records) == before
    for more in (b"", to_http2):
        late = (await answer("/", end + get + lines + b"\r\n", more=more)).partition(b"0 bytes")[2]
        assert late.startswith(refused)
    assert not any(record.exc_info for record in caplog.records)
    logging.getLogger("uvicorn").removeHandler(caplog.handler)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


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
