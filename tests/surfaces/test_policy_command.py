"""``albert mode``, ``albert policy``, and questions during a run."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from albert_tools.engine.authority.authorization import Question
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import Decision
from albert_tools.surfaces.text.approval_prompt import asker
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.person import person


@pytest.fixture
def ruled(albert: Any) -> Any:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(
        "tools:\n  write_file: {requires_approval_in_modes: [NORMAL], forbidden_paths: [secrets]}\n"
    )
    return albert


def test_the_mode_is_shown_switched_and_stored(albert: Any) -> None:
    assert albert("mode").out == "NORMAL\n"
    done = albert("mode", "lockdown", "--cause", "a drill")
    assert done.out.startswith("LOCKDOWN (it was NORMAL) since ")
    assert done.out.endswith(": a drill\n")
    denied = albert("run", "list_directory", "--json")
    assert denied.code == 3
    assert denied.document()["error"]["rule"] == "shipped.categories.read_only.forbidden_in_modes"
    # The hint does not suggest a rule, because this mode would still deny the call.
    assert albert("tools", "--json").document()["tools"] == []
    refused = albert("mode", "NORMAL")
    assert (refused.code, refused.err) == (
        1,
        "error[invalid_arguments]: the mode can't change from LOCKDOWN to NORMAL\n"
        "  help: from LOCKDOWN it can change to RECOVERY\n",
    )
    assert albert("mode", "RECOVERY", "--json").document()["mode"] == "RECOVERY"
    assert albert("run", "list_directory").code == 0
    assert albert("mode", "CALM").code == 1


def test_explain(ruled: Any) -> None:
    asked = ruled("policy", "explain", "write_file", "path=a", "content=b", "--json")
    document = asked.document()
    assert (asked.code, document["decision"]["verdict"]) == (0, "ask")
    assert document["mode"] == "NORMAL"
    # Options may stand between the arguments.
    assert (
        ruled("policy", "explain", "write_file", "--json", "path=a", "--mode", "normal", "content=b").out == asked.out
    )
    denied = ruled("policy", "explain", "write_file", "path=secrets/a", "content=b")
    assert denied.code == 3
    assert denied.out == (
        "ask  tools.write_file.requires_approval_in_modes  write_file needs a person's approval in NORMAL\n"
        "deny  tools.write_file.forbidden_paths  'secrets/a' is forbidden by 'secrets'\n"
        "decision: deny\n"
    )
    assert ruled("policy", "explain", "write_file", "path=a").code == 2
    assert ruled("policy", "explain").code == 2
    assert ruled("policy", "explain", "nothing").code == 3
    assert list(ruled.project.iterdir()) == [ruled.project / ".albert"]


def test_explain_a_path_outside_the_workspace(albert: Any) -> None:
    shared = albert.project.parent / "shared"
    shared.mkdir()
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(
        f"categories:\n  system_write: {{allowed_paths: [$WORKSPACE, {shared}/**], rate_limit_per_hour: 50}}\n"
    )
    asked = albert("policy", "explain", "write_file", f"path={shared}/a", "content=b")
    assert asked.out == (
        "allow  shipped.categories.system_write.allowed_in_modes\n"
        f"ask  shipped.outside_workspace_asks  '{shared}/a' is outside the workspace, where each write needs approval\n"
        "decision: ask\n"
    )
    assert "calls_per_hour: category:system_write 50\n" in asked.err
    assert f"beyond_the_workspace: {shared}\n" in asked.err
    document = albert("policy", "explain", "write_file", f"path={shared}/a", "content=b", "--json").document()
    assert document["calls_per_hour"] == {"category:system_write": 50}
    assert document["beyond_the_workspace"] == [str(shared)]
    assert len(document["revision"]) == 64
    denied = albert("policy", "explain", "read_file", f"path={shared}/a", "--json")
    assert (denied.code, denied.document()["decision"]["rule_id"]) == (3, "outside_workspace")
    assert albert("policy", "check").out == "the rules have no mistakes\n"
    shared.rmdir()
    found = albert("policy", "check")
    assert found.code == 1
    assert found.out.endswith(f"opens nothing outside the workspace: there is no folder '{shared}'\n")


def test_explain_a_call_that_can_never_work(albert: Any) -> None:
    said = albert("policy", "explain", "run_tests", 'args:=["--", "-x"]')
    assert (said.code, said.out) == (1, "")
    assert "what follows '--' are files" in said.err


def test_explain_a_change_of_git_s_own_files(albert: Any) -> None:
    for call in (["write_file", "path=.git/config", "content=x"], ["delete_file", "path=sub/.git/hooks/pre-push"]):
        said = albert("policy", "explain", *call).out
        assert said.startswith("deny  git_own  ")
        assert "decision: deny" in said
    # Nobody is asked in vain.
    assert "belongs to git" in albert("run", "delete_file", "path=.git/config").err


def test_explain_a_command(albert: Any) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(
        "tools:\n  bash: {allowed_in_modes: [NORMAL], forbidden_commands: ['git push *']}\n"
    )
    explain = ("policy", "explain", "bash")
    assert albert(*explain, "command=ls; git status").out == "allow  tools.bash.allowed_in_modes\ndecision: allow\n"
    asked = albert(*explain, "command=ls; sudo ls")
    assert asked.out == (
        "allow  tools.bash.allowed_in_modes\n"
        "ask  shipped.dangerous_command  `sudo ls` is dangerous (privileges): it runs as another user, or in another root folder\n"
        "decision: ask\n"
    )
    denied = albert(*explain, "command=env git push")
    assert denied.code == 3
    assert "deny  tools.bash.forbidden_commands  `git push` is forbidden by 'git push *'\n" in denied.out


def test_explain_looks_into_saved_tools_and_commands(albert: Any) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("allow: [bash]\ndeny: [http_request]\nforbidden_paths: [secrets/, .env]\n")
    (albert.project / "sub").mkdir()
    (albert.project / "sub" / ".env").write_text("x")
    (albert.project / "secrets").mkdir()
    (albert.project / ".git").mkdir()
    albert.write(
        "inner.tool",
        'def inner() -> int:\n    """Ask."""\n    return tools.http_request(url="http://a.b/")["status"]\n',
    )
    albert.write(
        "outer.tool", 'def outer() -> int:\n    """Run."""\n    tools.bash(command="ls")\n    return tools.inner()\n'
    )
    assert albert("define", "inner.tool", "outer.tool").code == 0
    done = albert("policy", "explain", "outer")
    assert (done.code, done.out) == (
        0,
        "allow  shipped.saved_tools.allowed_in_modes\n"
        "decision: allow\n"
        "it can make these calls, whose arguments are judged too:\n"
        "  allow  bash  allow.allowed_in_modes\n"
        "  allow  inner  shipped.saved_tools.allowed_in_modes\n"
        "  deny  inner > http_request  deny  http_request is denied by the rules\n"
        "a command of bash will not see: secrets, sub/.env\n"
        "a command of bash will not see these git folders, if their repository has ever tracked a forbidden path: .git\n",
    )
    document = albert("policy", "explain", "outer", "--json").document()
    assert [(c["tool"], c["through"], c["decision"]["verdict"]) for c in document["calls"]] == [
        ("bash", [], "allow"),
        ("inner", [], "allow"),
        ("http_request", ["inner"], "deny"),
    ]
    rules.write_text("tools: {run_program: {allowed_paths: [sub]}}\n")
    seen = albert("policy", "explain", "run_program", 'argv:=["ls"]', "--json").document()["commands_see"]
    assert seen[0] == {"tool": "run_program", "view": "only", "paths": ["sub"]}


def test_explain_says_which_questions_an_approval_has_answered(albert: Any) -> None:
    albert.write(
        "clean.tool",
        'def clean(name: str) -> None:\n    """Delete."""\n    tools.delete_file(path=f"tmp/{name}")\n',
    )
    assert albert("define", "clean.tool").code == 0
    assert "  ask  delete_file  " in albert("policy", "explain", "clean", "name=a").out
    assert albert("review", "clean", "--approve").code == 0
    done = albert("policy", "explain", "clean", "name=a")
    assert "  allow  delete_file  manifest  your approval of the tool answers the question" in " ".join(
        done.out.split("\n")
    )
    assert "  ask  delete_file  " in albert("policy", "explain", "clean", "name=a", "--mode", "ALERT").out


def test_explain_and_check_say_what_a_command_may_change(albert: Any) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text(
        "allow: [bash, run_tests]\nforbidden_paths: [.env]\nwritable_paths: [src/**, docs/gen/**, ./NOTES.md, via/**]\n"
        "tools: {run_tests: {writable_paths: []}}\n"
    )
    for folder in ("src", "other", ".git"):
        (albert.project / folder).mkdir()
    (albert.project / "via").symlink_to("other")
    said = albert("policy", "explain", "bash", "command=ls").out.splitlines()
    assert said[-1] == "a command of bash can change only: NOTES.md, docs/gen/, src/"
    assert albert("policy", "explain", "run_tests").out.endswith("a command of run_tests can change only: nothing\n")
    (seen,) = albert("policy", "explain", "git_status", "--json").document()["commands_see"]
    assert seen == {"tool": "git_status", "view": "writable", "paths": [".git", "NOTES.md", "docs/gen/", "src/"]}
    denied = albert("policy", "explain", "write_file", "path=other/a", "content=b")
    assert denied.code == 3
    assert "deny  writable_paths  'other/a' is not among the paths that write_file may write\n" in denied.out
    found = albert("policy", "check")
    assert found.out == (
        "warning: writable_paths: 'via/**' permits nothing: it is a link, or leads through one; write the real path, "
        f"'{albert.project.resolve()}/other'\n"
    )
    rules.write_text("allow: [run_tests]\ncategories: {system_write: {allowed_paths: [src/**, docs/**]}}\n")
    found = albert("policy", "check")
    assert found.out == (
        "warning: categories.system_write.allowed_paths: all other paths can still be changed by bash, run_program, run_tests, "
        "run_linter; write `writable_paths` at the top of the file, which holds for every tool\n"
    )
    rules.write_text("writable_paths: [src]\n")
    found = albert("policy", "check")
    assert "line 1, column 18: writable_paths.0: it matches at any depth; write src/** for the folder" in found.err


SAVE_PAGE = '''\
def save_page(url: str) -> str:
    """Save a page under its first line."""
    page = tools.http_request(url=url)["body"]
    tools.write_file(path=page.split("\\n")[0], content=page)
    return "saved"
'''


def test_rules_about_flows(albert: Any) -> None:
    albert.write("save_page.tool", SAVE_PAGE)
    assert albert("define", "save_page.tool").code == 0
    asked = albert("policy", "explain", "save_page", "url=https://example.org/")
    said = "in save_page, the output of http_request (web, line 3) can reach path of write_file (line 4)"
    assert (asked.code, f"ask  shipped.ask_flow.0  {said}\n" in asked.out) == (0, True)
    flows = albert("policy", "explain", "save_page", "url=https://example.org/", "--json").document()["asking_flows"]
    assert [flow["rule_id"] for flow in flows] == ["shipped.ask_flow.0"]
    albert("run", "save_page", "url=https://example.org/", "--wait", "0")
    draft = albert.project / "draft.yaml"
    draft.write_text("deny_flow: [{from: {source: [web]}, to: {tools: [write_file], arguments: [path]}}]\n")
    assert f"deny (now allow)  save_page()  deny_flow.0  {said}\n" in albert("policy", "try", str(draft)).out
    # With the rule in force, the saved tool is denied, and it can't be saved again.
    (albert.home / "config").mkdir(parents=True, exist_ok=True)
    draft.rename(albert.home / "config" / "governance.yaml")
    explained = albert("policy", "explain", "save_page", "url=https://example.org/")
    assert (explained.code, explained.out.split("\n")[1]) == (3, f"deny  deny_flow.0  {said}")
    for words in (["run", "save_page", "url=https://example.org/"], ["define", "save_page.tool"]):
        denied = albert(*words)
        assert (denied.code, said in denied.err) == (3, True)


def test_try_judges_recorded_calls_by_other_rules(albert: Any) -> None:
    albert.write("notes.txt", "x")
    albert.write(
        "save.tool", 'def save(name: str) -> None:\n    """Save."""\n    tools.write_file(path=name, content="b")\n'
    )
    assert albert("define", "save.tool").code == 0
    for words in (
        ["read_file", "path=notes.txt"],
        ["read_file", "path=notes.txt"],
        ["save", "name=a"],
        ["delete_file", "path=a"],
        ["read_file", "path=" + "long/" * 60],
        ["http_request", "url=https://a.example/?password=hunter22"],
        ["nothing"],
    ):
        albert("run", *words, "--wait", "0")
    draft = albert.project / "draft.yaml"
    draft.write_text("forbidden_paths: [notes.txt]\nallow: [delete_file]\ndeny: [save]\n")
    done = albert("policy", "try", str(draft))
    assert done.out == (
        'deny (now allow)  read_file(path="notes.txt")  (2 times)  '
        "forbidden_paths  'notes.txt' is forbidden by 'notes.txt'\n"
        "deny (now allow)  save()  deny  save is denied by the rules\n"
        'allow (now ask)  delete_file(path="a")  allow.allowed_in_modes\n'
        "of 5 recorded calls, 4 would be decided differently\n"
    )
    assert done.err == (
        "2 more can't be judged: the ledger has their arguments shortened or without secrets\n"
        "1 more can't be judged: their tool or its version no longer exists\n"
    )
    document = albert("policy", "try", str(draft), "--json").document()
    assert (document["calls"], document["changed"], len(document["changes"])) == (5, 4, 3)
    draft.write_text("alow: [x]")
    refused = albert("policy", "try", str(draft))
    assert (refused.code, "help: correct it and try again; the rules in force stay as they are" in refused.err) == (
        3,
        True,
    )
    assert albert("policy", "try", "none.yaml").code == 1


EXPECTED = """\
- allow:
    - read_file: {path: src/a.py}
    - current_time
  ask: [{write_file: {path: src/a.py, content: b}}]
  deny:
    - write_file: {path: secrets/a, content: b}
    - read_file: {path: /etc/passwd}
