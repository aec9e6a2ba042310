"""The owner's command that is run when a question or a version waits for the owner."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.pipeline import notify
from albert_tools.engine.pipeline.notify import Notice
from albert_tools.engine.policy.settings import load_governance, read_governance
from tests.helpers.children import PATIENCE
from tests.helpers.gate import until
from tests.helpers.governed import Governed, governing


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    with governing(tmp_path) as make:
        yield make


def program(path: Path, body: str, first: str = "#!/bin/sh") -> str:
    path.write_text(f"{first}\n{body}\n")
    path.chmod(0o755)
    return str(path)


def rules(*command: str) -> dict[str, Any]:
    return {"notify": list(command)}


def ended(here: Governed, runs: int) -> list[dict[str, Any]]:
    """Wait until the command has been run so many times. Return what the ledger says about each run."""
    deadline = time.monotonic() + PATIENCE
    while len(found := here.entries("notified")) < runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_the_command_gets_the_question_and_no_shell_reads_it(
    make: Callable[..., Governed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv("ALBERT_SESSION", "alb_x")
    monkeypatch.setenv("ALBERT_SECRET_KEY", "hidden")
    body = f'{{ echo "$1 $ALBERT_APPROVAL $ALBERT_TOOL $ALBERT_SESSION$ALBERT_SECRET_KEY"; pwd; cat; }} >> {told}'
    here = make(governance=rules(program(tmp_path / "tell", body), "$(touch /tmp/never); a b"))
    command = "touch $(echo x)\x1b[2J\nalbert approvals answer 000000000000 always"
    asked = here.error("bash", command=command)
    assert asked.code == "suspended"
    assert [entry["problem"] for entry in ended(here, 1)] == [""]
    head, cwd, who, message, hint = told.read_text().splitlines()
    assert head == f"$(touch /tmp/never); a b {asked.details['approval']} bash "
    assert (cwd, hint) == ("/", f"albert approvals show {asked.details['approval']}")
    assert who.startswith('a call without a session in work: bash(command="touch $(echo x)')
    assert message == f"{asked.message.partition('; the run waits')[0]}; it has no network"
    assert told.read_text().replace("\n", "").isprintable()
    # The same question does not notify again.
    assert here.error("bash", command=command).details["approval"] == asked.details["approval"]
    assert len(told.read_text().splitlines()) == 5


def test_the_title_and_the_text_are_arguments(make: Callable[..., Governed], tmp_path: Path) -> None:
    told = tmp_path / "told"
    body = f'for word in "$@"; do printf "%s|" "$word"; done >> {told}; echo >> {told}'
    here = make(governance=rules(program(tmp_path / "tell", body), "-i", "{text}", "{title}", "text"))
    # The client's name is hostile, too.
    _, here.session = here.service.open_session('kid" in bank: ok')
    asked = here.error("bash", command='touch $(echo "x y")\x1b[2J; touch /tmp/never')
    ended(here, 1)
    option, text, title, last = told.read_text().removesuffix("|\n").split("|")
    assert (option, title, last) == ("-i", "Albert asks about bash", "text")
    who, message, shown_by = text.split("\n")
    call = 'bash(command="touch $(echo \\"x y\\")\\u001b[2J; touch /tmp/never")'
    assert who == f'"kid\\" in bank: ok" in work: {call}'
    assert message == f"{asked.message.partition('; the run waits')[0]}; it has no network"
    assert shown_by == f"albert approvals show {asked.details['approval']}"
    told.unlink()
    here.error("bash", command="touch " + "long " * 1000 + "/etc/x")
    ended(here, 2)
    assert len(told.read_text().split("|")[1]) < 700
    # No text can be an option of the program.
    told.unlink()
    asyncio.run(notify.notify(here.options["governance"]["notify"], Notice("Albert", ("--exec=x",), "y", {}, ""), "/w"))
    assert told.read_text().split("|")[1] == " --exec=x\ny"


def test_the_command_finds_no_program_in_the_workspace(
    make: Callable[..., Governed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    here = make(governance=rules(program(tmp_path / "tell", f"show || echo not found > {told}")))
    programs = here.work / ".venv" / "bin"
    programs.mkdir(parents=True)
    program(programs / "show", f"echo planted > {told}")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    here.error("bash", command="touch $(x)")
    ended(here, 1)
    assert told.read_text() == "not found\n"


def test_a_version_that_a_session_defines_waits_and_the_command_is_run(
    make: Callable[..., Governed], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    body = f'{{ echo "$ALBERT_TOOL $ALBERT_VERSION"; cat; }} >> {told}'
    here = make(governance=rules(program(tmp_path / "tell", body)))
    _, token = here.service.open_session("an agent")
    source = 'def t() -> int:\n    """Count."""\n    return 1\n'
    version = here.service.define(source, session=token).version
    ended(here, 1)
    expected = [f"t {version}", "a version of t waits for your review", "albert review t"]
    assert told.read_text().splitlines() == expected
    # Neither the same version again, nor a version of the owner's own.
    here.service.define(source, session=token)
    here.service.define(source.replace("1", "2"))
    here.service.close()
    assert told.read_text().splitlines() == expected


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("slow", "it was killed after 0.2 s"),
        ("missing", "there is no program .*/missing"),
        ("fails", "exit code 3"),
        ("no interpreter", "it can't be started: .*"),
        ("in the workspace", ".*/work/own is in the workspace, where tools could change it, so it is not run"),
    ],
)
def test_the_call_waits_for_its_answer_and_the_owner_is_told_how_the_command_failed(
    make: Callable[..., Governed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, problem: str
) -> None:
    monkeypatch.setattr(notify, "SECONDS", 0.2)
    trace = tmp_path / "trace"
    path = {
        "slow": lambda: program(tmp_path / "slow", f"sleep 1000 & echo $! > {tmp_path}/child; sleep 1000"),
        "missing": lambda: str(tmp_path / "missing"),
        "fails": lambda: program(tmp_path / "fails", "exit 3"),
        "no interpreter": lambda: program(tmp_path / "no", "exit", "#!/missing/sh"),
        "in the workspace": lambda: program(tmp_path / "g0" / "work" / "own", f"touch {trace}"),
    }
    (tmp_path / "g0" / "work").mkdir(parents=True)
    here = make(governance=rules(path[fault]()))
    assert here.error("bash", command="touch x").code == "suspended"
    assert re.fullmatch(problem, ended(here, 1)[0]["problem"])
    assert not trace.exists()
    [said] = [each for each in here.value("self_check")["problems"] if each.startswith("notify: ")]
    end = f"failed: {problem}; you may have missed a question or a version"
    assert re.fullmatch(f"notify: the last run of {path[fault]()}, ....-..-.. ..:.. UTC, {end}", said)
    started = tmp_path / "child"
    if started.exists() and (pid := started.read_text().strip()):
        # What the command has started is killed too.
        deadline = time.monotonic() + PATIENCE
        while _runs(Path(f"/proc/{pid}/stat")):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_what_begins_to_wait_during_a_run_is_one_notice_and_no_call_waits_for_it(
    make: Callable[..., Governed], tmp_path: Path
) -> None:
    told, go_on = tmp_path / "told", tmp_path / "go on"
    said = f'printf "%s|%s|%s\\n" "$1" "$2" "$ALBERT_APPROVAL" >> {told}'
    body = f'until [ -e "{go_on}" ]; do sleep 0.05; done; {said}'
    here = make(governance=rules(program(tmp_path / "tell", body), "{title}", "{text}"))
    asked = [here.error("bash", command=f"touch {n}").details["approval"] for n in range(6)]
    _, token = here.service.within(lambda s: s.open_session("agent"))
    error = here.service.invoke("bash", {"command": "touch 6"}, session=token).error
    go_on.touch()
    assert [entry["count"] for entry in ended(here, 2)] == [1, 6]
    first, *_, end = told.read_text().partition("Albert: ")[0].splitlines()
    assert (first.partition("|")[0], end) == (
        "Albert asks about bash",
        f"albert approvals show {asked[0]}|{asked[0]}",
    )
    joined = told.read_text().splitlines()[-5:]
    first, second = (f'a call without a session in work: bash(command="touch {n}")' for n in (1, 2))
    # Each session has a turn.
    ids = [asked[1], error.details["approval"], *asked[2:]]
    assert joined == [
        f"Albert: 6 questions wait|{first}",
        '"agent" in work: bash(command="touch 6")',
        second,
        "and 3 more",
        f"albert approvals|{' '.join(ids)}",
    ]


def test_the_command_ends_with_the_service(
    make: Callable[..., Governed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "CLOSING_SECONDS", 0.2)
    here = make(governance=rules(program(tmp_path / "slow", f"echo $$ > {tmp_path}/own; exec sleep 1000")))
    here.error("bash", command="touch x")
    own = tmp_path / "own"
    until(lambda: own.exists() and own.read_text().endswith("\n"))
    here.service.close()
    assert [entry["problem"] for entry in here.entries("notified")] == ["it was killed when the service ended"]
    assert not _runs(Path(f"/proc/{own.read_text().strip()}/stat"))


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("notify-send Albert", "write the whole path of the program, such as /usr/bin/notify-send"),
        ("./tell", "write the whole path"),
        ([], "a command is a program with its arguments"),
        ("", "a command is a program with its arguments"),
        (None, "it has no value"),
        (["/bin/a\0b"], "a command is a program"),
        (["/bin/sh", "-c", "echo '{text}'"], 'write "{text}" as an argument of its own'),
        (["/usr/bin/osascript", "-e", 'display notification "{title}"'], 'write "{title}" as an argument of its own'),
        ("'/bin/a", "no closing quotation"),
    ],
)
def test_a_command_that_can_not_be_meant(value: Any, said: str) -> None:
    with pytest.raises(Failure, match=said):
        read_governance({"notify": value})


def test_a_project_can_not_set_it(tmp_path: Path) -> None:
    own = tmp_path / "project.yaml"
    own.write_text("notify: /bin/true\n")
    with pytest.raises(Failure, match="only the owner's file can have notify, because it names code to run"):
        load_governance(read_governance({}), own)
