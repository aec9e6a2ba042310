"""`albert upgrade`: new pins are proposed as new versions."""

from __future__ import annotations

import json

import pytest

from .conftest import Albert

BASE = '''
def base(a: str) -> str:
    """Be called."""
    return a.upper()
'''
TOP = '''
def {name}(a: str) -> str:
    """Call."""
    return tools.{callee}(a=a)
'''


@pytest.fixture
def changed(albert: Albert) -> Albert:
    """A chain of three tools; the innermost one has a newer version."""
    albert.write("a.tool", BASE)
    albert.write("b.tool", TOP.format(name="middle", callee="base"))
    albert.write("c.tool", TOP.format(name="top", callee="middle"))
    albert.write("d.tool", BASE.replace("upper", "lower"))
    for file in ("a.tool", "b.tool", "c.tool"):
        assert albert("define", file).code == 0
    assert albert("review", "top", "--approve").code == 0
    assert albert("define", "d.tool").code == 0
    return albert


def test_the_tools_that_call_an_older_version_get_new_versions(changed: Albert) -> None:
    assert changed("run", "top", "a=Ab").out == "AB\n"
    done = changed("upgrade", "--json").document()
    assert [(u["name"], [p["name"] for p in u["pins"]]) for u in done["upgrades"]] == [
        ("middle", ["base"]),
        ("top", ["middle"]),
    ]
    assert changed("run", "top", "a=Ab").out == "ab\n"
    # The version that was approved stays active.
    queue = [waiting["name"] for waiting in changed("review", "--json").document()["queue"]]
    assert queue == ["base", "middle", "top"]
    assert "active in an older version" in changed("tools").out
    assert "all saved tools call the newest versions" in changed("upgrade").err


def test_a_rejected_version_is_not_proposed_again(changed: Albert) -> None:
    changed.write("e.tool", TOP.format(name="top", callee="base"))
    assert changed("define", "e.tool").code == 0
    assert changed("review", "top", "--reject", "it skips the middle").code == 0
    upgraded = {u["name"]: u for u in changed("upgrade", "--json").document()["upgrades"]}
    # The approved version is upgraded instead.
    assert [pin["name"] for pin in upgraded["top"]["pins"]] == ["middle"]
    assert changed("review", "top", "--reject", "not this one either").code == 0
    assert changed("review", "middle", "--reject", "nor this").code == 0
    assert changed("upgrade", "middle", "--json").document()["upgrades"] == []


def test_a_dry_run_shows_the_same_and_saves_nothing(changed: Albert) -> None:
    before = changed("tools", "--json").out
    dry = changed("upgrade", "--dry-run")
    assert dry.code == 0
    assert dry.out.splitlines()[0].startswith("would be pending middle  ")
    assert changed("tools", "--json").out == before
    planned = changed("upgrade", "--dry-run", "--json").document()["upgrades"]
    assert planned == changed("upgrade", "--json").document()["upgrades"]


def test_a_tool_that_no_longer_fits_is_reported_and_keeps_its_version(changed: Albert) -> None:
    changed.write("e.tool", BASE.replace("a: str", "b: str").replace("a.upper", "b.upper"))
    assert changed("define", "e.tool").code == 0
    done = changed("upgrade", "middle")
    assert done.code == 1
    assert done.out.startswith("error middle: ")
    assert changed("run", "middle", "a=x").out == "X\n"


def test_a_version_without_a_manifest_is_damaged_until_it_is_defined_again(albert: Albert) -> None:
    albert.write("a.tool", BASE)
    assert albert("define", "a.tool").code == 0
    (file,) = albert.home.rglob("tools/**/base.json")
    stored = json.loads(file.read_text())
    for version in stored["versions"].values():
        del version["manifest"]
    file.write_text(json.dumps(stored))
    for command in (("review", "base", "--approve"), ("run", "base", "a=x"), ("upgrade", "base")):
        refused = albert(*command)
        assert refused.code == 1
        assert "the entry of the tool 'base' can't be used" in refused.err
    assert albert("define", "a.tool").code == 0
    assert albert("review", "base", "--approve").code == 0
