"""bash and run_program with real processes, under each available confinement: their answers, and that no process survives."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from albert_tools.builtins.code.code import run_linter, run_tests
from albert_tools.builtins.git.git import git
from albert_tools.builtins.shell import shell
from albert_tools.builtins.shell.confined_command import MAX_OUTPUT
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.validation import violations
from albert_tools.store.contents.content_store import Contents
from tests.helpers.catalogue_rows import running

CATALOGUE = {
    "bash": replace(
        running({"command": "cat a.txt"}, command="cat a.txt", confinement="bwrap"),
        section={"forbidden_commands": ["cat *"]},
        rule="forbidden_commands",
        slow={"command": "sleep 600"},
    ),
    "run_program": replace(
        running({"argv": ["cat", "a.txt"]}, confinement="bwrap"),
        section={"allowed_commands": ["ls *"]},
        rule="allowed_commands",
        slow={"argv": ["sleep", "600"]},
    ),
}

#: A text in the command line of every process that must not survive.
MARK = f"stays-{os.getpid()}"
#: A command that never ends, and that writes to a file while it runs.
STAY = f": {MARK}; while :; do echo x >> beats; sleep 0.02; done"


pytestmark = pytest.mark.usefixtures("confinement")


async def call(tool: Primitive, context: Any, arguments: dict[str, Any]) -> Any:
    result = await call_primitive(tool, arguments, context)
    assert violations(result, tool.definition.result) == []
    return result


async def bash(context: Any, command: str, **more: Any) -> Any:
    return await call(shell.bash, context, {"command": command, **more})


async def gone(root: Path) -> bool:
    """Whether every process that ran `STAY` has ended. At least one must have run."""
    assert any(path.stat().st_size for path in root.glob("beats*"))
    return await ended(MARK)


async def ended(mark: str) -> bool:
    """Whether no process has `mark` in its command line. Waits for a moment."""
    for _ in range(250):
        if not with_words(mark):
            return True
        await asyncio.sleep(0.02)
    return False


async def timed_out(context: Any, command: str, ready: Callable[[Failure], bool]) -> tuple[Failure, float]:
    """Return the failure of a command that timed out, and the timeout. Longer timeouts are tried until the command gets
    `ready` in time."""
    for seconds in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        context.effects.clear()
        with pytest.raises(Failure) as caught:
            await bash(context, command, timeout=seconds)
        assert caught.value.code == "timeout"
        if ready(caught.value):
            return caught.value, seconds
    raise AssertionError("the command was never ready in time")


async def test_output_and_exit_code(context: Any, confinement: str) -> None:
    result = await bash(context, "echo out; echo err >&2; exit 3")
    how = {"truncated": False, "signal": None, "size_bytes": 8, "handle": None, "confinement": confinement}
    assert result == {"exit_code": 3, "output": "out\nerr\n", "stdout": "out\n", "stderr": "err\n", **how}
    facts = {"command": "echo out; echo err >&2; exit 3", "cwd": ".", "exit_code": 3, "confinement": confinement}
    assert context.effects == [("execute", facts)]


async def test_only_listed_environment_variables_are_passed(context: Any, root: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("BASH_ENV", "/etc/profile")
    lines = set((await bash(context, "env", env=["MINE=a b"]))["output"].splitlines())
    names = {name for line in lines if not (name := line.partition("=")[0]).startswith(("GIT_", "OPENSSL_"))}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "SHLVL", "_", "MINE"}
    assert {f"PWD={root}", "MINE=a b"} <= lines


async def test_git_uses_no_bare_repository_that_nobody_named(context: Any, root: Path) -> None:
    """A folder of tracked files could be one, with settings that name programs."""
    for words in (["init", "-q", "--bare", "b"], ["-C", "b", "config", "core.fsmonitor", "touch PWN; false"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    result = await bash(context, "git -C b --work-tree=. status")
    assert result["exit_code"] == 128, result["output"]
    assert not list(root.rglob("PWN"))


async def test_git_and_openssl_need_no_settings_of_the_machine(context: Any, root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    # In place of `/etc/gitconfig`: a file that the command can't read.
    (tmp_path / "gitconfig").write_text("[user]\n")
    result = await bash(context, "git status --short", env=[f"GIT_CONFIG_SYSTEM={tmp_path}/gitconfig"])
    assert (result["exit_code"], result["output"]) == (0, "")
    certificate = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout /dev/null -out /dev/null"
    assert (await bash(context, certificate))["exit_code"] == 0


async def test_stdin_is_empty_and_descriptors_are_closed(context: Any) -> None:
    looking = "import os\ndef is_open(n):\n try: return bool(os.fstat(n))\n except OSError: return False\n"
    looking += "print([n for n in range(3, 999) if is_open(n)])"
    assert (await bash(context, f"cat; python3 -c {shlex.quote(looking)}"))["output"].splitlines()[-1] == "[]"


async def test_private_folders_are_empty_and_removed_afterwards(context: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    script = 'ls -A $HOME; echo x > "$TMPDIR/file" && echo y > ~/file && cat $TMPDIR/file ~/file && echo $TMPDIR'
    output = (await bash(context, script))["output"].split()
    assert output[:2] == ["x", "y"]
    assert (await bash(context, f"cat ~/file {output[2]}/file"))["exit_code"] == 1
    assert os.listdir(tmp_path / "temporary") == []


async def test_the_working_directory_stays_in_the_workspace(context: Any, root: Path) -> None:
    (root / "sub").mkdir()
    assert (await bash(context, "pwd", cwd="sub"))["output"] == f"{root}/sub\n"
    (root / "out").symlink_to("/")
    for cwd, code in [("out", "permission_denied"), ("..", "permission_denied"), ("no", "not_found")]:
        with pytest.raises(Failure) as caught:
            await bash(context, "pwd", cwd=cwd)
        assert caught.value.code == code
    (root / "file").touch()
    with pytest.raises(Failure) as caught:
        await bash(context, "pwd", cwd="file")
    assert caught.value.code == "not_a_directory"


async def test_head_and_tail_of_much_output(context: Any) -> None:
    result = await bash(context, "echo first; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result["truncated"]
    assert result["output"].startswith("first\n")
    assert result["output"].endswith("\nlast\n")
    assert re.search(r"\nx+\n\[… 23\d{4} bytes left out …\]\nx+\n", result["output"])
    assert MAX_OUTPUT - 100 < len(result["output"].encode()) <= MAX_OUTPUT
    assert result["size_bytes"] == 300012


async def test_both_streams_are_returned_apart_and_together(context: Any) -> None:
    result = await bash(context, "echo data; sh -c 'echo warning >&2'; echo more")
    assert (result["stdout"], result["stderr"]) == ("data\nmore\n", "warning\n")
    assert sorted(result["output"].split()) == ["data", "more", "warning"]
    result = await bash(context, "for i in 1 2 3; do echo $i; echo e$i >&2; done 2>&1")
    assert result["output"] == result["stdout"] == "1\ne1\n2\ne2\n3\ne3\n"
    assert result["stderr"] == ""
    words = ["python3", "-c", "import os; os.write(2, b'x' * 200_000); os.write(1, b'[1]')"]
    result = await call(shell.run_program, context, {"argv": words})
    assert result["truncated"]
    assert result["size_bytes"] == 200_003
    assert result["stdout"] == "[1]"
    assert len((result["stdout"] + result["stderr"]).encode()) <= MAX_OUTPUT
    assert "bytes left out" in result["stderr"]


async def test_a_large_output_is_stored_completely(context: Any, tmp_path: Path) -> None:
    context.contents = Contents(tmp_path / "contents")
    result = await bash(context, "seq 1 50000")
    whole = context.contents.get(result["handle"]).decode()
    assert whole.splitlines() == [str(n) for n in range(1, 50001)]
    assert (await bash(context, "seq 1 5"))["handle"] is None


async def test_bytes_that_are_not_text(context: Any) -> None:
    assert (await bash(context, "printf 'a\\xffb'"))["output"] == "a\ufffdb"


async def test_a_signal_is_named(context: Any) -> None:
    result = await bash(context, "kill -KILL $$")
    assert (result["exit_code"], result["signal"]) == (137, "SIGKILL")


async def test_a_timeout_reports_the_output_so_far_and_kills(context: Any, root: Path) -> None:
    failure, seconds = await timed_out(
        context,
        f"echo so far; echo wrong >&2; {STAY}",
        lambda failure: bool(failure.details["stderr"] and (root / "beats").exists()),
    )
    assert sorted(failure.details.pop("output").splitlines()) == ["so far", "wrong"]
    assert failure.details == {"stdout": "so far\n", "stderr": "wrong\n", "truncated": False}
    kind, facts = context.effects[0]
    assert (kind, facts["exit_code"], facts["over"], facts["seconds"] >= seconds) == ("execute", None, "timeout", True)
    assert await gone(root)


@pytest.mark.parametrize("confinement", ["bwrap"], indirect=True)
async def test_the_output_of_a_killed_command_is_stored_completely(context: Any, tmp_path: Path) -> None:
    context.contents = Contents(tmp_path / "contents")
    failure, _ = await timed_out(
        context, "seq 1 50000; echo end; sleep 600", lambda failure: "\nend\n" in failure.details["output"]
    )
    assert failure.details["truncated"]
    assert context.contents.get(failure.details["handle"]).decode().splitlines() == [*map(str, range(1, 50001)), "end"]


async def test_a_command_that_did_not_start_is_not_recorded(context: Any, root: Path) -> None:
    with pytest.raises(Failure) as caught:
        await bash(context, "echo", cwd="nope")
    assert (caught.value.code, context.effects) == ("not_found", [])
    context.settings["confinement"] = "seatbelt"
    with pytest.raises(Failure) as caught:
        await bash(context, "echo")
    assert (caught.value.code, context.effects) == ("sandbox_unavailable", [])


async def test_the_remaining_time_of_the_caller_applies(context: Any) -> None:
    context.remaining = 1.0
    with pytest.raises(Failure, match=r"still running after 0\.5 s") as caught:
        await bash(context, "sleep 60", timeout=30)
    assert caught.value.code == "timeout"


#: Ways of a process to stay alive. Each one writes to its own file.
STAYING = [
    f"({STAY}0) &",
    f"setsid bash -c '{STAY}1' &",
    f"(setsid bash -c '{STAY}2' &) ;",
    f"env -i setsid bash -c '{STAY}3' &",
    f"(env -i setsid bash -c '({STAY}4) &' &) ;",
]


async def test_a_timeout_kills_the_whole_tree(context: Any, root: Path) -> None:
    launches = " ".join(
        launch.replace(f"{STAY}{n}", STAY.replace("beats", f"beats{n}")) for n, launch in enumerate(STAYING)
    )
    names = [f"beats{n}" for n in range(len(STAYING))]
    await timed_out(context, f"{launches} sleep 60", lambda _: sorted(p.name for p in root.glob("beats*")) == names)
    assert await gone(root)


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(f"bash -c '{STAY}' &", id="holds the pipe"),
        pytest.param(f"bash -c '{STAY}' >/dev/null 2>&1 &", id="silent"),
        pytest.param(f"nohup setsid bash -c '{STAY}' >/dev/null 2>&1 &", id="own session"),
        pytest.param(f"(env -i setsid bash -c '({STAY}) &' &);", id="forked twice, clean environment, with the pipe"),
    ],
)
async def test_background_processes_are_killed(context: Any, root: Path, launch: str) -> None:
    result = await bash(context, f"{launch} while [ ! -s beats ]; do sleep 0.01; done; echo done")
    assert result["output"] == "done\n"
    assert await gone(root)


async def test_cancelling_kills_the_whole_tree(context: Any, root: Path) -> None:
    running = asyncio.create_task(bash(context, f"setsid bash -c '{STAY}' & wait"))
    while not any(path.stat().st_size for path in root.glob("beats")):
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await gone(root)


async def test_no_descriptor_is_left_open(context: Any) -> None:
    await bash(context, "true")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await bash(context, "true")
        with pytest.raises(Failure):
            await bash(context, "true", cwd="no-such")
        with pytest.raises(Failure):
            await bash(context, "sleep 9", timeout=0.2)
    # Descriptors of earlier tests may be closed at the same time, so there can be fewer.
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    ("command", "code"),
    [("a\0b", "invalid_arguments"), ("\udc80", "invalid_arguments"), ("#" + "x" * 2**20, "too_large")],
)
async def test_an_invalid_command_is_refused(context: Any, command: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        await bash(context, command)
    assert caught.value.code == code


async def test_what_the_system_can_not_start_is_refused_before_anybody_is_asked(context: Any) -> None:
    most = "#" + "x" * (128 * 1024 - 2)
    part = "x" * 32_000
    fitting = os.sysconf("SC_ARG_MAX") * 15 // 16 // 32_020
    words = ["true", *[part] * fitting]
    entries = [f"A{n}={part}" for n in range(fitting)]
    assert (await bash(context, most))["exit_code"] == 0
    assert (await bash(context, "true", env=entries))["exit_code"] == 0
    assert (await call(shell.run_program, context, {"argv": words}))["exit_code"] == 0
    for tool, arguments in (
        (shell.bash, {"command": most + "x"}),
        (shell.bash, {"command": "true", "env": [*entries, f"A={part}"]}),
        (shell.run_program, {"argv": [*words, part]}),
        (run_tests, {"args": [*words, part]}),
        (run_linter, {"linter": "ruff", "args": [*words, part]}),
        (git, {"operation": "ADD", "args": [*words, part]}),
    ):
        with pytest.raises(Failure) as caught:
            tool.demand(arguments)
        assert caught.value.code == "too_large"


async def test_a_program_gets_its_arguments_as_they_are(context: Any, root: Path) -> None:
    words = ["printf", "%s|", "$HOME", "a  b", "*", "`id`", "--"]
    result = await call(shell.run_program, context, {"argv": words})
    assert result["output"] == "$HOME|a  b|*|`id`|--|"
    assert context.effects[0][1]["argv"] == words
    (root / "mine.sh").write_text("#!/bin/sh\necho $0 ran\n")
    (root / "mine.sh").chmod(0o755)
    assert (await call(shell.run_program, context, {"argv": [f"{root}/mine.sh"]}))["output"] == f"{root}/mine.sh ran\n"
    missing = await call(shell.run_program, context, {"argv": ["no-such-program"]})
    assert missing["exit_code"] == 127
    assert "no-such-program" in missing["output"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"argv": [""]}, "argv"), ({"argv": ["a\0"]}, "argv"), ({"argv": ["true"], "env": ["1=2"]}, "env")],
)
async def test_invalid_arguments_are_refused(context: Any, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(Failure) as caught:
        await call(shell.run_program, context, arguments)
    assert caught.value.code == "invalid_arguments"
    assert caught.value.details["violations"][0]["field"] == field


async def test_without_confinement_nothing_runs(context: Any, root: Path) -> None:
    context.settings["confinement"] = "seatbelt"
    with pytest.raises(Failure) as caught:
        await bash(context, "touch ran")
    assert caught.value.code == "sandbox_unavailable"
    assert not (root / "ran").exists()


async def test_cancelled_at_any_moment_it_leaves_no_process(context: Any, confinement: str) -> None:
    mark = f"called-off-{os.getpid()}"
    await bash(context, "true")
    for n in range(25):
        task = asyncio.create_task(bash(context, f": {mark}; sleep 1000"))
        # The moments range from before the start until the command runs.
        await asyncio.sleep(n * 0.002)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert await ended(mark)


def with_words(mark: str) -> list[bytes]:
    """The command lines that contain `mark`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{name}/cmdline").read_bytes())
    return [line for line in found if mark.encode() in line]


