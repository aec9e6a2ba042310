"""The rules in the pipeline: decisions before a call, questions to a person, and the check when a file is opened."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, SyncToolService, primitive
from albert_tools.engine.authority.authorization import Question
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.workspace import Workspace

ASKS = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}


class Person:
    """A person who gives the set answers, and remembers the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []
        self.seconds = 0.0

    async def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        await asyncio.sleep(self.seconds)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


@pytest.mark.parametrize(
    ("rules", "path", "rule"),
    [
        (
            {"tools": {"read_file": {"forbidden_paths": ["secrets"]}}},
            "secrets/a.txt",
            "tools.read_file.forbidden_paths",
        ),
        ({"tools": {"read_file": {"forbidden_paths": ["secrets"]}}}, "link/a.txt", "tools.read_file.forbidden_paths"),
        ({"tools": {"read_file": {"forbidden_paths": ["secrets"]}}}, "a-link", "tools.read_file.forbidden_paths"),
        ({"categories": {"read_only": {"allowed_paths": ["*.md"]}}}, "plain.txt", "categories.read_only.allowed_paths"),
        ({"deny": ["read_file"]}, "plain.txt", "deny"),
        ({"tools": {"read_file": {"allowed_in_modes": ["ALERT"]}}}, "plain.txt", "no_rule"),
        ({}, "../x", "path_traversal"),
        ({}, "/etc/passwd", "outside_workspace"),
    ],
)
def test_denials_name_the_rule_and_have_no_effect(make_bench: Any, rules: Any, path: str, rule: str) -> None:
    bench = make_bench(governance=rules)
    (bench.work / "secrets").mkdir()
    (bench.work / "secrets" / "a.txt").write_text("secret")
    (bench.work / "plain.txt").write_text("plain")
    (bench.work / "link").symlink_to("secrets")
    (bench.work / "a-link").symlink_to("secrets/a.txt")
    result = bench.service.invoke("read_file", {"path": path})
    assert result.error is not None
    assert (result.error.code, result.error.rule) == ("permission_denied", rule)
    assert result.effects == ()
    # A program that makes the call is denied in the same way, and can handle the error.
    bench.define("return tools.read_file(path=p)", "reads", "p: str")
    inner = bench.error("reads", p=path)
    assert (inner.code, inner.rule, inner.tool) == ("permission_denied", rule, "read_file")


def test_a_result_contains_the_decision(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS, ask=Person(True))
    assert bench.service.invoke("list_directory", {}).policy == {
        "verdict": "allow",
        "allowed": True,
        "rule_id": "shipped.categories.read_only.allowed_in_modes",
        "rationale_code": "allowed",
        "message": "",
    }
    asked = bench.service.invoke("write_file", {"path": "a", "content": ""}).policy
    assert (asked["verdict"], asked["rule_id"]) == ("ask", "tools.write_file.requires_approval_in_modes")


def test_what_each_reader_sees_of_a_result(make_bench: Any) -> None:
    bench = make_bench(governance={"deny": ["note"]})
    written = bench.service.invoke("write_file", {"path": "a", "content": "x"})
    assert written.simple() == {"success": True, "output": written.output, "error": None}
    strict = written.strict()
    assert datetime.fromisoformat(strict["timestamp_utc"]).utcoffset() == timedelta(0)
    assert (strict["ok"], strict["tool"], strict["action"]) == (True, "files", "write_file")
    assert strict["policy"]["allowed"] is True
    assert strict["effects"][0]["sha256"] == written.output["sha256"]
    assert strict["output"] == {"value": written.output, "truncated": False}
    denied = bench.service.invoke("note", {"text": "x"})
    assert denied.simple() == {"success": False, "output": None, "error": "note is denied by the rules"}
    assert denied.strict()["policy"] == {
        "allowed": False,
        "rule_id": "deny",
        "rationale_code": "denied",
        "message": "note is denied by the rules",
    }
    assert denied.strict()["error"] == {"type": "PolicyDenied", "message": "note is denied by the rules"}
    missing = bench.service.invoke("read_file", {"path": "nothing"}).strict()
    assert (missing["policy"]["allowed"], missing["error"]["type"]) == (True, "NotFound")
    with pytest.raises(Failure):
        denied.value()


