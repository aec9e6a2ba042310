"""The owner's command that is run when a question or a version waits for the owner."""

from __future__ import annotations

import asyncio
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
from tests.helpers.governed import Governed, governing


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    with governing(tmp_path) as make:
        yield make


def program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def rules(*command: str) -> dict[str, Any]:
    return {"notify": list(command)}


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
    head, cwd, message, hint = told.read_text().splitlines()
    assert head == f"$(touch /tmp/never); a b {asked.details['approval']} bash "
    assert (cwd, hint) == ("/", f"albert approvals show {asked.details['approval']}")
    assert message.isprintable()
    # The same question does not notify again.
    assert here.error("bash", command=command).details["approval"] == asked.details["approval"]
    assert len(told.read_text().splitlines()) == 4


def test_the_title_and_the_text_are_arguments(make: Callable[..., Governed], tmp_path: Path) -> None:
    told = tmp_path / "told"
    body = f'for word in "$@"; do printf "%s|" "$word"; done >> {told}; echo >> {told}'
    here = make(governance=rules(program(tmp_path / "tell", body), "-i", "{text}", "{title}", "text"))
    asked = here.error("bash", command='touch $(echo "x y")\x1b[2J; touch /tmp/never')
    option, text, title, last = told.read_text().removesuffix("|\n").split("|")
    assert (option, title, last) == ("-i", "Albert asks about bash", "text")
    message, shown_by = text.split("\n")
    assert message == " ".join(asked.message.partition("; the run waits")[0].split()).replace("\x1b", "")
    assert shown_by == f"albert approvals show {asked.details['approval']}"
    told.unlink()
    here.error("bash", command="touch " + "long " * 1000 + "/etc/x")
    assert len(told.read_text().split("|")[1]) < 600
    # No text can be an option of the program.
    told.unlink()
    asyncio.run(notify.notify(here.options["governance"]["notify"], Notice("Albert", "--exec=x", "y", {}, "")))
    assert told.read_text().split("|")[1] == " --exec=x\ny"


def test_a_version_that_a_session_defines_waits_and_the_command_is_run(
    make: Callable[..., Governed], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    body = f'{{ echo "$ALBERT_TOOL $ALBERT_VERSION"; cat; }} >> {told}'
    here = make(governance=rules(program(tmp_path / "tell", body)))
    _, token = here.service.open_session("an agent")
    source = 'def t() -> int:\n    """Count."""\n    return 1\n'
    version = here.service.define(source, session=token).version
    expected = [f"t {version}", "a version of t waits for your review", "albert review t"]
    assert told.read_text().splitlines() == expected
    # Neither the same version again, nor a version of the owner's own.
    here.service.define(source, session=token)
    here.service.define(source.replace("1", "2"))
    assert told.read_text().splitlines() == expected


@pytest.mark.parametrize("fault", ["slow", "missing", "fails", "in the workspace"])
def test_the_call_waits_for_its_answer_whatever_the_command_does(
    make: Callable[..., Governed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(notify, "SECONDS", 0.2)
    trace = tmp_path / "trace"
    path = {
        "slow": lambda: program(tmp_path / "slow", f"sleep 1000 & echo $! > {tmp_path}/child; sleep 1000"),
        "missing": lambda: str(tmp_path / "missing"),
        "fails": lambda: program(tmp_path / "fails", "exit 3"),
        "in the workspace": lambda: program(tmp_path / "g0" / "work" / "own", f"touch {trace}"),
    }
    (tmp_path / "g0" / "work").mkdir(parents=True)
    here = make(governance=rules(path[fault]()))
    assert here.error("bash", command="touch x").code == "suspended"
    assert not trace.exists()
    started = tmp_path / "child"
    if started.exists() and (pid := started.read_text().strip()):
        # What the command has started is killed too.
        deadline = time.monotonic() + PATIENCE
        while _runs(Path(f"/proc/{pid}/stat")):
            assert time.monotonic() < deadline
            time.sleep(0.01)


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
