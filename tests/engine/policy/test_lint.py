"""Lint finds rules that can't have the effect that their text suggests."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.engine.model.manifest import Declared
from albert_tools.engine.policy.lint import lint
from albert_tools.engine.policy.settings import read_governance

_OPERATION = Declared({"op": "operation"})
TOOLS = [
    ToolDefinition("read_file", "", (), {}, ("read",)),
    ToolDefinition("http_request", "", (), {}, ("network",)),
    ToolDefinition("bash", "", (), {}, ("execute",), declared=Declared({"command": "shell"})),
    ToolDefinition("tests", "", (), {}, ("execute",), timeout=3600),
    ToolDefinition("build", "", (), {}, ("read", "write", "execute")),
    ToolDefinition("vcs", "", (ToolParameter("op", {"enum": ["push", "log"]}),), {}, declared=_OPERATION, effects=()),
    ToolDefinition("free", "", (ToolParameter("op", {"type": "string"}),), {}, declared=_OPERATION, effects=("write",)),
    ToolDefinition("put", "", (), {}, ("write",), declared=Declared({"path": "write"})),
    ToolDefinition("calm", "", (), {}, (), allowed_modes=("NORMAL",)),
]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"tools": {"read_file": {"allowed_in_modes": ["NORMAL"], "forbidden_paths": ["x"]}}, "deny": ["mine"]}, []),
        (
            {"allow": ["htp_request"]},
            ["allow.htp_request: there is no primitive named 'htp_request'; did you mean 'http_request'?"],
        ),
        ({"tools": {"read_file": {"category": "read_only"}}}, []),
        (
            {"tools": {"bash": {"category": "read_only"}}},
            ["tools.bash.category: the rules on read_only apply too; those on execute remain"],
        ),
        ({"tools": {"nothing": {}}}, ["tools.nothing: there is no tool named 'nothing'"]),
        ({"allow": ["calm"], "deny": ["calm"]}, ["allow.calm: it has no effect: `deny` lists the tool too"]),
        (
            {"tools": {"read_file": {"allowed_in_modes": ["NORMAL", "ALERT"], "forbidden_in_modes": ["ALERT"]}}},
            ["tools.read_file.allowed_in_modes: ALERT has no effect here: `forbidden_in_modes` lists it too"],
        ),
        (
            {"tools": {"read_file": {"forbidden_in_modes": ["NORMAL"]}}},
            ["tools.read_file: no mode is allowed, so every call is denied; write `deny` instead"],
        ),
        (
            {"tools": {"calm": {"allowed_in_modes": ["ALERT"]}}},
            ["tools.calm.allowed_in_modes: the tool's definition doesn't permit ALERT"],
        ),
        (
            {"tools": {"calm": {"allowed_paths": ["x"]}}},
            ["tools.calm.allowed_paths: denied until this is corrected: calm touches no files"],
        ),
        (
            {"tools": {"calm": {"forbidden_commands": ["git push *"]}}},
            ["tools.calm.forbidden_commands: denied until this is corrected: calm takes no commands"],
        ),
        (
            {"tools": {"bash": {"allowed_commands": ["ls *", "awk '{print $1}' *", "ls | wc", "ls > x"]}}},
            [
                "tools.bash.allowed_commands: 'ls > x' matches nothing: a pattern is one program with its arguments",
                "tools.bash.allowed_commands: 'ls | wc' matches nothing: a pattern is one program with its arguments",
            ],
        ),
        *(
            (
                {"tools": {"bash": {"ordinary_commands": [pattern]}}},
                [
                    f"tools.bash.ordinary_commands: {pattern!r} makes commands of any program ordinary, because `*` can stand "
                    "for one; write out what may run"
                ],
            )
            for pattern in ("find . *", "git *", "'nice' -n 5 *", "bash -euo pipefail -c *", "docker exec web *")
        ),
        (
            {
                "tools": {
                    "bash": {
                        "ordinary_commands": [
                            *(
                                "make *",
                                "env A=1 ls *",
                                "git add *",
                                "docker exec web ls *",
                                "xargs -r rm *",
                                "''",
                                "sh",
                            ),
                            "sh" + " -o" * 60 + " x",
                        ]
                    }
                }
            },
            [],
        ),
        (
            {"tools": {"read_file": {"allowed_hosts": ["x"]}}},
            ["tools.read_file.allowed_hosts: denied until this is corrected: read_file doesn't use the network"],
        ),
        (
            {
                "tools": {
                    "mine": {"timeout_seconds": 1, "forbidden_in_modes": ["ALERT"], "allowed_in_modes": ["NORMAL"]}
                }
            },
            [],
        ),
        (
            {"ask_flow": [{"from": {"tools": ["read_file"]}, "to": {"tools": ["http_reqest", "mine"]}}]},
            ["ask_flow.0: there is no tool named 'http_reqest'; did you mean 'http_request'?"],
        ),
        (
            {"tools": {"mine": {"forbidden_paths": ["x"]}}},
            [
                "tools.mine: mine is a composite, so `forbidden_paths` has no effect: write it under the tools that it calls"
            ],
        ),
        (
            {
                "tools": {"read_file": {"rate_limit_per_hour": 9}, "http_request": {"rate_limit_per_hour": 5}},
                "categories": {"read_only": {"rate_limit_per_hour": 8}, "network": {"rate_limit_per_hour": 6}},
            },
            [
                "tools.read_file.rate_limit_per_hour: 9 calls are never reached: categories.read_only.rate_limit_per_hour says 8"
            ],
        ),
        ({"tools": {"mine": {"rate_limit_per_hour": 1}}}, []),
        (
            {"tools": {"read_file": {"forbidden_operations": ["PUSH"]}}},
            ["tools.read_file.forbidden_operations: denied until this is corrected: read_file has no operations"],
        ),
        (
            {"tools": {"vcs": {"forbidden_operations": ["PUHS"], "asking_operations": ["log"]}}},
            [
                "tools.vcs.forbidden_operations: denied until this is corrected: vcs has no operation 'PUHS'; did you mean 'PUSH'?"
            ],
        ),
        (
            {"tools": {"vcs": {"allowed_operations": ["MAIL"]}}},
            [
                "tools.vcs.allowed_operations: denied until this is corrected: vcs has no operation 'MAIL'; it has LOG, PUSH"
            ],
        ),
        ({"tools": {"free": {"forbidden_operations": ["ANYTHING"]}}}, []),
        ({"tools": {"mine": {"requires_approval_in_modes": ["NORMAL"]}}}, []),
        (
            {"categories": {"read_only": {"forbidden_operations": ["LGO"], "asking_operations": ["LOG"]}}},
            ["categories.read_only.forbidden_operations: this category has no operation 'LGO'; did you mean 'LOG'?"],
        ),
        ({"categories": {"system_write": {"forbidden_operations": ["ANYTHING"]}}}, []),
        (
            {"categories": {"network": {"forbidden_operations": ["POST"]}}},
            ["categories.network.forbidden_operations: each tool of this category has no operations"],
        ),
        (
            {"tools": {"bash": {"allowed_models": ["small"], "max_file_size_mb": 1}}},
            [
                "tools.bash.max_file_size_mb: denied until this is corrected: bash touches no files",
                "tools.bash.allowed_models: denied until this is corrected: bash asks no model",
            ],
        ),
        (
            {"tools": {"put": {"max_file_size_mb": 101}, "read_file": {"max_file_size_mb": 101}}},
            ["tools.put.max_file_size_mb: 101 MiB are never reached: at most 100 can be written"],
        ),
        (
            {"tools": {"build": {"max_file_size_mb": 1}}},
            ["tools.build.max_file_size_mb: it doesn't limit the files that a command writes"],
        ),
        ({"free_hosts": ["a.example"], "writable_paths": ["src/**"]}, []),
        (
            {"tools": {"http_request": {"free_hosts": ["a.example"], "allowed_hosts": ["b.example"]}}},
            ["tools.http_request.free_hosts: it has no effect: `allowed_hosts` beside it denies all other hosts"],
        ),
        (
            {"rate_limit_per_hour": 4, "tools": {"read_file": {"rate_limit_per_hour": 5}}},
            ["tools.read_file.rate_limit_per_hour: 5 calls are never reached: rate_limit_per_hour says 4"],
        ),
        (
            {"tools": {"tests": {"timeout_seconds": 300}}},
            ["tools.tests.timeout_seconds: 300 s are never reached: the limit is 300 s without this rule"],
        ),
        (
            {"tools": {"read_file": {"timeout_seconds": 60}}, "categories": {"network": {"timeout_seconds": 20}}},
            ["tools.read_file.timeout_seconds: 60 s are never reached: the limit is 30 s without this rule"],
        ),
        (
            {"categories": {"artifact": {"timeout_seconds": 1}}},
            ["categories.artifact: no primitive is of this category"],
        ),
    ],
)
def test_findings(document: dict[str, Any], said: list[str]) -> None:
    found = lint(read_governance(document), TOOLS, ["mine"])
    assert [f"{f['rule']}: {f['message']}" for f in found] == said


def test_findings_in_a_projects_file_name_the_file() -> None:
    rules = read_governance({}).tightened(read_governance({"deny": ["nobody"]}))
    assert [f["rule"] for f in lint(rules, TOOLS, [])] == ["project.deny.nobody"]


def test_a_projects_free_hosts_have_no_effect() -> None:
    rules = read_governance({}).tightened(read_governance({"free_hosts": ["a.example"]}))
    (found,) = lint(rules, TOOLS, [])
    assert found == {
        "rule": "project.free_hosts",
        "message": "it has no effect: only the owner's file lists free hosts",
    }


def test_a_projects_rate_that_is_never_reached() -> None:
    rules = read_governance({"tools": {"mine": {"rate_limit_per_hour": 5}}})
    rules = rules.tightened(read_governance({"tools": {"mine": {"rate_limit_per_hour": 6}}}))
    assert [f["message"] for f in lint(rules, TOOLS, ["mine"])] == [
        "6 calls are never reached: tools.mine.rate_limit_per_hour says 5"
    ]
