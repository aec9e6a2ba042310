"""Bad input gives one sentence, the right exit code and never a traceback. (`Albert` checks each output for a traceback.)"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

CASES = [
    # The arguments, the exit code, the expected message.
    (["run", "no_such"], 3, "no tool named 'no_such'"),
    (["run", "word_frequencie"], 3, "did you mean 'word_frequencies'"),
    (["run", "word_frequencies"], 2, "path is missing"),
    (
        ["run", "word_frequencies", "pth=a", "top=x", "foo"],
        2,
        "'pth'; did you mean 'path'?; top: expected int, got 'x'",
    ),
    (["run", "word_frequencies", "path=poem.txt", 'top:="2"'], 2, "top"),
    (["run", "word_frequencies", "path=@nowhere"], 2, "path: 'nowhere' can't be read: No such file"),
    (["run", "word_frequencies", "path=nowhere"], 1, "nothing at 'nowhere'"),
    (["run", "word_frequencies", "path=../x"], 3, "permission_denied"),
    (["run", "word_frequencies", "--args", "[1"], 2, "is not JSON"),
    (["run", "word_frequencies", "--args", "[1]"], 2, "must be a JSON object"),
    (["run", "word_frequencies", "--args", "@nowhere"], 2, "can't be read"),
    (["run", "word_frequencies", "--args", "NaN"], 2, "JSON has no NaN"),
    (["run", "word_frequencies", "--args", "[" * 100_000], 2, "--args"),
    (["run", "word_frequencies", "path=x", "--version", "zz"], 3, "version"),
    (["run", "read_system_logs"], 3, "`allow: [read_system_logs]`"),
    (["run", "current_time", "--workspace", "nowhere"], 3, "does not exist"),
    (["run", ""], 3, "no tool named"),
    (["show", "no_such"], 3, "no_such"),
    (["remove", "no_such"], 3, "no_such"),
    (["remove", "read_file"], 3, "primitive"),
    (["define", "nowhere"], 1, "No such file"),
    (["define", "."], 1, "Is a directory"),
    (["check", "junk"], 1, "is not UTF-8"),
    (["check", "large"], 1, "source-too-large"),
    (["fmt", "junk"], 1, "is not UTF-8"),
    (["fmt", "large"], 1, "source-too-large"),
    (["define", "--json-form", "poem.txt"], 1, "is not JSON"),
    (["define", "--json-form", "list.json"], 1, "is not a JSON object"),
    (["define", "--json-form", "odd.json"], 1, "implementation"),
    ([], 2, "COMMAND"),
    (["frobnicate"], 2, "there is no command 'frobnicate'"),
    (["rn", "x"], 2, "there is no command 'rn'; did you mean 'run'?"),
    (["run"], 2, "run: missing NAME\n"),
    (["tools", "extra"], 2, "tools takes no argument 'extra'"),
    (["tools", "--jsn"], 2, "no option --jsn; did you mean '--json'?"),
    (["tools", "--frobnicate"], 2, "no option --frobnicate"),
    (["--all", "tools"], 2, "--all must follow `tools`"),
    (["completion", "tcsh"], 2, "invalid choice"),
]


@pytest.fixture(scope="module")
def files(ready):
    (ready.project / "junk").write_bytes(random.Random(1).randbytes(1000))
    (ready.project / "large").write_bytes(b"a" * 10_000_000)
    ready.write("list.json", "[]")
    ready.write("odd.json", '{"name": 3, "parameters": "x"}')
    return ready


@pytest.mark.parametrize(
    ("words", "code", "text"), CASES, ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else ""
)
def test_bad_input(files, words, code, text) -> None:
    done = files(*words)
    assert done.code == code, done.err
    assert text in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("words", "code"), [case[:2] for case in CASES[::4]], ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else ""
)
def test_bad_input_as_json(files, words, code) -> None:
    done = files("--json", *words)
    assert (done.code, done.err) == (code, "")
    document = done.document()
    assert document["ok"] is False
    problems = document.get("diagnostics") or [document["error"]]
    assert all(p["code"] and p["message"] for p in problems)


def test_arguments_that_are_not_utf8(ready) -> None:
    assert ready("run", b"word_frequencies", b"path=\xff").code == 2
    assert ready("run", b"\xff", "--json").document()["error"]["code"] == "unknown_tool"
    assert ready("check", b"\xff.tool", "--json").document()["error"]["code"] == "io_error"


def test_no_workspace(ready, tmp_path: Path) -> None:
    done = ready("run", "current_time", cwd=tmp_path)
    assert done.code == 3
    assert "--workspace" in done.err
    assert ready("tools", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    "words", [["tools"], ["define", "a.tool"], ["run", "shout", "text=a"], ["search", "x"]], ids=str
)
def test_a_home_that_is_a_file(albert, words) -> None:
    albert.write("a.tool", 'def shout(text: str) -> str:\n    """Shout."""\n    return text.upper()\n')
    albert.home.write_text("I was here first")
    done = albert(*words)
    assert done.code == 1
    assert "ALBERT_HOME" in done.err
    assert albert.home.read_text() == "I was here first"


def test_home_need_not_be_set(ready) -> None:
    assert ready("tools", env={"HOME": None}).code == 0


def test_the_current_folder_was_deleted(ready, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    # Started like the installed command. With `-m`, Python itself would fail before our code starts.
    entry = tmp_path / "albert"
    entry.write_text("from albert_tools.surfaces.cli.main import main\nraise SystemExit(main())\n")
    script = f"rmdir {gone}; exec {ready.command[0]} {entry} run current_time"
    done = subprocess.run(["sh", "-c", script], cwd=gone, env=ready.environ, capture_output=True, text=True)
    assert done.returncode == 3
    assert "the workspace can't be found" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_streams_that_are_closed_or_full(ready) -> None:
    def shell(script: str) -> subprocess.CompletedProcess[str]:
        script = script.replace("albert", " ".join(ready.command))
        return subprocess.run(
            ["bash", "-c", script], cwd=ready.project, env=ready.environ, capture_output=True, text=True, timeout=60
        )

    left = shell("albert tools | true; exit ${PIPESTATUS[0]}")
    assert (left.returncode, left.stderr) == (0, "")
    closed = shell("albert tools >&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    stdin = shell("albert check - <&-")
    assert stdin.returncode == 1
    assert "there is no stdin" in stdin.stderr
    if Path("/dev/full").exists():
        for words in ("tools", "tools --json", "prompt"):
            full = shell(f"albert {words} > /dev/full")
            assert full.returncode == 1
            assert full.stderr == "error: the output can't be written: No space left on device\n"


def test_an_encoding_that_lacks_a_character(ready) -> None:
    done = ready("run", "escape", "text=\u00e9", "--json", env={"PYTHONIOENCODING": "ascii"})
    assert done.document()["output"] == "\x1b[31m\u00e9"
    assert "\\xe9" in ready("run", "escape", "text=\u00e9", env={"PYTHONIOENCODING": "ascii"}).out


def test_an_interrupt_cancels_the_run(ready) -> None:
    ready.write(
        "begin.tool",
        'def begin() -> None:\n    """Begin."""\n    tools.write_file(path="begun.txt", content="")\n    tools.sleep(seconds=60)\n',
    )
    assert ready("define", "begin.tool").code == 0
    running = ready.start("run", "begin", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ready.wait_for_step("begin", "ended", "write_file")
    running.send_signal(signal.SIGINT)
    # The run sleeps for a minute unless it is interrupted.
    out, err = running.communicate(timeout=40)
    assert running.returncode == 130
    error = json.loads(out)["error"]
    assert (error["code"], error["details"]["applied"]) == ("cancelled", 1)
    assert error["message"].endswith("; 1 of its calls had changed something")
    assert err == b""


def test_a_defect_names_the_way_to_its_traceback(ready, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from albert_tools.store import places\nplaces.Homes.resolve = lambda *a: 1 / 0\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ready.environ['PYTHONPATH']}"}
    done = ready("tools", env=env)
    assert done.code == 1
    assert "ZeroDivisionError" in done.err
    assert "ALBERT_DEBUG=1" in done.err
    assert ready("tools", "--json", env=env).document()["error"]["code"] == "internal_error"
