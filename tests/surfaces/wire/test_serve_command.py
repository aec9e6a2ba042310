"""``albert serve`` as a process of its own: its addresses, its sockets, its memory, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.kernel import MAX_IN_FLIGHT, SERVICE
from tests.surfaces.conftest import Albert
from tests.surfaces.wire.conftest import PATIENCE

MIB = 1024 * 1024


class Served:
    """A running server and a session's token."""

    def __init__(self, albert: Albert, *words: str) -> None:
        self.process = subprocess.Popen(
            [*albert.command, "serve", "--json", *words],
            cwd=albert.project,
            env=albert.environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        first = ""
        while "}" not in first:
            line = self.process.stdout.readline()
            assert line, "the server has ended"
            first += line
        self.addresses: list[str] = json.loads(first)["addresses"]
        self.token = albert("session", "new").out.strip()
        self.channel = grpc.insecure_channel(self.addresses[0], options=[("grpc.max_send_message_length", -1)])
        self.invoke = self.channel.unary_unary(f"/{SERVICE}/Invoke")

    def ask(self, invoke: Callable[..., bytes] | None = None, **fields: Any) -> pb.ToolResponse:
        request = pb.ToolRequest(**{"request_id": "r", "session_token": self.token, **fields})
        return pb.ToolResponse.FromString((invoke or self.invoke)(request.SerializeToString(), timeout=PATIENCE))

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.channel.close()
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def albert(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    """As everywhere, in a folder with a short name: the path of a socket can't be long."""
    return Albert(tmp_path_factory.mktemp("a"))


@pytest.fixture
def serve(albert: Albert) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(*words: str) -> Served:
        made.append(Served(albert, *words))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.stop(signal.SIGKILL)


def test_both_sockets_need_a_token(serve: Callable[..., Served], albert: Albert) -> None:
    served = serve("--port", "0")
    unix, loopback = served.addresses
    path = Path(unix.removeprefix("unix:"))
    assert path.is_socket()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert loopback.startswith("127.0.0.1:")
    (albert.project / "a").write_bytes(b"\x00\xff")
    for address in served.addresses:
        with grpc.insecure_channel(address) as channel:
            invoke = channel.unary_unary(f"/{SERVICE}/Invoke")
            found = served.ask(invoke, file_read=pb.FileRead(path="a"))
            assert found.success.inline_result == b"\x00\xff"
            denied = served.ask(invoke, session_token="alb_x", file_read=pb.FileRead(path="a")).denied
            assert denied.rationale_code == "FILE_READ_SESSION"
    second = albert("serve")
    assert (second.code, "another server uses the socket" in second.err) == (1, True)
    assert served.stop() == 0
    assert not path.exists()


def test_after_kill_9_the_next_server_goes_on(serve: Callable[..., Served], albert: Albert) -> None:
    served = serve()
    write = {"dedupe_key": "once", "file_write": pb.FileWrite(path="a", content=b"x", append=True)}
    first = served.ask(**write).success
    os.kill(served.process.pid, signal.SIGKILL)
    served.process.wait(PATIENCE)
    again = serve().ask(session_token=served.token, **write).success
    assert again.result_hash == first.result_hash
    assert (albert.project / "a").read_bytes() == b"x"
    assert albert("ledger", "verify").code == 0


def test_a_write_that_waits_for_a_person(serve: Callable[..., Served], albert: Albert) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text("tools: {write_bytes: {requires_approval_in_modes: [NORMAL]}}")
    served = serve()
    write = pb.FileWrite(path="a", content=b"\xffnot text")
    waits = served.ask(dedupe_key="k", file_write=write).error
    assert (waits.error_code, waits.retryable) == ("suspended", True)
    (question,) = albert("approvals", "list", "--json").document()["approvals"]
    assert albert("approvals", "answer", question["approval"], "once", "--yes", "--resume").code == 0
    assert (albert.project / "a").read_bytes() == b"\xffnot text"
    assert served.ask(dedupe_key="k", file_write=write).HasField("success")


def test_a_tool_goes_on_where_it_waited(serve: Callable[..., Served], albert: Albert) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(
        "allow: [move_file]\ntools: {write_file: {requires_approval_in_modes: [NORMAL]}}"
    )
    (albert.project / "unpaid").write_text("1")
    (albert.project / "pay.tool").write_text(
        'def pay() -> int:\n    """Pay."""\n    tools.move_file(source="unpaid", target="paid")\n'
        '    tools.write_file(path="a", content="")\n    return 1\n'
    )
    assert albert("define", "pay.tool").code == 0
    served = serve()
    pay = pb.ToolCall(name="pay")
    assert served.ask(tool_call=pay).error.error_code == "suspended"
    (question,) = albert("approvals", "list", "--json").document()["approvals"]
    assert albert("approvals", "answer", question["approval"], "once", "--yes").code == 0
    assert served.ask(tool_call=pay).HasField("success")
    assert (albert.project / "paid").read_text() == "1"


@pytest.mark.slow
def test_a_flood_of_large_requests_uses_bounded_memory(serve: Callable[..., Served]) -> None:
    served = serve()
    server, peaks, over = psutil.Process(served.process.pid), [0], threading.Event()
    before = server.memory_info().rss

    def watch() -> None:
        while not over.wait(0.01):
            peaks.append(server.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    # The field 99 is unknown, so the message is large, but not a file.
    size = 60 * MIB
    raw = b"\x0a\x01r\x9a\x06" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
    # Named in the metadata, the session has the time that a busy machine takes.
    metadata = (("session-token", served.token),)
    calls = [served.invoke.future(raw + bytes(size), metadata=metadata, timeout=PATIENCE) for _ in range(8)]
    assert {pb.ToolResponse.FromString(call.result()).WhichOneof("result") for call in calls} == {"denied"}
    over.set()
    watcher.join()
    # Each message in flight is in memory as bytes, and one of them at a time also as an object.
    assert max(peaks) - before < MAX_IN_FLIGHT + 2 * size


def test_interrupted_and_misused(serve: Callable[..., Served], albert: Albert) -> None:
    assert serve().stop(signal.SIGINT) == 0
    for words in (("--port", "70000"), ("--port", "0" * 9 + "70000"), ("--port", "x"), ("--socket", "/" + "x" * 200)):
        assert albert("serve", *words).code in (1, 2)
    refused = albert("serve", env={"ALBERT_SESSION": "alb_x"})
    assert (refused.code, "by a person" in refused.err) == (3, True)
