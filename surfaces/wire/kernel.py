"""The service `ToolKernel`: one request, one call of the service, one response.

The methods get and return raw bytes, so bytes that are not a request get a response too. Each method reads its messages itself,
after it has reserved room for them in the share of the client (`bytes_in_flight`). A request that names no session in its metadata
is read in the `anteroom`. To the client, the methods have the form that `tool.proto` declares.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from albert_tools.engine.agent.suspended_calls import SuspendedCalls
from albert_tools.engine.call.session_contents import offering
from albert_tools.engine.model.bounds import MAX_WRITE
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.protocols import ContentStore
from albert_tools.engine.model.reserved_names import AGENT_TOOLS, READING_TOOLS
from albert_tools.engine.model.turns import LongBlocks
from albert_tools.service import ToolService
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.bytes_in_flight import Places, Room
from albert_tools.surfaces.wire.malformed import MalformedRequests
from albert_tools.surfaces.wire.outcomes import OUTCOMES, denied, failed
from albert_tools.surfaces.wire.put_content import demand, store
from albert_tools.surfaces.wire.receive import MAX_MESSAGE, anteroom, receive
from albert_tools.surfaces.wire.responses import add_strict, answered
from albert_tools.surfaces.wire.tool_table import TOOLS, MappedCall, ref_of
from albert_tools.surfaces.wire.violations import violations

_LOG = logging.getLogger("albert.wire")
SERVICE = "albert.tool.v1.ToolKernel"
#: Bytes of the largest content that a client stores, and of the chunks of a content that a client reads.
MAX_CONTENT, CHUNK = MAX_WRITE, 1 * MiB
#: Bytes of a content that are read from the store at once, and bytes of a content in memory while another chunk is received.
_SLICE, _CONTENT = 8 * MiB, MAX_CONTENT + MAX_MESSAGE
#: Bytes of the requests in memory. One client has half of them at most.
MAX_IN_FLIGHT = 4 * MAX_MESSAGE
#: Requests that are served at the same time, and those of one client; a further one gets RESOURCE_EXHAUSTED.
MAX_REQUESTS, MAX_OF_CLIENT = 256, 64
#: Bytes of the largest message without a session in the metadata, and of a response that needs no room.
_SMALL = 1 * MiB
#: Bytes of the largest request that is not a `file_write`: 1,000 entries of 32 KiB, and a command of 1 MiB.
MAX_OF_LISTS = 33 * MiB
#: The agent's own tools that change something. A key would promise that they are called once.
_NO_RECORDED_RESULT = frozenset(AGENT_TOOLS) - frozenset(READING_TOOLS) - {"run_tool"}
#: Seconds that a client may take to send a content, and to accept a chunk.
_PUT_SECONDS, _WRITE_SECONDS = 120.0, 30.0


class _Valid(NamedTuple):
    """A valid request of an active session, with the tool's name in the message and the call that it stands for."""

    request: pb.ToolRequest
    tool: str
    call: MappedCall


