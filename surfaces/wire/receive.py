"""Receives messages, after room was reserved for them, also for the services of others: health and reflection.

gRPC's own handlers receive a message before they call any code of ours. So a handler of another service is replaced by one that
takes a stream of raw bytes, and parses each message itself. Those services ask for no token, so all their clients are strangers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, overload

import grpc

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.tracebacks import forget
from albert_tools.surfaces.wire.anteroom import Anteroom

#: Bytes of the largest message that the server accepts.
MAX_MESSAGE = 101 * MiB
#: Bytes of a message to another service. Such messages contain a name.
MAX_SMALL = 64 * 1024
#: Seconds that a client may take to send a message: with a token; without one; without one, if others wait.
RECEIVE_SECONDS, STRANGER_SECONDS, CHANCE_SECONDS = 30.0, 10.0, 2.0
#: Requests to other services at a time, and seconds that one may take; a watch, too.
MAX_OTHERS, OTHERS_SECONDS = 32, 60.0


@overload
async def receive(context: Any, *, optional: Literal[False] = False) -> bytes: ...


@overload
async def receive(context: Any, *, optional: Literal[True]) -> bytes | None: ...


async def receive(context: Any, *, optional: bool = False) -> bytes | None:
    """The next message of a stream; None at its end, which is an error unless the message is `optional`."""
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            message = await context.read()
    except TimeoutError:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no message within {RECEIVE_SECONDS:g} s")
    if message is not grpc.aio.EOF:
        return bytes(message)
    if not optional:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the request has no message")
    return None


def anteroom(messages: int) -> Anteroom:
    """Places for strangers that send a message. Each message may have `MAX_MESSAGE` bytes."""
    return Anteroom(messages, STRANGER_SECONDS, CHANCE_SECONDS)


class BoundedReads(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Bounds the requests and the messages of all services but `own`, which does that itself."""

    def __init__(self, own: str) -> None:
        self._own = f"/{own}/"
        self._reading = anteroom(2)
        self._served = Anteroom(MAX_OTHERS, OTHERS_SECONDS, CHANCE_SECONDS)

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        if handler is None:
            return None
        if details.method.startswith(self._own):
            kind = "stream_stream" if handler.response_streaming else "stream_unary"
            return handler._replace(**{kind: _forgetting(getattr(handler, kind))})

        async def messages(context: Any, once: bool) -> AsyncIterator[Any]:
            while True:
                async with self._reading.stay():
                    raw = await receive(context, optional=True)
                if raw is None:
                    return
                if len(raw) > MAX_SMALL:
                    message = f"a message to this service has at most {MAX_SMALL:,} bytes"
                    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
                yield handler.request_deserializer(raw)
                if once:
                    return

        async def bounded(_: Any, context: Any) -> None:
            if handler.request_streaming:
                responses = handler.stream_stream(messages(context, once=False), context)
                async for response in responses:
                    await context.write(handler.response_serializer(response))
                return
            async for request in messages(context, once=True):
                if handler.response_streaming:
                    # Its method writes to the context itself.
                    context = _Writing(context, handler.response_serializer)
                    await handler.unary_stream(request, context)
                else:
                    await context.write(handler.response_serializer(await handler.unary_unary(request, context)))

        async def served(request: Any, context: Any) -> None:
            try:
                async with self._served.stay():
                    await bounded(request, context)
            except TimeoutError:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the request has taken too long; send it again")
            except Failure as failure:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, failure.message)

        return grpc.stream_stream_rpc_method_handler(_forgetting(served))


def _forgetting(method: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """A method whose error keeps no message, because gRPC keeps the error of a request that was aborted."""

    async def called(request: Any, context: Any) -> Any:
        try:
            return await method(request, context)
        except BaseException as error:
            forget(error)
            raise

    return called


class _Writing:
    """A context whose `write` takes a message."""

    def __init__(self, context: Any, serializer: Callable[[Any], bytes]) -> None:
        self._context = context
        self._serializer = serializer

    async def write(self, message: Any) -> None:
        await self._context.write(self._serializer(message))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
