"""Child processes for tests. They are forked from a process with one thread, and every wait for them has a time limit.

The process that runs the tests has several threads, open databases and running coverage. A fork of that process would copy
locks that nobody in the child ever releases. Therefore `multiprocessing`'s fork server forks each `Child`. The fork server
has imported all modules and does nothing else. A child runs a function of a module. The function gets a `report`, which sends
a value to the test, and arguments that can be pickled.

A test that kills many children forks them from one `Parent`. Each such fork takes a few milliseconds. The parents of all workers
of pytest-xdist come from one process, because its imports take many seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing import forkserver, reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import coverage

from tests.helpers import forked_zygotes

#: The time limit of a child, in seconds. Its work normally takes milliseconds.
PATIENCE = 60.0

Report = Callable[[Any], None]

#: The environment variable with the folder of the addresses of the processes that fork the parents.
VARIABLE = "TEST_PARENTS"
ROOT = Path(__file__).parents[2]

# The imports wait until a test needs a parent.
_BOOT = """
import socket, sys
sys.path[0] = sys.argv[1]
from albert_tools.engine.sandbox.kernel.prctl import die_with_parent
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.bind(sys.argv[2])
asked.listen(100)
die_with_parent()
client, _ = asked.accept()
from tests.helpers import children
children.fork_parents(asked, client)
"""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.helpers.preload"])


def prepare() -> None:
    """Start the fork server. If its imports fail, each child imports the modules itself, which takes longer."""
    with contextlib.chdir(ROOT):
        forkserver.ensure_running()


def share() -> tuple[str, str]:
    """Start the processes that fork the parents of this process and of the workers that pytest-xdist starts in it. Returns the
    address of that for parents without further modules, and of that for those with some: a fork copies all that is imported."""
    if VARIABLE not in os.environ:
        folder = os.environ[VARIABLE] = tempfile.mkdtemp(prefix="parents-")
        atexit.register(shutil.rmtree, folder, True)
        for address in share():
            # An interrupt from the terminal is for the tests.
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(ROOT), address],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=ROOT,
            )
            atexit.register(process.kill)
    return f"{os.environ[VARIABLE]}/plain", f"{os.environ[VARIABLE]}/more"


class _Reports:
    """The reports of a process named `name`, read from `connection`."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name = name
        self._hear = connection

    def hear(self, patience: float = PATIENCE) -> Any:
        """Return the next report.

        Raises:
            EOFError: The process has ended and every report was read.
            AssertionError: No report arrives in time. The process is killed.
        """
        if not self._hear.poll(patience):
            self._stop()
            raise AssertionError(f"the child that does {self._name} reports nothing for {patience:g} s")
        return self._hear.recv()

    def rest(self) -> list[Any]:
        """Return all reports until the process ends."""
        return list(self._heard())

    def _heard(self) -> Iterator[Any]:
        with contextlib.suppress(EOFError):
            while True:
                yield self.hear()

    def _stop(self) -> None:
        raise NotImplementedError


class Child(_Reports):
    """A process that calls `work(report, *arguments)`. Its exit code is 0, or 1 if `work` raised an exception."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        prepare()
        name = [each.__name__ for each in (work, *arguments) if callable(each)][-1]
        hear, report = _CONTEXT.Pipe(duplex=False)
        super().__init__(name, hear)
        self._process = _CONTEXT.Process(
            target=_live, args=(forked_zygotes.used(), work, report, arguments), daemon=True
        )
        self._process.start()
        # Close this process's copy of the pipe. Now only the child has the pipe open, so reading reports its end.
        report.close()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End the process with `kill -9`. It must be running."""
        self._process.kill()
        assert self.wait() == -signal.SIGKILL

    def wait(self, patience: float = PATIENCE) -> int:
        """Wait for the process and return its exit code. The code is negative if a signal ended the process.

        Raises:
            AssertionError: The process does not end in time.
        """
        self._process.join(patience)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"the child that does {self._name} has not ended in {patience:g} s")
        return self._process.exitcode

    def _stop(self) -> None:
        self._process.kill()