def test_the_target_of_a_link_is_authorized_when_it_is_opened(make_bench: Any) -> None:
    bench = make_bench(governance={"categories": {"read_only": {"forbidden_paths": ["secrets"]}}})
    for folder in ("secrets", "open"):
        (bench.work / folder).mkdir()
        (bench.work / folder / "a.txt").write_text(folder)
    (bench.work / "link").symlink_to("open")
    assert bench.value("read_file", path="link/a.txt") == "open"
    (bench.work / "link").unlink()
    (bench.work / "link").symlink_to("secrets")
    assert bench.error("read_file", path="link/a.txt").rule == "categories.read_only.forbidden_paths"
    shown = [e["path"] for e in bench.value("list_directory", path=".", recursive=True)]
    assert "open/a.txt" in shown
    assert "secrets/a.txt" not in shown


def test_limits_of_sizes(make_bench: Any) -> None:
    bench = make_bench(governance={"tools": {n: {"max_file_size_mb": 0.001} for n in ("write_file", "read_file")}})
    assert bench.error("write_file", path="a", content="x" * 2000).rule == "max_file_size_mb"
    assert not (bench.work / "a").exists()
    (bench.work / "b").write_text("x" * 2000)
    assert bench.error("read_file", path="b").rule == "max_file_size_mb"
    bench.value("write_file", path="a", content="x" * 1000)


def test_without_a_person_to_ask_the_call_is_denied(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS, patience=None)
    error = bench.error("write_file", path="a", content="")
    assert (error.code, error.rule) == ("permission_denied", "tools.write_file.requires_approval_in_modes")
    assert error.message == "write_file needs a person's approval in NORMAL, and there is nobody to ask"
    assert not (bench.work / "a").exists()


@pytest.mark.parametrize("answer", [False, None, "yes", 1, RuntimeError("gone")])
def test_only_a_clear_yes_allows(make_bench: Any, answer: Any) -> None:
    bench = make_bench(governance=ASKS, ask=Person(answer))
    assert bench.error("write_file", path="a", content="").denied
    assert not (bench.work / "a").exists()


def test_a_question_shows_the_call_and_its_callers(make_bench: Any) -> None:
    person = Person(True, True)
    bench = make_bench(governance=ASKS, ask=person)
    bench.define('return tools.write_file(path="a", content="x")', "inner")
    bench.define("return [tools.inner(), tools.inner()]", "outer")
    bench.value("outer")
    first = person.asked[0]
    assert (first.tool.name, first.arguments, first.callers) == (
        "write_file",
        {"path": "a", "content": "x", "create_only": False, "append": False},
        ("outer", "inner"),
    )
    assert len(person.asked) == 2
    assert (bench.work / "a").read_text() == "x"


def test_a_question_stops_the_clocks(make_bench: Any) -> None:
    person = Person(True)
    # The limit leaves a busy machine enough time to start a worker.
    person.seconds = 2.1
    bench = make_bench(governance={**ASKS, "limits": {"run_seconds": 2, "own_seconds": 1.9}}, ask=person)
    bench.value("list_directory")
    bench.define('return tools.write_file(path="a", content="")["path"]')
    assert bench.value("t") == "a"


def test_the_call_is_authorized_again_after_the_answer(make_bench: Any) -> None:
    person = Person()
    bench = make_bench(governance=ASKS, ask=person)

    def lockdown() -> bool:
        bench.service.service.modes.switch("LOCKDOWN", "ada", "while it was asked")
        return True

    person.answers.append(lockdown)
    error = bench.error("write_file", path="a", content="")
    # The owner's file has rules about modes for this tool, but not about LOCKDOWN.
    assert error.rule == "no_rule"
    assert not (bench.work / "a").exists()


def test_a_mode_applies_to_every_service_of_the_home(make_bench: Any) -> None:
    bench = make_bench()
    with bench.again() as other:
        other.service.modes.switch("LOCKDOWN", "ada", "")
        error = bench.error("list_directory")
        assert error.rule == "shipped.categories.read_only.forbidden_in_modes"
        # Tools that are off in every mode are not listed. To switch them on would not help in this mode.
        assert bench.service.list() == []
        other.service.modes.switch("RECOVERY", "ada", "")
        assert bench.value("list_directory") is not None
        assert bench.error("write_file", path="a", content="").code == "suspended"


