"""Rules about providers and models: patterns of names, in both files, for a tool and for its category."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools.builtins.models.inference import inference
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.model_rules import matches_name
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import Governance, read_governance


def judged(rules: Governance, kind: str, name: str) -> str | None:
    """Return the rule that denies the model, or None."""
    policy = Policy(rules.layers(), "/w", "/home/ada")
    found = policy.touches(inference.definition, [Resource(kind, name, "")])
    assert all(d.verdict == "deny" and d.rationale == kind for d in found)
    return found[0].rule if found else None


def rules(**section: Any) -> Governance:
    return read_governance({"tools": {"inference": section}})


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("gpt-5", "gpt-5", True),
        ("gpt-5", "gpt-*", True),
        ("gpt-5", "*", True),
        ("gpt-5", "gpt-5-*", False),
        ("GPT-5", "gpt-5", False),
        ("gpt-5", "gpt", False),
        ("meta/llama-3", "meta/*", True),
        ("a.b", "a?b", False),
        ("axb", "a.b", False),
        ("[a]", "[a]", True),
        ("a\nb", "a*b", True),
        ("gpt-5\n", "gpt-5", False),
        ("", "*", True),
    ],
)
def test_a_pattern(name: str, pattern: str, fits: bool) -> None:
    assert matches_name(name, pattern) is fits


def test_without_a_rule_nothing_is_denied() -> None:
    assert judged(rules(), "provider", "any") is None
    assert judged(rules(allowed_models=["a"]), "provider", "any") is None


def test_each_section_and_each_file_can_deny() -> None:
    own = rules(allowed_providers=["a", "b"], allowed_models=["m-*"])
    assert judged(own, "provider", "a") is None
    assert judged(own, "provider", "c") == "tools.inference.allowed_providers"
    assert judged(own, "model", "n") == "tools.inference.allowed_models"
    assert judged(rules(allowed_models=[]), "model", "m-1") == "tools.inference.allowed_models"
    category = read_governance({"categories": {"inference": {"allowed_providers": ["a"]}}})
    assert judged(category, "provider", "b") == "categories.inference.allowed_providers"
    project = own.tightened(read_governance({"tools": {"inference": {"allowed_providers": ["b", "c"]}}}))
    assert judged(project, "provider", "b") is None
    assert judged(project, "provider", "a") == "project.tools.inference.allowed_providers"
    assert judged(project, "provider", "c") == "tools.inference.allowed_providers"


def test_matching_many_stars_is_fast() -> None:
    # A matcher that backtracks at each star would take far too long.
    assert not matches_name("a" * 256, "*a" * 12 + "*b")
