"""Helpers for network tests: the context of a call under real rules, and recording servers on this machine."""

from __future__ import annotations

import datetime
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert_tools.builtins.net.client import Client
from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.validation import violations
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.outgoing import Outgoing
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance

#: Handles a request and its connection. The request includes its body if it has a content-length.
Handler = Callable[[bytes, socket.socket], None]


@dataclass
class Calling:
    """The network part of a `CallContext`. It collects the recorded effects."""

    network: Outgoing | None
    client: Client
    workspace: Any = None
    remaining: float = 30.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    key: str = "k"
    contents: Any = None
    progress: Any = None
    effects: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def record_seen(self) -> None:
        """Nobody has a session here."""

    def guard_requests(self) -> Callable[[], None]:
        return self.record_seen

    def effect(self, kind: str, **facts: Any) -> None:
        self.effects.append((kind, facts))

    def keep(self, make: Callable[[], Any]) -> Any:
        return self.client if make is Client else make()


def calling(
    tool: Primitive, arguments: dict[str, Any], rules: dict[str, Any], client: Client, remaining: float = 30.0
) -> Calling:
    """The context of a call whose URLs were authorized."""
    governance = read_governance(rules)
    authority = Authority(Policy(governance.layers(), "/workspace", "/home/user"), Modes(None))
    outgoing = authority.outgoing(tool.definition, tool, arguments)
    return Calling(outgoing, client, remaining=remaining, settings=governance.primitives.get(tool.name, {}))


async def called(
    tool: Primitive, arguments: dict[str, Any], rules: dict[str, Any], client: Client, remaining: float = 30.0
) -> tuple[Any, Calling]:
    """The result of a call, or its failure, with the call's context."""
    context = calling(tool, arguments, rules, client, remaining)
    try:
        result = await call_primitive(tool, arguments, context)
    except Failure as failure:
        return failure, context
    assert violations(result, tool.definition.result) == []
    return result, context


class Raw:
    """A server whose handler writes raw bytes. `seen` contains the requests."""

    def __init__(self, handler: Handler, trust: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.handler = handler
        self.seen: list[bytes] = []
        self.connections = 0
        self._trust = trust
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(20)
            if self._trust is not None:
                connection = self._trust.wrap_socket(connection, server_side=True)
            with connection:
                while True:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        more = connection.recv(65536)
                        if not more:
                            return
                        head += more
                    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                    while length and len(head.partition(b"\r\n\r\n")[2]) < int(length[1]):
                        head += connection.recv(65536)
                    self.seen.append(head)
                    self.handler(head, connection)
        except OSError:
            # The client has closed the connection.
            pass

    def close(self) -> None:
        self._socket.close()


@contextmanager
def raw(handler: Handler, trust: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Raw]:
    server = Raw(handler, trust, host)
    try:
        yield server
    finally:
        server.close()


def answer(body: bytes = b"", status: str = "200 OK", headers: Sequence[str] = ()) -> bytes:
    """Return a whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def hello(head: bytes, connection: socket.socket) -> None:
    """Answer every request with "hello"."""
    connection.sendall(answer(b"hello"))


def resolving(table: Mapping[str, Sequence[str] | Callable[[], Sequence[str]]]) -> Callable[[str, int], Awaitable[Any]]:
    """A resolver for these names. If the answer of a name is a function, each lookup calls the function."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        found = table.get(host)
        if found is None:
            raise OSError(8, "no such host")
        return found() if callable(found) else found

    return resolve


@dataclass
class Authorities:
    """A certificate authority. It signs the servers' certificates, and the clients trust it."""

    folder: Path

    def __post_init__(self) -> None:
        import trustme

        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(str(self.folder / "ca.pem"))

    @property
    def file(self) -> str:
        return str(self.folder / "ca.pem")

    def client(self) -> ssl.SSLContext:
        trust = ssl.create_default_context()
        self._ca.configure_trust(trust)
        return trust

    def server(self, *names: str, expired: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        end = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1) if expired else None
        self._ca.issue_cert(*names, not_after=end).configure_cert(context)
        return context
