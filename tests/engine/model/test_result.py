"""Invocations, results, failures and stored versions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, get_args

import pytest

from albert_tools import Failure, ToolDefinition, ToolInvocation, ToolParameter, ToolResult
from albert_tools.engine.model.definition import Callee, Program, ToolVersion, canonical, digest, spell
from albert_tools.engine.model.error_codes import CODES, DENIALS, FailureCategory
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.engine.model.result import Effect


def test_a_result_with_an_output() -> None:
    result = ToolResult("t", {"a": 1}, version="v", effects=(Effect("read", "read_file", {"path": "x"}),), calls=1)
    assert result.ok
    assert result.value() == {"a": 1}
    assert result.as_dict() == {
        "ok": True,
        "tool": "t",
        "version": "v",
        "output": {"a": 1},
        "policy": result.policy,
        "effects": [{"kind": "read", "tool": "read_file", "path": "x"}],
        "log": "",
        "seconds": 0.0,
        "calls": 1,
    }


def test_a_result_with_an_error() -> None:
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
    assert {code.category for code in CODES.values()} == set(get_args(FailureCategory))
    with pytest.raises(AssertionError, match="unknown failure code 'nope'"):
        Failure("nope", "x")


@pytest.mark.parametrize(
    ("code", "kind", "category", "denied"),
    [
        ("permission_denied", "PolicyDenied", "permission", True),
        ("suspended", "Suspended", "permission", False),
        ("rate_limited", "RateLimited", "exhaustion", True),
        ("budget_exceeded", "BudgetExceeded", "exhaustion", True),
        ("invalid_arguments", "ValidationFailed", "validation", False),
        ("timeout", "Timeout", "timeout", False),
        ("diverged", "Diverged", "exception", False),
        ("unknown_outcome", "UnknownOutcome", "exception", False),
    ],
)
def test_the_kind_and_category_of_a_code(code: str, kind: str, category: str, denied: bool) -> None:
    failure = Failure(code, "x")
    assert (failure.kind, failure.category, failure.denied) == (kind, category, denied)
    assert (failure.as_dict()["type"], failure.as_dict()["category"]) == (kind, category)


def test_the_strict_form_has_all_keys() -> None:
    bare = ToolResult("read_file", "x").strict()
    assert bare["tool"] == bare["action"] == "read_file"
    assert (bare["budget_consumed"], bare["trace_id"], bare["span_id"]) == ({}, None, None)
    result = ToolResult(
        "read_file",
        "x",
        effects=(
            Effect("read", "read_file", {"path": "a", "size_bytes": 1, "sha256": "0"}),
            Effect("execute", "bash", {}),
        ),
        family="filesystem",
        budget_consumed={"calls": 1, "wall_seconds": 0.5},
        trace_id="ab" * 16,
        span_id="cd" * 8,
    )
    strict = result.strict()
    assert (strict["tool"], strict["action"]) == ("filesystem", "read_file")
    assert strict["effects"] == [
        {"path": "a", "size_bytes": 1, "sha256": "0", "kind": "read", "tool": "read_file"},
        {"path": None, "size_bytes": None, "sha256": None, "kind": "execute", "tool": "bash"},
    ]
    for told in (strict, result.as_dict()):
        assert told["budget_consumed"] == {"calls": 1, "wall_seconds": 0.5}
        assert (told["trace_id"], told["span_id"]) == ("ab" * 16, "cd" * 8)


def test_spelling() -> None:
    assert spell({"const": "a"}) == 'Literal["a"]'
    assert spell({"type": "object", "additionalProperties": {"type": "integer"}}) == "dict[str, int]"
    assert spell({}) == "Any"


def version() -> ToolVersion:
    given, known = (ToolParameter("a", {"type": "string"}),), Manifest(("read",))
    definition = ToolDefinition("t", "Do.", given, {}, ("read",), kind="composite", depth=1, manifest=known)
    program = Program("t", "t", "def t(a):\n    return a", ("json",), (1, 3))
    return ToolVersion(definition, "source\n", program, (Callee("read_file", "primitive", "0" * 64),)).named()


def test_a_stored_version_is_read_back_unchanged() -> None:
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
def test_a_changed_stored_version_is_refused(change: dict[str, Any], said: str) -> None:
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


@pytest.mark.parametrize("name", ["tool", "version", "session", "request_id", "trace", "dedupe_key"])
def test_the_fields_of_an_invocation_are_bounded(name: str) -> None:
    def rules(length: int) -> list[str]:
        fields: dict[str, Any] = {"tool": "t", "arguments": {}, name: "a" * length}
        return [v["rule"] for v in ToolInvocation(**fields).violations()]

    most = 512 if name == "trace" else 256
    assert rules(most) == []
    assert rules(most + 1) == ["max_length"]
    assert rules(0) == ([] if name == "dedupe_key" else ["min_length"])


def test_the_models_load_no_pydantic() -> None:
    code = (
        "import sys, albert_tools.engine.model.result, albert_tools.engine.model.parameter_types; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"pydantic", "pydantic_core", "annotated_types"} & set(loaded.split())
