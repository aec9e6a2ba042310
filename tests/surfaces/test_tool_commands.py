"""Each command, used for its purpose."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from albert_tools.store.record.schema import VERSION
from albert_tools.store.record.sqlite import FILE
from tests.evidence.strict import SCHEMA
from tests.helpers.altered import altered

from .conftest import ROOT, TOOLS, Albert

TOP = '''def top(text: str) -> str:
    """Call another.

    Args:
        text: Handed on.
    """
    return tools.base(text=text) + "!"
'''
PICK = '''def pick(mode: Literal["fast", "slow"], flag: bool = False) -> str:
    """Choose.

    Args:
        mode: One of two.
        flag: Yes or no.
    """
    return mode
'''
BASE = '''def base(text: str) -> str:
    """Be called.

    Args:
        text: Shouted.
    """
    return text.upper()
'''


def test_a_tool_from_its_text_to_its_removal(albert: Albert) -> None:
    albert.write("top.tool", TOP)
    albert.write("base.tool", BASE)
    checked = albert("check", "base.tool", "--json").document()
    assert checked["ok"] is True
    done = albert("define", "top.tool", "base.tool")
    assert done.code == 0, done.err
    assert re.findall(r"saved (\w+)", done.out) == ["base", "top"]
    assert albert("run", "top", "text=a").out == "A!\n"
    assert albert("run", "top", "--args", "-", stdin=b'{"text": "b"}').out == "B!\n"
    shown = albert("show", "top")
    assert TOP.strip() in shown.out
    assert "calls    base" in shown.out
    helped = albert("run", "top", "--help")
    assert "top  Call another.\n\n  text: str\n      Handed on.\n" in helped.out
    assert "\n  albert run top text=text\n" in helped.out
    assert albert("run", "--help").out in helped.out
    assert albert("run", "tpo", "--help").err.startswith(
        "error[unknown_tool]: no tool named 'tpo'; did you mean 'top'?"
    )
    document = albert("show", "top", "--json").document()
    assert document["source"] == TOP
    assert [c["name"] for c in document["calls"]] == ["base"]
    assert "top" in albert("tools").out
    found = albert("search", "shouted")
    assert ("base" in found.out, found.err) == (True, "")
    assert albert("search", "zzz").err == "nothing found\n"
    assert albert("remove", "top").code == 0
    assert albert("run", "top", "text=a").code == 3
    by_hash = albert("run", "--version", document["version"], "top", "text=a", "--quiet")
    assert (by_hash.out, by_hash.err) == ("A!\n", "")


def test_arguments_written_as_json_without_their_option(ready: Albert) -> None:
    wrong = ready("run", "write_file", '{"path": "a.txt", "content": "it\'s"}')
    assert wrong.code == 2
    (words,) = re.findall(r"help: write (--args .*)", wrong.err)
    assert ready("run", "write_file", *shlex.split(words)).code == 0
    long = json.dumps({"path": "a.txt", "content": "x" * 5000})
    assert "help: write --args '{…}'\n" in ready("run", "write_file", long).err


def test_paths_that_are_given_in_a_folder_below_the_workspace(ready: Albert) -> None:
    below = ready.project / "below"
    below.mkdir()
    (below / "mine.txt").write_text("mine")
    note = f"note: paths start at the workspace {ready.project}: the file '%s' in this folder is 'below/%s'\n"
    wrong = ready("run", "read_file", "path=mine.txt", cwd=below)
    assert (wrong.code, wrong.err.startswith(note % ("mine.txt", "mine.txt"))) == (1, True)
    written = ready("run", "write_file", "path=new.txt", "content=x", cwd=below)
    assert written.err == note % ("new.txt", "new.txt") + "wrote new.txt, 1 byte\n"
    assert ready("run", "read_file", "path=new.txt", cwd=below).err == ""
    assert ready("run", "read_file", "path=below/mine.txt", cwd=below).err == ""


def test_tools_that_call_each_other_in_a_circle(albert: Albert) -> None:
    albert.write("top.tool", TOP)
    albert.write("base.tool", BASE.replace("text.upper()", "tools.top(text=text)"))
    done = albert("define", "top.tool", "base.tool")
    assert done.code == 2
    assert "circle" in done.err
    assert not [t for t in albert("tools", "--json").document()["tools"] if t["kind"] == "composite"]


def test_a_refused_source(albert: Albert) -> None:
    source = BASE.replace("text.upper()", "tools.read_flie(path=text)")
    done = albert("define", "-", stdin=source.encode())
    assert done.code == 1
    assert "error[unknown-tool]" in done.err
    assert "^^^^" in done.err
    assert done.out == ""
    document = albert("define", "-", "--json", stdin=source.encode()).document()
    assert [d["code"] for d in document["diagnostics"]] == ["unknown-tool"]


def test_several_files_give_one_document(albert: Albert) -> None:
    albert.write("base.tool", BASE)
    done = albert("define", "base.tool", "nowhere", "--json")
    assert done.code == 1
    assert [d["ok"] for d in done.document()["files"]] == [False, True]


def test_a_structured_definition(albert: Albert) -> None:
    form = {
        "name": "twice",
        "description": "Say it twice.",
        "parameters": [{"name": "text", "type": "str", "description": "What."}],
        "implementation": "return text * 2",
    }
    assert albert("define", "--json-form", "-", stdin=json.dumps(form).encode()).code == 0
    assert albert("run", "twice", "text=ab").out == "abab\n"
    albert.write("twice.json", json.dumps(form))
    assert albert("check", "twice.json").out == "good twice.json\n"
    assert albert("define", "twice.json").out.startswith("unchanged ")
    assert albert("fmt", "--check", "twice.json").code == 1
    form["implementation"] = "return tex * 2"
    done = albert("define", "--json-form", "-", stdin=json.dumps(form).encode())
    assert done.code == 1
    assert "return tex * 2" in done.err


def test_an_example_that_fails(albert: Albert) -> None:
    done = albert("define", "-", stdin=f'@example(arguments={{"text": "a"}}, result="B")\n{BASE}'.encode())
    assert done.code == 1
    assert "error[example_failed]" in done.err
    assert 'expected: "B"' in done.err
    assert 'got: "A"' in done.err


def test_fmt(albert: Albert) -> None:
    rough = BASE.replace("text.upper()", "( text . upper( ) )")
    albert.write("base.tool", rough)
    done = albert("fmt", "--check", "--diff", "base.tool")
    assert done.code == 1
    assert "+    return text.upper()" in done.out
    assert (albert.project / "base.tool").read_text() == rough
    assert albert("fmt", "base.tool").code == 0
    assert (albert.project / "base.tool").read_text() == BASE
    assert albert("fmt", "--check", "base.tool", "--json").document() == {
        "ok": True,
        "file": "base.tool",
        "changed": False,
    }
    assert albert("fmt", "-", stdin=rough.encode()).out == BASE


def test_run_separates_results_and_remarks(ready: Albert) -> None:
    done = ready("run", "escape", "text=x")
    assert (done.out, done.err) == ("\x1b[31mx\n", "working\n")
    document = ready("--json", "run", "escape", "text=x").document()
    assert (document["ok"], document["output"], document["log"]) == (True, "\x1b[31mx", "working\n")
    done = ready("run", "write_file", "path=made.txt", "content=four")
    assert "wrote made.txt, 4 bytes" in done.err
    found = ready("run", "word_frequencies", "path=poem.txt", "top=1")
    assert json.loads(found.out) == [{"word": "the", "count": 2}]


def test_the_strict_result(albert: Albert) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("tools: {make_directory: {requires_approval_in_modes: [NORMAL]}}\n")
    albert.write("a.txt", "x")

    def strict(*words: str) -> tuple[int, Any]:
        done = albert(*words, "--strict")
        document = done.document()
        assert [*Draft202012Validator(SCHEMA).iter_errors(document)] == []
        return done.code, document

    code, done = strict("run", "read_file", "path=a.txt")
    assert (code, done["tool"], done["action"]) == (0, "files", "read_file")
    assert (done["output"], done["policy"]["allowed"]) == ({"value": "x", "truncated": False}, True)
    assert done["effects"][0]["path"] == "a.txt"
    code, failed = strict("run", "read_file", "path=b.txt")
    assert (code, failed["error"]["type"], failed["output"]["value"]) == (1, "NotFound", None)
    code, denied = strict("run", "read_file", "path=/etc/passwd")
    assert (code, denied["policy"]["allowed"], denied["policy"]["rule_id"]) == (3, False, "outside_workspace")
    code, waits = strict("run", "make_directory", "path=d")
    assert (code, waits["ok"]) == (4, False)
    approval = albert("approvals", "--json").document()["approvals"][0]["approval"]
    assert albert("approvals", "answer", approval, "once", "--yes").code == 0
    code, resumed = strict("runs", "resume", waits["run_id"])
    assert (code, resumed["ok"], resumed["trace_id"]) == (0, True, waits["trace_id"])
    # A command that makes no call prints the same keys.
    for words, tool, expected in (
        (("run", "read_file"), "read_file", (2, "ValidationFailed")),
        (("run", "read_file", "--pth"), "albert", (2, "ValidationFailed")),
        (("runs", "resume", "abc"), "albert", (1, "NotFound")),
    ):
        code, mistaken = strict(*words)
        assert (code, mistaken["error"]["type"], mistaken["action"]) == (*expected, tool), words


def test_ways_to_give_an_argument(ready: Albert) -> None:
    ready.write("text.txt", "from a file")
    ready.write("args.json", '{"text": "from json"}')
    assert ready("run", "escape", "text=@text.txt").out.endswith("from a file\n")
    assert ready("run", "escape", "text=@@x").out.endswith("m@x\n")
    assert ready("run", "escape", "--args", "@args.json").out.endswith("from json\n")
    assert ready("run", "escape", 'text:="quoted"').out.endswith("mquoted\n")
    assert ready("run", "escape", "--quiet", "text=a=b").out.endswith("ma=b\n")


def test_doctor_tests_the_limits(ready: Albert) -> None:
    document = ready("doctor", "--json").document()
    assert len(document["trials"]) >= 8
    assert all(t["ok"] for t in document["trials"]), document["trials"]
    assert document["facts"]["rules"].startswith(str(ready.home))
    assert document["facts"]["workspace"] == str(ready.project)


@pytest.mark.slow
def test_two_processes_at_once(albert: Albert) -> None:
    for name in ("one", "two"):
        albert.write(f"{name}.tool", BASE.replace("base", name))
    both = [albert.start("define", f"{name}.tool", stdout=subprocess.DEVNULL) for name in ("one", "two")]
    assert [p.wait(60) for p in both] == [0, 0]
    names = {t["name"] for t in albert("tools", "--json").document()["tools"]}
    assert {"one", "two"} <= names


def test_doctor_reports_open_questions_and_public_folders(albert: Albert) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text("tools:\n  write_file: {requires_approval_in_modes: [NORMAL]}\n")
    assert albert("run", "write_file", "path=a", "content=b").code == 4
    facts = albert("doctor", "--quick", "--json").document()["facts"]
    assert facts["approvals"] == "1 waits for an answer: `albert approvals`"
    assert facts["runs"] == "1 suspended, 0 interrupted: `albert runs`"
    assert facts["private"] == "only the owner can read the state"
    (albert.home / "state" / "record").chmod(0o755)
    document = albert("doctor", "--quick", "--json").document()
    assert document["ok"] is False
    assert any(
        p.startswith("private: the folder of the record is open to others (mode 0755") for p in document["problems"]
    )


def test_doctor_reports_the_record_and_names_an_old_one(albert: Albert) -> None:
    path = albert.home / "state" / "record" / FILE
    assert albert("doctor", "--quick", "--json").document()["facts"]["record"] == f"{path}: no entry yet"
    assert not path.exists()
    old = albert.home / "state" / "log"
    old.mkdir(parents=True)
    old.parent.chmod(0o700)
    (old / "20260131T080000.000001Z-1-00000000.log").write_text("x")
    assert albert("run", "write_file", "path=a", "content=b").code == 0
    document = albert("doctor", "--quick", "--json").document()
    assert document["facts"]["record"].startswith(f"{path}: ")
    assert " entries, " in document["facts"]["record"]
    note = f"{old}: an earlier version wrote this, and nothing reads it; delete it or keep it"
    assert document["facts"]["old record"] == note
    assert not [problem for problem in document["problems"] if "record" in problem]
    assert len(list(old.iterdir())) == 1
    altered(albert.home, f"PRAGMA user_version = {VERSION + 1}")
    assert f"has format {VERSION + 1}" in str(albert("doctor", "--quick", "--json").document()["problems"])


def test_telemetry_is_enabled_by_a_variable(ready: Albert) -> None:
    done = ready("run", "current_time", env={"ALBERT_TELEMETRY": "json"})
    events = [json.loads(line)["event"] for line in done.err.splitlines() if line.startswith("{")]
    assert (done.code, events) == (0, ["tool_call_started", "tool_call_completed"])
    wrong = ready("run", "current_time", env={"ALBERT_TELEMETRY": "yes"})
    assert (wrong.code, "ALBERT_TELEMETRY is 'yes', which is none of json, otel and a path" in wrong.err) == (1, True)


def test_completion(ready: Albert) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "albert" in ready("completion", shell).out

    document = ready("--json", "completion", "bash").document()
    assert document["ok"] is True
    assert document["script"] == ready("completion", "bash").out


def test_words_that_completion_offers(albert: Albert) -> None:
    albert.write("base.tool", BASE)
    albert.write("pick.tool", PICK)
    assert albert("define", "base.tool").code == 0
    version = albert("define", "pick.tool", "--json").document()["version"]

    assert albert.complete("albert help not_f") == ["not_found"]
    assert albert.complete("albert d") == ["define", "doctor"]
    assert albert.complete("albert run ba") == ["bash", "base"]
    assert albert.complete("albert remove ") == ["base", "pick"]
    assert albert.complete("albert run pick ") == ["mode=", "flag="]
    assert albert.complete("albert run pick mode=fast ") == ["flag="]
    assert albert.complete("albert run read_file pa") == ["path="]
    # A shell splits words at the equals sign. It gets only the part after the equals sign.
    assert albert.complete("albert run pick mode=") == ["fast", "slow"]
    assert albert.complete("albert run pick flag=f") == ["false"]
    assert albert.complete("albert show pick --version ") == [version[:12]]
    assert albert.complete(f"albert run pick --version {version[:3]}") == [version[:12]]
    assert albert.complete("albert run nothing ") == []
    assert albert.complete("albert runs re") == ["resume", "replay"]
    session = albert("session", "new", "--json").document()["session"]["session"]
    assert albert.complete("albert session revoke ") == [session]
    config = albert.home / "config"
    config.mkdir()
    (config / "governance.yaml").write_text("tools:\n  write_file: {requires_approval_in_modes: [NORMAL]}\n")
    details = albert("run", "write_file", "path=a", "content=b", "--json").document()["error"]["details"]
    assert albert.complete(f"albert approvals answer {details['approval'][:3]}") == [details["approval"]]
    assert albert.complete("albert approvals answer x ") == ["once", "session", "always", "no"]
    assert albert.complete("albert runs resume ") == [details["run"]]
    # The run is cancelled, so it can't be resumed, and its question is withdrawn.
    assert albert("runs", "cancel", details["run"]).code == 0
    assert albert.complete("albert runs resume ") == []
    assert albert.complete("albert runs show ") == [details["run"]]
    assert albert.complete("albert approvals answer ") == []


def test_a_session_is_offered_no_names_and_ids(albert: Albert) -> None:
    albert.write("pick.tool", PICK)
    assert albert("define", "pick.tool").code == 0
    albert("session", "new")
    (albert.home / "config").mkdir()
    (albert.home / "config" / "governance.yaml").write_text("tools: {sleep: {requires_approval_in_modes: [NORMAL]}}\n")
    assert albert("run", "sleep", "seconds=0").code == 4
    lines = ["run ", "show p", "remove ", "run pick ", "run pick mode=", "show pick --version ", "policy explain "]
    lines += ["review ", "run read_file ", "runs show ", "runs resume ", "session revoke ", "approvals answer "]
    token = albert("session", "new", "--tools", "current_time").out.strip()
    for line in lines:
        assert albert.complete(f"albert {line}") != [], line
        assert albert.complete(f"albert {line}", env={"ALBERT_SESSION": token}) == [], line
    assert albert.complete("albert d", env={"ALBERT_SESSION": token}) == ["define", "doctor"]
    assert albert.complete("albert help not_f", env={"ALBERT_SESSION": token}) == ["not_found"]


def test_on_a_terminal(ready: Albert) -> None:
    def terminal(*words: str) -> str:
        return ready.terminal(*words)[1]

    assert "\\x1b[31mx" in terminal("run", "escape", "text=x")
    assert "\x1b[31m" not in terminal("run", "escape", "text=x")
    shown = terminal("show", "word_frequencies")
    assert "\x1b[" in shown
    assert "\x1b[" not in terminal("show", "word_frequencies", "--no-color")
    slow = terminal("run", "slow", "seconds=1.6")
    assert "running slow · 1 s · sleep" in slow
    assert slow.endswith("rested\r\n")


@pytest.mark.parametrize("words", [["run", "word_frequencies", "path=poem.txt"], ["run", "current_time"]], ids=str)
def test_a_run_loads_nothing_heavy(ready: Albert, words: list[str]) -> None:
    code = f"""
