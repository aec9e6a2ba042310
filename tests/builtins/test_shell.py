"""bash with real processes: what it answers, and that nothing survives it."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins import shell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.schema import violations

#: Leaves its number in `pid`, then stays.
STAY = "echo $$ > pid; exec sleep 60"


async def bash(context: Any, command: str, **more: Any) -> Any:
    result = await call_primitive(shell.bash, {"command": command, **more}, context)
    assert violations(result, shell.bash.definition.result) == []
    return result


async def gone(root: Path) -> bool:
    """Whether the process that left its number has ended."""
    for _ in range(100):
        if (root / "pid").exists() and (root / "pid").read_text().strip():
            break
        await asyncio.sleep(0.02)
    pid = int((root / "pid").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        await asyncio.sleep(0.02)
    return False


async def test_output_and_exit_code(context: Any) -> None:
    result = await bash(context, "echo out; echo err >&2; exit 3")
    assert result == {"exit_code": 3, "output": "out\nerr\n", "truncated": False, "signal": None}
    effect = ("execute", {"command": "echo out; echo err >&2; exit 3", "cwd": ".", "exit_code": 3})
    assert context.effects == [effect]


async def test_the_environment_is_made_from_nothing(context: Any, root: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("BASH_ENV", "/etc/profile")
    lines = set((await bash(context, "env"))["output"].splitlines())
    names = {line.partition("=")[0] for line in lines}
    assert names == {"PATH", "HOME", "LANG", "PWD", "SHLVL", "_", "ALBERT_CALL"}
    assert f"HOME={root}" in lines
    assert f"PWD={root}" in lines


async def test_stdin_is_empty_and_descriptors_are_closed(context: Any) -> None:
    assert (await bash(context, "cat; ls /proc/self/fd"))["output"].split() == ["0", "1", "2", "3"]


async def test_cwd_is_contained(context: Any, root: Path) -> None:
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
    assert f"[… {300012 - shell.MAX_OUTPUT} bytes left out …]" in result["output"]
    assert len(result["output"]) < shell.MAX_OUTPUT + 100


async def test_bytes_that_are_not_text(context: Any) -> None:
    assert (await bash(context, "printf 'a\\xffb'"))["output"] == "a\ufffdb"


async def test_a_signal_is_named(context: Any) -> None:
    result = await bash(context, "kill -KILL $$")
    assert (result["exit_code"], result["signal"]) == (137, "SIGKILL")


async def test_timeout_says_what_was_printed_and_kills(context: Any, root: Path) -> None:
    with pytest.raises(Failure) as caught:
        await bash(context, f"echo so far; {STAY}", timeout=0.4)
    assert caught.value.code == "timeout"
    assert caught.value.details == {"output": "so far\n", "truncated": False}
    assert context.effects[0][1]["exit_code"] is None
    assert await gone(root)


async def test_what_the_caller_has_left_comes_first(context: Any) -> None:
    context.remaining = 0.6
    start = time.monotonic()
    with pytest.raises(Failure) as caught:
        await bash(context, "sleep 60", timeout=30)
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(f"({STAY}) & wait", id="child"),
        pytest.param(f"setsid bash -c '{STAY}' & wait", id="own session"),
        pytest.param(f"(setsid bash -c '{STAY}' &) ; sleep 60", id="own session, orphaned"),
        pytest.param(f"env -i setsid bash -c '{STAY}' & wait", id="own session, clean environment"),
    ],
)
async def test_a_timeout_kills_the_whole_tree(context: Any, root: Path, launch: str) -> None:
    with pytest.raises(Failure):
        await bash(context, launch, timeout=0.6)
    assert await gone(root)


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(f"bash -c '{STAY}' &", id="holds the pipe"),
        pytest.param(f"bash -c '{STAY}' >/dev/null 2>&1 &", id="silent"),
        pytest.param(f"nohup setsid bash -c '{STAY}' >/dev/null 2>&1 &", id="own session"),
    ],
)
async def test_what_is_left_in_the_background_is_killed(context: Any, root: Path, launch: str) -> None:
    start = time.monotonic()
    result = await bash(context, f"{launch} while [ ! -s pid ]; do sleep 0.01; done; echo done")
    assert result["output"] == "done\n"
    assert time.monotonic() - start < 5
    assert await gone(root)


async def test_who_got_away_with_the_pipe_does_not_hang_the_call(context: Any, root: Path) -> None:
    launch = f"(env -i setsid bash -c '{STAY}' &); while [ ! -s pid ]; do sleep 0.01; done; echo done"
    start = time.monotonic()
    try:
        assert (await bash(context, launch))["output"] == "done\n"
        assert time.monotonic() - start < 5
    finally:
        os.kill(int((root / "pid").read_text()), 9)


async def test_calling_it_off_kills_the_tree(context: Any, root: Path) -> None:
    call = asyncio.create_task(bash(context, f"setsid bash -c '{STAY}' & wait"))
    while not (root / "pid").exists():
        await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await gone(root)


async def test_nothing_is_left_open(context: Any) -> None:
    await bash(context, "true")
    # What other tests left to be collected isn't closed in between.
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await bash(context, "true")
        with pytest.raises(Failure):
            await bash(context, "true", cwd="no-such")
        with pytest.raises(Failure):
            await bash(context, "sleep 9", timeout=0.05)
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("command", "code"),
    [("a\0b", "invalid_arguments"), ("\udc80", "invalid_arguments"), ("#" + "x" * 2**20, "too_large")],
)
async def test_what_can_not_be_a_command(context: Any, command: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        await bash(context, command)
    assert caught.value.code == code