def test_many_violations_raise_an_alert(make_bench: Any) -> None:
    bench = make_bench()
    for _ in range(20):
        assert bench.error("read_file", path="../x").rule == "path_traversal"
    assert bench.service.service.modes.mode == "ALERT"


def test_the_projects_rules_tighten_the_owners(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".albert").mkdir(parents=True)
    (work / ".albert" / "governance.yaml").write_text("tools:\n  write_file: {forbidden_paths: [kept]}\n")
    with SyncToolService.open(home=tmp_path / "home", workspace=work, governance={}) as service:
        error = service.invoke("write_file", {"path": "kept", "content": ""}).error
        assert error is not None
        assert error.rule == "project.tools.write_file.forbidden_paths"
        assert service.invoke("write_file", {"path": "other", "content": ""}).ok
    assert sorted(os.listdir(work)) == [".albert", "other"]


def entries(bench: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(e.kind, e.data) for e in bench.service.service.ledger.entries()]


DONE_TO: list[Any] = []


@primitive(effects=["delete"], paths={"paths": "delete"}, urls={"urls": ""}, category="system_write")
def discard(paths: list[Any], urls: list[str]) -> int:
    """Throw things away, wherever they are."""
    DONE_TO.append((paths, urls))
    return len(paths)


@primitive(effects=["read"], approval=True)
def ledgers() -> str:
    """Read the firm's books."""
    DONE_TO.append("ledgers")
    return "books"


@primitive(effects=["read"])
async def dawdle(seconds: float) -> str:
    """Take a while, without a look at anything."""
    await asyncio.sleep(seconds)
    return "done"


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"paths": ["a", "secrets/b"], "urls": []}, "tools.discard.forbidden_paths"),
        ({"paths": ["../b"], "urls": []}, "path_traversal"),
        ({"paths": [["secrets/b"]], "urls": []}, "unjudged"),
        ({"paths": [], "urls": ["http://a/", "http://evil.org/"]}, "tools.discard.forbidden_hosts"),
    ],
)
def test_each_of_many_paths_and_urls_is_authorized(make_bench: Any, given: Any, rule: str) -> None:
    rules = {
        "tools": {"discard": {"forbidden_paths": ["secrets"], "forbidden_hosts": ["evil.org"], "allowed_hosts": ["*"]}}
    }
    bench = make_bench(governance=rules, primitives=[discard])
    DONE_TO.clear()
    error = bench.error("discard", **given)
    assert (error.code, error.rule) == ("permission_denied", rule)
    assert DONE_TO == []
    assert bench.value("discard", paths=["a", "b"], urls=["http://a/"]) == 2


def test_a_timeout_in_the_rules_applies_to_every_tool(make_bench: Any) -> None:
    rules = {"tools": {"dawdle": {"timeout_seconds": 0.1}, "outer": {"timeout_seconds": 0.3}}}
    bench = make_bench(governance=rules, primitives=[dawdle])
    assert bench.error("dawdle", seconds=5).code == "timeout"
    bench.define("return tools.sleep(seconds=5)", "outer")
    assert bench.error("outer").code in ("run_limit", "timeout")


@pytest.mark.parametrize("rules", [{}, {"tools": {"ledgers": {"allowed_in_modes": ["ALERT"]}}}])
def test_an_example_can_not_avoid_a_question(make_bench: Any, rules: Any) -> None:
    bench = make_bench(governance=rules, primitives=[ledgers])
    DONE_TO.clear()
    failure = bench.refused("return tools.ledgers()", '@example(arguments={}, result="books")\n')
    assert failure.code == "example_failed"
    assert DONE_TO == []
    bench.define("return tools.ledgers()", above='@example(arguments={}, result="x", stubs={"ledgers": "x"})\n')


def test_the_call_uses_the_arguments_that_were_shown(make_bench: Any) -> None:
    person = Person()
    bench = make_bench(governance=ASKS, ask=person)

    def meddle() -> bool:
        person.asked[0].arguments["path"] = "other"  # type: ignore[index]
        return True

    person.answers.append(meddle)
    assert bench.value("write_file", path="a", content="")["path"] == "a"
    assert not (bench.work / "other").exists()