- mode: LOCKDOWN
  deny: [current_time:]
- session: {tools: [http_request], seen: [private, outside]}
  ask: [{http_request: {url: "https://example.org/"}}]
  deny: [current_time]
"""


def test_expected_decisions(ruled: Any) -> None:
    ruled.write("expected.yaml", EXPECTED)
    done = ruled("policy", "test", "expected.yaml")
    assert (done.code, done.out, done.err) == (0, "all 8 decisions are as expected\n", "")
    # Nothing was switched, called or recorded.
    assert ruled("mode").out == "NORMAL\n"
    assert ruled("ledger", "tail", "--json").document()["entries"] == []
    ruled.write("other.yaml", "forbidden_paths: [src/]\n")
    other = ruled("policy", "test", "expected.yaml", "--rules", "other.yaml")
    assert (other.code, other.out) == (
        1,
        'expected.yaml:2: read_file(path="src/a.py") in NORMAL is deny, expected allow: '
        "forbidden_paths  'src/a.py' is forbidden by 'src/'\n"
        'expected.yaml:4: write_file(path="src/a.py", content="b") in NORMAL is deny, expected ask: '
        "forbidden_paths  'src/a.py' is forbidden by 'src/'\n"
        'expected.yaml:6: write_file(path="secrets/a", content="b") in NORMAL is allow, expected deny: '
        "shipped.categories.system_write.allowed_in_modes\n"
        "3 of 8 decisions are not as expected\n",
    )
    document = ruled("policy", "test", "expected.yaml", "--rules", "other.yaml", "--json").document()
    assert (document["ok"], document["failed"], len(document["results"])) == (False, 3, 8)
    assert ruled("policy", "test", "expected.yaml", "--rules", "none.yaml").code == 1
    # The project's rules apply, too.
    ruled.write(".albert/governance.yaml", "deny: [current_time]\n")
    assert "current_time() in NORMAL is deny, expected allow" in ruled("policy", "test", "expected.yaml").out


def test_secrets_providers_and_batches_are_judged(ruled: Any) -> None:
    rules = ruled.home / "config" / "governance.yaml"
    rules.write_text("""\
