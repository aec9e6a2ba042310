"""Writes the response for a result."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from blake3 import blake3

from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.protocols import ContentStore
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.outcomes import failed

#: The largest result that a response contains itself. A larger one is named by its hash.
MAX_INLINE = 1 * MiB
JSON, BYTES = "application/json", "application/octet-stream"
#: Unit of the budget → the unit in the response, which has whole numbers only, and its factor.
_WHOLE = {"wall_seconds": ("wall_ms", 1000), "model_cost": ("model_cost_micros", 1_000_000)}


async def answered(request_id: str, tool: str, result: ToolResult, contents: ContentStore) -> pb.ToolResponse:
    """The response for a result. `contents` are those of the session.

    Raises:
        Failure: `io_error`, `not_found`, `damaged`, `budget_exceeded`: the result can't be stored or read.
    """
    if result.error is not None:
        return failed(request_id, tool, result.error)
    success = pb.ToolSuccess(
        duration_ms=round(result.seconds * 1000),
        budget_consumed=int(result.budget_consumed.get("calls", 0)),
        budget=_whole(result.budget_consumed),
    )
    ref, data, success.content_type = await _content(tool, result, contents)
    if data is not None:
        success.result_hash = blake3(data).digest()
        if len(data) <= MAX_INLINE:
            success.inline_result = data
        elif ref is None:
            await asyncio.to_thread(contents.put, data)
    else:
        assert ref is not None
        success.result_hash = bytes.fromhex(ref.removeprefix("b3:"))
    return pb.ToolResponse(request_id=request_id, success=success)


async def add_strict(response: pb.ToolResponse, result: ToolResult, contents: ContentStore) -> None:
    """Add the strict form of a result to its response.

    Raises:
        Failure: `io_error`, `budget_exceeded`: it can't be stored.
    """
    # A file name can have half of a surrogate pair, which only this escapes.
    data = json.dumps(result.strict(), separators=(",", ":")).encode()
    response.strict_hash = blake3(data).digest()
    if len(data) <= MAX_INLINE:
        response.strict_result = data
    else:
        await asyncio.to_thread(contents.put, data)


async def _content(tool: str, result: ToolResult, contents: ContentStore) -> tuple[str | None, bytes | None, str]:
    """The reference of a stored result, its bytes unless they are too many for the response, and their type."""
    output: Any = result.output
    if tool == "file_read":
        small = output["size_bytes"] <= MAX_INLINE
        return output["handle"], await asyncio.to_thread(contents.get, output["handle"]) if small else None, BYTES
    if _is_stored(result):
        return output["handle"], None, BYTES if output["kind"] == "text" else JSON
    if isinstance(output, str) and len(output) * 4 > MAX_INLINE:
        text = output.encode("utf-8", "surrogatepass")
        if len(text) > MAX_INLINE:
            # A repeated request gets the whole output again, and its hash must be that of the first response.
            return None, text, BYTES
    return None, msgspec.json.encode(output, order="sorted"), JSON


def _is_stored(result: ToolResult) -> bool:
    """Whether the service has stored the output because of its size (`large_output`)."""
    output: Any = result.output
    return result.truncated and isinstance(output, Mapping) and output.keys() >= {"handle", "kind", "head", "tail"}


def _whole(used: Mapping[str, float]) -> dict[str, int]:
    whole_amounts = {}
    for unit, amount in used.items():
        name, factor = _WHOLE.get(unit, (unit, 1))
        whole_amounts[name] = math.ceil(amount * factor)
    return whole_amounts
