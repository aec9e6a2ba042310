"""The rule `writable_paths`: its patterns, and what it decides about tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.lint import lint
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance

WRITE = ToolDefinition("write_file", "", (), {}, ("write",))
SHELL = ToolDefinition("bash", "", (), {}, ("read", "write", "delete", "execute"))


def policy(rules: dict[str, Any], project: dict[str, Any] | None = None) -> Policy:
    read = read_governance(rules)
    return Policy((read.tightened(read_governance(project)) if project else read).layers(), "/w", "/home/user")


def rule(found: Policy, path: str, use: str = "write", tool: ToolDefinition = WRITE) -> str | None:
    decision = found.paths.of(tool).judge(path, use)
    return decision.rule if decision else None


@pytest.mark.parametrize(
    ("pattern", "inside", "others"),
    [
        ("src/**", ["src", "src/a", "src/a/b"], ["src2", "a/src/x", "srcs/x"]),
        ("./src", ["src", "src/a"], ["a/src"]),
        ("./src/", ["src", "src/a"], ["a/src/b"]),
        ("a/b.md", ["a/b.md"], ["a", "a/b.md2", "x/a/b.md"]),
        ("$WORKSPACE/src/**", ["src/a"], ["x"]),
        ("/w/src/**", ["src/a"], ["x"]),
        (".", ["x", "src/a"], []),
        ("/", ["x"], []),
        ("a/./b//**", ["a/b/c"], ["a/c"]),
        ("a b/**", ["a b/c"], ["a"]),
    ],
)
def test_patterns(pattern: str, inside: list[str], others: list[str]) -> None:
    found = policy({"writable_paths": [pattern]})
    for use in ("write", "delete"):
        assert [rule(found, f"/w/{path}", use) for path in inside] == [None] * len(inside)
        assert [rule(found, f"/w/{path}", use) for path in others] == ["writable_paths"] * len(others)
    assert [rule(found, f"/w/{path}", "read") for path in others] == [None] * len(others)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*.md", "the kernel can't hold commands to such a pattern; write a whole folder, such as docs/**"),
        ("docs/*.md", "the kernel can't hold commands to such a pattern"),
        ("src/*/gen/**", "the kernel can't hold commands to such a pattern"),
        ("**/src/**", "the kernel can't hold commands to such a pattern"),
        ("src/**/", "the kernel can't hold commands to such a pattern"),
        ("**", "the kernel can't hold commands to such a pattern"),
        ("src/[ab]", "the kernel can't hold commands to such a pattern"),
        ("src", "it matches at any depth; write src/** for the folder, or ./src for the file"),
        ("src/", "it matches at any depth; write src/** for the folder, or ./src for the file"),
        ("README.md", "it matches at any depth; write README.md/** for the folder, or ./README.md for the file"),
        ("../x/**", "a pattern can't contain '..'"),
        ("!src/**", "a pattern can't begin with '!'"),
        ("$ROOT/x", "\\$ROOT is unknown"),
        ("", "a pattern can't be empty"),
    ],
)
def test_a_pattern_that_commands_can_not_be_held_to_is_a_mistake(pattern: str, said: str) -> None:
    for rules in ({"writable_paths": [pattern]}, {"tools": {"bash": {"writable_paths": [pattern]}}}):
        with pytest.raises(Exception, match=rf"writable_paths\.0: {said.replace('*', '[*]').replace('(', '[(]')}"):
            read_governance(rules)


def test_every_list_must_be_satisfied() -> None:
    rules = {
        "writable_paths": ["a/**", "b/**"],
        "tools": {"bash": {"writable_paths": ["b/c/**", "d/**"]}, "write_file": {"category": "network"}},
        "categories": {"network": {"writable_paths": ["a/x/**"]}},
    }
    found = policy(rules, {"writable_paths": ["b/c/e/**", "a/**", "z/**"]})
    assert found.paths.of(SHELL).writable() == ["/w/b/c/e/"]
    assert rule(found, "/w/b/c/e/x", tool=SHELL) is None
    assert rule(found, "/w/b/c/x", tool=SHELL) == "project.writable_paths"
    assert rule(found, "/w/d/x", tool=SHELL) == "writable_paths"
    assert rule(found, "/w/a/x", tool=SHELL) == "tools.bash.writable_paths"
    assert rule(found, "/w/a/y") == "categories.network.writable_paths"
    assert found.paths.of(WRITE).writable() == ["/w/a/x/"]
    assert policy({}).paths.of(SHELL).writable() is None
    assert policy({"writable_paths": []}).paths.of(SHELL).writable() == []
    assert policy({"writable_paths": ["/**"]}).paths.of(SHELL).writable() == ["/w/"]


def test_an_opened_folder_outside_needs_both_lists() -> None:
    opened = {"tools": {"write_file": {"allowed_paths": ["$WORKSPACE", "/data/**"]}}}
    assert rule(policy(opened), "/data/x") == "shipped.outside_workspace_asks"
    assert rule(policy({**opened, "writable_paths": ["src/**"]}), "/data/x") == "writable_paths"
    both = policy({**opened, "writable_paths": ["/data/**"]})
    assert rule(both, "/data/x") == "shipped.outside_workspace_asks"
    # A command never writes there.
    assert both.paths.of(SHELL).writable() == []


def test_a_link_is_reported(tmp_path: Path) -> None:
    work = tmp_path.resolve()
    (work / "real").mkdir()
    (work / "docs").symlink_to("real")
    for place, rules in {
        "": {"writable_paths": ["docs/**", "real/**"]},
        "project.": {"writable_paths": ["docs/a"]},
    }.items():
        read = read_governance(rules)
        read = read_governance({}).tightened(read) if place else read
        (found,) = lint(read, [WRITE], [], str(work), "/home/user")
        assert found["rule"] == f"{place}writable_paths"
        assert f"write the real path, '{work}/real" in found["message"]
