"""Dangerous commands and commands that can't be parsed ask. An answer applies to one call only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Question, SyncToolService, primitive
from albert_tools.engine.authority.approval_digest import arguments_digest
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.pipeline import policy

RAN: list[tuple[str, str]] = []
ASKED: list[Question] = []
#: The answers of the person.
ANSWER: list[Any] = []


@primitive(effects=["execute"], judged={"command": "shell", "env": "environment"})
def shell(command: str, cwd: str = "", env: list[str] = []) -> str:  # noqa: B006
    """Run a command."""
    RAN.append((command, cwd))
    return command


@primitive(effects=["execute"], judged={"argv": "program"})
def program(argv: list[str]) -> str:
    """Run a program."""
    RAN.append((argv[0], ""))
    return argv[0]


async def person(question: Question) -> Any:
    """A person who gives the answers that the test sets."""
    ASKED.append(question)
    return ANSWER[0]


RULES = {
    "tools": {
        "shell": {"allowed_in_modes": ["NORMAL"], "forbidden_commands": ["git push *"]},
        "program": {"allowed_in_modes": ["NORMAL"]},
    }
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SyncToolService]:
    RAN.clear()
    ASKED.clear()
    ANSWER[:] = [False]
    (tmp_path / "work").mkdir()
    with SyncToolService.open(
        home=tmp_path / "home", workspace=tmp_path / "work", governance=RULES, primitives=[shell, program], ask=person
    ) as opened:
        yield opened


def call(service: SyncToolService, command: str, **more: Any) -> ToolResult:
    return service.invoke("shell", {"command": command, **more})


def test_an_ordinary_command_runs_without_a_question(service: SyncToolService) -> None:
    assert call(service, "ls; git status").ok
    assert (len(RAN), ASKED) == (1, [])


@pytest.mark.parametrize(
    ("command", "rule", "rationale"),
    [
        ("ls; sudo ls", "shipped.dangerous_command", "dangerous_command"),
        ("ls; rm $x", "shipped.unknown_command", "unknown_command"),
    ],
)
def test_dangerous_commands_ask_and_say_why(service: SyncToolService, command: str, rule: str, rationale: str) -> None:
    result = call(service, command)
    assert RAN == []
    assert result.error is not None
    assert (result.error.code, result.error.rule) == ("permission_denied", rule)
    assert [(q.decision.rule, q.decision.rationale) for q in ASKED] == [(rule, rationale)]
    assert "`" in ASKED[0].decision.message
    assert ASKED[0].decision.hint
    ANSWER[:] = [True]
    assert call(service, command).ok
    assert len(RAN) == 1


def test_an_environment_variable_that_changes_the_command_asks(service: SyncToolService) -> None:
    assert call(service, "ls", env=["A=1", "B=2"]).ok
    assert not call(service, "ls", env=["A=1", "PATH=."]).ok
    assert [q.decision.rule for q in ASKED] == ["shipped.unknown_command"]


def test_many_variables_are_read_once(service: SyncToolService, monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[int] = []

    def digest(arguments: Any) -> str:
        digested.append(len(arguments["env"]))
        return arguments_digest(arguments)

    monkeypatch.setattr(policy, "arguments_digest", digest)
    assert not call(service, "ls", env=[f"LD_{n}=1" for n in range(900)]).ok
    assert 0 < len(digested) < 5


def test_a_forbidden_command_is_denied_without_a_question(service: SyncToolService) -> None:
    ANSWER[:] = [True]
    error = call(service, "git push").error
    assert error is not None
    assert (error.rule, ASKED, RAN) == ("tools.shell.forbidden_commands", [], [])


def test_a_lasting_answer_applies_to_the_same_call_only(service: SyncToolService) -> None:
    ANSWER[:] = ["session"]
    assert call(service, "rm -rf build").ok
    assert call(service, "rm -rf build").ok
    assert len(ASKED) == 1
    assert call(service, "rm -rf other").ok
    assert call(service, "rm -rf build", cwd="sub").ok
    assert call(service, "sudo ls").ok
    assert len(ASKED) == 4


def test_a_lasting_answer_for_a_saved_tool_applies_to_the_same_call_only(service: SyncToolService) -> None:
    service.define('def clean(what: str) -> str:\n    """Clean."""\n    return tools.shell(command=f"rm -rf {what}")\n')
    ANSWER[:] = ["always"]
    assert service.invoke("clean", {"what": "build"}).ok
    assert service.invoke("clean", {"what": "build"}).ok
    assert len(ASKED) == 1
    assert service.invoke("clean", {"what": "src"}).ok
    assert len(ASKED) == 2


def test_the_rules_about_commands_apply_to_programs_without_a_shell(service: SyncToolService) -> None:
    assert service.invoke("program", {"argv": ["echo", "; sudo ls"]}).ok
    assert ASKED == []
    assert not service.invoke("program", {"argv": ["env", "sudo", "ls"]}).ok
    assert [q.decision.rule for q in ASKED] == ["shipped.dangerous_command"]


@pytest.mark.parametrize("command", ["rm -f tmpb", "tee ci.yml", "echo x > ci.yml", "make", "git stash pop"])
@pytest.mark.parametrize("folder", [".git/refs/heads", ".github/workflows", "link", "sub/../.github"])
def test_a_command_that_changes_files_asks_in_a_hidden_folder(
    service: SyncToolService, tmp_path: Path, command: str, folder: str
) -> None:
    work = tmp_path / "work"
    for name in (".git/refs/heads", ".github/workflows", "sub"):
        (work / name).mkdir(parents=True)
    (work / "link").symlink_to(".github/workflows")
    assert call(service, command, cwd="sub").ok
    assert call(service, "ls; cat config", cwd=folder).ok is (".." not in folder)
    assert ASKED == []
    assert not call(service, command, cwd=folder).ok
    assert len(ASKED) == (".." not in folder)


def test_a_command_starts_in_the_folder_of_its_session(service: SyncToolService, tmp_path: Path) -> None:
    (tmp_path / "work/.github/workflows").mkdir(parents=True)
    (tmp_path / "work/sub").mkdir()
    for folder, asked in (("sub", 0), (".github", 2)):
        _, token = service.within(lambda s, folder=folder: s.open_session("client", cwd=folder))
        service.invoke("shell", {"command": "tee ci.yml"}, session=token)
        service.invoke("program", {"argv": ["touch", "ci.yml"]}, session=token)
        assert len(ASKED) == asked


def test_a_variable_is_judged_from_the_folder_in_which_the_command_starts(
    service: SyncToolService, tmp_path: Path
) -> None:
    (tmp_path / "work/.hidden").mkdir()
    assert call(service, "PYTHONPATH=src ls").ok
    assert not call(service, "PYTHONPATH=src ls", cwd=".hidden").ok


def test_a_variable_of_the_call_does_not_load_what_the_command_writes(service: SyncToolService) -> None:
    assert not call(service, "cp notes sitecustomize.py; pip list", env=["PYTHONPATH=."]).ok