async def test_the_python_of_the_service_cannot_be_changed(context: Any, root: Path, monkeypatch: Any) -> None:
    place = root / ".venv/lib/albert_tools"
    place.mkdir(parents=True)
    (place / "service.py").write_text("as it was")
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    await bash(context, "echo evil > .venv/lib/albert_tools/service.py; touch .venv/lib/new; mv .venv v; rm -rf .venv")
    assert (place / "service.py").read_text() == "as it was"
    assert os.listdir(root / ".venv/lib") == ["albert_tools"]


async def test_an_unknown_end_is_a_failure(context: Any, root: Path) -> None:
    def words(process: psutil.Process) -> set[str]:
        try:
            return set(process.cmdline())
        except psutil.Error:
            # The process has just ended, as children of other tests may at the same time.
            return set()

    def above() -> list[psutil.Process]:
        return [p for p in psutil.Process().children() if {"-I", "-S"} <= words(p)]

    # With bubblewrap, the parent process of a command can't die unnoticed. So the test uses Landlock.
    context.settings["confinement"] = "landlock"
    running = asyncio.create_task(bash(context, STAY))
    while not any(path.stat().st_size for path in root.glob("beats")):
        await asyncio.sleep(0.02)
    for process in above():
        process.kill()
    with pytest.raises(Failure) as caught:
        await running
    assert (caught.value.code, context.effects[0][1]["exit_code"]) == ("io_error", None)
    assert await gone(root)
