"""The strict form of real results, validated against its JSON Schema by the library jsonschema.

For every family there is a success, a denial and a failure. If the family can cut results, there is also a truncated one. An
unknown tool, a missing workspace and a file of another encoding have one result each.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from albert_tools import SyncToolService, ToolResult
from tests.helpers.governed import Governed
from tests.helpers.network import answer, raw
from tests.helpers.provider import providing

_TEXT_OR_NULL = {"type": ["string", "null"]}

#: The JSON Schema of the strict form. It allows no other fields.
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "timestamp_utc": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"},
        "ok": {"type": "boolean"},
        "tool": {"type": "string", "minLength": 1},
        "action": {"type": "string", "minLength": 1},
        "latency_ms": {"type": "number", "minimum": 0},
        "policy": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "allowed": {"type": "boolean"},
                "rule_id": _TEXT_OR_NULL,
                "rationale_code": _TEXT_OR_NULL,
                "message": {"type": "string"},
            },
            "required": ["allowed", "rule_id", "rationale_code", "message"],
            "if": {"properties": {"allowed": {"const": False}}},
            "then": {
                "properties": {
                    "rule_id": {"type": "string", "minLength": 1},
                    "rationale_code": {"type": "string", "minLength": 1},
                    "message": {"minLength": 1},
                }
            },
            "else": {"properties": {"message": {"const": ""}}},
        },
        "output": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"value": {}, "truncated": {"type": "boolean"}},
            "required": ["value", "truncated"],
        },
        "effects": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": _TEXT_OR_NULL,
                    "size_bytes": {"type": ["integer", "null"], "minimum": 0},
                    "sha256": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
                    "kind": {"enum": ["read", "write", "delete", "execute", "network", "secret"]},
                    "tool": {"type": "string", "minLength": 1},
                },
                "required": ["path", "size_bytes", "sha256", "kind", "tool"],
            },
        },
        "error": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {"type": {"type": "string", "minLength": 1}, "message": {"type": "string", "minLength": 1}},
            "required": ["type", "message"],
        },
        "result_hash": {"type": ["string", "null"], "pattern": "^b3:[0-9a-f]{64}$"},
        "request_id": _TEXT_OR_NULL,
        "budget_consumed": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        "trace_id": {"type": ["string", "null"], "pattern": "^[0-9a-f]{32}$"},
        "span_id": {"type": ["string", "null"], "pattern": "^[0-9a-f]{16}$"},
        "run_id": _TEXT_OR_NULL,
        "metadata": {"type": "object"},
    },
    "if": {"properties": {"ok": {"const": True}}},
    "then": {
        "properties": {
            "error": {"type": "null"},
            "result_hash": {"type": "string"},
            "policy": {"properties": {"allowed": {"const": True}}},
        }
    },
    "else": {
        "properties": {
            "error": {"type": "object"},
            "result_hash": {"type": "null"},
            # A command that ran out of time leaves a part of its output.
            "output": {"properties": {"value": {"type": "null"}}},
        }
    },
}
SCHEMA["required"] = list(SCHEMA["properties"])

#: More bytes than a command or a saved tool returns at once.
LARGE = 100_000
AWAY = {"forbidden_paths": ["away"]}
SOURCE = '''
def shown(size: int) -> str:
    """Give a text.

    Args:
        size: Its length; 0 fails, a negative one reads what is forbidden.
    """
    if size < 0:
        return tools.read_file(path="away/x")
    if size == 0:
        raise ToolError("nothing to show")
    return "x" * size
'''


class Call(NamedTuple):
    """A call, and the kind of result that it should have."""

    family: str
    kind: str
    tool: str
    arguments: dict[str, Any]


def calls(url: str) -> Iterator[Call]:
    """Every call, by family. Artifacts and models are read in requested parts, so their results are never truncated."""
    for family, kinds in {
        "files": {
            "success": ("file_info", {"path": "a.txt"}),
            "denial": ("read_file", {"path": "away/x"}),
            "failure": ("read_file", {"path": "missing"}),
            "encoding error": ("read_file", {"path": "latin.txt"}),
            "truncated": ("find_files", {"pattern": "*", "limit": 1}),
        },
        "shell": {
            "success": ("bash", {"command": "cat a.txt"}),
            "denial": ("bash", {"command": "rm a.txt"}),
            "failure": ("bash", {"command": "sleep 600", "timeout": 1}),
            "truncated": ("run_program", {"argv": ["seq", str(LARGE)]}),
        },
        "git": {
            "success": ("git", {"operation": "LOG"}),
            "denial": ("git", {"operation": "PUSH"}),
            "failure": ("git_status", {"cwd": "missing"}),
            "truncated": ("git", {"operation": "SHOW", "args": ["HEAD:large.txt"]}),
        },
        "web": {
            "success": ("http_request", {"url": f"{url}/"}),
            "denial": ("fetch_url", {"url": "https://forbidden.example/"}),
            "failure": ("http_request", {"url": "http://127.0.0.1:1/"}),
            "truncated": ("http_request", {"url": f"{url}/large"}),
        },
        "system": {
            "success": ("random_bytes", {"count": 8}),
            "denial": ("sleep", {"seconds": 0}),
            "failure": ("read_system_logs", {"pattern": "("}),
            "truncated": ("read_system_logs", {"lines": 1}),
        },
        "code": {
            "success": ("run_linter", {"linter": "ruff", "args": ["good.py"]}),
            "denial": ("run_linter", {"linter": "ruff", "cwd": "away"}),
            "failure": ("run_tests", {"cwd": "missing"}),
            "truncated": ("run_linter", {"linter": "ruff", "args": ["bad.py"]}),
        },
        "artifacts": {
            "success": ("publish_artifact", {"id": "a", "category": "text", "path": "a.txt"}),
            "denial": ("publish_artifact", {"id": "b", "category": "text", "path": "away/x"}),
            "failure": ("get_artifact", {"id": "missing"}),
        },
        "models": {
            "success": ("inference", {"provider": "here", "model": "plain", "prompt": "Say hello."}),
            "denial": ("inference", {"provider": "there", "model": "plain", "prompt": "Say hello."}),
            "failure": ("inference", {"provider": "here", "model": "broken", "prompt": "Say hello."}),
        },
        "saved tools": {
            "success": ("shown", {"size": 3}),
            "denial": ("shown", {"size": -1}),
            "failure": ("shown", {"size": 0}),
            "truncated": ("shown", {"size": 20 * LARGE}),
            "unknown tool": ("shwon", {}),
        },
    }.items():
        for kind, (tool, arguments) in kinds.items():
            yield Call(family, kind, tool, arguments)


def rules(log: Path, provider: str) -> dict[str, Any]:
    """Rules under which every kind of result occurs."""
    ours = ["read_file", "publish_artifact", "run_linter"]
    return {
        "allow": ["read_system_logs"],
        "deny": ["sleep"],
        "categories": {"execute": {"allowed_in_modes": ["NORMAL"]}},
        "tools": {
            **dict.fromkeys(ours, AWAY),
            "bash": {"forbidden_commands": ["rm *"]},
            "git": {"forbidden_operations": ["PUSH"]},
            "http_request": {"allowed_hosts": ["127.0.0.1"]},
            "fetch_url": {"forbidden_hosts": ["forbidden.example"]},
        },
        "primitives": {
            "read_system_logs": {"files": [str(log)]},
            "inference": {"providers": {"here": {"base_url": provider}}},
        },
    }


def fill(work: Path) -> None:
    """Make a repository with the files that the calls need."""
    (work / "away").mkdir()
    (work / "latin.txt").write_bytes(b"caf\xe9")
    lines = "".join(f"import missing{n}\n" for n in range(2000))
    for name, text in {
        "a.txt": "one\n",
        "away/x": "secret",
        "large.txt": "line\n" * LARGE,
        "good.py": "x = 1\n",
        "bad.py": lines,
    }.items():
        (work / name).write_text(text)
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "a.txt", "large.txt"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)


def results() -> Iterator[tuple[Call, ToolResult]]:
    """Make each call."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())).resolve()
        large = answer(b"x" * 3_000_000)
        server = stack.enter_context(raw(lambda head, c: c.sendall(large if b"/large" in head else answer(b"hello"))))
        provider = stack.enter_context(providing())
        log = folder / "syslog"
        log.write_text("no known form\n" * 3)
        home = Governed(folder, governance=rules(log, provider.base_url))
        stack.callback(home.service.close)
        fill(home.work)
        home.service.define(SOURCE)
        for call in calls(f"http://127.0.0.1:{server.port}"):
            yield call, home.service.invoke(call.tool, call.arguments)
        call = Call("files", "missing root", "read_file", {"path": "a.txt"})
        with SyncToolService.open(home=home.home, workspace=folder / "missing") as rootless:
            yield call, rootless.invoke(call.tool, call.arguments)


def faults(call: Call, result: ToolResult) -> list[str]:
    """Return the problem of a result: its form, or its kind."""
    from jsonschema import Draft202012Validator

    strict = result.strict()
    found = [
        f"{'.'.join(map(str, e.path))}: {e.message}"[:200] for e in Draft202012Validator(SCHEMA).iter_errors(strict)
    ]
    kinds = {
        "success": result.ok and not result.truncated,
        "denial": result.error is not None and result.error.denied,
        "failure": result.error is not None and not result.error.denied,
        "truncated": strict["output"]["truncated"],
    }
    # The remaining kinds are errors with one code each.
    codes = {
        "encoding error": "encoding_error",
        "unknown tool": "unknown_tool",
        "missing root": "governance_unavailable",
    }
    kinds |= {kind: result.error is not None and result.error.code == code for kind, code in codes.items()}
    if not kinds[call.kind]:
        found.append(f"it is not a {call.kind}: {result.error or str(result.output)[:100]}")
    return found
