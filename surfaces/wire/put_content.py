"""Stores a content for a session. It is judged and recorded like an action, and charged to the budget of bytes written."""

from __future__ import annotations

import asyncio

from blake3 import blake3
from msgspec.structs import replace

from albert_tools.builtins.files.artifacts import demand_room
from albert_tools.engine.actions import put_content
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.service import ToolService


async def demand(service: ToolService, token: str, trace: str | None) -> None:
    """Require that the session of a token may store contents at all, before room for one is reserved and it is received.

    Raises:
        Failure: Those of a call.
    """
    line = service.session_line(token)
    try:
        service.sessions.demand(line, put_content.name)
        service.sessions.afford(line, put_content.name, service.quota)
        denied = service.standing(put_content.definition)["verdict"] == "deny"
    except Failure as failure:
        if not failure.denied:
            raise
        denied = True
    if denied:
        # The pipeline records the denial.
        (await store(service, token, b"", trace)).value()


async def store(service: ToolService, token: str, content: bytes, trace: str | None) -> ToolResult:
    """Store a content for the session of a token. The output of the result is its reference."""

    async def function(context: CallContext, content_hash: str, size_bytes: int) -> str:
        if context.contents is None:
            raise Failure("not_found", "this service has no content store")
        demand_room(context, size_bytes)
        ref = await asyncio.to_thread(context.contents.put, content)
        context.effect("write", handle=ref, size_bytes=size_bytes)
        return ref

    digest = await asyncio.to_thread(lambda: blake3(content).hexdigest())
    arguments = {"content_hash": f"b3:{digest}", "size_bytes": len(content)}
    invocation = ToolInvocation(put_content.name, arguments, session=token, trace=trace)
    return await service.actions.invoke(replace(put_content, function=function), invocation)
