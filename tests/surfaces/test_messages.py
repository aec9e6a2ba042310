"""Error messages and hints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService
from albert_tools.surfaces.text.effect_line import effect_line
from albert_tools.surfaces.text.hints import with_hint

from .conftest import Albert

MIXED = '''def mixed(rate: float, paths: list[str], sizes: list[int], table: dict[str, int], flag: bool) -> str:
    """Take one of each.

    Args:
        rate: A number.
        paths: Texts.
        sizes: Numbers.
        table: By name.
        flag: Yes or no.
    """
    return f"{rate} {paths} {sizes} {table} {flag}"
'''


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    albert = Albert(tmp_path_factory.mktemp("mixed"))
    albert.write("mixed.tool", MIXED)
    assert albert("define", "mixed.tool").code == 0
    return albert


GOOD = ["rate=1", 'paths:=["x.csv"]', "sizes=[1]", "table={}", "flag=true"]


@pytest.mark.parametrize(
    ("wrong", "message", "help_"),
    [
        ("rate=abc", "mixed: rate: expected float, got 'abc'", "call the tool as mixed("),
        ("paths=x.csv", "mixed: paths: expected list[str], got 'x.csv'", """write paths:='["x.csv"]'"""),
        ("paths=it's", 'paths: expected list[str], got "it\'s"', """write paths:='["it'"'"'s"]'"""),
        ("sizes=3", "sizes: expected list[int], got '3'", "write sizes:='[1]'"),
        ("table=a", "table: expected dict[str, int], got 'a'", """write table:='{"name": "value"}'"""),
        ("flag=yes", "flag: expected bool, got 'yes'", "write flag=true or flag=false"),
        ("rate=@nofile", "rate: 'nofile' can't be read: No such file or directory", "name a file that exists"),
        ("rate=" + "9" * 100 + "x", "rate: expected float, got '" + "9" * 39 + "…'", "call the tool as"),
    ],
    ids=lambda v: v[:20],
)
def test_an_argument_of_the_wrong_type(mixed: Albert, wrong: str, message: str, help_: str) -> None:
    name = wrong.partition("=")[0]
    done = mixed("run", "mixed", *(g for g in GOOD if not g.startswith(name)), wrong)
    assert done.code == 2
    assert message in done.err
    assert f"  help: {help_}" in done.err


def test_the_hinted_spelling_works(mixed: Albert) -> None:
    assert mixed("run", "mixed", *GOOD).out == "1 ['x.csv'] [1] {} True\n"


def test_an_argument_given_twice(mixed: Albert) -> None:
    done = mixed("run", "mixed", *GOOD, "rate=2")
    assert (done.code, done.out) == (2, "")
    assert "rate is given twice" in done.err
    assert mixed("run", "mixed", *GOOD, "rate:=2").code == 2


@pytest.mark.parametrize(
    ("words", "code", "help_"),
    [
        (["remove", "read_file"], 3, "to turn a primitive off"),
        (["remove", "no_such"], 3, "`albert tools` lists the tools"),
        (["run", "no_such"], 3, "`albert tools` lists the tools"),
        (["show", "no_such", "--version", "1234567"], 3, "`albert tools` lists the tools"),
        (["run", "read_file", "path=zzz"], 1, "`albert run list_directory path=.` lists it"),
        (["run", "escape", "--args", "@nofile"], 2, "name a file that exists, or - for stdin"),
        (["run", "escape", "--args", "[1]"], 2, """write --args '{"name": "value"}'"""),
        (["tools", "extra"], 2, "usage: albert tools"),
        (["define", "nofile"], 1, "name a file that exists"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_errors_have_hints(ready: Albert, words: list[str], code: int, help_: str) -> None:
    done = ready(*words)
    assert done.code == code
    assert re.search(rf"\n  help: .*{re.escape(help_)}", done.err), done.err


def test_albert_alone_lists_the_commands(ready: Albert) -> None:
    done = ready()
    assert (done.code, done.out) == (2, "")
    for name in ("define", "check", "fmt", "run", "tools", "search", "show", "remove", "doctor", "prompt"):
        assert re.search(rf"^  {name} +\w", done.err, re.MULTILINE)
    assert ready("--json").document()["error"]["code"] == "usage"


def test_no_folder_is_suggested_for_a_missing_file(albert: Albert) -> None:
    (albert.project / "no").mkdir()
    (albert.project / "nos.d").mkdir()
    assert "did you mean" not in albert("run", "read_file", "path=no.csv").err
    albert.write("now.csv", "a,b")
    assert "did you mean 'now.csv'?" in albert("run", "read_file", "path=no.csv").err


@pytest.mark.parametrize("rule", ["allow", "deny"])
def test_a_rule_that_should_be_a_list(albert: Albert, rule: str) -> None:
    rules(albert, f"{rule}: bash")
    done = albert("run", "current_time")
    assert done.code == 3
    assert f"{rule}: expected a list; write `{rule}: [bash]`" in done.err


def rules(albert: Albert, text: str) -> Path:
    path = albert.home / "config" / "governance.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_doctor_finds_rules_that_name_nothing(albert: Albert) -> None:
    rules(albert, "allow: [bsh]\ndeny: [write]")
    own = albert.project / ".albert" / "governance.yaml"
    own.write_text("allow: [http_requst]")
    done = albert("doctor", "--quick")
    assert done.code == 1
    assert "✗ rule           allow.bsh: there is no primitive named 'bsh'; did you mean 'bash'?" in done.out
    assert "deny.write: there is no tool named 'write'" in done.out
    assert "project.allow.http_requst: there is no primitive named 'http_requst'" in done.out
    rules(albert, "allow: [bash")
    broken = albert("doctor", "--quick", "--json").document()
    assert broken["ok"] is False
    assert [p for p in broken["problems"] if p.startswith("rules: ") and "can't be used: line 1, column " in p]


def test_doctor_finds_a_home_that_can_not_be_written(albert: Albert) -> None:
    # Not even root can create files there.
    document = albert("doctor", "--quick", "--json", "--home", "/proc/albert").document()
    assert document["ok"] is False
    assert [p for p in document["problems"] if p.startswith("tools: /proc/albert/tools can't be written: ")]
    albert.home.write_text("in the way")
    done = albert("doctor", "--quick")
    assert done.code == 1
    assert f"{albert.home} is not a folder; move it away, or set ALBERT_HOME to another place" in done.out
    assert albert.home.read_text() == "in the way"


def test_doctor_leaves_no_trace(albert: Albert) -> None:
    done = albert("doctor", "--quick")
    assert done.code == 0
    assert re.search(r"^✓ rules +/.*/governance.yaml: no such file yet, so the shipped rules apply$", done.out, re.M)
    assert not [p for p in albert.home.rglob("*") if p.is_file() and "cache" not in p.parts]


def test_many_findings_are_cut_short(albert: Albert) -> None:
    albert.write("table.csv", "".join(f"a{i},b{i}\n" for i in range(1500)))
    done = albert("define", "table.csv")
    assert done.code == 1
    assert done.err.count("error[") == 20
    found = albert("define", "table.csv", "--json").document()["diagnostics"]
    assert (len(found), found[-1]["code"]) == (101, "more-findings")
    assert f"\n… and 80 more; {found[-1]['message']}\n\n" in done.err
    (albert.project / "junk.bin").write_bytes(bytes(range(32, 127)) * 500)
    assert albert("define", "junk.bin").err.count("\n") < 200


def test_sizes_are_readable(albert: Albert) -> None:
    done = albert("run", "write_file", "path=a.txt", f"content={'x' * 12345}")
    assert "wrote a.txt, 12,345 bytes" in done.err


@pytest.mark.parametrize(
    ("kind", "facts", "line"),
    [
        ("write", {"artifact": "r1", "category": "report", "size_bytes": 5}, "published r1, 5 bytes"),
        ("network", {"provider": "local", "model": "small-1", "model_tokens": 3}, "asked small-1 of local, 3 tokens"),
        (
            "network",
            {"provider": "local", "model": "m", "model_tokens": 1, "estimated": True},
            "asked m of local, about 1 token",
        ),
        ("network", {"url": "https://example.org/"}, "asked https://example.org/"),
        (
            "network",
            {"url": "http://a.example/", "refused": "permission_denied"},
            "did not reach http://a.example/ (permission_denied)",
        ),
        ("execute", {"command": "ls -la", "exit_code": 0}, "ran 'ls -la', exit code 0"),
        (
            "execute",
            {"command": "ls", "exit_code": None, "over": "timeout", "seconds": 1.0},
            "ran 'ls', which was ended after 1 s",
        ),
        ("execute", {"command": "ls", "exit_code": None}, "ran 'ls', which did not end by itself"),
        ("execute", {"program": "ruff", "args": ["check", "."], "exit_code": 1}, "ran 'ruff check .', exit code 1"),
        ("execute", {"operation": "STATUS", "exit_code": 0}, "ran 'git status', exit code 0"),
        # Albert Tools itself calls git here, so exit code 1 is no failure.
        ("execute", {"operation": "CONFIG", "exit_code": 1}, ""),
    ],
)
def test_an_effect_in_a_line(kind: str, facts: dict[str, Any], line: str) -> None:
    assert effect_line(kind, facts) == line


def test_hints_of_primitives(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / "a.txt").write_text("a")
    (work / "bytes").write_bytes(b"\xff\xfe")
    (work / "dangling").symlink_to("nothing")
    allowed = {"allowed_in_modes": ["NORMAL"]}
    rules = {
        "categories": {"system_delete": allowed, "network": allowed},
        "tools": {"http_request": {**allowed, "allowed_hosts": ["127.0.0.1"], "allowed_methods": ["GET"]}},
    }
    both = {"source": "a.txt", "target": "docs"}
    copy = {"source": "a.txt", "target": "a.txt"}
    with SyncToolService.open(home=tmp_path / "home", workspace=work, governance=rules) as service:
        leaving = service.invoke("write_file", {"path": "../a", "content": ""}).error
        assert leaving is not None
        assert (leaving.message, leaving.hint) == (
            "write_file: path: must not contain '..'; write the path from the workspace down",
            None,
        )
        for tool, arguments, message, hint in (
            ("write_file", {"path": "new/a", "content": ""}, "there is nothing at", "make_directory makes it"),
            (
                "read_file",
                {"path": "dangling"},
                "there is nothing at",
                "it is a link to 'nothing', where there is nothing",
            ),
            ("write_file", {"path": "a.txt", "content": "", "create_only": True}, "already", "leave out create_only"),
            ("write_file", {"path": "docs", "content": ""}, "is a folder", "name the file too, 'docs/…'"),
            ("copy_file", both, "already", "it is a folder: name the file too, 'docs/a.txt'"),
            ("copy_file", {**both, "overwrite": True}, "is a folder", "name the file too, 'docs/a.txt'"),
            ("move_file", both, "already", "it is a folder: name the file too, 'docs/a.txt'"),
            ("copy_file", copy, "already", "overwrite=True replaces it"),
            ("read_file", {"path": "bytes"}, "is not utf-8 text", "name its encoding"),
            ("get_artifact", {"id": "nope"}, "no artifact 'nope'", "give the id exactly as it was published"),
            ("read_result", {"handle": "foo"}, "is not a reference", "a reference is b3: and 64 hex digits"),
            ("search_text", {"pattern": "(?=x)"}, "is not a valid pattern", "no lookaround"),
            (
                "git",
                {"operation": "STATSU"},
                '"STATSU" is not one of the choices; did you mean "STATUS"?',
                "git takes operation: ",
            ),
            ("git", {"operation": "nope"}, "expected one of ", ""),
            ("http_request", {"url": "http://127.0.0.1:1/"}, "refused, so nothing listens at that port", ""),
            ("http_request", {"url": "http://u:p@127.0.0.1/"}, "can't contain a user name or password", ""),
            (
                "http_request",
                {"url": "http://127.0.0.1/", "method": "POST"},
                "the method 'POST' is not among those that http_request may use",
                "allowed_methods",
            ),
        ):
            error = service.invoke(tool, arguments).error
            assert error is not None
            assert message in error.message
            assert hint in (error.hint or ""), tool
            # A long list of choices appears once.
            assert (error.message + (error.hint or "")).count('"FETCH"') <= 1
            # This hint is for missing paths only.
            assert "list_directory" not in str(with_hint(error.as_dict())["hint"])
