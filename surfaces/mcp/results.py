"""A tool's result as MCP has it: texts for the model, and data for the client.

The data of a successful call matches the tool's output schema. MCP wants an object, so any other value is the field ``result`` of
one. In place of a large output the caller gets its handle, which the output schema allows too. A failed call is a text with its
hint; the failure as data is in ``_meta``, because some clients check the data of a failed call against the output schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types

from albert_tools.engine.agent.texts import failure_text, output_text, plain
from albert_tools.engine.agent.tool_specs import output_schema
from albert_tools.engine.model.definition import Json, Schema
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.mcp.plain_schemas import without_type_lists

#: Keys of ``_meta``: the failure as data, and the run, by which a person finds the call in the record.
ERROR, RUN = "albert/error", "albert/run"
#: The address of a stored output.
RESULT_URI = "albert://results/"
#: The most characters of printed text that a result shows: its end.
MAX_LOG = 4000
#: The form of a large output, see `engine.pipeline.large_output`.
_LARGE: Schema = {
    "properties": {"truncated": {"const": True}, "handle": {"type": "string"}, "size_bytes": {"type": "integer"}},
    "required": ["truncated", "handle", "size_bytes", "kind", "head", "tail"],
}


def declared_schema(result: Schema) -> Schema | None:
    """The output schema of a tool with this result; None if nothing is known about the result."""
    if not result:
        return None
    own = without_type_lists(output_schema(result))
    form = {name: part for name, part in own.items() if name != "$defs"}
    shared = {"$defs": own["$defs"]} if "$defs" in own else {}
    return {"type": "object", "anyOf": [form, _LARGE], **shared}


def call_result(result: ToolResult, declared: Schema) -> types.CallToolResult:
    """The answer to a call of a tool whose result has the schema `declared`."""
    meta: dict[str, Any] = {RUN: result.run_id} if result.run_id else {}
    content: list[types.ContentBlock]
    structured = None
    if result.error is not None:
        content = [_text(failure_text(result.error))]
        meta[ERROR] = plain(result.error.as_dict())
    else:
        output = plain(result.output)
        content, structured = _output(output), _structured(output, declared)
    if result.log:
        content.append(_text(plain(f"printed:\n{result.log[-MAX_LOG:]}")))
    return types.CallToolResult(
        content=content, structured_content=structured, is_error=result.error is not None, _meta=meta or None
    )


def _structured(output: Json, declared: Schema) -> dict[str, Json]:
    is_object = isinstance(output, dict) and (not declared or declared.get("type") == "object")
    return output if is_object or _is_large(output) else {"result": output}


def _is_large(output: Json) -> bool:
    """Whether an output is the form of a large output."""
    return isinstance(output, Mapping) and output.get("truncated") is True and set(_LARGE["required"]) == set(output)


def _output(output: Json) -> list[types.ContentBlock]:
    handle = output.get("handle") if isinstance(output, Mapping) and output.get("truncated") is True else None
    if not isinstance(handle, str):
        return [_text(output_text(output))]
    size = output.get("size_bytes")
    link = types.ResourceLink(
        uri=RESULT_URI + handle,
        name="the whole output",
        description=f"`read_result` reads parts of it: its handle is {handle}",
        mime_type="application/json" if output.get("kind") == "json" else "text/plain",
        size=size if type(size) is int else None,
    )
    if not _is_large(output):
        return [_text(output_text(output)), link]
    left_out = f"… the whole output has {output['size_bytes']:,} bytes; read_result(handle={handle!r}) reads it …"
    return [_text(f"{output['head']}\n{left_out}\n{output['tail']}"), link]


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