free_hosts: ["*"]
secrets: {KEY: [api.example.org], SEARCH: [search.example.org]}
primitives:
  web_search: {url: "https://other.example.org/", headers: {x-key: {secret: SEARCH}}}
  inference:
    providers:
      local: {base_url: "http://127.0.0.1:11434/v1", models: [small]}
      far: {base_url: "https://far.example.org/v1", api_key: {secret: KEY}}
tools: {inference: {allowed_providers: [local, far, missing]}}
""")
    request = 'http_request: {url: "%s", headers: {Authorization: {secret: %s, prefix: "Bearer "}}}'
    ruled.write(
        "expected.yaml",
        f"""\
- allow:
    - {request % ("https://api.example.org/", "KEY")}
    - inference: {{provider: local, model: small, prompt: hello}}
    - start_batch: {{tool: read_file, items: [{{path: a}}]}}
  deny:
    - {request % ("https://evil.example/", "KEY")}
    - {request % ("http://api.example.org/", "KEY")}
    - {request % ("https://api.example.org/", "OTHER")}
    - inference: {{provider: local, model: large, prompt: hello}}
    - inference: {{provider: far, model: large, prompt: hello}}
    - inference: {{provider: missing, model: small, prompt: hello}}
    - web_search: {{query: otters}}
- session: {{tools: [start_batch]}}
  deny:
    - start_batch: {{tool: write_file, items: [{{path: a, content: b}}]}}
