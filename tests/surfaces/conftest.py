"""The command as its users meet it: a process of its own, a real folder to work in, a home that nobody else has.

Nine tenths of what a short command takes is the start of Python and the import of what it needs. So most are children of
a process that has imported it all (see `tests.helpers.children`), with arguments, folder, environment and streams of
their own; where it is the start itself that matters, or the streams are a terminal or pipes, Python is started anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from albert_tools.surfaces.cli.main import main
from tests.helpers.children import Child, Report

ROOT = Path(__file__).parent.parent.parent
TOOLS = ROOT / "examples" / "tools"
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def be_albert(_: Report, words: list[str], cwd: Path, environ: dict[str, str], streams: list[Path]) -> None:
    """What `python -m albert_tools.surfaces.cli` does, with all of it imported."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    for number, (path, flags) in enumerate(zip(streams, (os.O_RDONLY, APPEND, APPEND), strict=True)):
        handle = os.open(path, flags)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["albert", *words]
    code = main()
    sys.stdout.flush()
    sys.exit(code)


#: What is done at a terminal.
Typed = Sequence[bytes | Callable[[], object]]


@dataclass
class Done:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        """Stdout, which must be one JSON document and nothing else."""
        return json.loads(self.out)


class Albert:
    """``albert`` with a home and a workspace: ``albert("run", "shout", "text=a")``."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        (self.project / ".albert").mkdir(parents=True)
        self.environ = {**os.environ, "ALBERT_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        # Compiled once for all tests, wherever this is run and whatever is set.
        self.environ["PYTHONPYCACHEPREFIX"] = str(folder.parent / "bytecode")
        for name in ("ALBERT_DEBUG", "PYTHONDONTWRITEBYTECODE"):
            self.environ.pop(name, None)
        self.command = [sys.executable, "-m", "albert_tools.surfaces.cli"]

    def __call__(
        self, *words: str | bytes, stdin: bytes = b"", cwd: Path | None = None, env: dict[str, str | None] | None = None
    ) -> Done:
        environ: dict[str, Any] = {**self.environ, **(env or {})}
        environ = {k: v for k, v in environ.items() if v is not None}
        if any(name.startswith("PYTHON") for name in env or {}):
            done = subprocess.run(
                [*self.command, *words],
                input=stdin,
                capture_output=True,
                cwd=cwd or self.project,
                env=environ,
                timeout=60,
            )
            found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        else:
            found = self._born(list(map(os.fsdecode, words)), stdin, cwd or self.project, environ)
        assert "Traceback" not in found.err, found.err
        return found

    def _born(self, words: list[str], stdin: bytes, cwd: Path, environ: dict[str, str]) -> Done:
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
            streams[0].write_bytes(stdin)
            code = Child(be_albert, words, cwd, environ, streams).wait()
            return Done(code, streams[1].read_text("utf-8"), streams[2].read_text("utf-8"))

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *words], cwd=self.project, env=self.environ, **more)

    def terminal(self, *words: str, columns: int = 80, typed: bytes | Typed = b"", until: str = "") -> tuple[int, str]:
        """Run on a terminal of its own; exit code, and what the terminal is sent.

        `typed` is typed as soon as the command waits for it, or has sent the text `until`; of several, each when that has been
        sent once more. What is no text is called.
        """
        ahead = [typed] if isinstance(typed, bytes) and typed else list(typed or ())
        times = 0
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**self.environ, "TERM": "xterm"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            env.pop(name, None)
        running = subprocess.Popen(
            [*self.command, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            cwd=self.project,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        seen = b""
        started = time.monotonic()
        while (passed := time.monotonic() - started) < 60:
            # Where nobody tells whether it waits, three seconds are long enough for it to have come so far.
            if ahead and (seen.count(until.encode()) > times if until else _waits(running.pid) or passed > 3):
                first, times = ahead.pop(0), times + 1
                os.write(ours, first) if isinstance(first, bytes) else first()
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                seen += chunk
        os.close(ours)
        try:
            return running.wait(10), seen.decode()
        finally:
            running.kill()

    def write(self, name: str, text: str) -> str:
        (self.project / name).write_text(text, encoding="utf-8")
        return name


def _waits(process: int) -> bool:
    """Whether a process is known to be reading from its terminal."""
    try:
        return Path(f"/proc/{process}/wchan").read_text() in ("n_tty_read", "wait_woken")
    except OSError:
        return False


@pytest.fixture
def albert(tmp_path: Path) -> Albert:
    return Albert(tmp_path)


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    """One with tools saved; for tests that leave it as it is."""
    albert = Albert(tmp_path_factory.mktemp("ready"))
    albert.write("words.tool", (TOOLS / "word_frequencies.tool").read_text(encoding="utf-8"))
    albert.write("escape.tool", ESCAPE)
    albert.write("slow.tool", SLOW)
    done = albert("define", "words.tool", "escape.tool", "slow.tool")
    assert done.code == 0, done.err
    albert.write("poem.txt", "the sea, the ship")
    return albert


ESCAPE = '''def escape(text: str) -> str:
    """Give a text that a terminal would act on.

    Args:
        text: What stands behind it.
    """
    print("working")
    return "\\x1b[31m" + text
'''

SLOW = '''def slow(seconds: float) -> str:
    """Take a while.

    Args:
        seconds: How long.
    """
    tools.sleep(seconds=seconds)
    return "rested"
'''
