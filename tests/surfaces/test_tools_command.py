"""`tools` and `show`: the decision of the rules about each tool in the present mode."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from .conftest import Albert

ECHO = '''def echo(text: str, times: int = 2) -> str:
    """Say it again.

    Args:
        text: What to say, for example "hey there".
        times: How often.
    """
    return text * times
'''


def rules(albert: Albert, document: Any) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "governance.yaml").write_text(json.dumps(document), "utf-8")


def verdicts(albert: Albert, *words: str) -> dict[str, str]:
    return {t["name"]: t["policy"]["verdict"] for t in albert("tools", *words, "--json").document()["tools"]}


def line_of(text: str, name: str) -> str:
    (line,) = [line for line in text.split("\n") if line.split()[:1] == [name]]
    return line


def test_each_tool_is_listed_with_its_decision(albert: Albert) -> None:
    rules(albert, {"deny": ["sleep"], "tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}})
    found = verdicts(albert)
    assert (found["read_file"], found["write_file"], found["sleep"]) == ("allow", "ask", "deny")
    listed = albert("tools").out
    assert line_of(listed, "read_file").split()[1] == "allow"
    assert line_of(listed, "read_file").endswith("  [read]")
    assert line_of(listed, "write_file").split()[1] == "ask"
    assert line_of(listed, "sleep").split()[1] == "deny"
    assert listed.startswith("files\n")


def test_tools_that_the_mode_denies_are_hidden(albert: Albert) -> None:
    albert.write("echo.tool", ECHO)
    assert albert("define", "echo.tool").code == 0
    everything = albert("tools", "--json").document()
    assert (everything["mode"], everything["hidden"]) == ("NORMAL", 0)
    assert albert("mode", "LOCKDOWN", "--cause", "a test").code == 0
    document = albert("tools", "--json").document()
    assert document["mode"] == "LOCKDOWN"
    # A gated primitive is off in every mode.
    assert {t["policy"]["rationale_code"] for t in document["tools"]} <= {"off_by_default"}
    assert document["hidden"] == len(everything["tools"]) - len(document["tools"]) > 5
    done = albert("tools")
    assert not {"read_file", "echo"} & set(done.out.split())
    assert f"not listed: {document['hidden']} denied in LOCKDOWN; --all lists them" in done.err
    shown = verdicts(albert, "--all")
    assert set(shown) == {t["name"] for t in everything["tools"]}
    assert set(shown.values()) == {"deny"}
    # `show` still describes it.
    assert "deny in LOCKDOWN" in albert("show", "read_file").out
    assert "deny in LOCKDOWN" in albert("show", "echo").out


def test_without_usable_rules_the_list_says_why_everything_is_denied(albert: Albert) -> None:
    rules(albert, {"no_such_rule": 1})
    done = albert("tools")
    assert done.code == 0
    assert line_of(done.out, "read_file").split()[1] == "deny"
    assert "everything is denied: the rules of" in done.err
    assert "no_such_rule" in done.err
    assert set(verdicts(albert).values()) == {"deny"}


def test_show_describes_a_primitive(albert: Albert) -> None:
    rules(
        albert,
        {
            "tools": {"write_file": {"allowed_in_modes": ["NORMAL"], "timeout_seconds": 5, "rate_limit_per_hour": 9}},
            "categories": {"system_write": {"rate_limit_per_hour": 200, "allowed_in_modes": ["NORMAL"]}},
        },
    )
    shown = albert("show", "write_file").out
    for line in (
        "effects  write",
        "now      allow in NORMAL  tools.write_file.allowed_in_modes",
        "category system_write, risk medium",
        "modes    all",
        "approval only if the rules demand it",
        "timeout  30 s; 5 s by the rules",
        "rate     9 calls an hour by the rules; 200 calls an hour of all of system_write together by the rules",
    ):
        assert line in shown.split("\n"), shown
    assert "path (path to write)" in shown
    document = albert("show", "write_file", "--json").document()
    assert document["policy"]["rule_id"] == "tools.write_file.allowed_in_modes"
    assert document["bounds"]["timeout_seconds"] == 5
    assert "timeout  60 min; 5 min by the rules\n" in albert("show", "bash").out
    assert document["resources"]["path"] == "path to write"
    assert (document["effects"], document["timeout_seconds"], document["risk"]) == (["write"], 30, "medium")


def test_show_describes_a_saved_tool(albert: Albert) -> None:
    albert.write("echo.tool", ECHO)
    assert albert("define", "echo.tool").code == 0
    shown = albert("show", "echo").out
    assert "effects  none\n" in shown
    assert "now      allow in NORMAL  shipped.saved_tools.allowed_in_modes\n" in shown
    assert "  times: int = 2\n" in shown
    assert ECHO.strip() in shown
    call = albert("show", "echo", "--json").document()["example"]
    assert call == "albert run echo 'text=hey there'"
    assert albert(*shlex.split(call)[1:]).out == "hey therehey there\n"


def test_the_example_call_runs_for_every_type(albert: Albert) -> None:
    albert.write(
        "mixed.tool",
        'def mixed(at: str, n: int, share: float, sure: bool, kind: Literal["a b", "c"], rows: list[int],'
        " table: dict, perhaps: str | None) -> str:\n"
        '    """Mix.\n\n    Args:\n        at: For example "@x\'s".\n        n: A number.\n        share: A part.\n'
        "        sure: Yes.\n        kind: One.\n        rows: Some.\n        table: Any.\n        perhaps: Or not.\n"
        '    """\n    return f"{at} {n} {share} {sure} {kind} {rows} {table} {perhaps}"\n',
    )
    assert albert("define", "mixed.tool").code == 0
    call = albert("show", "mixed", "--json").document()["example"]
    assert albert(*shlex.split(call)[1:]).out == "@x's 1 1 True a b [] {} text\n"


@pytest.mark.parametrize("columns", [80, 120])
def test_verdicts_have_colours_on_a_terminal(albert: Albert, columns: int) -> None:
    rules(albert, {"deny": ["sleep"], "tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}})
    _, text = albert.terminal("tools", columns=columns)
    for colour, word in (("32", "allow"), ("33", "ask"), ("31", "deny")):
        assert f"\x1b[{colour}m{word}\x1b[0m" in text


def test_markdown_and_json_exclude_each_other(albert: Albert) -> None:
    assert albert("tools", "--markdown", "--json").code == 2
    page = albert("tools", "--markdown").out
    assert page.startswith("# Tools\n")
    assert "### read_file\n" in page
