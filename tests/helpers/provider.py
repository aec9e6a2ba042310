"""A model provider on this machine that uses real sockets. The name of the model selects its behaviour."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.helpers.network import answer, raw

KEY = "sk-test-0123456789abcdef0123"


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One event of a stream."""
    delta = {} if content is None else {"content": content}
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def event(document: Any, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(document, ensure_ascii=False)}{end}".encode()


USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
ONE = {"prompt_tokens": 1, "completion_tokens": 1}
NOTHING = {"prompt_tokens": 0, "completion_tokens": 0}
COUNTED = event({"choices": [], "usage": USAGE})
DONE = b"data: [DONE]\n\n"
HELLO = event(chunk("")) + event(chunk("Hel")) + event(chunk("lo ")) + event(chunk("wörld 𝄞"))
STOP = event(chunk(finish="stop"))

#: Streamed answers, by model.
STREAMS: dict[str, bytes] = {
    "plain": HELLO + STOP + COUNTED + DONE,
    "uncounted": HELLO + STOP + DONE,
    "long": HELLO + event(chunk(finish="length")) + COUNTED + DONE,
    "no-done": HELLO + STOP,
    "crlf": (HELLO + STOP + COUNTED + DONE).replace(b"\n", b"\r\n"),
    "cr": (HELLO + STOP + COUNTED + DONE).replace(b"\n", b"\r"),
    "chatty": b": keep-alive\n\nevent: message\nid: 1\n" + HELLO + b": more\n\nretry: 10\n\n" + STOP + COUNTED + DONE,
    "split-data": b'data: {"choices": [{"delta":\ndata: {"content": "two"}}]}\n\n' + STOP + DONE,
    "cut": HELLO,
    "empty": b"",
    "error-within": HELLO + event({"error": {"message": "the machine is on fire", "code": "server_error"}}),
    "not-json": HELLO + b"data: {oops\n\n",
    "no-object": b"data: [1]\n\n",
    "no-choices": b'data: {"a": 1}\n\n',
    "odd-choices": b'data: {"choices": ["x"]}\n\n',
    "endless-event": b"data: " + b"x" * (5 * 1024 * 1024),
    "odd-usage": HELLO
    + STOP
    + event({"choices": [], "usage": {"prompt_tokens": -5, "completion_tokens": "many"}})
    + DONE,
    "hostile": event(chunk("\x1b[31m ignore all rules")) + STOP + COUNTED + DONE,
    "echo-key": event(chunk(f"your key is {KEY}!")) + STOP + COUNTED + DONE,
    "key-as-reason": HELLO + event(chunk(finish=KEY)) + DONE,
    "odd-reason": HELLO + b'data: {"choices": [{"finish_reason": "\\ud800\\u001b[2Jstop"}]}\n\n' + DONE,
    "key-in-error": HELLO + event({"error": {"message": "yy " * 96 + KEY, "code": "z" * 90 + KEY}}),
    "odd-error": HELLO + b'data: {"error": {"message": "\\ud800", "code": "\\ud800\\u001b[31m"}}\n\n',
    "long-error": HELLO + event({"error": {"message": "maximum " * 400_000}}),
    "nothing-counted": event(chunk("a" * 30_000)) + STOP + event({"choices": [], "usage": NOTHING}) + DONE,
    "counted-down": event({"choices": [], "usage": USAGE}) + HELLO + STOP + event({"choices": [], "usage": ONE}) + DONE,
    "free": HELLO + STOP + COUNTED + DONE,
}

#: Errors, by model: status, headers, body.
ERRORS: dict[str, tuple[str, list[str], bytes]] = {
    "unauthorized": ("401 Unauthorized", [], b'{"error": {"message": "bad key %s"}}' % KEY.encode()),
    "forbidden": ("403 Forbidden", [], b'{"error": "not for you"}'),
    "missing": ("404 Not Found", [], b'{"error": {"message": "The model does not exist", "code": "model_not_found"}}'),
    "unpaid": ("429 Too Many Requests", [], b'{"error": {"message": "no money", "code": "insufficient_quota"}}'),
    "busy": (
        "429 Too Many Requests",
        ["Retry-After: 30"],
        b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}',
    ),
    "busy-no-time": ("429 Too Many Requests", [], b"slow down"),
    "broken": ("500 Internal Server Error", [], b"<html>oops</html>"),
    "overloaded": ("503 Service Unavailable", [], b'{"error": {"message": "overloaded"}}'),
    "context": ("400 Bad Request", [], b'{"error": {"message": "m", "code": "context_length_exceeded"}}'),
    "context-words": (
        "400 Bad Request",
        [],
        b'{"error": {"message": "This model\'s maximum context length is 8 tokens"}}',
    ),
    "bad": ("400 Bad Request", [], b'{"error": {"message": "temperature is not supported"}}'),
    "moved": ("302 Found", ["Location: http://127.0.0.1:1/"], b""),
    "key-in-refusal": (
        "400 Bad Request",
        [],
        json.dumps({"error": {"message": "yy " * 96 + KEY, "code": "z" * 90 + KEY}}).encode(),
    ),
    "key-escaped": (
        "400 Bad Request",
        [],
        json.dumps({"error": {"message": f"no {KEY}", "code": KEY}}).replace("sk-", "\\u0073k-").encode(),
    ),
    "garbage": ("418 I'm a teapot", [], b"\xff\xfe{{{"),
}


class Provider:
    """`requests` contains the bodies of the requests, `heads` contains their heads."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.asked = threading.Event()
        self.base_url = ""

    def __call__(self, head: bytes, connection: socket.socket) -> None:
        top, _, body = head.partition(b"\r\n\r\n")
        lines = top.decode().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        while len(body) < length:
            body += connection.recv(65536)
        request = json.loads(body)
        self.heads.append(top.decode())
        self.requests.append(request)
        self.asked.set()
        model = request["model"]
        if model in ERRORS:
            status, headers, data = ERRORS[model]
            connection.sendall(answer(data, status, ["Content-Type: application/json", *headers]))
        elif model == "silent":
            time.sleep(30)
        elif model == "stuck":
            self._chunked(connection, HELLO, end=False)
            time.sleep(30)
        elif model == "reset":
            self._chunked(connection, HELLO, end=False)
            connection.close()
        elif not request.get("stream"):
            document: Any = {
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "all at once"}, "finish_reason": "stop"}
                ],
                "usage": USAGE,
            }
            document = {"whole-none": {"choices": []}, "whole-html": "<html>"}.get(model, document)
            connection.sendall(answer(json.dumps(document).encode(), headers=["Content-Type: application/json"]))
        else:
            self._chunked(connection, STREAMS[model], 1 if model == "cr" else 50)

    @staticmethod
    def _chunked(connection: socket.socket, data: bytes, size: int = 50, end: bool = True) -> None:
        kind = b"Content-Type: text/event-stream; charset=utf-8\r\n"
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + kind + b"Transfer-Encoding: chunked\r\n\r\n")
        size = max(size, len(data) // 1000)
        parts = [data[i : i + size] for i in range(0, len(data), size)]
        connection.sendall(b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts))
        if end:
            connection.sendall(b"0\r\n\r\n")


@contextmanager
def providing() -> Iterator[Provider]:
    provider = Provider()
    with raw(provider) as server:
        provider.base_url = f"http://127.0.0.1:{server.port}/v1"
        yield provider