class Parent:
    """A process that forks itself for each call of `work`. A fork needs no imports and takes milliseconds."""

    def __init__(self, work: Callable[..., None], modules: Sequence[str] = ()) -> None:
        """`modules` are imported before the first fork."""
        self._name = work.__name__
        self._ask = _connected(share()[bool(modules)])
        self._ask.send((forked_zygotes.used(), work, modules))
        # Threads of a test may run processes at the same time.
        self._turn = threading.Lock()

    def fork(self, *arguments: Any) -> Fork:
        """Fork a process that calls `work(report, *arguments)`."""
        hear, report = _CONTEXT.Pipe(duplex=False)
        with self._turn:
            self._ask.send(arguments)
            reduction.send_handle(self._ask, report.fileno(), 0)
            report.close()
            return Fork(self._name, hear, self._answer(), self)

    def wait_for(self, pid: int) -> int:
        """Return the exit code of a fork that has ended or will end soon. The code is negative if a signal ended the fork."""
        with self._turn:
            self._ask.send(pid)
            return self._answer()

    def _answer(self) -> int:
        assert self._ask.poll(PATIENCE), f"the parent of those that do {self._name} does not answer"
        answer = self._ask.recv()
        assert isinstance(answer, int)
        return answer

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, *_: object) -> None:
        self._ask.close()


class Fork(_Reports):
    """A process that a `Parent` forked. Its exit code is 0, or 1 if its work raised an exception."""

    def __init__(self, name: str, connection: Connection, pid: int, parent: Parent) -> None:
        super().__init__(name, connection)
        self._parent = parent
        self.pid = pid

    def kill(self) -> None:
        """End the process with `kill -9`. It must be running."""
        self._stop()
        assert self.wait() == -signal.SIGKILL

    @property
    def alive(self) -> bool:
        """Whether a process runs that has reported nothing. Its end closes the pipe of its reports."""
        return not self._hear.poll(0)

    def wait(self, patience: float = PATIENCE) -> int:
        """Wait for the process and return its exit code. The code is negative if a signal ended the process.

        Raises:
            AssertionError: The process does not end in time.
        """
        # The parent serves others meanwhile.
        self._hear.poll(patience)
        return self._parent.wait_for(self.pid)

    def _stop(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def forked(work: Callable[[], None]) -> int:
    """Fork this process, which should be a `Child`, and return the fork's id. The fork calls `work` and exits with 0, with the
    code of a `SystemExit`, or with 1 on another exception."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        # A normal exit would run the parent's clean-up.
        os._exit(code)


def wait_for(pid: int, patience: float = PATIENCE) -> int:
    """Wait for a child of this process and return its exit code. The code is negative if a signal ended the child.

    Raises:
        AssertionError: The child does not end in time.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"a child has not ended in {patience:g} s")


def coverage_here() -> str | None:
    """Return the coverage settings of this process, which a child needs. Returns None if coverage is off."""
    running = coverage.Coverage.current()
    return None if running is None else running.config.serialize()


def measured(report: Report, settings: str | None, work: Callable[..., None], *arguments: Any) -> None:
    """Call `work` under the coverage settings that `coverage_here()` returned in another process."""
    if settings is not None:
        os.environ["COVERAGE_PROCESS_CONFIG"] = settings
        coverage.process_startup()
    work(report, *arguments)


def _live(zygotes: str, work: Callable[..., None], report: Connection, arguments: tuple[Any, ...]) -> None:
    forked_zygotes.use(zygotes)
    work(report.send, *arguments)


def _connected(address: str) -> Connection:
    """Return a connection with the process that listens there, or will soon."""
    deadline = time.monotonic() + PATIENCE
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while asked.connect_ex(address):
        assert time.monotonic() < deadline, "the process that forks the parents does not listen"
        time.sleep(0.01)
    return Connection(asked.detach())


def fork_parents(asked: socket.socket, client: socket.socket) -> None:
    """Fork a process for each `Parent`, one client after the other."""
    import_module("tests.helpers.preload")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        requests = Connection(client.detach())
        zygotes, work, modules = requests.recv()
        for module in modules:
            import_module(module)
        # What is never collected is never written, so a fork shares its pages.
        gc.collect()
        gc.freeze()
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asked.close()
            _fork_on_request(zygotes, requests, work)
            os._exit(0)
        requests.close()
        client, _ = asked.accept()


def _fork_on_request(zygotes: str, asked: Connection, work: Callable[..., None]) -> None:
    """Serve requests. For a tuple of arguments, fork and answer with the pid. For a pid, wait and answer with the exit code."""
    forked_zygotes.use(zygotes)
    with contextlib.suppress(EOFError):
        while True:
            request = asked.recv()
            if isinstance(request, int):
                asked.send(wait_for(request))
                continue
            handle = reduction.recv_handle(asked)
            pid = forked(lambda: work(Connection(handle, readable=False).send, *request))  # noqa: B023
            os.close(handle)
            asked.send(pid)