class Kernel:
    """The methods, for one service."""

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._places = Places(MAX_REQUESTS, MAX_OF_CLIENT)
        self._room = Room(MAX_IN_FLIGHT, MAX_IN_FLIGHT // 2)
        self._room_for_contents = Room(2 * _CONTENT, _CONTENT)
        #: Only the owner can enter the folder of the Unix socket, so others can't take its places.
        self._strangers = {True: anteroom(2), False: anteroom(2)}
        self._long_blocks = LongBlocks()
        self._malformed = MalformedRequests(service.ledger)
        self._suspended = SuspendedCalls()

    def handler(self) -> grpc.GenericRpcHandler:
        """The methods for a server. All are streams of raw bytes here."""
        methods = {
            "Invoke": grpc.stream_stream_rpc_method_handler(self.invoke),
            "PutContent": grpc.stream_unary_rpc_method_handler(self.put_content),
            "GetContent": grpc.stream_stream_rpc_method_handler(self.get_content),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def invoke(self, _: Any, context: Any) -> None:
        """Make the call of one request, and write the response. Ends the call if the client cancels, or its deadline has passed.

        A client that doesn't take its response keeps the place and the room.
        """
        client = self._service.client_of(_metadata(context, "session-token"))
        marks = {"trace": _metadata(context, "traceparent"), "turn": _metadata(context, "turn")}
        try:
            async with AsyncExitStack() as stack:
                if client is None:
                    read = await self._request_of_stranger(context, stack, marks["trace"])
                    if read is None:
                        return
                    valid, client = read
                    response = await self._answer(valid, marks)
                else:
                    stack.enter_context(self._places.enter(client))
                    async with self._room.reserve(client, MAX_MESSAGE) as reserved:
                        raw = await receive(context)
                        reserved.shrink(len(raw))
                        async with self._long_blocks.of(client):
                            parsed = self._request(raw, marks["trace"])
                        response = parsed if isinstance(parsed, pb.ToolResponse) else await self._answer(parsed, marks)
                data = _serialized(response)
                if len(data) > _SMALL:
                    await stack.enter_async_context(self._room.reserve(client, len(data)))
                await context.write(data)
        except TimeoutError:
            message = (
                "the request was sent too slowly; name the session in the metadata session-token to have more time"
            )
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, message)
        except Failure as failure:
            await _abort(context, failure)

    async def _request_of_stranger(
        self, context: Any, stack: AsyncExitStack, trace: str | None
    ) -> tuple[_Valid, str] | None:
        """The request of a client whose session is known only when the request was read, and the client; None if it was refused.

        From then on, it uses a place of its session.

        Raises:
            TimeoutError: The client is too slow.
            Failure: `rate_limited`, `too_large`.
        """
        async with self._strangers[context.peer().startswith("unix:")].stay():
            raw = await receive(context)
            if len(raw) > _SMALL:
                # To parse it takes long, and others wait.
                problem = f"without the metadata session-token, a message has at most {_SMALL:,} bytes"
                raise Failure("too_large", problem)
            parsed = self._request(raw, trace)
            if isinstance(parsed, pb.ToolResponse):
                await context.write(_serialized(parsed))
                return None
            client = self._service.client_of(parsed.request.session_token)
            assert client is not None, "its session is active"
            stack.enter_context(self._places.enter(client))
        return parsed, client

    def _request(self, raw: bytes, trace: str | None) -> _Valid | pb.ToolResponse:
        """The valid request that the bytes are. Any other one is recorded, and gets the response that is returned."""
        try:
            request = _parsed_request(raw)
        except DecodeError:
            self._malformed.record(raw, [], trace)
            message = "the bytes are not a ToolRequest"
            return denied("", "malformed_request", "malformed_request", message, [])
        if errors := violations(request):
            self._record(raw, [f"{v.field} {v.rule}" for v in errors], trace, request.session_token)
            message = f"the request breaks {len(errors)} rule{'s' if len(errors) > 1 else ''}: {_listed(errors)}"
            return denied(request.request_id[:256], "invalid_request", "invalid_request", message, errors)
        tool = request.WhichOneof("tool")
        try:
            self._service.session_of(request.session_token)
        except Failure as failure:
            # Who has no session must not learn which tools exist, change the mode by attempts, or fill the ledger.
            self._malformed.record(raw, [f"session_token {failure.rule or failure.code}"], trace)
            return failed(request.request_id, tool, failure)
        try:
            call = TOOLS[tool].call(getattr(request, tool))
        except Failure as failure:
            self._record(raw, [f"{tool} {failure.code}"], trace, request.session_token)
            return failed(request.request_id, tool, failure)
        if request.dedupe_key and call.tool in _NO_RECORDED_RESULT:
            self._record(raw, ["dedupe_key unsupported"], trace, request.session_token)
            return _no_dedupe_key(request.request_id, tool, call.tool)
        return _Valid(request, tool, call)

    def _record(self, raw: bytes, rules: list[str], trace: str | None, token: str) -> None:
        """Record a request that is not a call. The entry is charged to its session, if that is active. If the session's quota is
        used up, one request a minute is recorded."""
        sessions, session = self._service.sessions, None
        with suppress(Failure):
            session = self._service.session_of(token).id
        try:
            if session is not None:
                sessions.demand_room(sessions.line(session), self._service.quota)
        except Failure:
            if sessions.refused_lately(session):
                return
        self._malformed.record(raw, rules, trace, session)

    async def _answer(self, valid: _Valid, marks: Mapping[str, str | None]) -> pb.ToolResponse:
        request, tool, call = valid
        try:
            return await self._call(request, tool, call, marks)
        except Failure as failure:
            return failed(request.request_id, tool, failure)
        except Exception:
            _LOG.exception("a request failed")
            fault = Failure("internal_error", "a defect of the server; its log has the details")
            return failed(request.request_id, tool, fault)

    async def _call(
        self, request: pb.ToolRequest, tool: str, call: MappedCall, marks: Mapping[str, str | None]
    ) -> pb.ToolResponse:
        token = request.session_token
        contents = self._contents(token)
        with offering(call.arguments.get("handle", ""), call.content):
            named: dict[str, Any] = {"version": None, "session": token, "request_id": request.request_id, **marks}
            if request.dedupe_key:
                # The key belongs to the first request, whose run is resumed by its id.
                made = self._service.invoke(call.tool, call.arguments, dedupe_key=request.dedupe_key, **named)
            else:
                made = self._suspended.invoke(self._service, call.tool, call.arguments, **named)
            result = await made
        if call.content is not None and result.error is not None and result.error.code == "suspended":
            # The run continues later, without this request.
            await asyncio.to_thread(contents.put, call.content)
        response = await answered(request.request_id, tool, result, contents)
        if request.strict:
            await add_strict(response, result, contents)
        return response

    def _contents(self, token: str) -> ContentStore:
        """The content store as the session of a token has it. Raises Failure."""
        contents = self._service.contents(token)
        assert contents is not None, "it is not served without one"
        return contents

    async def put_content(self, _: Any, context: Any) -> bytes:
        """Store the content of a stream of chunks for the session of the metadata."""
        token, client = await self._session(context)
        trace = _metadata(context, "traceparent")
        try:
            await demand(self._service, token, trace)
            with self._places.enter(client):
                async with self._room_for_contents.reserve(client, _CONTENT):
                    try:
                        async with asyncio.timeout(_PUT_SECONDS):
                            content = await _collected(context)
                    except TimeoutError:
                        raise Failure("timeout", "the client sends too slowly") from None
                    ref = str((await store(self._service, token, content, trace)).value())
        except Failure as failure:
            await _abort(context, failure)
        return bytes(pb.ContentHash(hash=bytes.fromhex(ref.removeprefix("b3:"))).SerializeToString())

    async def get_content(self, _: Any, context: Any) -> None:
        """Write the chunks of a content that the session of the metadata has stored, or got in a result."""
        token, client = await self._session(context)
        try:
            with self._places.enter(client):
                async with self._room.reserve(client, MAX_MESSAGE) as reserved:
                    message = await _parsed(pb.ContentHash, await receive(context), context)
                    reserved.shrink(_SLICE)
                    if errors := violations(message):
                        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _listed(errors))
                    await self._write(self._contents(token), ref_of(message.hash), context)
                    return
        except TimeoutError:
            problem = Failure("timeout", "the client reads too slowly")
        except Failure as failure:
            problem = failure
        # A client that reads nothing does not get the status either. Others may use the room meanwhile.
        await _abort(context, problem)

    async def _write(self, contents: ContentStore, ref: str, context: Any) -> None:
        size = await asyncio.to_thread(contents.size, ref)
        for offset in range(0, size, _SLICE):
            part = await asyncio.to_thread(contents.slice, ref, offset, _SLICE)
            for start in range(0, len(part), CHUNK):
                chunk = pb.Chunk(data=part[start : start + CHUNK])
                async with asyncio.timeout(_WRITE_SECONDS):
                    await context.write(chunk.SerializeToString())

    async def _session(self, context: Any) -> tuple[str, str]:
        """The session token of the metadata, whose session must be active, and its client."""
        token = _metadata(context, "session-token") or ""
        try:
            session = self._service.session_of(token)
            return token, self._service.client_of(token) or session.id
        except Failure as failure:
            await _abort(context, failure)
            raise


