"""Rules about operations. The owner's list replaces the shipped questions. A project's list doesn't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance

GIT = ToolDefinition("git", "", (), {}, ("execute",), category="execute")


def section(**keys: Any) -> dict[str, Any]:
    return {"tools": {"git": keys}}


@pytest.mark.parametrize(
    ("owner", "project", "operation", "expected"),
    [
        ({}, {}, "LOG", None),
        ({}, {}, "push", "ask shipped.asking_operations"),
        (section(allowed_operations=["PUSH"]), {}, "PUSH", None),
        ({}, section(allowed_operations=["PUSH"]), "PUSH", "ask shipped.asking_operations"),
        (section(allowed_operations=["LOG"]), {}, "PUSH", "deny tools.git.allowed_operations"),
        (
            section(allowed_operations=["PUSH"], asking_operations=["PUSH"]),
            {},
            "PUSH",
            "ask tools.git.asking_operations",
        ),
        (
            section(asking_operations=["PUSH"]),
            section(forbidden_operations=["PUSH"]),
            "PUSH",
            "deny project.tools.git.forbidden_operations",
        ),
    ],
)
def test_an_operation(owner: dict[str, Any], project: dict[str, Any], operation: str, expected: str | None) -> None:
    rules = read_governance(owner).tightened(read_governance(project))
    found = Policy(rules.layers(), "/w", "/home/user").touches(GIT, [Resource("operation", operation, "")])
    assert [f"{d.verdict} {d.rule}" for d in found] == ([expected] if expected else [])


def test_a_question_names_the_operation_as_the_call_does() -> None:
    rules = read_governance({"tools": {"git": {"asking_operations": ["PUSH"]}}})
    (found,) = Policy(rules.layers(), "/w", "/home/user").touches(GIT, [Resource("operation", "push", "")])
    assert found.message == "git needs a person's approval for 'push'"


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("BRANCH", False),
        ("BRANCH --list", False),
        ("BRANCH --show-current", False),
        ("TAG -l", False),
        ("REMOTE -v", False),
        ("STASH list", False),
        ("STASH", True),
        ("STASH list x", True),
        ("BRANCH --list new", True),
        ("BRANCH -D --list", True),
        ("BRANCH new", True),
        ("TAG v1", True),
        ("REMOTE prune origin", True),
    ],
)
def test_nobody_is_asked_about_an_operation_of_git_that_only_lists(words: str, asks: bool) -> None:
    operation, _, args = words.partition(" ")
    for rules, expected in (({}, asks), (section(asking_operations=[operation]), True)):
        policy = Policy(read_governance(rules).layers(), "/w", "/home/user")
        found = policy.touches(GIT, [Resource("operation", operation, args)])
        assert [decision.verdict for decision in found] == ["ask"] * expected


def test_the_arguments_of_an_operation_are_judged_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with SyncToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance={}) as service:
        for operation, args, asks in (
            ("STASH", ["list"], False),
            ("STASH", ["list", ""], True),
            ("BRANCH", [], False),
            ("BRANCH", [""], True),
        ):
            error = service.invoke("git", {"operation": operation, "args": args}).error
            assert (error is not None and error.code in ("suspended", "invalid_arguments")) == asks
