"""Results in the form of MCP: the data matches the output schema, and large outputs are links."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError, types

from albert_tools import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.mcp.results import MAX_LOG, call_result, declared_schema
from tests.surfaces.mcp.conftest import Place, said

TEXT = {"type": "string"}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}
LARGE = {"truncated": True, "handle": "b3:0", "size_bytes": 9, "kind": "text", "head": "begin", "tail": "end"}


@pytest.mark.parametrize(
    ("schema", "output", "structured"),
    [
        (TEXT, "a", {"result": "a"}),
        (POINT, {"x": 1}, {"x": 1}),
        ({"anyOf": [POINT, {"type": "null"}]}, {"x": 1}, {"result": {"x": 1}}),
        ({"anyOf": [POINT, {"type": "null"}]}, None, {"result": None}),
        (
            {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
            {"next": {"next": None}},
            {"result": {"next": {"next": None}}},
        ),
        ({"type": "array", "items": POINT}, [{"x": 1}], {"result": [{"x": 1}]}),
        (POINT, LARGE, LARGE),
        (TEXT, LARGE, LARGE),
        ({}, {"x": 1}, {"x": 1}),
        ({}, [1], {"result": [1]}),
    ],
)
def test_data_matches_the_output_schema(schema: Any, output: Any, structured: Any):
    result = call_result(ToolResult("t", output), schema)
    assert result.structured_content == structured
    declared = declared_schema(schema)
    assert (declared is None) == (schema == {})
    if declared is not None:
        Draft202012Validator.check_schema(declared)
        assert [*Draft202012Validator(declared).iter_errors(result.structured_content)] == []
        assert declared["type"] == "object"


def test_a_text_is_itself_and_other_values_are_json():
    assert said(call_result(ToolResult("t", "a\nb"), TEXT)) == "a\nb"
    assert said(call_result(ToolResult("t", [1, None, "ö"]), {})) == '[1,null,"ö"]'


def test_printed_text_follows_and_only_its_end_is_shown():
    result = call_result(ToolResult("t", 1, log="x" * MAX_LOG + "end"), {})
    assert said(result) == f"1\nprinted:\n{'x' * (MAX_LOG - 3)}end"


def test_a_failure_says_where_and_what_to_do():
    error = Failure("tool_error", "no such user", hint="look the name up", tool="inner", line=3)
    error.details = {"trail": [{"tool": "outer", "line": 2}, {"tool": "inner", "line": 3}]}
    result = call_result(ToolResult("outer", error=error, run_id="r1"), TEXT)
    assert said(result) == "tool_error: no such user (line 3 of inner)\nhint: look the name up"
    assert (result.is_error, result.structured_content) == (True, None)
    assert result.meta["albert/error"]["details"] == error.details
    assert result.meta["albert/run"] == "r1"


@pytest.mark.parametrize("output", ["a\ud800", {"a\ud800": ["\udfff"]}, ["\ud800" * 3]])
def test_half_a_character_does_not_break_the_connection(output: Any):
    result = call_result(ToolResult("t", output, log="\ud800"), {})
    assert "?" in result.model_dump_json()
    failed = call_result(ToolResult("t", error=Failure("io_error", "no file \ud800", details={"of": output})), {})
    assert "?" in failed.model_dump_json()


async def test_a_large_output_is_a_link_that_the_client_can_read(place: Place):
    source = 'def many(n: int) -> list[str]:\n    """Many lines."""\n    return [f"line {i}" for i in range(n)]\n'
    async with place.connect("http") as client:
        call = {"source": source, "arguments": {"n": 30_000}}
        result = await client.call_tool("run_source", call)
        (link,) = [block for block in result.content if isinstance(block, types.ResourceLink)]
        assert not result.is_error
        assert "the whole output has" in said(result)
        assert len(said(result)) < 10_000
        assert result.structured_content["handle"] in link.uri
        whole = (await client.read_resource(link.uri)).contents[0].text
        assert whole.startswith('["line 0","line 1"')
        assert whole.endswith('"line 29999"]')
        assert link.size == len(whole)
        part = await client.call_tool("read_result", {"handle": result.structured_content["handle"], "limit": 100})
        assert part.structured_content["content"] == whole[:100]
        text = 'def text() -> str:\n    """A long text."""\n    return "x" * 5_000_000\n'
        giant = await client.call_tool("run_source", {"source": text})
        with pytest.raises(MCPError, match="read parts of it"):
            await client.read_resource(f"albert://results/{giant.structured_content['handle']}")
