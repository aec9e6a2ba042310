"""Progress of a call: each text that the program prints, and each tool that it calls.

A program can print faster than a client reads. What the client has not read in time is dropped, so a call never waits for its
client, and its memory stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext

from albert_tools.engine.agent.texts import plain

#: Messages that wait to be sent, and the most characters of one.
MAX_WAITING, MAX_MESSAGE = 32, 500


#: The callbacks of a call: for each text that a tool prints, and for each tool that its program calls.
Callbacks = tuple[Callable[[str, str], None] | None, Callable[[str], None] | None]


@asynccontextmanager
async def progress_of(ctx: ServerRequestContext[Any, Any]) -> AsyncIterator[Callbacks]:
    """Send the progress of a call to the client, if it has asked for it. What waits is sent before the result."""
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        yield None, None
        return
    sending, messages = anyio.create_memory_object_stream[str](MAX_WAITING)

    async def send() -> None:
        count = 0
        async for message in messages:
            count += 1
            await ctx.session.report_progress(count, None, message)

    def say(message: str) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            sending.send_nowait(plain(message[:MAX_MESSAGE]))

    sender = asyncio.ensure_future(send())
    with sending:
        try:
            yield lambda tool, text: say(f"{tool}: {text.rstrip()}"), lambda tool: say(f"calls {tool}")
        except BaseException:
            sender.cancel()
            raise
    await sender
