"""``albert mode`` and ``albert policy``, and the question in the middle of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.fixture
def ruled(albert: Any) -> Any:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(
        "tools:\n  write_file: {requires_approval_in_modes: [NORMAL], forbidden_paths: [secrets]}\n"
    )
    return albert


def test_the_mode_is_told_switched_and_kept(albert: Any) -> None:
    assert albert("mode").out == "NORMAL\n"
    done = albert("mode", "lockdown", "--cause", "a drill")
    assert done.out.startswith("LOCKDOWN (it was NORMAL) since ")
    assert done.out.endswith(": a drill\n")
    denied = albert("run", "list_directory", "--json")
    assert denied.code == 3
    assert denied.document()["error"]["rule"] == "shipped.categories.read_only.forbidden_in_modes"
    refused = albert("mode", "NORMAL")
    assert (refused.code, refused.err) == (
        1,
        "error[invalid_arguments]: LOCKDOWN can't be left for NORMAL\n  help: it can be left for RECOVERY\n",
    )
    assert albert("mode", "RECOVERY", "--json").document()["mode"] == "RECOVERY"
    assert albert("run", "list_directory").code == 0
    assert albert("mode", "CALM").code == 1


def test_explain(ruled: Any) -> None:
    asked = ruled("policy", "explain", "write_file", "path=a", "content=b", "--json")
    document = asked.document()
    assert (asked.code, document["decision"]["verdict"]) == (0, "ask")
    assert document["mode"] == "NORMAL"
    denied = ruled("policy", "explain", "write_file", "path=secrets/a", "content=b")
    assert denied.code == 3
    assert denied.out == (
        "ask  tools.write_file.requires_approval_in_modes  write_file needs a person's approval in NORMAL\n"
        "deny  tools.write_file.forbidden_paths  'secrets/a' is forbidden by 'secrets'\n"
        "so: deny\n"
    )
    assert ruled("policy", "explain", "write_file", "path=a").code == 2
    assert ruled("policy", "explain").code == 2
    assert ruled("policy", "explain", "nothing").code == 1
    assert list(ruled.project.iterdir()) == [ruled.project / ".albert"]


def test_check(ruled: Any) -> None:
    assert ruled("policy", "check").out == "the rules are good\n"
    rules = ruled.home / "config" / "governance.yaml"
    rules.write_text("deny: [read_fil]\n")
    found = ruled("policy", "check")
    assert (found.code, found.out) == (
        1,
        "warning: deny.read_fil: there is no tool named 'read_fil'; did you mean 'read_file'?\n",
    )
    assert json.loads(ruled("policy", "check", "--json").out)["findings"][0]["rule"] == "deny.read_fil"
    rules.write_text("tools:\n  read_file:\n    allowed_in_modes: [NORMLA]\n")
    broken = ruled("policy", "check")
    assert broken.code == 3
    assert "line 3, column 24: tools.read_file.allowed_in_modes.0: " in broken.err


@pytest.mark.parametrize(("typed", "code"), [(b"yes\n", 0), (b"no\n", 3), (b"\n", 3), (b"\x04", 3)])
def test_a_question_on_a_terminal(ruled: Any, typed: bytes, code: int) -> None:
    got, shown = ruled.terminal("run", "write_file", "path=a", "content=hello", typed=typed, until="yes or no? ")
    assert "May write_file be called?" in shown
    assert 'path = "a"' in shown
    assert "write_file needs a person's approval in NORMAL" in shown
    assert got == code
    assert (ruled.project / "a").exists() == (code == 0)
