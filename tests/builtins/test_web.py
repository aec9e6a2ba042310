"""http_request against a real server on this machine."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from albert_tools.builtins.net import web
from albert_tools.builtins.net.bounds import MAX_BODY
from albert_tools.builtins.net.client import Client
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.validation import violations
from tests.helpers.network import Calling, calling


class Handler(BaseHTTPRequestHandler):
    """Answer by path."""

    def do_GET(self) -> None:
        name = self.path.lstrip("/").partition("?")[0]
        if name == "slow":
            time.sleep(1)
        if name == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"short")
            return
        size = int(self.headers.get("Content-Length", 0))
        sent = f"{self.command} {self.path} {self.rfile.read(size).decode()}\n{self.headers}".encode()
        status, headers, body = {
            "missing": (404, {}, b"nothing here"),
            "moved": (302, {"Location": "/echo"}, b""),
            "latin": (200, {"Content-Type": "text/plain; charset=latin-1"}, b"\xe9"),
            "binary": (200, {}, b"ab\xff"),
            "odd": (200, {"Content-Type": "text/plain; charset=nonsense"}, b"x"),
            "large": (200, {}, b"x" + ("é" * MAX_BODY).encode()),
            "bomb": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 50_000_000, 1)),
            "packed": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"unpacked")),
            "lying": (200, {"Content-Encoding": "gzip"}, b"not gzip"),
            "exotic": (200, {"Content-Encoding": "zstd"}, b"x"),
        }.get(name, (200, {"X-A": "1", "X-B": "2"}, sent))
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A server that ignores clients that close the connection."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


#: Rules that name this machine.
RULES = {"tools": {"http_request": {"allowed_hosts": ["127.0.0.1"]}}}


@pytest.fixture
async def context() -> AsyncIterator[Calling]:
    client = Client()
    yield Calling(None, client)
    await client.aclose()


async def request(context: Calling, url: str, **more: Any) -> Any:
    arguments = {"url": url, **more}
    made = calling(web.http_request, arguments, RULES, context.client, context.remaining)
    made.effects = context.effects
    result = await call_primitive(web.http_request, arguments, made)
    assert violations(result, web.http_request.definition.result) == []
    return result


async def test_a_request_and_its_answer(context: Any, base: str) -> None:
    answer = await request(context, f"{base}/echo?a=b")
    assert (answer["status"], answer["truncated"], answer["url"]) == (200, False, f"{base}/echo?a=b")
    assert answer["headers"]["x-a"] == "1"
    assert answer["body"].startswith("GET /echo?a=b")
    kind, facts = context.effects[0]
    assert kind == "network"
    assert (facts["method"], facts["status"]) == ("GET", 200)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_body_and_headers_are_sent(context: Any, base: str, method: Any) -> None:
    answer = await request(context, f"{base}/echo", method=method, body="grün", headers={"X-Mine": "yes"})
    assert answer["body"].startswith(f"{method} /echo grün\n")
    assert "X-Mine: yes" in answer["body"]
    assert "content-type" not in answer["body"].lower()


async def test_head_has_no_body(context: Any, base: str) -> None:
    answer = await request(context, f"{base}/echo", method="HEAD")
    assert (answer["status"], answer["body"]) == (200, "")


async def test_404_and_redirects_are_results(context: Any, base: str) -> None:
    missing = await request(context, f"{base}/missing")
    assert (missing["status"], missing["body"]) == (404, "nothing here")
    moved = await request(context, f"{base}/moved")
    assert (moved["status"], moved["headers"]["location"]) == (302, "/echo")


async def test_text_is_decoded_by_its_charset(context: Any, base: str) -> None:
    assert (await request(context, f"{base}/latin"))["body"] == "é"
    for name in ("binary", "odd", "lying", "exotic"):
        with pytest.raises(Failure) as caught:
            await request(context, f"{base}/{name}")
        assert caught.value.code == "encoding_error", name


async def test_a_large_body_is_cut_between_characters(context: Any, base: str) -> None:
    answer = await request(context, f"{base}/large")
    assert answer["truncated"]
    assert answer["body"] == "x" + "é" * ((MAX_BODY - 1) // 2)


async def test_a_compressed_body_is_decompressed_within_bounds(context: Any, base: str) -> None:
    assert (await request(context, f"{base}/packed"))["body"] == "unpacked"
    bomb = await request(context, f"{base}/bomb")
    assert bomb["truncated"]
    assert bomb["body"] == "0" * MAX_BODY


async def test_the_environment_is_ignored(context: Any, base: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await request(context, f"{base}/echo"))["status"] == 200


async def test_no_answer(context: Any, base: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Failure) as caught:
            await request(context, f"http://127.0.0.1:{unused.getsockname()[1]}/", method="POST")
    assert (caught.value.code, caught.value.retryable) == ("network_error", True)
    for method, again in (("GET", True), ("POST", False)):
        with pytest.raises(Failure) as caught:
            await request(context, f"{base}/cut", method=method)
        assert (caught.value.code, caught.value.retryable) == ("network_error", again)


async def test_a_timeout(context: Any, base: str) -> None:
    context.remaining = 0.4
    with pytest.raises(Failure) as caught:
        await request(context, f"{base}/slow")
    assert caught.value.code == "timeout"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "127.0.0.1",
        "http://",
        "http:///a",
        "http://u:p@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://[::1",
        "http://a b/",
        "http://a\r\nb/",
        "http://example.org\\@127.0.0.1/",
        "http://\ud800/",
    ],
)
async def test_an_invalid_url_is_refused(context: Any, url: str) -> None:
    with pytest.raises(Failure) as caught:
        await request(context, url)
    assert caught.value.code == "invalid_arguments"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other"},
        {"content-length": "1"},
        {"Proxy-X": "a"},
        {"a b": "c"},
        {"a": "b\r\nc: d"},
        {"a": "é"},
    ],
)
async def test_an_invalid_header_is_refused(context: Any, base: str, headers: dict[str, str]) -> None:
    with pytest.raises(Failure) as caught:
        await request(context, f"{base}/echo", headers=headers)
    assert caught.value.code == "invalid_arguments"
