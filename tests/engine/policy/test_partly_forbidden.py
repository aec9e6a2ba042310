"""A path or a host that some tools may not use, and others may."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.builtins.mounts.mount import Mount
from albert_tools.builtins.mounts.mounted_tools import mounted_primitive
from albert_tools.builtins.mounts.pinning import pinned
from albert_tools.engine.policy.partly_forbidden import partly_forbidden
from albert_tools.engine.policy.settings import read_governance

PRIMITIVES = [load() for load in builtin_loaders().values()]
NORMAL: dict[str, Any] = {"allowed_in_modes": ["NORMAL"]}


def found(rules: dict[str, Any], project: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """The other tools of each finding, by the rule and the patterns."""
    read = read_governance(rules)
    if project is not None:
        read = read.tightened(read_governance(project))
    said = {}
    for rule, message in partly_forbidden(read.layers(), PRIMITIVES, "/w", "/home/user"):
        patterns, _, rest = message.partition(" can still be used by ")
        said[f"{rule}: {patterns}"] = rest.partition(";")[0].split(", ")
    return said


def test_a_path_that_three_categories_may_not_use() -> None:
    secrets = {"forbidden_paths": ["secrets", "*.pem"]}
    rules = {"categories": {"read_only": secrets, "system_write": secrets, "system_delete": secrets}}
    said = found(rules)
    assert list(said) == [f"categories.{c}.forbidden_paths: '*.pem', 'secrets'" for c in rules["categories"]]
    commands = ["bash", "run_program", "run_tests", "run_linter"]
    assert said["categories.read_only.forbidden_paths: '*.pem', 'secrets'"] == [*commands, "publish_artifact"]
    assert said["categories.system_write.forbidden_paths: '*.pem', 'secrets'"] == commands
    assert found({**rules, **secrets}) == {}


@pytest.mark.parametrize(
    "rules",
    [
        # The others obey rules in other words: another pattern, a list of what is allowed, no mode, no permission at all.
        {
            "deny": ["git", "copy_file"],
            "categories": {
                "read_only": {"forbidden_paths": ["secrets/**"]},
                "execute": {"allowed_paths": ["src/**"]},
                "artifact": {"forbidden_in_modes": ["NORMAL"]},
            },
        },
        # Files that may be read and not changed.
        {
            "deny": ["bash", "run_program", "run_tests", "run_linter"],
            "categories": {c: {"forbidden_paths": ["docs"]} for c in ("system_write", "system_delete")},
        },
        # No tool reaches these.
        {"tools": {"read_file": {"forbidden_paths": ["/etc/shadow", "/srv/data"]}}},
        {"tools": {"http_request": {"forbidden_hosts": ["127.0.0.1"]}}},
    ],
)
def test_no_finding(rules: dict[str, Any]) -> None:
    assert found(rules) == {}


@pytest.mark.parametrize("key", ["allowed_paths", "writable_paths"])
def test_a_command_makes_a_list_of_paths_hollow(key: str) -> None:
    lists = {"categories": {c: {key: ["src/**", "docs/**"]} for c in ("system_write", "system_delete")}}

    def said(rules: dict[str, Any]) -> dict[str, str]:
        return dict(partly_forbidden(read_governance(rules).layers(), PRIMITIVES, "/w", "/home/user"))

    found = said({**lists, "deny": ["bash", "run_program"]})
    assert found == {
        f"categories.{c}.{key}": "all other paths can still be changed by run_tests, run_linter; "
        "write `writable_paths` at the top of the file, which holds for every tool"
        for c in lists["categories"]
    }
    assert said({**lists, "writable_paths": ["src/**", "docs/**"]}) == {}
    assert said({**lists, "deny": ["bash", "run_program", "run_tests", "run_linter"]}) == {}
    # A rule on all commands is no mistake, and neither is a list of everything. One on some of them leaves the others.
    assert f"tools.bash.{key}" in said({"tools": {"bash": {key: ["src/**"]}}})
    assert said({"tools": {"bash": {key: ["src/**"]}}, "deny": ["run_program", "run_tests", "run_linter"]}) == {}
    assert said({"categories": {"execute": {key: ["src/**"]}}, "tools": {"bash": {key: ["./a/b"]}}}) == {}
    assert said({"categories": {"system_write": {key: ["."]}}}) == {}


def test_a_command_reads_what_the_tools_that_read_may_not() -> None:
    rules = {"tools": {"read_file": {"allowed_paths": ["src/**"]}}, "deny": ["bash", "run_program", "git"]}
    ((rule, message),) = partly_forbidden(read_governance(rules).layers(), PRIMITIVES, "/w", "/home/user")
    assert rule == "tools.read_file.allowed_paths"
    assert message == (
        "all other paths can still be used by git_status, run_tests, run_linter; write `allowed_paths` under these, too"
    )


def test_hosts() -> None:
    said = found({}, {"tools": {"http_request": {"forbidden_hosts": ["*.a.example", "fd00::1", "2606:4700::1111"]}}})
    assert said == {
        "project.tools.http_request.forbidden_hosts: '*.a.example', '2606:4700::1111'": [
            "bash",
            "run_program",
            "git",
            "fetch_url",
        ]
    }


def test_the_process_of_a_mounted_server_uses_what_other_tools_may_not() -> None:
    offered = [{"name": "find", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
    # A URL reaches no file. What a trusted server says about its tools doesn't bind its process.
    mounts = [
        Mount("m", command=("server",), tools=pinned("m", offered).tools, trust=True),
        Mount("far", url="https://far.example/mcp", tools=pinned("far", offered).tools),
    ]
    tools = [*PRIMITIVES, *(mounted_primitive(mount, mount.tools[0]) for mount in mounts)]
    commands = ["bash", "run_program", "run_tests", "run_linter"]
    rules = {
        "deny": commands,
        "allow": ["m.find", "far.find"],
        "categories": {
            "read_only": {"forbidden_paths": ["secrets"]},
            "system_write": {"forbidden_paths": ["secrets"], "writable_paths": ["src/**"]},
            "execute": {"writable_paths": ["src/**"]},
        },
    }
    said = dict(partly_forbidden(read_governance(rules).layers(), tools, "/w", "/home/user"))
    assert {rule: message.partition(";")[0] for rule, message in said.items()} == {
        "categories.read_only.forbidden_paths": "'secrets' can still be used by publish_artifact, m.find",
        "categories.system_write.forbidden_paths": "'secrets' can still be used by move_file, m.find",
        "categories.system_write.writable_paths": "all other paths can still be changed by m.find",
        "categories.execute.writable_paths": "all other paths can still be changed by m.find",
    }
