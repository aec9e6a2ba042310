"""Which manifests the owner's rules may activate without a review, and what such an activation does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value
from albert_tools.engine.policy.harmless import READ_ONLY, is_harmless
from albert_tools.engine.policy.settings import Governance, load_governance

READS = 'return tools.read_file(path="notes/" + a)'
WRITES = 'tools.write_file(path="a", content=a)\n    return None'


def reading(*parts: Any, **more: Any) -> Manifest:
    facts = {"effects": ("read",), "uses": {"path": "read"}, "source": "file", **more}
    path = more.pop("path", Value((parts,)))
    facts.pop("path", None)
    return Manifest(("read",), (PlannedCall("read_file", arguments={"path": path}, **facts),))


@pytest.mark.parametrize(
    "manifest",
    [
        Manifest(),
        reading("notes.md"),
        reading(Hole("parameter", "folder"), Hole("below")),
        reading("part-", Hole("number"), ".txt"),
        reading(path=Value(items=Value((("a.md",),)))),
        Manifest(calls=(PlannedCall("add"),)),
    ],
    ids=repr,
)
def test_reading_inside_the_workspace_is_harmless(manifest: Manifest) -> None:
    assert is_harmless(manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        reading("/etc/passwd"),
        reading("~/.ssh/id_rsa"),
        reading("a/../../b"),
        reading("notes/", Hole("any")),
        reading(Hole("output", call=0)),
        reading(path=Value(open=True)),
        reading(path=Value(items=Value(open=True))),
        reading("a", effects=("read", "network")),
        reading("a", uses={"path": "write"}),
        reading("a", uses={"path": "read", "to": "destination"}),
        reading("a", uses={}),
        reading("a", source="web"),
        Manifest(("write",)),
        Manifest(calls=(PlannedCall("now", source="clock"),)),
    ],
    ids=repr,
)
def test_everything_else_is_not(manifest: Manifest) -> None:
    assert not is_harmless(manifest)


def states(bench: Any, name: str = "t") -> list[tuple[str, str]]:
    return bench.service.within(lambda s: [(v.state, v.by) for v in s.reviews.all(name)])  # type: ignore[no-any-return]


@pytest.mark.parametrize(("body", "state"), [(READS, ("active", "the rules")), (WRITES, ("pending", ""))])
def test_the_rules_activate_a_harmless_version_if_the_owner_says_so(
    make_bench: Any, body: str, state: tuple[str, str]
) -> None:
    bench = make_bench(governance={"activate": READ_ONLY})
    bench.define(body, parameters="a: str")
    assert states(bench) == [state]


def test_without_the_rule_each_version_is_pending(make_bench: Any) -> None:
    bench = make_bench()
    bench.define(READS, parameters="a: str")
    assert states(bench) == [("pending", "")]


def test_the_rules_replace_no_version_that_a_person_has_approved(make_bench: Any) -> None:
    bench = make_bench(governance={"activate": READ_ONLY})
    bench.define(WRITES, parameters="a: str")
    bench.service.approve("t", "ann")
    bench.define(READS, parameters="a: str")
    assert states(bench) == [("pending", ""), ("active", "ann")]


def test_a_project_can_not_activate_anything(tmp_path: Path) -> None:
    project = tmp_path / "governance.yaml"
    project.write_text(f"activate: {READ_ONLY}\n")
    with pytest.raises(Failure, match="only the owner's file can have activate") as caught:
        load_governance(Governance(), project)
    assert caught.value.code == "governance_unavailable"


def test_another_value_is_a_mistake(make_bench: Any) -> None:
    with pytest.raises(Failure, match="activate"):
        make_bench(governance={"activate": "everything"}).service.invoke("read_file", {"path": "a"}).value()
