"""What the service accepts of a judging process that lies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from albert_tools.engine.judging.accept import checked_source
from albert_tools.engine.judging.answers import Answer, Unbelievable
from albert_tools.engine.model.definition import Callee, ToolDefinition
from tests.helpers.harness import catalog

SOURCE = 'def work(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path)\n'

PARAMETER: dict[str, Any] = {
    "name": "path",
    "schema": {"type": "string"},
    "description": "",
    "required": True,
    "default": None,
}
CALL: dict[str, Any] = {"tool": "read_file", "effects": ["read"], "uses": {"path": "read"}, "source": "file"}
TOOL: dict[str, Any] = {
    "name": "work",
    "description": "Read.",
    "parameters": [PARAMETER],
    "result": {"type": "string"},
    "timeout": 600.0,
    "calls": ["read_file"],
    "imports": [],
    "examples": [],
    "manifest": {"effects": ["read"], "calls": [CALL]},
}
EXAMPLE = {
    **{key: {} for key in ("arguments", "files", "expect_files", "stubs")},
    **{"line": 1, "has_result": False, "result": None, "raises": None},
}
FINDING = {
    "code": "unused-result",
    "severity": "error",
    "message": "",
    "hint": None,
    "span": [1, 1, 1, 1],
    "fix": None,
}
KNOWN: dict[str, ToolDefinition | None] = {
    name: catalog().get(name) for name in ("read_file", "http_request", "nothing")
}
for _part in ("read", "crm.read_file"):
    _reader = KNOWN["read_file"]
    assert _reader is not None
    KNOWN[_part] = replace(_reader, name=_part)


def accepted(answer: dict[str, Any]) -> Any:
    return checked_source(msgspec.convert(answer, Answer), SOURCE, KNOWN)


def test_pins_effects_and_depth_come_from_the_catalogue() -> None:
    found = accepted({"findings": [], "tool": TOOL, "program": {"lowered": "def work(path): ...\n", "lines": [1]}})
    reader = KNOWN["read_file"]
    assert reader is not None
    assert found.calls == (Callee("read_file", "primitive", reader.version),)
    assert (found.definition.effects, found.definition.category, found.definition.risk) == (
        ("read",),
        "read_only",
        "low",
    )
    assert (found.definition.depth, found.definition.kind, found.definition.by_hash) == (1, "composite", ())
    assert (found.program.name, found.program.entry) == ("work", "work")
    assert accepted({"findings": [FINDING]}) is None


RECURSIVE = {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "read_file"},
        {"name": "another"},
        {"name": "path: str"},
        {"name": "__import__"},
        {"calls": ["http_request"]},
        {"calls": ["nothing"]},
        {"calls": ["never_asked"]},
        # A part of another name, and the last part of a name.
        {"calls": ["read_file", "read"]},
        {"calls": ["read_file", "crm.read_file"]},
        # The manifest agrees with this call, but a person finds it nowhere in the source.
        {"calls": ["read_file", "http_request"], "manifest": {"effects": ["read", "network"], "calls": [CALL]}},
        {"imports": ["os"]},
        {"manifest": {"effects": ["read"], "calls": [{"tool": "http_request", "effects": ["network"]}]}},
        {"manifest": {"effects": ["read"], "calls": [{**CALL, "effects": []}]}},
        # A reader would not find the path.
        {"manifest": {"effects": ["read"], "calls": [{**CALL, "uses": {}}]}},
        {"manifest": {"effects": ["read"], "calls": [{**CALL, "arguments": {"*": {"open": True}}}]}},
        {"manifest": {"effects": ["read"], "calls": [{**CALL, "source": ""}]}},
        {"manifest": {"effects": []}},
        # These can't be stored.
        {"manifest": {**TOOL["manifest"], "result": {"alternatives": [float("inf")]}}},
        {"manifest": {**TOOL["manifest"], "result": {"fields": {"\ud800": {}}}}},
        {"parameters": [{**PARAMETER, "required": False, "default": 2**64}]},
        {"examples": [EXAMPLE] * 51},
        {"parameters": [PARAMETER, PARAMETER]},
        {"parameters": [{**PARAMETER, "name": "a b"}]},
        # The record would only have a hash of this argument.
        {"parameters": [{**PARAMETER, "schema": {"type": "string", "x-recorded": "hash"}}]},
        {"result": {"type": "string", "pattern": "(a*)*b"}},
        {"result": {"type": "string", "format": "albert-path"}},
        {"result": {"type": "nonsense"}},
        {"result": {"items": {"title": "x"}}},
        {"result": {"prefixItems": {"type": "string"}}},
        {"result": {"properties": ["a"]}},
        {"result": {"$ref": "#/$defs/A"}},
        {"result": {"$ref": "#/properties/a"}},
        {"result": {"items": {"type": "array", "$defs": {}}}},
        # References in a circle would never end.
        {"result": {"items": RECURSIVE, "$defs": {"A": RECURSIVE}}},
        {"result": {"items": RECURSIVE, "$defs": {"A": {"anyOf": [RECURSIVE]}}}},
        {"result": {**RECURSIVE, "$defs": {"A": {"type": "object"}}}},
    ],
    ids=str,
)
def test_an_answer_that_contradicts_the_source_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Unbelievable):
        accepted({"findings": [], "tool": {**TOOL, **changed}})


def test_a_schema_of_any_depth_is_refused_without_recursion() -> None:
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"items": schema}
    with pytest.raises(Unbelievable):
        accepted({"findings": [], "tool": {**TOOL, "result": schema}})


def test_errors_and_a_tool_exclude_each_other() -> None:
    for answer in ({"findings": [FINDING], "tool": TOOL}, {"findings": []}):
        with pytest.raises(Unbelievable):
            accepted(answer)


@pytest.mark.parametrize(
    "changed",
    [{"timeout": 0}, {"timeout": 1e9}, {"effects": ["read"]}, {"examples": [{}]}, {"calls": "a"}, {"parameters": [{}]}],
    ids=str,
)
def test_a_tool_of_another_form_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        accepted({"findings": [], "tool": {**TOOL, **changed}})