def _parsed_request(raw: bytes) -> pb.ToolRequest:
    """The request that the bytes are. Of a large one, only a file is read.

    Raises:
        DecodeError: The bytes are not a request.
    """
    if len(raw) > MAX_OF_LISTS:
        large = pb.LargeRequest.FromString(raw)
        large.DiscardUnknownFields()
        raw = large.SerializeToString()
    request: pb.ToolRequest = pb.ToolRequest.FromString(raw)
    return request


def _serialized(response: pb.ToolResponse) -> bytes:
    return bytes(response.SerializeToString(deterministic=True))


def _no_dedupe_key(request_id: str, tool: str, name: str) -> pb.ToolResponse:
    message = f"{name} keeps no result for a dedupe key; leave the key out"
    violation = pb.ValidationError(field="dedupe_key", rule="unsupported", message=message)
    return denied(request_id, "invalid_request", f"{tool}_invalid_arguments", message, [violation])


def _metadata(context: Any, name: str) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == name and isinstance(value, str):
            return value
    return None


async def _parsed(kind: Any, raw: bytes, context: Any) -> Any:
    try:
        return kind.FromString(raw)
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the bytes are not a {kind.DESCRIPTOR.name}")


async def _collected(context: Any) -> bytes:
    """The content of all chunks of a stream."""
    content = bytearray()
    while (raw := await receive(context, optional=True)) is not None:
        content += (await _parsed(pb.Chunk, raw, context)).data
        if len(content) > MAX_CONTENT:
            message = f"a content has at most {MAX_CONTENT:,} bytes"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
    return bytes(content)


async def _abort(context: Any, failure: Failure) -> None:
    """End a stream with the status of a failure. The streams have no message for it."""
    status = grpc.StatusCode.FAILED_PRECONDITION
    if failure.code == "not_found":
        status = grpc.StatusCode.NOT_FOUND
    elif failure.code == "timeout":
        status = grpc.StatusCode.DEADLINE_EXCEEDED
    elif failure.code in ("rate_limited", "budget_exceeded", "too_large"):
        status = grpc.StatusCode.RESOURCE_EXHAUSTED
    elif OUTCOMES[failure.code] == "denied":
        status = grpc.StatusCode.PERMISSION_DENIED
    await context.abort(status, f"{failure.code}: {failure.message}")


def _listed(errors: list[pb.ValidationError]) -> str:
    shown = "; ".join(f"{v.field} {v.message}" for v in errors[:3])
    return f"{shown}; …" if len(errors) > 3 else shown
