"""The command line as users meet it: a separate process, a real workspace, an empty home.

A short command spends most of its time on starting Python and on imports. So a command is forked from a process that has imported
what it needs (`tests.helpers.children`). The fork has its own arguments, folder, environment and streams. A test starts a new
Python only if it tests that start, with `Albert.start`, or if it sets environment variables that Python itself reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import IO, Any, ClassVar

import pytest

from albert_tools.surfaces.cli.main import main
from tests.helpers import forked_zygotes
from tests.helpers.children import Parent, Report

ROOT = Path(__file__).parent.parent.parent
TOOLS = ROOT / "examples" / "tools"
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
#: The modules that some commands import when they need them. The libraries behind them take seconds, and much memory.
MODULES = (
    "albert_tools.builtins.mounts.server_link",
    "albert_tools.surfaces.chat.anthropic_model",
    "albert_tools.surfaces.chat.command",
    "albert_tools.surfaces.chat.openai_model",
    "albert_tools.surfaces.chat.terminal",
    "albert_tools.surfaces.lsp.server",
    "albert_tools.surfaces.mcp.access_tokens",
    "albert_tools.surfaces.mcp.http",
    "albert_tools.surfaces.mcp.stdio",
    "albert_tools.surfaces.web.app",
)
#: The words of a command line that need them.
NEEDED_BY = frozenset(("chat", "lsp", "mcp", "mount", "--web"))
#: The time limit of a command, in seconds.
PATIENCE = 60.0


def run_albert(_: Report, words: list[str], cwd: Path, environ: dict[str, str], streams: list[Path]) -> None:
    """Do the same as `python -m albert_tools.surfaces.cli`, with everything imported."""
    forked_zygotes.use(environ.pop(forked_zygotes.VARIABLE, ""))
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
    try:
        sys.exit(main())
    finally:
        sys.stdout.flush()


def run_albert_on_a_terminal(
    report: Report, words: list[str], cwd: Path, environ: dict[str, str], terminal: Path
) -> None:
    """The same in a new process session, whose terminal is `terminal`."""
    os.setsid()
    run_albert(report, words, cwd, environ, [terminal] * 3)


def commands(words: Sequence[str], has_mounts: bool = False) -> Parent:
    """The process that forks such a command."""
    return _parent(MODULES if has_mounts or not NEEDED_BY.isdisjoint(words) else ())


@cache
def _parent(modules: Sequence[str]) -> Parent:
    return Parent(run_entry, modules)


def run_entry(report: Report, entry: Callable[..., None], *arguments: Any) -> None:
    """Call the function that runs a command."""
    entry(report, *arguments)


class Server:
    """A server, and the pipes of its standard streams: named `to`, `back` and `errors`, see `Albert.serve`.

    It is used like a `subprocess.Popen`. The pipes have names, because a fork inherits no open files of the test. Each stream is
    opened at its first use, in this order.
    """

    def __init__(self, words: Sequence[str], cwd: Path, environ: dict[str, str], pipes: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.streams = [Path(os.devnull)] * 3
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if name in pipes.split():
                self.streams[number] = Path(self._folder.name, name)
                os.mkfifo(self.streams[number])
        environ = {**environ, forked_zygotes.VARIABLE: forked_zygotes.start()}
        self._fork = commands(words).fork(run_albert, list(words), cwd, environ, self.streams)
        self.pid = self._fork.pid
        self._code: int | None = None

    @cached_property
    def stdin(self) -> IO[bytes]:
        """What the server reads."""
        return self.streams[0].open("wb")

    @cached_property
    def stdout(self) -> IO[bytes]:
        """What the server prints."""
        return self.streams[1].open("rb")

    @cached_property
    def stderr(self) -> IO[bytes]:
        """What the server prints about errors."""
        return self.streams[2].open("rb")

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the server has ended."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the server to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the server."""
        self.send_signal(signal.SIGKILL)

    def wait(self, patience: float = PATIENCE) -> int:
        """Wait for the end. Returns the exit code, which is negative for a signal."""
        if self._code is None:
            self._code = self._fork.wait()
            for name in {"stdin", "stdout", "stderr"} & vars(self).keys():
                with suppress(BrokenPipeError):
                    vars(self)[name].close()
            self._folder.cleanup()
        return self._code


#: Keys to type, or a function to call instead.
Typed = Sequence[bytes | Callable[[], object]]


@dataclass
class Done:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        """Parse stdout, which must be one JSON document and nothing else."""
        return json.loads(self.out)


