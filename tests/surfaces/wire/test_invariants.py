"""The invariants of the wire protocol, by number. A row has requests on the bound, and requests beyond it with their faults."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from blake3 import blake3

from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.violations import violations
from tests.surfaces.wire.conftest import Wire

HASH = blake3(b"").digest()
#: A valid message of each tool.
VALID: dict[str, dict[str, Any]] = {
    "file_read": {"path": "a"},
    "file_write": {"path": "a", "content": b"x"},
    "file_edit": {"path": "a", "old_content": "x", "new_content": "y"},
    "shell_exec": {"command": "true"},
    "git_operation": {"operation": "STATUS"},
    "inference_call": {"provider": "p", "model": "m", "prompt_hash": HASH},
    "artifact_publish": {"artifact_id": "i", "content_hash": HASH, "category": "c"},
    "tool_call": {"name": "current_time"},
}
MESSAGES = {
    "file_read": pb.FileRead,
    "file_write": pb.FileWrite,
    "file_edit": pb.FileEdit,
    "shell_exec": pb.ShellExec,
    "git_operation": pb.GitOperation,
    "inference_call": pb.InferenceCall,
    "artifact_publish": pb.ArtifactPublish,
    "tool_call": pb.ToolCall,
}
MIB = 1024 * 1024
#: 256 characters of two bytes.
LONG = "é" * 256


class Row(NamedTuple):
    """`tool` is None for a field of the request itself. `bad` maps a violation ``field rule`` to the values that cause it."""

    tool: str | None
    good: list[dict[str, Any]]
    bad: list[tuple[dict[str, Any], str]]


def length(tool: str | None, field: str, most: int, least: int = 0, character: str = "é") -> Row:
    """A row about the characters of a field."""
    place = f"{tool}.{field}" if tool else field
    bad = [({field: character * (most + 1)}, f"{place} max_length")]
    if least:
        bad.append(({field: ""}, f"{place} required"))
    return Row(tool, [{field: character * most}, {field: "x" * least}], bad)


def size(tool: str, field: str, most: int, least: int = 0) -> Row:
    """A row about the bytes of a text."""
    bad = [({field: "é" * (most // 2) + "x"}, f"{tool}.{field} max_bytes")]
    if least:
        bad.append(({field: ""}, f"{tool}.{field} required"))
    return Row(tool, [{field: "é" * (most // 2)}, {field: "x" * least}], bad)


def maximum(tool: str, field: str, most: int) -> Row:
    return Row(tool, [{field: most}, {field: 0}], [({field: most + 1}, f"{tool}.{field} maximum")])


def items(tool: str, field: str, entry: str) -> Row:
    return Row(tool, [{field: [entry] * 1000}], [({field: [entry] * 1001}, f"{tool}.{field} max_items")])


def entries(tool: str, field: str) -> Row:
    """A row about entries ``KEY=VALUE``."""
    place = f"{tool}.{field}[1]"
    return Row(
        tool,
        [{field: ["a=b", "A=", "a=" + "é" * 16383]}],
        [
            ({field: ["a=b", "ab"]}, f"{place} one_equals"),
            ({field: ["a=b", "a=b=c"]}, f"{place} one_equals"),
            ({field: ["a=b", "a=" + "é" * 16384]}, f"{place} max_bytes"),
        ],
    )


def digest(tool: str, field: str, may_be_empty: bool = False) -> Row:
    bad = [({field: b"x" * n}, f"{tool}.{field} length") for n in ((31, 33) if may_be_empty else (0, 31, 33))]
    return Row(tool, [{field: HASH}, *([{field: b""}] if may_be_empty else [])], bad)


OPERATIONS = "CLONE FETCH PULL DIFF COMMIT PUSH STATUS LOG BRANCH CHECKOUT MERGE REBASE ADD RESET STASH TAG REMOTE SHOW"
TRAVERSAL = ("..", "../a", "a/..", "a/../b")
HARMLESS = ("..a", "a..b", "a/...", "./a")

ROWS: dict[int, Row] = {
    1: length(None, "request_id", 256, 1),
    2: length(None, "session_token", 256, 1),
    3: length(None, "dedupe_key", 256),
    4: Row(None, [], [({"file_read": None}, "tool required")]),
    5: length("file_read", "path", 4096, 1),
    6: Row("file_read", [{"path": "a b"}], [({"path": "a\0b"}, "file_read.path nul")]),
    7: Row(
        "file_read",
        [{"path": p} for p in HARMLESS],
        [({"path": p}, "file_read.path path_traversal") for p in TRAVERSAL],
    ),
    8: maximum("file_read", "limit", 1_073_741_824),
    9: length("file_write", "path", 4096, 1),
    10: Row(
        "file_write",
        [{"path": p} for p in HARMLESS],
        [({"path": p}, "file_write.path path_traversal") for p in TRAVERSAL]
        + [({"path": "\0"}, "file_write.path nul")],
    ),
    11: Row(
        "file_write",
        [{"content": bytes(104_857_600)}, {"content": b""}],
        [({"content": bytes(104_857_601)}, "file_write.content max_bytes")],
    ),
    12: Row(
        "file_write",
        [{"create_only": True}, {"append": True}],
        [({"create_only": True, "append": True}, "file_write excludes")],
    ),
    13: length("file_edit", "path", 4096, 1),
    14: size("file_edit", "old_content", 10 * MIB, 1),
    15: size("file_edit", "new_content", 10 * MIB),
    16: size("shell_exec", "command", MIB, 1),
    17: length("shell_exec", "cwd", 4096),
    18: maximum("shell_exec", "timeout_ms", 3_600_000),
    19: items("shell_exec", "env", "a=b"),
    20: entries("shell_exec", "env"),
    21: Row(
        "git_operation",
        [{"operation": o} for o in OPERATIONS.split()],
        [({"operation": o}, "git_operation.operation enum") for o in ("", "status", "GC")],
    ),
    22: items("git_operation", "args", "-q"),
    23: Row(
        "git_operation",
        [{"args": ["", "é" * 16384]}],
        [({"args": ["", "é" * 16384 + "x"]}, "git_operation.args[1] max_bytes")],
    ),
    24: length("git_operation", "cwd", 4096),
    25: length("inference_call", "provider", 256, 1),
    26: length("inference_call", "model", 256, 1),
    27: digest("inference_call", "prompt_hash"),
    28: maximum("inference_call", "max_tokens", 1_000_000),
    29: digest("inference_call", "system_prompt_hash", may_be_empty=True),
    30: length("artifact_publish", "artifact_id", 256, 1),
    31: digest("artifact_publish", "content_hash"),
    32: length("artifact_publish", "category", 256, 1),
    33: items("artifact_publish", "metadata", "a=b"),
    34: entries("artifact_publish", "metadata"),
}


def request(tool: str | None, changes: dict[str, Any], token: str = "t") -> pb.ToolRequest:
    """A valid request with some fields changed."""
    name = tool or "file_read"
    fields: dict[str, Any] = {"request_id": "r", "session_token": token, name: MESSAGES[name](**VALID[name])}
    if tool is None:
        fields |= changes
    else:
        fields[name] = MESSAGES[name](**VALID[name] | changes)
    return pb.ToolRequest(**fields)


def test_all_invariants_have_a_row() -> None:
    assert list(ROWS) == list(range(1, 35))


@pytest.mark.parametrize("number", ROWS, ids="I{}".format)
def test_the_bound_itself_is_valid(number: int) -> None:
    row = ROWS[number]
    for changes in row.good:
        assert violations(request(row.tool, changes)) == []


@pytest.mark.parametrize("number", ROWS, ids="I{}".format)
def test_beyond_the_bound(wire: Wire, number: int) -> None:
    row = ROWS[number]
    for changes, violation in row.bad:
        sent = request(row.tool, changes, wire.token)
        response = wire.send(sent.SerializeToString())
        assert response.denied.rule_id == "invalid_request"
        assert [f"{v.field} {v.rule}" for v in response.denied.violations] == [violation]
        assert response.request_id == sent.request_id[:256]


def test_only_one_tool_can_be_set(wire: Wire) -> None:
    # Of several tools in the bytes, Protocol Buffers keep the last one.
    one, other = request("file_read", {}), pb.ToolRequest(tool_call=pb.ToolCall(name="x"))
    parsed = pb.ToolRequest.FromString(one.SerializeToString() + other.SerializeToString())
    assert parsed.WhichOneof("tool") == "tool_call"


def test_every_tool_has_a_valid_message() -> None:
    names = [field.name for field in pb.ToolRequest.DESCRIPTOR.oneofs_by_name["tool"].fields]
    assert list(VALID) == names
    assert [violations(request(name, {})) for name in names] == [[]] * len(names)