def test_links_that_lead_out_count_as_violations(make_bench: Any) -> None:
    bench = make_bench()
    (bench.work / "out").symlink_to("/etc")
    for _ in range(20):
        assert bench.error("read_file", path="out/passwd").rule == "outside_workspace"
    assert bench.service.service.modes.mode == "ALERT"


class Broken(dict[str, Any]):
    """Arguments that can't be read."""

    def items(self) -> Any:
        raise RuntimeError("no")


def test_every_denied_call_is_in_the_ledger(make_bench: Any) -> None:
    bench = make_bench()
    deep: Any = "x" * 190
    for _ in range(4):
        deep = [deep] * 50
    given: list[Any] = [
        {"path": 10**30},
        {"path": object()},
        {"path": "\ud800"},
        {"path": "a", "b": deep},
        {"k" * 2**21: 1},
    ]
    for arguments in given:
        assert not bench.service.invoke("read_file", arguments).ok
    assert not bench.service.invoke("read_file", Broken()).ok
    assert not bench.service.invoke("sk-live-abcdefghij1234567890", {}).ok
    found = entries(bench)
    assert [kind for kind, _ in found] == ["denied"] * 7
    assert found[5][1]["arguments"] == {"$unreadable": "RuntimeError"}
    assert "abcdefghij" not in str(found)


def test_a_call_cancelled_during_a_question_is_in_the_ledger(make_bench: Any) -> None:
    person = Person(True)
    person.seconds = 60
    bench = make_bench(governance={**ASKS, "limits": {"own_seconds": 1}}, ask=person)

    async def give_up() -> None:
        call = asyncio.ensure_future(bench.service.service.invoke("write_file", {"path": "a", "content": ""}))
        while not person.asked:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    bench.service._wait(give_up())
    assert [(kind, d.get("verdict"), d.get("code")) for kind, d in entries(bench)] == [
        ("policy", None, None),
        ("asked", None, None),
        ("approval_revoked", None, None),
        ("denied", None, "cancelled"),
    ]


def test_a_folder_swapped_for_a_link_after_authorization_is_not_opened(tmp_path: Path) -> None:
    work = tmp_path.resolve()
    for folder in ("secrets", "open"):
        (work / folder).mkdir()
        (work / folder / f"{folder}.txt").write_text("")
    policy = Policy(read_governance({"tools": {"x": {"forbidden_paths": ["secrets"]}}}).layers(), str(work), "/home/u")

    paths = policy.paths.of(discard.definition)
    judge = paths.judge

    def swap(path: str, use: str) -> Any:
        decision = judge(path, use)
        (work / "open").rename(work / "gone")
        (work / "open").symlink_to("secrets")
        return decision

    paths.judge = swap  # type: ignore[method-assign]
    with Workspace(work) as workspace:
        guarded = workspace.judged_by(CallJudge(paths, "x", 100))
        with pytest.raises(Failure):
            guarded.listing("open")
        (work / "open").unlink()
        (work / "gone").rename(work / "open")
        with pytest.raises(Failure), guarded.folder("open"):
            pass


def test_a_path_that_leads_out_is_reported_with_all_other_mistakes(make_bench: Any) -> None:
    bench = make_bench(governance={"allow": ["bash"]})
    error = bench.error("write_file", path="../x", content=7, mode="w")
    assert (error.code, error.rule, error.denied) == ("permission_denied", "path_traversal", True)
    assert sorted((v["field"], v["rule"]) for v in error.details["violations"]) == [
        ("content", "type"),
        ("mode", "unknown"),
        ("path", "path_traversal"),
    ]
    error = bench.error("bash", command="", cwd="a/..")
    assert sorted(v["rule"] for v in error.details["violations"]) == ["min_length", "path_traversal"]
    # Each one counts as an attempt to leave the workspace, as it does if only the workspace notices it.
    bench.define("return tools.read_file(path=p)", "reads", "p: str")
    assert bench.error("reads", p="sub/../../x").rule == "path_traversal"
