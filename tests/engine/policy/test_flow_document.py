"""The rules about flows in a file: their syntax, their mistakes, and how a project's file tightens the owner's."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.policy.flow_rules import SHIPPED_FLOWS, SHIPPED_PRIVATE_PATHS, FlowRule, From, To
from albert_tools.engine.policy.settings import Governance, read_governance

WEB: dict[str, Any] = {"from": {"source": ["web"]}, "to": "destination"}


def flows(document: dict[str, Any]) -> tuple[FlowRule, ...]:
    (layer,) = read_governance(document).layers()
    return layer.flows


def test_a_rule_is_read_as_it_is_written() -> None:
    asked = {
        "from": {"tools": ["a"], "paths": ["*.pem"]},
        "to": {"effects": ["network"], "tools": ["b"]},
        "control": True,
    }
    assert flows(
        {"ask_flow": [WEB, asked], "deny_flow": [{"from": {"session": ["private"]}, "to": {"arguments": ["url"]}}]}
    ) == (
        FlowRule("deny", "deny_flow.0", From(session=("private",)), To(arguments=("url",))),
        FlowRule("ask", "ask_flow.0", From(source=("web",)), To(arguments=("destination",))),
        FlowRule("ask", "ask_flow.1", From(tools=("a",), paths=("*.pem",)), To(("network",), ("b",)), control=True),
    )


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (WEB | {"from": {"source": ["wep"]}}, ".from.source.0: input should be 'file', 'web', 'mail', 'clock', 'command', 'model'"
         ", 'server' or 'random'; did you mean 'web'?"),
        (WEB | {"from": {"source": "web"}}, ".from.source: expected a list; write `source: [web]`"),
        (WEB | {"from": {"source": []}}, ".from.source: list should have at least 1 item after validation, not 0"),
        (WEB | {"from": {"sorce": ["web"]}}, ".from.sorce: there is no such key; did you mean 'source'?"),
        (WEB | {"from": {}}, ".from: it names nothing; write one of effects, tools, source, paths, session"),
        (WEB | {"from": {"paths": ["!a"]}}, ".from.paths.0: a pattern can't begin with '!'; to revoke a rule, remove it"),
        (WEB | {"from": {"session": ["private"], "tools": ["a"]}}, ".from: `session` stands alone: the rule is about what the "
         "session has seen, by any tool"),
        (WEB | {"to": "destinaton"}, ".to.arguments.0: input should be 'path', 'url', 'command', 'recipient', 'payload' or "
         "'destination'; did you mean 'destination'?"),
        (WEB | {"to": None}, ".to: it has no value; write one, or remove the key"),
        (WEB | {"control": True, "from": {"session": ["private"]}}, ": `control` has no meaning for what a session has seen"),
        ({"to": "url"}, ".from: field required"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(Failure) as caught:
        read_governance({"ask_flow": [WEB, rule]})
    assert caught.value.message == f"the rules of governance.yaml can't be used: ask_flow.1{problem}"


def test_the_owner_replaces_the_shipped_rules_and_a_project_adds_to_them() -> None:
    (shipped,) = Governance().layers()
    assert (shipped.flows, shipped.private_paths) == (SHIPPED_FLOWS, SHIPPED_PRIVATE_PATHS)
    owner = read_governance({"ask_flow": [], "private_paths": ["a"]})
    (own,) = owner.layers()
    assert (own.flows, own.private_paths) == ((), ("a",))
    strict = read_governance({"ask_flow": [WEB], "private_paths": ["b"]})
    own, project = owner.tightened(strict).layers()
    assert (own.flows, own.private_paths) == ((), ("a",))
    assert ([rule.place for rule in project.flows], project.private_paths) == (["project.ask_flow.0"], ("b",))
    # An empty list of a project removes no rule of the owner.
    own, project = strict.tightened(owner).layers()
    assert ([rule.place for rule in own.flows], project.flows) == (["ask_flow.0"], ())


def test_the_revision_depends_on_the_rules_about_flows() -> None:
    different = [{}, {"ask_flow": []}, {"ask_flow": [WEB]}, {"deny_flow": [WEB]}, {"private_paths": []}]
    assert len({read_governance(document).revision for document in different}) == len(different)
