"""The presets: rules without mistakes that decide as their description says, and the tools of a session."""

from __future__ import annotations

import pytest
import yaml

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.engine.policy.flow_rules import SHIPPED_FLOWS
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.lint import lint
from albert_tools.engine.policy.presets import PRESETS, starter, tools_of
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import Governance, read_governance

PRIMITIVES = {name: load().definition for name, load in builtin_loaders().items()}


def rules(preset: str) -> Governance:
    return read_governance(yaml.safe_load(starter(preset)), primitives=PRIMITIVES)


@pytest.mark.parametrize(
    ("preset", "verdicts"),
    [
        ("read-only", "allow deny deny deny deny deny"),
        ("standard", "allow allow allow ask ask allow"),
        ("trusted", "allow allow allow allow allow allow"),
    ],
)
def test_a_preset_decides(preset: str, verdicts: str) -> None:
    found = rules(preset)
    assert lint(found, list(PRIMITIVES.values()), [], "/w", "/home/user") == []
    policy = Policy(found.layers(), "/w", "/home/user")
    tools = "read_file write_file publish_artifact delete_file bash http_request".split()
    assert [policy.permits(PRIMITIVES[name], False, "NORMAL").verdict for name in tools] == verdicts.split()
    assert {policy.permits(PRIMITIVES[name], False, "LOCKDOWN").verdict for name in tools} == {"deny"}
    for path in (".env", "app/.env.local", "secrets/a", "deploy.pem", "x/id_rsa"):
        (denial,) = policy.touches(PRIMITIVES["bash"], [Resource("path", f"/w/{path}", "read")])
        assert denial.verdict == "deny"


def test_the_tools_of_a_preset_need_no_approval() -> None:
    assert tools_of("trusted", PRIMITIVES.values()) is None
    for preset in ("read-only", "standard"):
        policy = Policy(rules(preset).layers(), "/w", "/home/user")
        tools = tools_of(preset, PRIMITIVES.values())
        assert tools
        for name, definition in PRIMITIVES.items():
            assert (name in tools) == (policy.permits(definition, False, "NORMAL").verdict == "allow")


def test_every_line_that_is_commented_out_is_valid() -> None:
    for preset in PRESETS:
        lines = [
            line.replace("#  ", "  ", 1) if line.startswith("#  ") else line for line in starter(preset).split("\n")
        ]
        text = "\n".join(line.replace("#    ", "    ", 1) for line in lines).replace("deny: []", "deny:")
        found = read_governance(yaml.safe_load(text.replace("deny_flow: []", "deny_flow:")), primitives=PRIMITIVES)
        assert (found.deny, len(found.deny_flow)) == ({"web_search"}, 1)


def test_the_presets_have_the_shipped_rules_about_flows() -> None:
    for preset in PRESETS:
        (layer,) = rules(preset).layers()
        assert [(rule.source, rule.to) for rule in layer.flows] == [(rule.source, rule.to) for rule in SHIPPED_FLOWS]