""",
    )
    assert ruled("policy", "test", "expected.yaml").out == "all 11 decisions are as expected\n"
    explained = ruled(
        "policy", "explain", "http_request", "url=https://evil.example/", 'headers:={"a": {"secret": "KEY"}}'
    )
    said = "deny  secrets.KEY  the secret KEY may be sent to api.example.org, not to 'evil.example'\ndecision: deny\n"
    assert (explained.code, explained.out) == (3, f"allow  shipped.categories.network.allowed_in_modes\n{said}")
    ruled.write(
        "expected.yaml",
        "- deny:\n"
        "    - start_batch: {tool: read_fiel, items: [{path: a}]}\n"
        "    - start_batch: {tool: read_file, items: [{pth: a}]}\n",
    )
    wrong = ruled("policy", "test", "expected.yaml").out
    assert "can't be judged: no tool named 'read_fiel'; did you mean 'read_file'?\n" in wrong
    assert "can't be judged: read_file: path: is required; pth: unknown name" in wrong


def test_rules_on_actions_are_checked_explained_and_tested(ruled: Any) -> None:
    rules = ruled.home / "config" / "governance.yaml"
    rules.write_text(
        "deny: [run_source, language_help, put_content]\ntools: {define_tool: {requires_approval_in_modes: [NORMAL]}}\n"
    )
    assert ruled("policy", "check").out == "the rules have no mistakes\n"
    assert ruled("policy", "explain", "run_source", "source=x").out == (
        "deny  deny  run_source is denied by the rules\ndecision: deny\n"
    )
    ruled.write(
        "expected.yaml",
        "- session: {tools: [define_tool], seen: [private, outside]}\n"
        "  ask: [{define_tool: {source: x}}]\n"
        "  allow: [search_tools]\n"
        "  deny: [{run_source: {source: x}}, language_help, {remove_tool: {name: x}}, {revoke_session: {session: x}}]\n",
    )
    assert ruled("policy", "test", "expected.yaml").out == "all 6 decisions are as expected\n"
    # `run_tool` is judged as the tool that it runs.
    rules.write_text("deny: [run_tool]\n")
    assert ruled("policy", "check").out.startswith("warning: deny.run_tool: there is no tool named 'run_tool'")


def test_a_misspelled_tool_of_an_expected_session_is_not_denied(ruled: Any) -> None:
    ruled.write("expected.yaml", "- session: {tools: [read_fiel]}\n  deny: [{read_file: {path: a}}]\n")
    done = ruled("policy", "test", "expected.yaml")
    assert (done.code, done.out.splitlines()[0]) == (
        1,
        "expected.yaml:2: read_file(path=\"a\") can't be judged: no tool named 'read_fiel'; did you mean 'read_file'?",
    )


def test_a_call_that_can_not_be_made_is_not_denied(ruled: Any) -> None:
    ruled.write("expected.yaml", "- deny:\n    - read_fiel: {path: a}\n    - write_file: {path: a}\n")
    done = ruled("policy", "test", "expected.yaml")
    assert (done.code, done.out) == (
        1,
        "expected.yaml:2: read_fiel(path=\"a\") can't be judged: no tool named 'read_fiel'; did you mean 'read_file'?\n"
        'expected.yaml:3: write_file(path="a") can\'t be judged: write_file: content: is required\n'
        "2 of 2 decisions are not as expected\n",
    )
    # Without valid rules every call is denied.
    (ruled.home / "config" / "governance.yaml").write_text("alow: [x]")
    assert "governance_unavailable" in ruled("policy", "test", "expected.yaml").err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the document: it has no value; write one, or remove the key"),
        ("[]", "it expects no decision"),
        ("- {}", "it expects no decision"),
        ("deny: [bash]", "the document: input should be a valid list"),
        ("- alow: [bash]", "line 1, column 3: 0.alow: there is no such key; did you mean 'allow'?"),
        ("- {tool: bash, arguments: {}}", "0.arguments: there is no such key"),
        # A key of the rules is none here.
        ("- {call: bash}", "0.call: there is no such key; did you mean 'allow'?"),
        ("- deny: [bash]\n  mode: CALM", "line 2, column 3: 0.mode: input should be 'NORMAL', 'ALERT', "),
        (
            "- deny: [{read_file: {}, bash: {}}]",
            "0.deny.0: one call is expected, written as `read_file: {path: a.txt}`",
        ),
        ("- deny: [{read_file: {path: 2026-01-01}}]", "0.deny.0.read_file.path: input was not a valid JSON value"),
        ("- deny: [{read_file: {path: !!binary aGk=}}]", "0.deny.0.read_file.path: input was not a valid JSON value"),
        ("- deny: [{read_file: x}]", "0.deny.0.read_file: input should be a valid dictionary"),
        ("- deny: [3]", "0.deny.0: input should be a valid dictionary"),
        ("- deny: ['read_*']", "0.deny.0.read_*: the name of one tool is expected, without wildcards"),
        ("- session: {seen: [secrets]}\n  deny: [bash]", "0.session.seen.0: input should be 'private' or 'outside'"),
        ("- deny: [", "line 1, column 10: "),
    ],
)
def test_mistakes_in_a_file_of_expected_decisions(ruled: Any, text: str, why: str) -> None:
    ruled.write("expected.yaml", text)
    done = ruled("policy", "test", "expected.yaml")
    assert done.code != 0
    assert "error[invalid_arguments]: the expected decisions of 'expected.yaml' can't be read: " in done.err
    assert why in done.err
    assert "there is no such file" in ruled("policy", "test", "none.yaml").err


def test_a_limit_on_all_calls_counts_those_of_programs(albert: Any) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    albert.write("notes.txt", "x")
    albert.write(
        "many.tool",
        'def many(n: int) -> int:\n    """Read."""\n    for _ in range(n):\n        tools.read_file(path="notes.txt")\n'
        "    return n\n",
    )
    assert albert("define", "many.tool").code == 0
    token = albert("session", "new", "--client", "bot").out.strip()
    as_session = {"ALBERT_SESSION": token}
    # A run of a saved tool is one request.
    rules.write_text("loops: {requests_per_hour: 2}\n")
    assert [albert("run", "many", "n=9", env=as_session).code for _ in range(3)] == [0, 0, 3]
    denied = albert("run", "many", "n=9", "--json", env=as_session).document()["error"]
    assert (denied["rule"], denied["message"]) == (
        "loops.requests_per_hour",
        "a session may make 2 requests an hour, and has made them",
    )
    # Each of its calls is a call.
    rules.write_text("rate_limit_per_hour: 5\n")
    assert albert("run", "many", "n=4").code == 0  # The run itself is a call, too.
    denied = albert("run", "current_time", "--json").document()["error"]
    assert (denied["rule"], denied["message"]) == (
        "rate_limit.all",
        "all tools may be called 5 times an hour together, in programs too, and have been",
    )
    assert "rate     5 calls an hour of all tools together by the rules\n" in albert("show", "read_file").out
    albert.write(".albert/governance.yaml", "rate_limit_per_hour: 2\n")
    token = albert("session", "new", "--client", "other").out.strip()
    denied = albert("run", "many", "n=4", "--json", env={"ALBERT_SESSION": token}).document()["error"]
    assert (denied["rule"], "2 times an hour" in denied["message"]) == ("rate_limit.all", True)


def test_a_mode_that_is_assumed(ruled: Any) -> None:
    assert "is forbidden in LOCKDOWN" in ruled("policy", "explain", "current_time", "--mode", "lockdown").out
    listed = {
        t["name"]: t["policy"]["verdict"] for t in ruled("tools", "--mode", "ALERT", "--json").document()["tools"]
    }
    assert (listed["read_file"], listed["http_request"]) == ("allow", "ask")
    locked = [t["name"] for t in ruled("tools", "--mode", "LOCKDOWN", "--json").document()["tools"]]
    assert locked == ["write_file"]  # The owner's rule does not mention this mode.
    assert "there is no mode 'CALM'" in ruled("tools", "--mode", "calm").err
    assert (ruled("mode").out, ruled("policy", "explain", "current_time").code) == ("NORMAL\n", 0)


def test_a_list_of_tools_says_what_is_still_asked(albert: Any) -> None:
    def listed() -> dict[str, str]:
        lines = [line for line in albert("tools").out.splitlines() if line.startswith("  ")]
        return {line.split()[0]: re.split(r"  +", line.strip())[1] for line in lines}

    before = listed()
    assert (before["http_request"], before["fetch_url"]) == ("allow; new hosts ask", "allow; new hosts ask")
    assert (before["git"], before["bash"]) == ("allow; new hosts, some operations ask", "ask")
    assert (before["read_file"], before["web_search"]) == ("allow", "allow")
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(
        "allow: [bash]\ntools:\n  http_request: {allowed_hosts: [a.org]}\n  git: {allowed_operations: [COMMIT]}\n"
    )
    after = listed()
    assert (after["http_request"], after["git"]) == ("allow", "allow; new hosts ask")
    assert after["bash"] == "allow; unknown commands ask"
    assert "now      allow; unknown commands ask in NORMAL" in albert("show", "bash").out
    rules.write_text("tools:\n  http_request: {allowed_hosts: [a.org], asking_operations: [POST]}\n")
    assert listed()["http_request"] == "allow; some operations ask"


def test_policy_check(ruled: Any) -> None:
    found = ruled("policy", "check")
    assert (found.code, found.out) == (
        1,
        "warning: tools.write_file.forbidden_paths: 'secrets' can still be used by edit_file, write_bytes, move_file, "
        "copy_file, make_directory, bash and 4 more; write `forbidden_paths` at the top of the file to forbid it to every tool\n",
    )
    rules = ruled.home / "config" / "governance.yaml"
    rules.write_text("forbidden_paths: [secrets]\n")
    assert ruled("policy", "check").out == "the rules have no mistakes\n"
    project = ruled.project / ".albert" / "governance.yaml"
    project.write_text("queues: {nightly: {}}\n")
    ignored = "warning: project.queues: it has no effect: only the owner's file has queues\n"
    assert ruled("policy", "check").out == ignored
    project.unlink()
    rules.write_text("deny: [erase_all]\n")
    found = ruled("policy", "check")
    message = "there is no tool named 'erase_all'"
    assert (found.code, found.out) == (1, f"warning: deny.erase_all: {message}\n")
    assert json.loads(ruled("policy", "check", "--json").out)["findings"][0]["rule"] == "deny.erase_all"
    rules.write_text("deny: [erase_all]\nother_tools: [erase_all]\n")
    assert ruled("policy", "check").code == 0
    rules.write_text(
        "primitives:\n  bash: {confinement: nosuch, memory_mbb: 3}\n  web_search: {provider: braev}\n"
        "  inference: {providers: {local: {base_ur: 1}}}\n  read_file: {x: 1}\n"
        "tools: {bash: {allowed_in_modes: [NORMAL]}}\n"
    )
    found = ruled("policy", "check").out.splitlines()
    assert found[:-1] == [
        'warning: primitives.bash.confinement: expected one of "bwrap", "landlock", "seatbelt", got str "nosuch"',
        "warning: primitives.bash.memory_mbb: there is no such setting; did you mean 'memory_mb'?",
        "warning: primitives.web_search.provider: unknown provider 'braev'; did you mean 'brave'?",
        "warning: primitives.inference.providers.local: base_ur: there is no such setting; did you mean 'base_url'?",
    ]
    assert found[-1].startswith("warning: primitives.read_file: read_file has no settings; ")
    assert "warning: `albert policy check` has findings about the rules\n" in ruled("tools").err
    # A mistake in the settings of a tool denies that tool only.
    denied = ruled("run", "bash", "command=true", "--json")
    assert (denied.code, denied.document()["error"]["rule"]) == (3, "primitives.bash.confinement")
    assert ruled("run", "list_directory").code == 0
    rules.write_text("tools:\n  read_file:\n    allowed_in_modes: [NORMLA]\n")
    broken = ruled("policy", "check")
    assert broken.code == 3
    assert "line 3, column 24: tools.read_file.allowed_in_modes.0: " in broken.err


@pytest.mark.parametrize(
    ("rules", "call", "rule", "message"),
    [
        (
            "tools: {git: {forbidden_operations: [PUHS]}}",
            ["git", "operation=PUSH"],
            "tools.git.forbidden_operations",
            "git has no operation 'PUHS'; did you mean 'PUSH'?",
        ),
        (
            "allow: [run_linter]\ntools: {run_linter: {asking_operations: [pylint]}}",
            ["run_linter", "linter=mypy"],
            "tools.run_linter.asking_operations",
            "run_linter has no operation 'PYLINT'; it has MYPY, RUFF, RUFF-FORMAT",
        ),
        (
            "allow: [run_tests]\ntools: {run_tests: {forbidden_commands: [rm *]}}",
            ["run_tests"],
            "tools.run_tests.forbidden_commands",
            "run_tests takes no commands",
        ),
    ],
)
def test_a_rule_that_can_do_nothing_denies_its_tool(
    albert: Any, rules: str, call: list[str], rule: str, message: str
) -> None:
    file = albert.home / "config" / "governance.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(rules)
    found = albert("policy", "check")
    assert (found.code, found.out) == (1, f"warning: {rule}: denied until this is corrected: {message}\n")
    error = albert("run", *call, "--json").document()["error"]
    assert (error["code"], error["rule"]) == ("permission_denied", rule)
    assert error["message"] == f"a mistake at `{rule}` in the owner's governance.yaml: {message}"
    assert albert("run", "list_directory").code == 0


def test_the_method_of_a_request_is_an_operation(albert: Any) -> None:
    file = albert.home / "config" / "governance.yaml"
    file.parent.mkdir(parents=True)

    def verdict(rules: str, method: str) -> str:
        file.write_text(f"free_hosts: [a.example]\ntools: {{http_request: {{{rules}}}}}\n")
        assert albert("policy", "check").code == 0
        call = ("http_request", "url=https://a.example/", f"method={method}")
        return str(albert("policy", "explain", *call, "--json").document()["decision"]["verdict"])

    assert [verdict("asking_operations: [POST]", m) for m in ("GET", "POST")] == ["allow", "ask"]
    assert [verdict("forbidden_operations: [post]", m) for m in ("GET", "POST")] == ["allow", "deny"]
    assert [verdict("allowed_operations: [GET]", m) for m in ("GET", "POST")] == ["allow", "deny"]
    file.write_text("tools: {http_request: {allowed_methods: [GTE]}}\n")
    assert "there is no HTTP method 'GTE'; did you mean 'GET'?" in albert("policy", "check").err


def test_init_writes_rules_and_replaces_none(albert: Any) -> None:
    rules = albert.home / "config" / "governance.yaml"
    done = albert("policy", "init", "--preset", "trusted")
    assert (done.code, done.out) == (0, f"wrote {rules}\n")
    assert (rules.stat().st_mode & 0o777, list(rules.parent.glob("[!.]*"))) == (0o600, [rules])
    assert albert("policy", "check").out == "the rules have no mistakes\n"
    (albert.project / ".env").write_text("SECRET")
    assert albert("run", "read_file", "path=.env").code == 3
    assert "SECRET" not in albert("run", "bash", "command=cat .env").out
    before = rules.read_bytes()
    again = albert("policy", "init")
    assert (again.code, again.err) == (
        1,
        f"error[exists]: there are rules already: '{rules}'\n  help: edit them, or move the file away\n",
    )
    assert rules.read_bytes() == before


def test_import_replaces_rules_only_by_rules_without_mistakes(ruled: Any) -> None:
    new = ruled.project / "new.yaml"
    new.write_text("deny: [read_file]\n")
    assert "are in force" in ruled("policy", "import", str(new)).out
    assert ruled("policy", "show").out == "deny: [read_file]\n"
    assert ruled("run", "read_file", "path=new.yaml").code == 3
    new.write_text("dney: [read_file]\n")
    assert "dney" in ruled("policy", "import", str(new)).err
    assert ruled("policy", "import", "nowhere.yaml").code == 1
    assert ruled("policy", "show").out == "deny: [read_file]\n"
    assert "imported by" in ruled("ledger", "tail").out


def test_a_rule_on_a_misspelled_tool_denies_every_call(ruled: Any) -> None:
    rules = ruled.home / "config" / "governance.yaml"
    rules.write_text("allow: [bash]\ntools:\n  read_fiel: {forbidden_paths: [secrets]}\n")
    denied = ruled("run", "list_directory")
    assert denied.code == 3
    hint = "if the tool 'read_fiel' exists or will exist, write `other_tools: [read_fiel]` too"
    assert f"line 3, column 3: tools.read_fiel: did you mean 'read_file'? ({hint})\n" in denied.err
    # An agent can't put the rule in force by saving a tool of this name.
    (ruled.project / "read_fiel.tool").write_text('def read_fiel() -> int:\n    """One."""\n    return 1\n')
    assert ruled("define", "read_fiel.tool").code == 0
    assert ruled("run", "list_directory").code == 3
    rules.write_text(rules.read_text() + "other_tools: [read_fiel]\n")
    assert ruled("run", "list_directory").code == 0


@pytest.mark.parametrize(("typed", "code"), [(b"yes\n", 0), (b"once\n", 0), (b"no\n", 3), (b"\n", 3), (b"\x04", 3)])
def test_a_question_on_a_terminal(ruled: Any, typed: bytes, code: int) -> None:
    got, shown = ruled.terminal("run", "write_file", "path=a", "content=hello", typed=typed, until="once or no? [no] ")
    assert "May write_file be called?" in shown
    assert 'path = "a"' in shown
    assert "write_file needs a person's approval in NORMAL" in shown
    assert got == code
    assert (ruled.project / "a").exists() == (code == 0)
    entries = json.loads(ruled("ledger", "tail", "--json").out)["entries"]
    assert next(e["by"] for e in entries if e["kind"] == "answered") == f"{person()}, at the terminal"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Ask about a command at a terminal. Returns the answer and the output. `meanwhile` is called while the question is open."""

    def ask(command: str, before: bytes, *then: bytes, meanwhile: Callable[[Console], None] | None = None) -> Any:
        ours, theirs = os.openpty()
        os.write(ours, before)
        monkeypatch.setattr(sys, "stdin", os.fdopen(theirs))
        monkeypatch.setattr(sys, "stderr", shown := io.TextIOWrapper(io.BytesIO(), write_through=True))
        console = Console()
        question = Question(
            ToolDefinition("bash", "", (), {}, ()), {"command": command}, Decision("ask", "r", "mode", "m")
        )

        def so_far() -> str:
            return shown.buffer.getvalue().decode()  # type: ignore[attr-defined]

        async def both() -> Any:
            answer = asyncio.create_task(asker(console)(question))
            for number, typed in enumerate(then, 1):
                while so_far().count("  once or no") < number:
                    await asyncio.sleep(0.01)
                if meanwhile is not None:
                    meanwhile(console)
                await asyncio.sleep(0.05)
                os.write(ours, typed)
            return (await answer).choice

        return asyncio.run(both()), so_far()

    return ask


