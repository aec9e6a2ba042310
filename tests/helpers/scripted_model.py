"""A language model on this machine whose answers are a script. It speaks the streaming protocols of OpenAI and Anthropic over HTTP.

::

    with scripted(["Hello", Reply(calls=[("read_file", {"path": "a.txt"})]), "The file says …"]) as model:
        ChatSession(service, OpenAIModel("any", model.base_url, "key"))

A script is a list of replies, or a function that makes the reply to a `Request`. Only the standard library is imported, so
examples and benchmarks can use it too.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

_RESULT = re.compile(r"<tool_result[^>]*>(.*?)</tool_result>", re.DOTALL)


def tool_call(name: str, /, **arguments: Any) -> str:
    """A call in the text protocol."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    Attributes:
        text: The text.
        calls: Native calls, as (name, arguments). Arguments that are a text are sent as they are.
        usage: The tokens of the prompt and of the answer; None if they are not reported.
        finish: The finish reason, if not the usual one.
        piece: Characters of each streamed piece.
        status, headers: Of an HTTP error. Then `text` is its message.
        wait: After the text, the server waits for this event before it ends the answer.
        cut: Whether the connection ends without the end of the answer.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    usage: tuple[int, int] | None = (7, 3)
    finish: str = ""
    piece: int = 11
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None
    cut: bool = False


@dataclass(frozen=True)
class Request:
    """A request as the server received it. `anthropic` says which protocol it uses."""

    anthropic: bool
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.anthropic:
            return "".join(block["text"] for block in self.body.get("system", ()))
        return "".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def tools(self) -> list[str]:
        """The names of the native tools."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", ())]

    @property
    def said(self) -> str:
        """The text of the last message."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of calls since the model's last answer, decoded, in either protocol."""
        found: list[str] = []
        for message in reversed(self.body["messages"]):
            if message["role"] == "assistant":
                break
            content = message["content"]
            if message["role"] == "tool":
                found.insert(0, content)
            elif isinstance(content, str):
                found = _RESULT.findall(content) + found
            else:
                blocks = [b["content"] for b in content if b["type"] == "tool_result"]
                found = blocks + [r for b in content if b["type"] == "text" for r in _RESULT.findall(b["text"])] + found
        return [json.loads(text) for text in found]


Script = Sequence[Reply | str] | Callable[[Request], Reply | str]


class ScriptedModel:
    """The server. `requests` are the requests so far.

    `base_url` is for both protocols: clients of OpenAI use it as it is, those of Anthropic without ``/v1``.
    """

    def __init__(self, script: Script) -> None:
        self._script = script if callable(script) else _in_order(script)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def reply(self, request: Request) -> Reply:
        """The next reply."""
        with self._lock:
            self.requests.append(request)
            made = self._script(request)
        return Reply(made) if isinstance(made, str) else made

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def scripted(script: Script) -> Iterator[ScriptedModel]:
    """A running server."""
    model = ScriptedModel(script)
    try:
        yield model
    finally:
        model.close()


def _in_order(script: Sequence[Reply | str]) -> Callable[[Request], Reply | str]:
    left = iter(script)
    return lambda _: next(left, Reply("the script is over", status=500))


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[ScriptedModel]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        anthropic = self.path.endswith("/messages")
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.model.reply(Request(anthropic, body, headers))
        with suppress(OSError):
            if reply.status != 200:
                self._whole({"type": "error", "error": {"type": "error", "message": reply.text}}, reply)
            elif not body.get("stream"):
                self._whole(_openai_message(reply), reply)
            else:
                self._stream((_anthropic_events if anthropic else _openai_events)(reply), reply)

    def _whole(self, document: Any, reply: Reply) -> None:
        data = json.dumps(document).encode()
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[bytes | None], reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            if event is not None:
                self.wfile.write(event)
                self.wfile.flush()
                continue
            # The text is sent.
            if reply.wait is not None:
                reply.wait.wait(60)
            if reply.cut:
                return


def _event(document: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _openai_events(reply: Reply) -> Iterator[bytes | None]:
    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [] if more else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return _event(
            {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices, **more}
        )

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text, reply.piece):
        yield chunk({"content": piece})
    yield None
    for index, (name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
        for piece in _pieces(_arguments(arguments), reply.piece):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, reply.finish or ("tool_calls" if reply.calls else "stop"))
    if reply.usage is not None:
        yield chunk({}, usage=_openai_usage(reply.usage))
    yield b"data: [DONE]\n\n"


def _openai_usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _openai_message(reply: Reply) -> dict[str, Any]:
    calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": _arguments(arguments)}}
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    finish = reply.finish or ("tool_calls" if calls else "stop")
    usage = {} if reply.usage is None else {"usage": _openai_usage(reply.usage)}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, **usage}


def _anthropic_events(reply: Reply) -> Iterator[bytes | None]:
    def event(name: str, **more: Any) -> bytes:
        return _event({"type": name, **more}, name)

    def block(index: int, start: dict[str, Any], kind: str, key: str, text: str) -> Iterator[bytes]:
        yield event("content_block_start", index=index, content_block=start)
        for piece in _pieces(text, reply.piece):
            yield event("content_block_delta", index=index, delta={"type": kind, key: piece})
        yield event("content_block_stop", index=index)

    usage = reply.usage or (0, 0)
    message = {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": usage[0], "output_tokens": 1},
    }
    yield event("message_start", message=message)
    yield event("ping")
    first = 0
    if reply.text:
        yield from block(0, {"type": "text", "text": ""}, "text_delta", "text", reply.text)
        first = 1
    yield None
    for index, (name, arguments) in enumerate(reply.calls, first):
        start = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        yield from block(index, start, "input_json_delta", "partial_json", _arguments(arguments))
    finish = reply.finish or ("tool_use" if reply.calls else "end_turn")
    ended = {"stop_reason": finish, "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": usage[1]})
    yield event("message_stop")
