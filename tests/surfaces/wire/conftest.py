"""A real server on a Unix socket, in a thread, and a client that speaks gRPC with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from albert_tools import ToolService
from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.record import Record
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.kernel import SERVICE
from albert_tools.surfaces.wire.server import serving

#: Rules under which the commands of the tests need no approval.
OPEN: dict[str, Any] = {
    "categories": {"execute": {"allowed_in_modes": ["NORMAL"]}},
    "tools": {"git": {"allowed_operations": ["DIFF", "STATUS"]}},
}
#: Seconds that a test waits for the server.
PATIENCE = 60.0
_UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


#: Bytes of the largest message without a session in the metadata.
LARGE = 1 << 20


class Wire:
    """A home, a workspace, a server in a thread, and a client with the token of a session."""

    def __init__(self, folder: Path, rules: Any = None, **session: Any) -> None:
        self.home, self.work = folder / "home", folder / "work"
        (self.work / ".albert").mkdir(parents=True, exist_ok=True)
        self._rules = OPEN if rules is None else rules
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE)
        self.token = self.session(**session)
        self.channel = self.connect(self.addresses[0])

    async def _serve(self) -> None:
        self._stopped, self.loop = asyncio.Event(), asyncio.get_running_loop()
        opened = ToolService.open(home=self.home, workspace=self.work, governance=self._rules)
        async with opened as self.service, serving(self.service, port=0) as self.addresses:
            self._started.set()
            await self._stopped.wait()

    def close(self) -> None:
        """Stop the server."""
        self.channel.close()
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(PATIENCE)

    def within(self, work: Callable[[], Any]) -> Any:
        """Call `work` in the server's thread."""

        async def done() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(PATIENCE)

    def session(self, **options: Any) -> str:
        """Open a session and return its token."""
        return str(self.within(lambda: self.service.open_session("test", **options)[1]))

    def connect(self, address: str) -> grpc.Channel:
        """A channel to one of the addresses."""
        return grpc.insecure_channel(address, options=_UNLIMITED)

    def invoke(self, raw: bytes) -> bytes:
        """Send the bytes of one request and return those of the response. A large request names its session in the metadata."""
        metadata = (("session-token", self.token),) if len(raw) > LARGE else ()
        return bytes(self.channel.unary_unary(f"/{SERVICE}/Invoke")(raw, metadata=metadata, timeout=PATIENCE))

    def send(self, raw: bytes) -> pb.ToolResponse:
        """Send the bytes of one request and parse the response."""
        return pb.ToolResponse.FromString(self.invoke(raw))

    def ask(self, **fields: Any) -> pb.ToolResponse:
        """Send one request. By default it has an id and the token of the session."""
        request = pb.ToolRequest(**{"request_id": "r", "session_token": self.token, **fields})
        response = self.send(request.SerializeToString())
        assert response.request_id == request.request_id
        return response

    def ok(self, **fields: Any) -> pb.ToolSuccess:
        """Send one request, which must succeed."""
        response = self.ask(**fields)
        assert response.HasField("success"), response
        return response.success

    def put(self, content: bytes, token: str | None = None, size: int = 1 << 20) -> bytes:
        """Store a content in chunks of a size and return its hash."""
        put = self.channel.stream_unary(f"/{SERVICE}/PutContent")
        chunks = [pb.Chunk(data=content[n : n + size]).SerializeToString() for n in range(0, len(content), size)]
        metadata = (("session-token", self.token if token is None else token),)
        return bytes(pb.ContentHash.FromString(put(iter(chunks), metadata=metadata, timeout=PATIENCE)).hash)

    def get(self, digest: bytes, token: str | None = None) -> bytes:
        """Read a content."""
        get = self.channel.unary_stream(f"/{SERVICE}/GetContent")
        metadata = (("session-token", self.token if token is None else token),)
        request = pb.ContentHash(hash=digest).SerializeToString()
        return b"".join(pb.Chunk.FromString(c).data for c in get(request, metadata=metadata, timeout=PATIENCE))

    def entries(self, *kinds: str) -> list[Entry]:
        """The entries of the ledger."""
        with Record(self.home / "state" / "record") as log:
            return list(log.entries(set(kinds)))


@pytest.fixture
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Wire]]:
    """Makes servers: ``wires(rules, tools=[…])``."""
    with ExitStack() as stack:

        def make(rules: Any = None, **options: Any) -> Wire:
            made = Wire(tmp_path_factory.mktemp("w").resolve(), rules, **options)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One server for the tests of a module."""
    made = Wire(tmp_path_factory.mktemp("w").resolve())
    yield made
    made.close()
