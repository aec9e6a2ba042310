"""Clients that send junk, too much, too slowly or nothing: the others are served, and the server's memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from albert_tools import Failure, ToolService
from albert_tools.surfaces.wire import kernel, receive
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.bytes_in_flight import Room
from albert_tools.surfaces.wire.kernel import MAX_IN_FLIGHT, MAX_OF_CLIENT, SERVICE
from albert_tools.surfaces.wire.malformed import MAX_A_MINUTE, MalformedRequests
from albert_tools.surfaces.wire.receive import MAX_MESSAGE
from albert_tools.surfaces.wire.server import MAX_CONNECTIONS, serving
from tests.helpers.frames import has_a_frame_with, no_collection
from tests.surfaces.conftest import wait_until
from tests.surfaces.wire.conftest import OPEN, PATIENCE, Wire

MIB = 1024 * 1024
REFUSED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)


def served(w: Wire) -> None:
    """An ordinary client gets its answer."""
    assert w.ok(file_write=pb.FileWrite(path="ordinary", content=b"x"))


def status(call: Callable[[], Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    code = caught.value.code()
    assert isinstance(code, grpc.StatusCode)
    return code


@pytest.mark.parametrize("raw", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x01\xff", bytes(1000)])
def test_junk_gets_a_response(wire: Wire, raw: bytes) -> None:
    assert wire.send(raw).denied.rationale_code in ("MALFORMED_REQUEST", "INVALID_REQUEST")
    served(wire)


def test_bytes_that_are_no_http2(wire: Wire) -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(MIB)):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(wire.addresses[0].removeprefix("unix:"))
            client.settimeout(PATIENCE)
            try:
                client.sendall(data)
                while client.recv(65536):
                    pass
            except OSError:
                # The server has closed the connection.
                pass
    served(wire)


def test_a_message_over_the_limit(wire: Wire) -> None:
    assert status(lambda: wire.send(bytes(MAX_MESSAGE + 1))) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert status(lambda: wire.put(bytes(100 * MIB + 1))) == grpc.StatusCode.INVALID_ARGUMENT
    served(wire)


@pytest.mark.parametrize("method", [f"{SERVICE}/Invoke", f"{SERVICE}/GetContent", "grpc.health.v1.Health/Check"])
def test_a_refused_message_does_not_stay_in_memory(wire: Wire, method: str) -> None:
    metadata = (("session-token", wire.token),) if "Content" in method else ()
    message = b"\xff" * (2 * MIB)
    served(wire)
    with no_collection():
        call = wire.channel.unary_unary(f"/{method}")
        assert status(lambda: call(message, metadata=metadata, timeout=PATIENCE)) in REFUSED

        def kept() -> bool:
            return has_a_frame_with(lambda value: bool(value == message), "surfaces/wire")

        wait_until(lambda: not wire.within(kept))


@pytest.mark.parametrize(("count", "found"), [(50_000, ["max_items", "one_equals"]), (50 * MIB, ["required"])])
def test_many_empty_entries_are_not_expanded(wire: Wire, count: int, found: list[str]) -> None:
    # Each entry has two bytes in the message, but far more as an object.
    shell = b"\x0a\x01x" + b"\x2a\x00" * count
    raw = b"\x0a\x01r\x12\x01t" + b"\x6a" + _varint(len(shell)) + shell
    before = psutil.Process().memory_info().rss
    denied = wire.send(raw).denied
    assert [v.rule for v in denied.violations][:2] == found
    assert len(denied.violations) < 1100
    assert psutil.Process().memory_info().rss - before < 6 * MAX_MESSAGE
    served(wire)


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


@pytest.fixture
def impatient(wires: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A server that waits for a message for a short time."""
    monkeypatch.setattr(receive, "RECEIVE_SECONDS", 0.3)
    return wires()


