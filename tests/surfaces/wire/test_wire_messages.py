"""Every message survives encoding and decoding; no bytes make the server's code raise; the generated module is fresh."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.outcomes import OUTCOMES, failed
from albert_tools.surfaces.wire.responses import answered
from albert_tools.surfaces.wire.tool_table import TOOLS
from albert_tools.surfaces.wire.violations import violations
from tests.helpers.effort import examples

MESSAGES = [getattr(pb, name) for name in pb.DESCRIPTOR.message_types_by_name]
#: The server writes these, and does not check them.
RESPONSES = (pb.ToolResponse, pb.ToolSuccess)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_KINDS: dict[int, Any] = {
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
}


def values(field: Any) -> Any:
    """Values of one field."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(TEXT, st.integers(0, 2**64 - 1), max_size=4)
    if field.message_type is not None:
        one = messages(field.message_type)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        one = st.binary(max_size=40)
    elif field.type == FieldDescriptor.TYPE_STRING:
        one = TEXT
    else:
        one = _KINDS[field.cpp_type]
    return st.lists(one, max_size=4) if field.is_repeated else one


def messages(descriptor: Any) -> Any:
    """Messages of one type. Of the fields of a `oneof`, at most one is set."""
    kind = getattr(pb, descriptor.name)
    plain = [f for f in descriptor.fields if f.containing_oneof is None]
    given_fields = st.fixed_dictionaries({}, optional={f.name: values(f) for f in plain})
    choices = [st.just({})]
    for group in descriptor.oneofs:
        choices += [st.builds(lambda v, n=f.name: {n: v}, values(f)) for f in group.fields]
    return st.builds(lambda fields, one: kind(**fields, **one), given_fields, st.one_of(choices))


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda k: k.DESCRIPTOR.name)
def test_a_message_is_decoded_as_it_was_encoded(kind: Any) -> None:
    @examples(20)
    @given(message=messages(kind.DESCRIPTOR))
    def holds(message: Any) -> None:
        encoded = message.SerializeToString(deterministic=True)
        decoded = kind.FromString(encoded)
        assert decoded == message
        assert decoded.SerializeToString(deterministic=True) == encoded
        if kind not in RESPONSES:
            assert all(v.rule and v.message for v in violations(decoded))

    holds()


@examples(100)
@given(raw=st.binary(max_size=200))
def test_junk_is_refused_or_valid(raw: bytes) -> None:
    try:
        request = pb.ToolRequest.FromString(raw)
    except DecodeError:
        return
    assert violations(request) or request.WhichOneof("tool") in TOOLS


@examples(50)
@given(request=messages(pb.ToolRequest.DESCRIPTOR))
def test_every_valid_request_is_one_call(request: Any) -> None:
    tool = request.WhichOneof("tool")
    if tool is None or violations(request):
        return
    try:
        call = TOOLS[tool].call(getattr(request, tool))
        assert isinstance(call.arguments, dict)
    except Failure as failure:
        # A `tool_call` whose arguments are not JSON.
        if (tool, failure.code) != ("tool_call", "invalid_arguments"):
            raise


def test_lists_that_are_much_too_long_are_cut() -> None:
    shell = pb.ShellExec(command="x", env=["ab"] * 100_000)
    request = pb.ToolRequest(request_id="r", session_token="t", shell_exec=shell)
    found = violations(request)
    assert [v.rule for v in found] == ["max_items"] + ["one_equals"] * 1001


def test_every_tool_of_a_request_has_a_row() -> None:
    assert [f.name for f in pb.ToolRequest.DESCRIPTOR.oneofs_by_name["tool"].fields] == list(TOOLS)


def test_every_error_code_has_an_outcome() -> None:
    assert OUTCOMES.keys() == CODES.keys()
    for code, outcome in OUTCOMES.items():
        response = failed("r", "shell_exec", Failure(code, "half a \ud800 pair", retry_after_ms=7))
        assert response.WhichOneof("result") == outcome
        if outcome == "denied":
            assert response.denied.rule_id
            assert response.denied.rationale_code.startswith("SHELL_EXEC_")
        else:
            assert response.error.error_code == code
        assert pb.ToolResponse.FromString(response.SerializeToString()) == response


@examples(50)
@given(
    output=st.recursive(st.none() | st.booleans() | TEXT | st.text(max_size=5) | st.integers(), st.lists, max_leaves=8),
    used=st.dictionaries(st.sampled_from(["calls", "wall_seconds", "model_cost"]), st.floats(0, 1e6)),
)
def test_every_output_has_a_response(output: Any, used: Any) -> None:
    result = ToolResult("t", output, budget_consumed=used)
    response = asyncio.run(answered("r", "tool_call", result, None))  # type: ignore[arg-type]
    assert pb.ToolResponse.FromString(response.SerializeToString()) == response


def test_the_generated_module_is_fresh() -> None:
    generator = runpy.run_path(str(Path(__file__).parents[3] / "proto" / "generate.py"))
    for name, text in generator["generate"]().items():
        assert (generator["TARGET"] / name).read_text(encoding="utf-8") == text, "run `make proto`"


def test_the_page_lists_the_outcome_of_every_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "wire.md").read_text(encoding="utf-8")
    for code, outcome in OUTCOMES.items():
        assert f"\n| `{code}` | {outcome} |\n" in page
    for tool, row in TOOLS.items():
        assert f"\n| `{tool}` | " in page
        assert row.fields.keys().isdisjoint(row.fields.values())
