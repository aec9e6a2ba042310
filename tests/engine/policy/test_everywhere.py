"""The rules at the top of a file apply to every tool: to those that name a path or a host, and to commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance
from tests.helpers.governed import Governed, governing

RULES = {"forbidden_paths": ["secrets/", ".env", "*.pem"], "forbidden_hosts": ["evil.example", "*.evil.example"]}
FILES = ("secrets/deep/key", ".env", "sub/.env", "a.pem")
PRIMITIVES = [load() for load in builtin_loaders().values()]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    with governing(tmp_path) as make:
        yield make


@pytest.mark.parametrize("layer", ["owner", "project"])
@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_primitive_is_refused(primitive: Primitive, layer: str) -> None:
    rules = read_governance(RULES)
    if layer == "project":
        rules = read_governance({}).tightened(rules)
    policy, prefix = Policy(rules.layers(), "/w", "/home/user"), "project." if layer == "project" else ""
    for file in FILES:
        for use in ("read", "write", "delete"):
            (found,) = policy.touches(primitive.definition, [Resource("path", f"/w/{file}", use)])
            assert (found.verdict, found.rule) == ("deny", f"{prefix}forbidden_paths")
    assert policy.paths.of(primitive.definition).selective
    for host in ("evil.example", "a.b.evil.example"):
        (found,) = policy.touches(primitive.definition, [Resource("url", f"https://{host}/", "GET")])
        assert (found.verdict, found.rule) == ("deny", f"{prefix}forbidden_hosts")


def test_commands_artifacts_and_models_obey(make: Callable[..., Governed]) -> None:
    provider = {"providers": {"local": {"base_url": "http://evil.example/v1"}}}
    ordinary = {"ordinary_commands": ["cat *"], "allowed_in_modes": ["NORMAL"]}
    here = make(governance={**RULES, "tools": {"bash": ordinary}, "primitives": {"inference": provider}})
    for file in FILES:
        (here.work / file).parent.mkdir(parents=True, exist_ok=True)
        (here.work / file).write_text("SECRET")
        assert here.error("publish_artifact", path=file, id="x", category="report").rule == "forbidden_paths"
    shown = here.value("bash", command=f"cat {' '.join(FILES)} 2>&1")
    assert (shown["exit_code"], "SECRET" in shown["output"]) == (1, False)
    assert here.error("inference", provider="local", model="m", prompt="p").rule == "forbidden_hosts"
    assert here.error("http_request", url="http://evil.example/").rule == "forbidden_hosts"
    assert "SECRET" not in here.recorded()


def test_writable_paths_and_free_hosts_hold_for_every_primitive() -> None:
    policy = Policy(
        read_governance({"writable_paths": ["src/**"], "free_hosts": ["a.example"]}).layers(), "/w", "/home/u"
    )
    for primitive in PRIMITIVES:
        for use, rules in {"read": [], "write": ["writable_paths"], "delete": ["writable_paths"]}.items():
            found = policy.touches(primitive.definition, [Resource("path", "/w/tests/x", use)])
            assert [d.rule for d in found] == rules
            assert policy.touches(primitive.definition, [Resource("path", "/w/src/x", use)]) == []
        assert policy.paths.of(primitive.definition).writable() == ["/w/src/"]
        assert policy.touches(primitive.definition, [Resource("url", "https://a.example/", "POST")]) == []


def test_a_key_of_a_section_at_the_top_says_where_it_belongs() -> None:
    with pytest.raises(Exception, match=r"allowed_paths: write it in the section of a tool or a category: `tools: \{"):
        read_governance({"allowed_paths": ["src"]})