import sys
from albert_tools.surfaces.cli.main import main
assert main({words!r}) == 0
heavy = {{"lark", "RestrictedPython", "pydantic", "tinydb", "platformdirs", "pygments", "httpx", "yaml", "structlog"}}
heavy |= {{"pathspec", "re2", "hyperscan", "psycopg"}}
ours = {{"groups", "asking", "timeline", "approvals", "sessions", "runs", "person"}}
heavy |= {{"albert_tools.surfaces.cli." + name for name in ours}} | {{"albert_tools.telemetry"}}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ready.project, env=ready.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_guide(albert: Albert) -> None:
    text = albert("prompt").out
    assert albert("prompt", env={"PYTHONHASHSEED": "7"}).out == text
    for line in ("`bash(", "`http_request(", "inference: "):
        assert f"\n- {line}" in text
    named = albert("prompt", "--tools", "bash, sleep", "--tokens", "3000", "--json").document()["prompt"]
    assert "\n- `bash(" in named
    assert "\n- `sleep(" in named
    assert len(named) < len(text)
    # The guide marks the tools that need approval or are denied.
    marks = dict(re.findall(r"^- `?(\w+)[(:].*?(\[(?:asks|off|denied)\])?$", text, re.M))
    assert (marks["read_file"], marks["bash"], marks["read_system_logs"]) == ("", "[asks]", "[off]")
    sources = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(sources) == 3
    names = [albert.write(f"{i}.tool", source) for i, source in enumerate(sources)]
    # Each source has an example, which `define` runs.
    done = albert("define", *names)
    assert done.code == 0, done.err
    assert all("@example" in s for s in sources)
    assert "- load_json: Read the JSON files" in albert("prompt").out
    assert "`load_json(folder: str) -> list[dict]`" in albert("prompt", "--tools", "load_json").out
    assert albert("prompt", "--tools", "load_jsn").err.startswith(
        "error[unknown_tool]: no tool named 'load_jsn'; did you"
    )
    refused = albert("prompt", "--tokens", "100").err
    assert "100 tokens can't describe the language" in refused
    (least,) = re.findall(r"allow at least ([\d,]+)", refused)
    assert albert("prompt", "--tokens", least.replace(",", "")).code == 0


def test_the_version_and_help(ready: Albert) -> None:
    assert ready("--version").out.startswith("albert-tools ")
    for words in ((), ("run",), ("define",)):
        done = ready(*words, "--help")
        assert done.code == 0
        assert done.out.startswith("usage: albert")


def test_the_shipped_examples_check(albert: Albert) -> None:
    done = albert("check", *(str(p) for p in sorted(TOOLS.glob("*.tool"))[:4]))
    assert done.code == 0, done.err
    assert (ROOT / "engine" / "agent" / "guide.md").is_file()


def test_the_agents_own_tools_take_arguments(ready: Albert) -> None:
    assert ready("run", "describe_tool", "name=slow").document()["name"] == "slow"
    refused = ready("run", "list_runs", "most=3")
    assert "list_runs: there is no parameter 'most'" in refused.err