class Albert:
    """``albert`` with a home and a workspace: ``albert("run", "shout", "text=a")``."""

    #: The function that a fork runs.
    entry: ClassVar[Any] = staticmethod(run_albert)
    #: Whether its commands start mounted servers.
    has_mounts: ClassVar[bool] = False

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        (self.project / ".albert").mkdir(parents=True)
        self.environ = {**os.environ, "ALBERT_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
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
                timeout=PATIENCE,
            )
            found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        else:
            found = self._forked(list(map(os.fsdecode, words)), stdin, cwd or self.project, environ)
        assert "Traceback" not in found.err, found.err
        return found

    def _forked(self, words: list[str], stdin: bytes, cwd: Path, environ: dict[str, str]) -> Done:
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
            streams[0].write_bytes(stdin)
            environ = {**environ, forked_zygotes.VARIABLE: forked_zygotes.start()}
            code = commands(words, self.has_mounts).fork(type(self).entry, words, cwd, environ, streams).wait()
            return Done(code, streams[1].read_text("utf-8"), streams[2].read_text("utf-8"))

    def serve(self, *words: str, pipes: str, env: dict[str, str] | None = None) -> Server:
        """Start a server: `mcp` or `review --web`. `pipes` names its streams that are pipes; the others are empty."""
        return Server(words, self.project, {**self.environ, **(env or {})}, pipes)

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *words], cwd=self.project, env=self.environ, **more)

    def terminal(self, *words: str, columns: int = 80, typed: bytes | Typed = b"", until: str = "") -> tuple[int, str]:
        """Run on a separate terminal. Returns the exit code and everything that the command sent to the terminal.

        `typed` is typed as soon as the command reads from the terminal, or has sent the text `until`. If there are several
        texts, each one is typed when the command has sent `until` once more.
        """
        keys = [typed] if isinstance(typed, bytes) and typed else list(typed or ())
        typed_so_far = 0
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**self.environ, "TERM": "xterm"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            env.pop(name, None)
        parent = commands(words, self.has_mounts)
        child = parent.fork(run_albert_on_a_terminal, list(words), self.project, env, Path(os.ttyname(theirs)))
        seen, echo, since = b"", b"", 0
        started = time.monotonic()
        while (passed := time.monotonic() - started) < PATIENCE:
            # Other systems than Linux do not tell whether a process reads from a terminal. There, three seconds are enough time.
            waits = _waits(child.pid, theirs) if sys.platform == "linux" else passed > 3
            # The terminal sends back what was typed when it has it, so until then the command can't have read it.
            waits = waits and echo in seen[since:]
            if keys and (seen.count(until.encode()) > typed_so_far if until else waits):
                first, typed_so_far = keys.pop(0), typed_so_far + 1
                echo, since = first.replace(b"\n", b"\r\n") if isinstance(first, bytes) else b"", len(seen)
                os.write(ours, first) if isinstance(first, bytes) else first()
            over = not child.alive
            if select.select([ours], [], [], 0 if over else 0.02)[0]:
                seen += os.read(ours, 65536)
            elif over:
                break
        os.close(ours)
        os.close(theirs)
        return child.wait(1), seen.decode()

    def complete(self, line: str, env: dict[str, str] | None = None) -> list[str]:
        """Return the completions that a shell offers for `line`. `env` are further environment variables."""
        with tempfile.NamedTemporaryFile("r") as offered:
            done = self(
                env={
                    **(env or {}),
                    "_ARGCOMPLETE": "1",
                    "_ARGCOMPLETE_IFS": "\n",
                    "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
                    "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:",
                    "_ARGCOMPLETE_STDOUT_FILENAME": offered.name,
                    "COMP_LINE": line,
                    "COMP_POINT": str(len(line)),
                    "COMP_TYPE": "9",
                }
            )
            assert done.code == 0, done.err
            return [word.strip() for word in offered.read().split("\n") if word]

    def wait_for_step(self, tool: str, state: str, step: str) -> None:
        """Wait until the newest run, a run of `tool`, has a step that calls `step` and is in that state."""

        def reached() -> bool:
            runs = self("runs", "--limit", "1", "--json").document()["runs"]
            running = bool(runs) and (runs[0]["tool"], runs[0]["state"]) == (tool, "running")
            steps = runs[0]["steps"] if running else []
            return any((s["tool"], s["state"]) == (step, state) for s in steps)

        wait_until(reached)

    def write(self, name: str, text: str) -> str:
        (self.project / name).write_text(text, encoding="utf-8")
        return name


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until `condition` is true.

    Raises:
        AssertionError: The condition stays false.
    """
    deadline = time.monotonic() + PATIENCE
    asked = time.monotonic()
    while not condition():
        took = time.monotonic() - asked
        assert time.monotonic() < deadline
        # A command that asks takes the processor from the process that is waited for.
        time.sleep(max(0.02, 3 * took))
        asked = time.monotonic()


def _waits(process: int, terminal: int) -> bool:
    """Whether the system reports that a process is reading from its terminal, and has read all that was typed so far."""
    # First, because a process that has not been scheduled since the last key still seems to read, and would lose the next one.
    if struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4))[0]:
        return False
    try:
        return Path(f"/proc/{process}/wchan").read_text() in ("n_tty_read", "wait_woken")
    except OSError:
        return False


@pytest.fixture
def albert(tmp_path: Path) -> Albert:
    return Albert(tmp_path)


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    """A home with saved tools. Tests that do not change the tools share it."""
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