def test_streams_without_a_message(impatient: Wire) -> None:
    streams = impatient.channel.stream_unary(f"/{SERVICE}/Invoke")
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(PATIENCE)
        yield from ()

    # One more than there is room for: the last one is served after the first ones were ended.
    calls = [streams.future(nothing()) for _ in range(MAX_IN_FLIGHT // MAX_MESSAGE + 1)]
    served(impatient)
    codes = [status(call.result) for call in calls]
    over.set()
    assert codes == [grpc.StatusCode.DEADLINE_EXCEEDED] * len(calls)
    assert status(lambda: streams(iter(()), timeout=PATIENCE)) == grpc.StatusCode.INVALID_ARGUMENT


def test_watches_without_a_token_lock_nobody_out(wire: Wire) -> None:
    for address in wire.addresses:
        channels = [grpc.insecure_channel(address, options=[("c", n)]) for n in range(3)]
        watches = [
            health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            for channel in channels
            for _ in range(100)
        ]
        served(wire)
        with wire.connect(address) as other:
            checks = health_pb2_grpc.HealthStub(other)
            # A place becomes free as soon as a watch has had its chance, or as others that wait were refused.
            checked = retried(lambda: checks.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE))  # noqa: B023
            assert checked.status == health_pb2.HealthCheckResponse.SERVING
        for watch in watches:
            watch.cancel()
        for channel in channels:
            channel.close()


def test_connections_to_the_port_leave_the_socket_and_the_files_to_others(wire: Wire) -> None:
    port = int(wire.addresses[1].rpartition(":")[2])
    before = len(os.listdir("/proc/self/fd"))
    with ExitStack() as opened:
        for _ in range(MAX_CONNECTIONS + 50):
            stranger = opened.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            with suppress(OSError):
                stranger.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        served(wire)
        # The server is in this process, so each connection has two descriptors here.
        wait_until(lambda: len(os.listdir("/proc/self/fd")) - before < 2 * MAX_CONNECTIONS + 150)


def test_a_flood_at_the_port_cancels_nothing_at_the_socket(wire: Wire) -> None:
    with ExitStack() as opened:
        # While the server is busy, more requests arrive than gRPC would keep.
        busy = threading.Event()
        wire.loop.call_soon_threadsafe(busy.wait, PATIENCE)
        strangers = [grpc.insecure_channel(wire.addresses[1], options=[("c", n)]) for n in range(40)]
        for stranger in strangers:
            opened.callback(stranger.close)
        flood = [stranger.unary_unary("/x.Y/Z").future(b"") for stranger in strangers for _ in range(60)]
        honest = wire.channel.unary_unary(f"/{SERVICE}/Invoke").future(b"")
        time.sleep(1)
        busy.set()
        assert honest.result(PATIENCE)
        assert {call.code() for call in flood} == {grpc.StatusCode.UNIMPLEMENTED}


def retried(call: Callable[[], Any]) -> Any:
    """The answer to a request that may be refused because others wait."""
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
        # The server needs the processor to answer the others.
        time.sleep(0.02)


def slow(channel: grpc.Channel, method: str, count: int, over: threading.Event, token: str = "") -> list[Any]:
    """Streams that send nothing until the event is set."""

    def nothing() -> Iterator[bytes]:
        over.wait(PATIENCE)
        yield from ()

    metadata = (("session-token", token),) if token else ()
    streams = channel.stream_unary(f"/{SERVICE}/{method}")
    return [streams.future(nothing(), metadata=metadata) for _ in range(count)]


def test_a_content_is_judged_before_room_is_reserved_for_it(wires: Callable[..., Wire]) -> None:
    w = wires()
    leased, over = w.session(tools=["read_file"]), threading.Event()
    calls = slow(w.channel, "PutContent", 3, over, leased)
    # They are refused, although they have sent nothing.
    assert [status(call.result) for call in calls] == [grpc.StatusCode.PERMISSION_DENIED] * 3
    over.set()
    assert w.put(b"x")
    assert [e.data["rule_id"] for e in w.entries("denied")] == ["lease.tools"] * 3


def test_slow_senders_without_a_token_do_not_keep_sessions_out(wires: Callable[..., Wire]) -> None:
    w, over = wires(), threading.Event()
    with w.connect(w.addresses[1]) as port:
        calls = slow(port, "Invoke", 60, over)
        request = pb.ToolRequest(request_id="r", session_token=w.token, file_write=pb.FileWrite(path="a", content=b"x"))
        invoke = port.unary_unary(f"/{SERVICE}/Invoke")
        # With the token in the metadata, it waits for nobody, on the socket neither.
        answer = invoke(request.SerializeToString(), metadata=(("session-token", w.token),), timeout=PATIENCE)
        assert pb.ToolResponse.FromString(answer).HasField("success")
        served(w)
        assert not any(call.done() and call.code() == grpc.StatusCode.OK for call in calls)
        over.set()


@pytest.mark.parametrize("within", [0, 4])
def test_one_token_has_a_share_of_the_requests(wires: Callable[..., Wire], within: int) -> None:
    """Sessions within its session have no share of their own."""
    w = wires()
    call = pb.ToolCall(name="sleep", arguments_json='{"seconds": 50}')
    tokens = [w.session(within=w.token) for _ in range(within)] or [w.token]
    requests = [pb.ToolRequest(request_id="r", session_token=t, tool_call=call).SerializeToString() for t in tokens]
    channels = [grpc.insecure_channel(w.addresses[0], options=[("c", n)]) for n in range(2)]
    invokes = [channel.unary_unary(f"/{SERVICE}/Invoke") for channel in channels]
    greedy = [invokes[n % 2].future(requests[n % len(requests)]) for n in range(MAX_OF_CLIENT + 1)]
    codes: list[Any] = []
    for each in greedy:
        each.add_done_callback(lambda done: codes.append(done.code()))
    wait_until(lambda: codes)
    assert codes == [grpc.StatusCode.RESOURCE_EXHAUSTED]
    # The others have a place, and a turn to run.
    assert w.ok(session_token=w.session(), file_write=pb.FileWrite(path="a", content=b"x"))
    for each in greedy:
        each.cancel()
    for channel in channels:
        channel.close()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def unread(w: Wire, request: pb.ToolRequest, streams: int) -> socket.socket:
    """Send a request in several streams of HTTP/2, on a connection that has no window for responses."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": f"/{SERVICE}/Invoke", ":authority": "localhost",
        "content-type": "application/grpc", "te": "trailers", "session-token": w.token,
    }  # fmt: skip
    head = b"".join(b"\0" + bytes((len(n),)) + n.encode() + bytes((len(v),)) + v.encode() for n, v in fields.items())
    raw = request.SerializeToString()
    client = socket.socket(socket.AF_UNIX)
    client.connect(w.addresses[0].removeprefix("unix:"))
    client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4" + bytes(4)))
    for stream in range(1, 2 * streams, 2):
        client.sendall(frame(1, 4, stream, head) + frame(0, 1, stream, b"\0" + len(raw).to_bytes(4, "big") + raw))
    return client


def test_responses_that_nobody_takes_keep_their_places(
    wires: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "MAX_OF_CLIENT", 2)
    w = wires()
    (w.work / "a.txt").write_text("x")
    read = pb.ToolRequest(request_id="r", session_token=w.token, file_read=pb.FileRead(path="a.txt"))
    served(w)
    with unread(w, read, streams=2):
        wait_until(lambda: len([e for e in w.entries("call") if "read" in e.data["tool"]]) == 2)
        assert status(lambda: w.send(read.SerializeToString())) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert w.ok(session_token=w.session(), file_read=pb.FileRead(path="a.txt"))
    # The end of the connection frees them.
    wait_until(lambda: w.within(lambda: not [task for task in asyncio.all_tasks() if "invoke" in str(task)]))
    served(w)


def test_a_large_message_names_its_session_first(wire: Wire) -> None:
    invoke = wire.channel.unary_unary(f"/{SERVICE}/Invoke")
    assert status(lambda: invoke(bytes(2 * MIB), timeout=PATIENCE)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_sessions_within_a_session_share_its_room_for_contents(wire: Wire) -> None:
    over = threading.Event()

    def half() -> Iterator[bytes]:
        yield pb.Chunk(data=b"x").SerializeToString()
        over.wait(PATIENCE)

    put, honest = wire.channel.stream_unary(f"/{SERVICE}/PutContent"), wire.session()
    inner = wire.session(within=wire.token)
    tokens = [inner, wire.session(within=inner), wire.session(within=wire.token)]
    slow = [put.future(half(), metadata=(("session-token", token),)) for token in tokens]
    try:
        for n in range(3):
            chunk = pb.Chunk(data=bytes(n)).SerializeToString()
            assert put(iter([chunk]), metadata=(("session-token", honest),), timeout=PATIENCE / 2)
    finally:
        over.set()
        for each in slow:
            each.cancel()


def test_a_stream_of_content_that_stops(impatient: Wire) -> None:
    over = threading.Event()

    def half() -> Iterator[bytes]:
        yield pb.Chunk(data=bytes(MIB)).SerializeToString()
        over.wait(PATIENCE)

    put = impatient.channel.stream_unary(f"/{SERVICE}/PutContent")
    code = status(lambda: put(half(), metadata=(("session-token", impatient.token),)))
    over.set()
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert [e for e in impatient.entries("call") if e.data["tool"] == "put_content"] == []


@pytest.mark.slow
def test_clients_that_read_slowly(wires: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_WRITE_SECONDS", 0.3)
    # There is not room for all readers at once, nor for a request beside most of them.
    monkeypatch.setattr(kernel, "MAX_IN_FLIGHT", 2 * MAX_MESSAGE + 100 * MIB)
    slow = wires()
    digest = slow.put(bytes(range(256)) * (4096 * 40))
    get = slow.channel.unary_stream(f"/{SERVICE}/GetContent")
    sent, metadata = pb.ContentHash(hash=digest).SerializeToString(), (("session-token", slow.token),)
    readers = [get(sent, metadata=metadata) for _ in range(40)]
    for reader in readers:
        assert pb.Chunk.FromString(next(reader)).data[:256] == bytes(range(256))
    served(slow)


def test_a_cancelled_request_ends_its_call(wire: Wire) -> None:
    request = pb.ToolRequest(
        request_id="r",
        session_token=wire.token,
        tool_call=pb.ToolCall(name="sleep", arguments_json='{"seconds": 50}'),
    )
    invoke = wire.channel.unary_unary(f"/{SERVICE}/Invoke")

    def active() -> int:
        return int(wire.within(lambda: len(wire.service._pipeline.active)))

    cancelled = invoke.future(request.SerializeToString())
    wait_until(active)
    cancelled.cancel()
    wait_until(lambda: not active())
    late = invoke.future(request.SerializeToString(), timeout=0.5)
    assert status(late.result) == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: not active())
    ended = [e.data.get("code") for e in wire.entries("call", "result") if "code" in e.data]
    assert ended[-1] == "cancelled"


def test_other_services_take_small_messages(wire: Wire) -> None:
    checks = health_pb2_grpc.HealthStub(wire.channel)
    found = checks.Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=PATIENCE)
    assert found.status == health_pb2.HealthCheckResponse.SERVING
    watched = next(checks.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE))
    assert watched.status == health_pb2.HealthCheckResponse.SERVING
    large = health_pb2.HealthCheckRequest(service="x" * 100_000)
    assert status(lambda: checks.Check(large, timeout=PATIENCE)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_ledger_is_not_flooded(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = []

    class Log:
        def append(self, kind: str, data: dict[str, Any]) -> None:
            entries.append(data)

    requests = MalformedRequests(Log())  # type: ignore[arg-type]
    requests._minute = -1
    for _ in range(MAX_A_MINUTE + 5):
        requests.record(b"x", [], None)
    requests._minute = -1
    requests.record(b"x", ["a required"] * 1000, None)
    assert len(entries) in (MAX_A_MINUTE + 1, MAX_A_MINUTE + 2)
    assert entries[-1]["skipped"] == 5
    assert len(entries[-1]["violations"]) == 10


async def test_readers_wait_for_room() -> None:
    room = Room(10, 10)
    order: list[str] = []

    async def use(name: str, size: int, keep: asyncio.Event) -> None:
        async with room.reserve(name, size) as reserved:
            order.append(name)
            reserved.shrink(2)
            await keep.wait()

    first, second = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(use("a", 9, first)), asyncio.create_task(use("b", 9, second))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (order, room.left) == (["a"], 8)
    first.set()
    while order != ["a", "b"]:
        await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert room.left == 10


async def test_of_those_who_wait_for_room_the_one_that_uses_least_is_next() -> None:
    room = Room(10, 6)
    order: list[str] = []
    keep = {name: asyncio.Event() for name in ("a1", "b1", "a2", "b2", "c1")}

    async def use(name: str, size: int) -> None:
        async with room.reserve(name[0], size):
            order.append(name)
            await keep[name].wait()

    tasks = [asyncio.create_task(use(name, 3)) for name in ("a1", "b1", "a2", "b2", "c1")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert order == ["a1", "b1", "a2"]
    keep["a1"].set()
    while len(order) < 4:
        await asyncio.sleep(0)
    assert order[3] == "c1"
    for event in keep.values():
        event.set()
    await asyncio.gather(*tasks)
    assert (sorted(order), room.left) == (sorted(keep), 10)


async def test_the_socket_is_private_and_has_one_server(tmp_path: Path) -> None:
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    where = tmp_path.resolve() / "private" / "s"
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=OPEN) as service:
        async with serving(service, where) as addresses:
            assert addresses == [f"unix:{where}"]
            assert where.parent.stat().st_mode & 0o777 == 0o700
            with pytest.raises(Failure, match="another server"):
                await serving(service, where).__aenter__()
            async with grpc.aio.insecure_channel(addresses[0]) as channel:
                assert await channel.unary_unary(f"/{SERVICE}/Invoke")(b"")
        assert not where.exists()
        where.parent.chmod(0o755)
        with pytest.raises(Failure, match="open to others"):
            await serving(service, where).__aenter__()
        with pytest.raises(Failure, match="too long"):
            await serving(service, tmp_path / ("x" * 200)).__aenter__()
        taken = socket.create_server(("127.0.0.1", 0))
        with taken, pytest.raises(Failure, match="can't listen"):
            await serving(service, tmp_path / "other" / "s", taken.getsockname()[1]).__aenter__()


def test_a_client_without_a_session_learns_nothing_and_changes_nothing(wires: Callable[..., Wire]) -> None:
    w = wires()
    source = 'def private(secret_name: str) -> str:\n    """Return it."""\n    return secret_name\n'
    w.ok(tool_call=pb.ToolCall(name="define_tool", arguments_json=json.dumps({"source": source})))
    before = len([*w.service.ledger.entries()])
    calls = [("privat", {}), ("private", {}), ("run_tool", {"name": "private"}), ("no_tool" * 20, {"x": "y" * 9000})]
    calls += [("read_file", {"path": "../x"})] * MAX_A_MINUTE
    for name, arguments in calls:
        call = pb.ToolCall(name=name, arguments_json=json.dumps(arguments))
        denied = w.ask(session_token="alb_" + "0" * 64, tool_call=call).denied
        assert denied.rule_id == "session.unknown"
        assert "private" not in denied.message
    assert w.within(lambda: w.service.modes.mode) == "NORMAL"
    added = [*w.service.ledger.entries()][before:]
    assert len(added) <= MAX_A_MINUTE
    assert {e.kind for e in added} == {"malformed"}
