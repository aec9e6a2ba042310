"""How rules combine. The order is deny, ask, allow; without a rule a call is denied.

A more specific rule does not overrule a stricter one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.definition import CATEGORIES, MODES, ToolDefinition
from albert_tools.engine.policy.decision import STRICTNESS, Decision, strictest
from albert_tools.engine.policy.host_rules import host_of
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import Governance, read_governance

WRITE = ToolDefinition("write_file", "", (), {}, ("write",))
READ = ToolDefinition("read_file", "", (), {}, ("read",))
DELETE = ToolDefinition("delete_file", "", (), {}, ("delete",))
FETCH = ToolDefinition("http_request", "", (), {}, ("network",))
SAVED = ToolDefinition("mine", "", (), {}, ("write", "delete"), kind="composite")


def policy(owner: Mapping[str, Any] | None = None, project: Mapping[str, Any] | None = None) -> Policy:
    rules = read_governance(owner or {})
    if project is not None:
        rules = rules.tightened(read_governance(project))
    return Policy(rules.layers(), "/w", "/home/user")


@pytest.mark.parametrize(
    ("definition", "verdicts"),
    [
        (READ, "allow allow allow deny allow"),
        (WRITE, "allow ask ask deny ask"),
        (DELETE, "ask ask ask deny ask"),
        (FETCH, "allow ask allow deny ask"),
        (SAVED, "allow allow allow deny allow"),
    ],
)
def test_the_shipped_rules(definition: ToolDefinition, verdicts: str) -> None:
    said = [policy().permits(definition, False, mode) for mode in MODES]
    assert [d.verdict for d in said] == verdicts.split()
    assert all(d.rule.startswith("shipped.") for d in said)


@pytest.mark.parametrize(
    ("owner", "project", "verdict", "rule"),
    [
        ({}, None, "allow", "shipped.categories.system_write.allowed_in_modes"),
        ({"deny": ["write_file"]}, None, "deny", "deny"),
        ({"deny": ["write_file"], "tools": {"write_file": {"allowed_in_modes": ["NORMAL"]}}}, None, "deny", "deny"),
        (
            {"tools": {"write_file": {"allowed_in_modes": ["NORMAL"]}}},
            None,
            "allow",
            "tools.write_file.allowed_in_modes",
        ),
        ({"tools": {"write_file": {"allowed_in_modes": ["ALERT"]}}}, None, "deny", "no_rule"),
        ({"tools": {"write_file": {"allowed_in_modes": []}}}, None, "deny", "no_rule"),
        (
            {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}},
            None,
            "ask",
            "tools.write_file.requires_approval_in_modes",
        ),
        (
            {"tools": {"write_file": {"forbidden_in_modes": ["NORMAL"], "allowed_in_modes": ["NORMAL"]}}},
            None,
            "deny",
            "tools.write_file.forbidden_in_modes",
        ),
        # The category's rule has the same weight as the tool's rule, in both directions.
        (
            {
                "tools": {"write_file": {"allowed_in_modes": ["NORMAL"]}},
                "categories": {"system_write": {"forbidden_in_modes": ["NORMAL"]}},
            },
            None,
            "deny",
            "categories.system_write.forbidden_in_modes",
        ),
        (
            {
                "tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}},
                "categories": {"system_write": {"allowed_in_modes": ["NORMAL"]}},
            },
            None,
            "ask",
            "tools.write_file.requires_approval_in_modes",
        ),
        # A section without modes leaves the shipped rule in force.
        (
            {"tools": {"write_file": {"timeout_seconds": 5}}},
            None,
            "allow",
            "shipped.categories.system_write.allowed_in_modes",
        ),
        # A project can tighten the rules, and can't loosen them.
        ({}, {"deny": ["write_file"]}, "deny", "project.deny"),
        (
            {},
            {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}},
            "ask",
            "project.tools.write_file.requires_approval_in_modes",
        ),
        ({"deny": ["write_file"]}, {"tools": {"write_file": {"allowed_in_modes": ["NORMAL"]}}}, "deny", "deny"),
        (
            {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}},
            {"tools": {"write_file": {"allowed_in_modes": ["NORMAL"]}}},
            "ask",
            "tools.write_file.requires_approval_in_modes",
        ),
    ],
)
def test_order(owner: dict[str, Any], project: dict[str, Any] | None, verdict: str, rule: str) -> None:
    found = policy(owner, project).permits(WRITE, False, "NORMAL")
    assert (found.verdict, found.rule) == (verdict, rule)
    assert bool(found.message) == (verdict != "allow")


@pytest.mark.parametrize(
    ("owner", "project", "verdict", "rule"),
    [
        ({}, None, "deny", "gated"),
        ({"allow": ["http_request"]}, None, "allow", "allow.allowed_in_modes"),
        (
            {"tools": {"http_request": {"allowed_in_modes": ["NORMAL"]}}},
            None,
            "allow",
            "tools.http_request.allowed_in_modes",
        ),
        ({"categories": {"network": {"allowed_in_modes": ["NORMAL"]}}}, None, "deny", "gated"),
        ({"allow": ["http_request"]}, {}, "allow", "allow.allowed_in_modes"),
        ({"allow": ["http_request"]}, {"allow": ["bash"]}, "deny", "project.allow"),
        ({}, {"allow": ["http_request"]}, "deny", "gated"),
        ({"allow": ["http_request"], "deny": ["http_request"]}, None, "deny", "deny"),
    ],
)
def test_gated(owner: dict[str, Any], project: dict[str, Any] | None, verdict: str, rule: str) -> None:
    found = policy(owner, project).permits(FETCH, True, "NORMAL")
    assert (found.verdict, found.rule) == (verdict, rule)


def test_a_key_without_effect_denies_in_either_file_and_for_saved_tools() -> None:
    useless = {"tools": {"write_file": {"forbidden_operations": ["PUSH"]}}}
    assert policy(useless).permits(WRITE, False, "NORMAL").rule == "tools.write_file.forbidden_operations"
    assert policy({}, useless).permits(WRITE, False, "NORMAL").rule == "project.tools.write_file.forbidden_operations"
    assert policy(useless).permits(READ, False, "NORMAL").verdict == "allow"
    saved = ToolDefinition("mine", "", (), {}, ("write",), kind="composite")
    found = policy({"tools": {"mine": {"forbidden_paths": ["x"]}}}).permits(saved, False, "NORMAL")
    assert (found.verdict, found.rule) == ("deny", "tools.mine.forbidden_paths")
    assert policy({"tools": {"mine": {"rate_limit_per_hour": 5}}}).permits(saved, False, "NORMAL").verdict == "allow"


def test_bounds_in_the_definition_apply() -> None:
    calm = ToolDefinition("calm", "", (), {}, ("read",), allowed_modes=("NORMAL",))
    assert policy({"tools": {"calm": {"allowed_in_modes": list(MODES)}}}).permits(calm, False, "ALERT")[:3] == (
        "deny",
        "definition.allowed_modes",
        "tool_mode",
    )
    careful = ToolDefinition("careful", "", (), {}, ("read",), approval=True)
    assert policy().permits(careful, False, "NORMAL")[:2] == ("ask", "definition.approval")
    assert policy({"deny": ["careful"]}).permits(careful, False, "NORMAL").verdict == "deny"


@pytest.mark.parametrize(
    ("section", "resource", "rule"),
    [
        ({"forbidden_paths": ["secrets"]}, Resource("path", "/w/a/secrets/x", "read"), "tools.x.forbidden_paths"),
        ({"forbidden_paths": ["secrets"]}, Resource("path", "/w/a/b", "read"), None),
        ({"allowed_paths": ["src/**", "*.md"]}, Resource("path", "/w/src/a", "write"), None),
        ({"allowed_paths": ["src/**", "*.md"]}, Resource("path", "/w/x/a.md", "write"), None),
        ({"allowed_paths": ["src/**", "*.md"]}, Resource("path", "/w/x/a.py", "write"), "tools.x.allowed_paths"),
        ({"allowed_paths": []}, Resource("path", "/w/x", "read"), "tools.x.allowed_paths"),
        ({"allowed_paths": ["/"]}, Resource("path", "/home/user/.ssh/id", "read"), "shipped.forbidden_paths"),
        ({"allowed_paths": ["/"]}, Resource("path", "/etc/shadow", "read"), "shipped.forbidden_paths"),
        ({"allowed_hosts": ["example.org"]}, Resource("url", "https://example.org/a", "GET"), None),
        ({"allowed_hosts": ["example.org"]}, Resource("url", "https://EXAMPLE.org.:443/a", "GET"), None),
        (
            {"allowed_hosts": ["example.org"]},
            Resource("url", "https://example.org.evil.com/", "GET"),
            "tools.x.allowed_hosts",
        ),
        ({"allowed_hosts": ["example.org"]}, Resource("url", "https://a.example.org/", "GET"), "tools.x.allowed_hosts"),
        ({"allowed_hosts": ["*.example.org"]}, Resource("url", "https://a.example.org/", "GET"), None),
        ({"allowed_hosts": ["*.example.org"]}, Resource("url", "https://example.org/", "GET"), "tools.x.allowed_hosts"),
        (
            {"allowed_hosts": ["a"], "forbidden_hosts": ["a"]},
            Resource("url", "http://a/", "GET"),
            "tools.x.forbidden_hosts",
        ),
        ({"allowed_hosts": ["u@h"[2:]]}, Resource("url", "http://h@evil.com/", "GET"), "shipped.plain_hosts"),
        ({"allowed_methods": ["get"], "allowed_hosts": ["a"]}, Resource("url", "http://a/", "get"), None),
        ({"allowed_methods": ["GET"]}, Resource("url", "http://a/", "POST"), "tools.x.allowed_methods"),
        ({"allowed_operations": ["diff"]}, Resource("operation", "diff", ""), None),
        ({"allowed_operations": ["DIFF"]}, Resource("operation", "PUSH", ""), "tools.x.allowed_operations"),
        ({"forbidden_operations": ["push"]}, Resource("operation", "PUSH", ""), "tools.x.forbidden_operations"),
        ({"asking_operations": ["push"]}, Resource("operation", "PUSH", ""), "tools.x.asking_operations"),
        ({"asking_operations": ["push"]}, Resource("operation", "LOG", ""), None),
    ],
)
def test_rules_about_resources(section: dict[str, Any], resource: Resource, rule: str | None) -> None:
    tool = ToolDefinition("x", "", (), {}, ("read", "write", "network"))
    found = policy({"tools": {"x": section}}).touches(tool, [resource])
    assert [d.rule for d in found] == ([rule] if rule else [])
    verdict = "ask" if rule and ".asking_" in rule else "deny"
    assert all(d.verdict == verdict and d.message for d in found)


def test_both_layers_of_paths_apply() -> None:
    both = policy(
        {"tools": {"read_file": {"allowed_paths": ["src/**"]}}},
        {"tools": {"read_file": {"allowed_paths": ["src/a/**"]}}},
    )
    assert both.paths.of(READ).judge("/w/src/a/x", "read") is None
    refused = both.paths.of(READ).judge("/w/src/b/x", "read")
    assert refused is not None
    assert refused.rule == "project.tools.read_file.allowed_paths"
    assert both.paths.of(READ).judge("/w/x", "read") is not None


@pytest.mark.parametrize(("use", "verdict"), [("read", None), ("write", "ask"), ("delete", "ask")])
def test_every_change_outside_the_workspace_needs_approval(use: str, verdict: str | None) -> None:
    opened = policy({"tools": {"delete_file": {"allowed_paths": ["/data/**"]}}})
    decision = opened.paths.of(DELETE).judge("/data/x", use)
    assert (decision and decision.verdict) == verdict
    assert decision is None or decision.rule == "shipped.outside_workspace_asks"


@pytest.mark.parametrize("rules", [{}, {"writable_paths": ["."]}])
@pytest.mark.parametrize(
    ("path", "use", "asks"),
    [
        (".vscode/tasks.json", "write", True),
        (".BashRC", "delete", True),
        (".bashrc", "read", False),
        ("sub/.envrc", "write", False),
    ],
)
def test_a_change_of_a_start_up_file_needs_approval(rules: dict[str, Any], path: str, use: str, asks: bool) -> None:
    decision = policy(rules).paths.of(DELETE).judge(f"/w/{path}", use)
    assert (decision and decision[:2]) == (("ask", "shipped.start_up_files") if asks else None)


def test_the_lowest_number_applies() -> None:
    rules = policy(
        {
            "tools": {"write_file": {"max_file_size_mb": 2, "timeout_seconds": 20}},
            "categories": {"system_write": {"max_file_size_mb": 1}},
        },
        {"tools": {"write_file": {"timeout_seconds": 10, "max_file_size_mb": 100}}},
    )
    assert rules.numbers(WRITE).max_file_bytes == 1024 * 1024
    assert rules.numbers(WRITE).timeout == 10
    assert policy().numbers(WRITE).max_file_bytes == 10 * 1024 * 1024


def test_the_rate_limits_of_a_call() -> None:
    rules = policy(
        {
            "tools": {"write_file": {"rate_limit_per_hour": 100}, "mine": {"rate_limit_per_hour": 7}},
            "categories": {"system_write": {"rate_limit_per_hour": 50}},
        },
        {
            "rate_limit_per_hour": 1000,
            "tools": {"write_file": {"rate_limit_per_hour": 20}},
            "categories": {"system_write": {"rate_limit_per_hour": 60}},
        },
    )
    assert rules.numbers(WRITE).rate_limits == (
        ("tool:write_file", 20),
        ("category:system_write", 50),
        ("all", 1000),
    )
    assert rules.numbers(READ).rate_limits == (("all", 1000),)
    # A saved tool has no category. Only its calls have one.
    assert rules.numbers(SAVED).rate_limits == (("tool:mine", 7), ("all", 1000))


@pytest.mark.parametrize(("own", "said", "counts"), [(5, 20, 5), (20, 5, 5), (5, None, 5)])
def test_a_definitions_own_rate_counts_in_the_same_window(own: int, said: int | None, counts: int) -> None:
    tool = ToolDefinition("pace", "", (), {}, ("read",), rate_limit=own)
    rules = policy({"tools": {"pace": {"rate_limit_per_hour": said}}} if said else {})
    assert rules.numbers(tool).rate_limits == (("tool:pace", counts),)


MODE_LISTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(st.sampled_from(MODES), max_size=3, unique=True)
        for name in ("allowed_in_modes", "requires_approval_in_modes", "forbidden_in_modes")
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "deny": st.lists(st.just("write_file"), max_size=1),
        "tools": st.fixed_dictionaries({}, optional={"write_file": MODE_LISTS}),
        "categories": st.fixed_dictionaries({}, optional={"system_write": MODE_LISTS}),
    },
)


@given(DOCUMENTS, DOCUMENTS, st.sampled_from(MODES))
def test_a_project_never_loosens_the_rules(owner: dict[str, Any], project: dict[str, Any], mode: Any) -> None:
    alone = policy(owner).permits(WRITE, False, mode)
    both = policy(owner, project).permits(WRITE, False, mode)
    assert STRICTNESS[both.verdict] >= STRICTNESS[alone.verdict]


@given(DOCUMENTS, st.sampled_from(MODES))
def test_the_rules_are_equal_to_their_definition_by_sets(owner: dict[str, Any], mode: Any) -> None:
    """The permitted calls are (allowed ∪ requires approval) − forbidden, over everything in the file."""
    found = policy(owner).permits(WRITE, False, mode)
    sections = [*owner.get("tools", {}).values(), *owner.get("categories", {}).values()]
    sections = [s for s in sections if s]
    if "write_file" in owner.get("deny", []):
        assert found.verdict == "deny"
    elif sections:
        said = {
            name: {m for s in sections for m in s.get(name, [])}
            for name in ("allowed_in_modes", "requires_approval_in_modes", "forbidden_in_modes")
        }
        permitted = (said["allowed_in_modes"] | said["requires_approval_in_modes"]) - said["forbidden_in_modes"]
        assert (found.verdict != "deny") == (mode in permitted)
        assert (found.verdict == "ask") == (mode in permitted and mode in said["requires_approval_in_modes"])


def test_strictest_returns_the_first_of_the_strictest_decisions() -> None:
    one, two = Decision("deny", "a", "denied"), Decision("deny", "b", "denied")
    assert strictest([Decision("ask", "c", "approval_required"), one, two]) is one


def test_without_a_file_the_owners_rules_apply() -> None:
    assert [layer.owner for layer in Governance().layers()] == [True]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433./",
        "http://0177.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::FFFF:7f00:1]:80/",
        "http://evil。example。org/",
        "http://evil\uff0eexample.org/",
        "http://bücher.example/",
        "http://ev%69l.example.org/",
        "http://good.example@evil.example.org/",
        "http://evil.example.org\\@good.example/",
        "ht\ntp://good.example/",
        "evil.example.org/x",
        "//evil.example.org/x",
        "http:///evil.example.org/",
        "http://[::1",
    ],
)
def test_a_forbidden_host_in_another_spelling(url: str) -> None:
    hosts = ["127.0.0.1", "evil.example.org", "xn--bcher-kva.example"]
    rules = policy({"tools": {"http_request": {"forbidden_hosts": hosts}}})
    found = rules.touches(FETCH, [Resource("url", url, "GET")])
    unread = {"shipped.schemes", "shipped.plain_hosts"}
    ((verdict, rule),) = [(d.verdict, d.rule) for d in found]
    assert verdict == "deny"
    assert rule in unread if host_of(url) is None or ":" not in url else rule == "tools.http_request.forbidden_hosts"
    # Without rules about hosts a person is asked. Exceptions are this machine and addresses that can't be reached.
    ((verdict, rule),) = [(d.verdict, d.rule) for d in policy().touches(FETCH, [Resource("url", url, "GET")])]
    if host_of(url) == "127.0.0.1":
        assert (verdict, rule) == ("deny", "shipped.addresses")
    elif host_of(url) is None:
        assert verdict == "deny"
        assert rule in unread
    else:
        assert (verdict, rule) == ("ask", "shipped.new_host_asks")


@pytest.mark.parametrize(
    "url", ["ftp://example.org/x", "file:///etc/passwd", "127.0.0.1:8765", "git@example.org:a/b.git", ""]
)
def test_a_url_of_another_scheme_is_denied(url: str) -> None:
    (found,) = policy().touches(FETCH, [Resource("url", url, "GET")])
    assert (found.verdict, found.rule) == ("deny", "shipped.schemes")
    assert "https://" in str(found.hint)


def test_a_host_that_the_owner_does_not_list_asks() -> None:
    def asked(rules: dict[str, Any], url: str = "https://example.org/a") -> list[tuple[str, str]]:
        return [(d.verdict, d.subject) for d in policy(rules).touches(FETCH, [Resource("url", url, "get")])]

    assert asked({}) == [("ask", "GET example.org")]
    assert asked({"tools": {"http_request": {"allowed_hosts": ["*"]}}}) == []
    assert asked({"tools": {"http_request": {"forbidden_hosts": ["evil.org"]}}}) == [("ask", "GET example.org")]
    assert asked({"categories": {"network": {"allowed_hosts": ["example.org"]}}}) == []


@pytest.mark.parametrize("place", ["", "tools", "categories"])
def test_a_free_host_needs_no_approval_and_others_still_do(place: str) -> None:
    free = {"free_hosts": ["docs.example.org", "*.a.example", "127.0.0.1", "localhost"]}
    rules: dict[str, Any] = {
        "": free,
        "tools": {"tools": {"http_request": free}},
        "categories": {"categories": {"network": free}},
    }[place]

    def decided(rules: dict[str, Any], url: str, project: dict[str, Any] | None = None) -> list[tuple[str, str]]:
        found = policy(rules, project).touches(FETCH, [Resource("url", url, "POST")])
        return [(d.verdict, d.rule) for d in found]

    asks = [("ask", "shipped.new_host_asks")]
    for url in (
        "https://docs.example.org/",
        "http://DOCS.example.org.:8/x",
        "https://b.a.example/",
        "http://localhost/",
    ):
        assert decided(rules, url) == []
        # A project's rules tighten, and loosen nothing.
        assert decided({}, url, rules)[0][0] != "allow"
    for url in ("https://example.org/", "https://a.example/", "https://docs.example.org.evil.example/"):
        assert decided(rules, url) == asks
    assert decided(rules, "http://127.0.0.1/") == []
    assert decided(rules, "http://10.0.0.1/") == [("deny", "shipped.addresses")]
    assert decided(rules, "http://docs.example.org@evil.example/") == [("deny", "shipped.plain_hosts")]
    # Denials are stricter.
    for other in ({"forbidden_hosts": ["docs.example.org"]}, {"allowed_hosts": ["b"]}, {"allowed_methods": ["GET"]}):
        section = {
            "tools": {**rules.get("tools", {})},
            "categories": {"network": {**rules.get("categories", {}).get("network", {}), **other}},
        }
        assert decided({**rules, **section}, "https://docs.example.org/")[0][0] == "deny"


def test_a_projects_hosts_do_not_count_as_the_owners_hosts() -> None:
    project = {"tools": {"http_request": {"allowed_hosts": ["example.org"]}}}
    (decision,) = policy({}, project).touches(FETCH, [Resource("url", "https://example.org/a", "GET")])
    assert (decision.verdict, decision.rule) == ("ask", "shipped.new_host_asks")
    assert decision.hint == "the owner can list it under `tools.http_request.free_hosts`"


def test_an_address_in_the_rules_matches_all_its_spellings() -> None:
    rules = policy({"tools": {"http_request": {"forbidden_hosts": ["9.9"]}}})
    (found,) = rules.touches(FETCH, [Resource("url", "http://9.0.0.9/", "GET")])
    assert found.rule == "tools.http_request.forbidden_hosts"
    for other in ("http://9.0.0.8/", "http://x9.9.example/"):
        assert [d.verdict for d in rules.touches(FETCH, [Resource("url", other, "GET")])] == ["ask"]


def test_a_home_folder_that_is_reached_by_a_link(tmp_path: Path) -> None:
    real = tmp_path.resolve() / "var" / "ada"
    (real / ".ssh").mkdir(parents=True)
    (tmp_path / "home").symlink_to("var")
    rules = Policy(read_governance({}).layers(), f"{real}/.ssh", str(tmp_path / "home" / "ada"))
    found = rules.paths.of(READ).judge(f"{real}/.ssh/id", "read")
    assert found is not None
    assert found.rule == "shipped.forbidden_paths"


def test_the_category_in_a_tools_section_adds_the_rules_on_that_category() -> None:
    categories = {
        "network": {"rate_limit_per_hour": 5, "forbidden_paths": ["b"], "max_file_size_mb": 1, "timeout_seconds": 3},
        "read_only": {"rate_limit_per_hour": 9, "forbidden_paths": ["a"]},
    }
    found = policy({"tools": {"read_file": {"category": "network"}}, "categories": categories})
    # The shipped rules on reading allow it, those on the network ask.
    assert found.permits(READ, False, "ALERT").rule == "shipped.categories.network.requires_approval_in_modes"
    assert dict(found.numbers(READ).rate_limits) == {"category:read_only": 9, "category:network": 5}
    assert (found.numbers(READ).max_file_bytes, found.numbers(READ).timeout) == (1024 * 1024, 3)
    for path in ("a", "b"):
        (denied,) = found.touches(READ, [Resource("path", f"/w/{path}", "read")])
        assert denied.verdict == "deny"
    assert found.paths.of(READ).selective
    assert len([glob for glob in found.paths.of(READ).forbidden_globs("/w") if glob.strip("*/") in ("a", "b")]) >= 2


@given(
    st.sampled_from([READ, WRITE, DELETE, FETCH, SAVED]),
    st.sampled_from(CATEGORIES),
    st.fixed_dictionaries(
        {},
        optional={
            key: st.lists(st.sampled_from(MODES), max_size=3) for key in ("allowed_in_modes", "forbidden_in_modes")
        },
    ),
    st.sampled_from(["", "read_only", "network", "system_write"]),
    st.sampled_from(["allowed_paths", "forbidden_paths", "writable_paths", "allowed_hosts", "forbidden_hosts"]),
)
def test_a_category_in_a_tools_section_never_loosens(
    tool: ToolDefinition, category: str, section: dict[str, Any], other: str, key: str
) -> None:
    categories = {other: {**section, key: ["/w/a" if "paths" in key else "a.org"]}} if other else {}
    with_it = policy({"categories": categories, "tools": {tool.name: {"category": category}}})
    without = policy({"categories": categories, "tools": {tool.name: {}}})
    for mode in MODES:
        stricter, before = (STRICTNESS[p.permits(tool, False, mode).verdict] for p in (with_it, without))
        assert stricter >= before
    for resource in (
        Resource("path", "/w/a", "read"),
        Resource("path", "/else", "write"),
        Resource("url", "https://a.org/", "GET"),
    ):
        stricter, before = (
            max((STRICTNESS[d.verdict] for d in p.touches(tool, [resource])), default=-1) for p in (with_it, without)
        )
        assert stricter >= before
