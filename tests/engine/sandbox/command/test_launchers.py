"""A service starts the launcher of its next Landlock command ahead, and leaves none behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from albert_tools.engine.sandbox.command import start_landlock
from albert_tools.engine.sandbox.command.confinement import PATH
from albert_tools.engine.sandbox.command.launchers import Launcher, Launchers
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.process import readable
from albert_tools.engine.sandbox.command.run_command import run
from albert_tools.engine.sandbox.command.task import Command
from albert_tools.engine.sandbox.command.view import View

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is a part of Linux")


async def _parent(launchers: Launchers, top: Path, script: str = "echo $PPID") -> int:
    """The process that started a command."""
    opened = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        words, view = ["bash", "-c", script], View(str(top), str(top))
        command = Command(words, view, opened, {"PATH": PATH}, 60.0, wanted="landlock", launchers=launchers)
        output = Output(1 << 16)
        ended = await run(command, output)
    finally:
        os.close(opened)
    assert ended.code == 0
    return int(output.shown(1 << 16).text)


def _ready(launchers: Launchers) -> subprocess.Popen[bytes]:
    found = launchers._ready
    assert isinstance(found, Launcher)
    return found.popen


def test_a_command_gets_the_launcher_that_was_started_before(tmp_path: Path) -> None:
    async def main() -> None:
        launchers = Launchers()
        first = await _parent(launchers, tmp_path)
        ready = _ready(launchers).pid
        assert await _parent(launchers, tmp_path) == ready != first
        await launchers.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_that_has_died_is_replaced(tmp_path: Path, end: signal.Signals) -> None:
    async def main() -> None:
        launchers = Launchers()
        await _parent(launchers, tmp_path)
        died = _ready(launchers)
        died.send_signal(end)
        died.wait()
        assert await _parent(launchers, tmp_path) not in (died.pid, 0)
        await launchers.aclose()

    asyncio.run(main())


def test_a_launcher_that_hangs_is_killed_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_landlock, "PATIENCE", 0.3)
    file = tmp_path / "pids"

    async def main() -> list[int]:
        launchers = Launchers()
        script = f"setsid sleep 600 & echo $PPID $$ $! > {file}; wait"
        running = asyncio.create_task(_parent(launchers, tmp_path, script))
        while not (file.exists() and len(pids := [*map(int, file.read_text().split())]) == 3):
            await asyncio.sleep(0.02)
        os.kill(pids[0], signal.SIGSTOP)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await launchers.aclose()
        return pids

    for pid in asyncio.run(main()):
        with suppress(FileNotFoundError):
            # A process that nobody has reaped yet is a zombie.
            assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_closing_leaves_no_launcher(tmp_path: Path) -> None:
    async def main() -> int | None:
        launchers = Launchers()
        await _parent(launchers, tmp_path)
        ready = _ready(launchers)
        await launchers.aclose()
        await launchers.aclose()
        return ready.returncode

    assert asyncio.run(main()) == 0


def test_a_launcher_ends_with_its_service() -> None:
    text = (
        "import os, signal\n"
        "from albert_tools.engine.sandbox.command.launchers import Launchers\n"
        "launchers = Launchers()\n"
        "launchers.prepare()\n"
        "print(launchers._ready.popen.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    printed = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False).stdout
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(int(printed))
        try:
            asyncio.run(asyncio.wait_for(readable(handle), 30))
        finally:
            os.close(handle)


def test_a_task_can_have_more_descriptors_than_one_message(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    names = [f"file{i}" for i in range(300)]
    for name in [*names, "hidden"]:
        (top / name).write_text("x")
    opened, output = os.open(top, os.O_RDONLY | os.O_DIRECTORY), Output(1 << 16)
    # Each file beside a hidden one gets a grant of its own.
    view = View(str(top), str(top), hidden=(f"{top}/hidden",))
    words = ["bash", "-c", 'cat "$@" | wc -c; cat hidden', "bash", *names]
    try:
        ended = asyncio.run(run(Command(words, view, opened, {"PATH": PATH}, 60.0, wanted="landlock"), output))
    finally:
        os.close(opened)
    assert ended.code == 1
    assert output.shown(1 << 16).text == "300\ncat: hidden: Permission denied\n"
