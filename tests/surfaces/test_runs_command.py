"""``albert runs`` shows, resumes, cancels, replays and deletes runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.runs.runs import RunView
from albert_tools.grammar.wrap import cells
from albert_tools.surfaces.cli.timeline import Timeline
from albert_tools.surfaces.text.console import Console
from tests.helpers.altered import altered

from .conftest import Albert

STEPS = '''def steps(seconds: float) -> list[str]:
    """Read, write and rest.

    Args:
        seconds: How long.
    """
    tools.write_file(path="a.txt", content="a")
    try:
        tools.read_file(path="nothing")
    except ToolError:
        pass
    tools.sleep(seconds=seconds)
    tools.write_file(path="b.txt", content="b")
    return ["a.txt", "b.txt"]
'''


@pytest.fixture
def stepping(albert: Albert) -> Albert:
    albert.write("steps.tool", STEPS)
    assert albert("define", "steps.tool").code == 0
    return albert


def newest(albert: Albert) -> Any:
    return albert("runs", "list", "--limit", "1", "--json").document()["runs"][0]


def cut_short(albert: Albert) -> str:
    """The id of a run whose process was killed."""
    running = albert.start("run", "steps", "seconds=60", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    albert.wait_for_step("steps", "ended", "write_file")
    running.kill()
    running.wait(10)
    return str(newest(albert)["run"])


def test_a_run_is_shown_with_its_steps(stepping: Albert) -> None:
    assert stepping("runs").err == "there are no runs yet; `albert run` of a saved tool makes one\n"
    assert stepping("run", "steps", "seconds=0.2").code == 0
    run = newest(stepping)
    assert re.fullmatch(rf"{run['run']}  done         steps  \d+ s ago +seconds=0.2\n", stepping("runs").out)
    lines = stepping("runs", "show", run["run"][:8]).out.split("\n")
    assert lines[0] == f"{run['run']}  done  steps(seconds=0.2)"
    assert re.fullmatch(r"began \d{4}-\d\d-\d\d \d\d:\d\d UTC, took [0-9.]+ (ms|s)", lines[1])
    assert re.fullmatch(r'0  ✓ ended    write_file\(path="a.txt", content="a"\)  wrote a.txt, 1 byte  \d+ ms', lines[3])
    assert re.fullmatch(
        r"1  ✗ failed   read_file\(path=\"nothing\"\)  not_found: there is nothing at 'nothing'  \d+ ms", lines[4]
    )
    assert re.fullmatch(r"2  ✓ ended    sleep\(seconds=0.2\)  \d+ ms", lines[5])
    document = stepping("runs", "show", run["run"], "--json").document()
    assert lines[7:] == ["", "result:", "[", '  "a.txt",', '  "b.txt"', "]", ""]
    assert document["output"] == ["a.txt", "b.txt"]
    assert [s["state"] for s in document["steps"]] == ["ended", "failed", "ended", "ended"]
    assert all(s["began"] <= s["at"] for s in document["steps"])


@pytest.mark.parametrize("columns", [120, 80, 40])
def test_a_timeline_fits_its_terminal(stepping: Albert, columns: int) -> None:
    assert stepping("run", "steps", "seconds=0.1").code == 0
    code, seen = stepping.terminal("runs", "show", newest(stepping)["run"], columns=columns)
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", seen).replace("\r\n", "\n")
    assert code == 0
    assert [line for line in plain.split("\n") if cells(line) > columns and len(line.split()) > 1] == []
    assert ("█" in plain) == (columns > 56)
    assert "\x1b[" in seen


def test_a_long_result_is_cut_and_a_secret_in_it_is_not_shown(albert: Albert) -> None:
    albert.write("a.tool", 'def a() -> str:\n    """Give a text."""\n    return "token: abcdefgh " + "x" * 3000\n')
    assert albert("define", "a.tool").code == 0
    assert albert("run", "a").code == 0
    run = newest(albert)["run"]
    shown = albert("runs", "show", run).out
    assert "result:\ntoken: [redacted] xxx" in shown
    assert "the first 2,000 of 3,016 characters; --json prints all" in shown
    assert len(albert("runs", "show", run, "--json").document()["output"]) == 3016


def test_a_killed_run_is_shown_replayed_and_cancelled(stepping: Albert) -> None:
    run = cut_short(stepping)
    shown = stepping("runs", "show", run).out
    assert "  interrupted  steps(seconds=60)\n" in shown
    assert f"its process ended before it did: `albert runs resume {run}` continues it" in shown
    (stepping.project / "a.txt").write_text("changed since")
    replayed = stepping("runs", "replay", run)
    # Entries of reads are written later. They can be lost with the process.
    assert replayed.code == 0
    assert re.search(r"; it ends there, before (read_file|sleep)\(.*\)\. Nothing was done\.\n", replayed.out)
    cancelled = stepping("runs", "cancel", run)
    assert cancelled.out == f"cancelled {run} (steps)\n  1 of its calls had changed something\n"
    again = stepping("runs", "resume", run)
    refused = f"error[exists]: the run {run} is cancelled; it can't be resumed\n"
    assert (again.code, again.err) == (1, f"{refused}  help: `albert help exists` says more\n")
    assert (stepping.project / "a.txt").read_text() == "changed since"


def test_a_killed_run_asks_about_the_interrupted_call_and_resumes(stepping: Albert) -> None:
    stepping.write(
        "steps.tool",
        STEPS.replace("    tools.sleep(seconds=seconds)\n", '    tools.bash(command="test -e go || sleep 60")\n'),
    )
    (stepping.home / "config").mkdir(parents=True)
    (stepping.home / "config" / "governance.yaml").write_text("allow: [bash]\n")
    assert stepping("define", "steps.tool").code == 0
    running = stepping.start("run", "steps", "seconds=0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stepping.wait_for_step("steps", "unknown", "bash")
    running.kill()
    running.wait(10)
    run = newest(stepping)["run"]
    assert "begun; whether it was done is not known" in stepping("runs", "show", run).out
    stepping.write("a.txt", "changed since")
    stepping.write("go", "")
    asked = stepping("runs", "resume", run)
    assert asked.code == 4
    assert "bash (step 2) was interrupted, and whether it was done is not known" in " ".join(asked.err.split())
    answer = re.search(r"approvals answer (\w+) once", asked.err)
    assert answer is not None
    assert stepping("approvals", "answer", answer[1], "once").code == 0
    assert stepping("runs", "resume", run).code == 0
    assert (stepping.project / "a.txt").read_text() == "changed since"
    assert (stepping.project / "b.txt").read_text() == "b"


def test_resume_and_replay_repeat_no_effect(stepping: Albert, tmp_path: Path) -> None:
    config = stepping.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text("tools:\n  write_file: {requires_approval_in_modes: [NORMAL]}\n")
    assert stepping("run", "steps", "seconds=0").code == 4
    run = newest(stepping)["run"]
    (config / "governance.yaml").write_text("")
    # The run continues in its first workspace, from any folder.
    done = stepping("runs", "resume", run, "--json", cwd=tmp_path)
    assert (done.code, done.document()["output"], done.document()["run_id"]) == (0, ["a.txt", "b.txt"], run)
    before = (stepping.project / "a.txt").stat().st_mtime_ns
    replayed = stepping("runs", "replay", run, cwd=tmp_path)
    assert replayed.code == 0
    assert replayed.err == "= every call is the one in the journal (4 steps); it ends as it did. Nothing was done.\n"
    assert json.loads(replayed.out) == ["a.txt", "b.txt"]
    assert (stepping.project / "a.txt").stat().st_mtime_ns == before
    assert "‖ waited" in stepping("runs", "show", run).out


def test_replay_shows_where_another_version_differs(stepping: Albert) -> None:
    assert stepping("run", "steps", "seconds=0").code == 0
    run = newest(stepping)["run"]
    stepping.write("steps.tool", STEPS.replace('path="b.txt"', 'path="c.txt"'))
    assert stepping("define", "steps.tool").code == 0
    version = stepping("show", "steps", "--json").document()["version"]
    parted = stepping("runs", "replay", run, "--version", version[:8])
    assert parted.code == 1
    assert parted.out == (
        "≠ they differ at step 3:\n"
        '  the journal has      write_file(path="b.txt", content="b")\n'
        '  the program asks for write_file(path="c.txt", content="b")\n'
    )
    assert not (stepping.project / "c.txt").exists()
    document = stepping("runs", "replay", run, "--version", version, "--json").document()
    assert document["diverged"] is True
    assert document["error"]["details"]["program"]["arguments"]["path"] == "c.txt"


def test_sweep_deletes_old_finished_runs(stepping: Albert) -> None:
    for _ in range(2):
        assert stepping("run", "steps", "seconds=0").code == 0
    suspended = cut_short(stepping)
    old, young = [r["run"] for r in stepping("runs", "--json").document()["runs"] if r["run"] != suspended]
    altered(stepping.home, "UPDATE runs SET changed = '2020-01-31T08:00:00.000000Z' WHERE id <> ?", young)
    swept = stepping("runs", "sweep", "--older-than", "30d")
    assert swept.out == "deleted the journals of 1 run, and 0 values (0 bytes) that no record refers to\n"
    assert swept.err == f"kept 1 old but unfinished: {suspended}\n"
    assert {r["run"] for r in stepping("runs", "--json").document()["runs"]} == {young, suspended}
    assert stepping("runs", "show", old).code == 1
    assert stepping("runs", "sweep", "--older-than", "2h").code == 2


def test_a_changed_journal_is_damaged(stepping: Albert) -> None:
    assert stepping("run", "steps", "seconds=0").code == 0
    run = newest(stepping)["run"]
    altered(stepping.home, "UPDATE steps SET data = replace(data, 'a.txt', 'z.txt')")
    assert f"{run}  damaged" in stepping("runs").out
    shown = stepping("runs", "show", run)
    assert (shown.code, shown.err.startswith("error[damaged]: ")) == (1, True)


def test_an_unknown_run(ready: Albert) -> None:
    for action in ("show", "resume", "cancel", "replay"):
        done = ready("runs", action, "abcdef")
        assert (done.code, done.err.split("\n")[0]) == (1, "error[not_found]: there is no run abcdef")


def step(number: int | str, began: float, at: float) -> dict[str, Any]:
    facts = {"tool": "t", "arguments": {}, "version": "v", "effects": []}
    return {"step": str(number), "state": "ended", "began": began, "at": at, **facts}


def drawn(capsys: pytest.CaptureFixture[str], width: int | None, **facts: Any) -> list[str]:
    view = RunView("r", "t", "v", "done", "2026-01-01T00:00:00Z", None, {"arguments": {}}, **facts)
    console = Console()
    console.out_width = width
    Timeline(view, console, 0.0).draw()
    return capsys.readouterr().out.split("\n")


def test_the_time_axis_leaves_out_waits(capsys: pytest.CaptureFixture[str]) -> None:
    start = 1767225600.0
    history = [
        {"state": "suspended", "at": start + 1, "approval": "aaa"},
        {"state": "resumed", "at": start + 36001, "approval": None},
        {"state": "done", "at": start + 36002, "approval": None},
    ]
    steps = (step(0, start, start + 1), step(1, start + 36001, start + 36002))
    lines = drawn(capsys, 80, steps=steps, history=tuple(history))
    assert lines[1] == "began 2026-01-01 00:00 UTC, took 2.0 s, and waited 10 h"
    first, wait, second = lines[3:6]
    assert wait == "    ‖ waited 10 h for the answer to aaa"
    # Each bar takes half of the axis.
    assert first.count("█") in (12, 13)
    assert abs(second.count("█") - first.count("█")) <= 1
    assert second.index("█") >= first.rindex("█")
    assert (first.endswith(" 1.0 s"), max(map(cells, lines)) <= 80) == (True, True)


def test_callers_are_above_their_calls_after_a_run_was_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    start = 1767225600.0
    # The composites 1 and 1/1 began again after their first calls.
    times = {"1/0": 1, "1/1/0": 2, "1/1/1": 8, "1/1": 7, "1": 6, "0": 0, "2": 9}
    steps = tuple(step(name, start + n, start + n) for name, n in times.items())
    lines = drawn(capsys, None, steps=steps)
    assert [line.split()[0] for line in lines[3:] if line] == ["0", "1", "1/0", "1/1", "1/1/0", "1/1/1", "2"]


def test_a_wait_for_a_person_at_the_terminal_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    start = 1767225600.0
    questions = {"bbb": {"step": "1", "at": start + 1, "arguments": {}}}
    history = ({"state": "done", "at": start + 62, "approval": None},)
    lines = drawn(
        capsys,
        None,
        steps=(step(0, start, start + 1), step(1, start + 61, start + 62)),
        history=history,
        questions=questions,
    )
    assert lines[1].endswith("took 2.0 s, and waited 1 min")
    assert lines[3:6] == [
        "0  ✓ ended    t()  1.0 s",
        "   ‖ waited 1 min for the answer to bbb",
        "1  ✓ ended    t()  1.0 s",
    ]