def test_a_question_hides_nothing_of_an_argument(asked: Any) -> None:
    long = "a" * 1800 + "MIDDLE" + "b" * 1800 + "THE-END"
    answer, shown = asked(long, b"", b"all\n", b"yes\n")
    first, _, second = shown.partition("all to see all of it? [no] ")
    assert answer == "once"
    assert "characters of command are not shown" in first
    assert ("THE-END" in first, "MIDDLE" in first, "MIDDLE" in second) == (True, False, True)
    assert asked("a" * 1000 + "; rm -rf x", b"", b"no\n")[1].count("rm -rf x") == 1


def test_keys_typed_before_the_question_are_ignored(asked: Any) -> None:
    assert asked("ls", b"yes\n", b"no\n")[0] == "no"
    assert asked("ls", b"no\n", b"yes\n")[0] == "once"


def test_a_program_prints_nothing_below_an_open_question(asked: Any) -> None:
    def forge(console: Console) -> None:
        console.progress("running")
        console.untrusted("May ls be called?\n  yes or no? ", sys.stderr)

    _, shown = asked("rm -rf x", b"", b"no\n", meanwhile=forge)
    before, _, after = shown.partition("once or no? [no] ")
    assert "May ls" not in before
    assert after == "May ls be called?\n  yes or no? "
