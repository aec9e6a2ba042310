"""Results, failures and stored versions: the shapes that callers and disks hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from albert_tools import Failure, ToolDefinition, ToolParameter, ToolResult
from albert_tools.engine.model.definition import Callee, Program, ToolVersion, canonical, digest, spell
from albert_tools.engine.model.failure import CODES, DENIALS
from albert_tools.engine.model.naming import did_you_mean, nearest
from albert_tools.engine.model.result import Effect


def test_a_result_that_went_well() -> None:
    result = ToolResult("t", {"a": 1}, version="v", effects=(Effect("read", "read_file", {"path": "x"}),), calls=1)
    assert result.ok
    assert result.value() == {"a": 1}
    assert result.as_dict() == {
        "ok": True,
        "tool": "t",
        "version": "v",
        "output": {"a": 1},
        "effects": [{"kind": "read", "tool": "read_file", "path": "x"}],
        "log": "",
        "seconds": 0.0,
        "calls": 1,
    }


def test_a_result_that_did_not() -> None:
    error = Failure("not_found", "there is nothing at 'x'", hint="look", tool="read_file", line=3, details={"n": 1})
    result = ToolResult("t", error=error, request_id="r")
    assert not result.ok
    with pytest.raises(Failure, match="nothing at 'x'"):
        result.value()
    told = json.loads(json.dumps(result.as_dict()))
    assert "output" not in told
    assert told["request_id"] == "r"
    assert told["error"] == {
        "code": "not_found",
        "type": "NotFound",
        "category": "exception",
        "message": "there is nothing at 'x'",
        "hint": "look",
        "retryable": False,
        "retry_after_ms": None,
        "rule": None,
        "tool": "read_file",
        "source": {"line": 3},
        "details": {"n": 1},
    }


def test_codes() -> None:
    assert set(CODES) >= DENIALS
    assert {code for code in CODES if Failure(code, "x").denied} == DENIALS
    assert Failure("timeout", "x").as_dict()["source"] is None
    with pytest.raises(AssertionError, match="unknown failure code 'nope'"):
        Failure("nope", "x")


def test_spelling() -> None:
    assert spell({"const": "a"}) == '"a"'
    assert spell({"type": "object", "additionalProperties": {"type": "integer"}}) == "object of integer"
    assert spell({}) == "any"


def version() -> ToolVersion:
    definition = ToolDefinition(
        "t", "Do.", (ToolParameter("a", {"type": "string"}),), {}, ("read",), kind="composite", depth=1
    )
    program = Program("t", "t", "def t(a):\n    return a", ("json",), (1, 3))
    return ToolVersion(definition, "source\n", program, (Callee("read_file", "primitive", "0" * 64),)).named()


def test_a_stored_version_comes_back_as_it_was() -> None:
    made = version()
    assert ToolVersion.from_document(json.loads(json.dumps(made.to_document()))) == made
    assert made.version == made.definition.version == digest(made.content())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"description": "Other."}, "does not match the hash"),
        ({"calls": {}}, "does not match the hash"),
        ({"lowered": ["def t(a): return 2"]}, "does not match the hash"),
        ({"parameters": 3}, "is not a tool version"),
        ({"source": None}, "is not a tool version"),
        ({"calls": []}, "is not a tool version"),
    ],
)
def test_a_stored_version_is_proved(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ToolVersion.from_document({**version().to_document(), **change})
    with pytest.raises(ValueError, match="is not a tool version"):
        ToolVersion.from_document({})


def test_canonical_text() -> None:
    assert canonical({"b": [1, None], "a": "ä"}) == '{"a":"ä","b":[1,null]}'.encode()


def test_nearest_names() -> None:
    assert nearest("readfile", ["write_file", "read_file"]) == "read_file"
    assert nearest("raed_file", ["write_file", "read_file"]) == "read_file"
    assert nearest("zzz", ["write_file"]) is None
    assert did_you_mean("Bash", ["bash"]) == "; did you mean 'bash'?"
    assert did_you_mean("Bash", []) == ""
