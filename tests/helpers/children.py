"""Child processes of tests, born of a process that has one thread, and never waited for without end.

The process that runs the tests has several threads, open databases and a running coverage. A fork of it copies locks that
nobody in the child will ever let go of. So children come from `multiprocessing`'s fork server, which has everything
imported and does nothing else. What a child does is a function of a module, called with a `report` that sends a value to the
test, and with arguments that can be pickled.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import coverage

#: Seconds that a child may take for what takes milliseconds.
PATIENCE = 60.0

Report = Callable[[Any], None]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.helpers.preload"])


def prepare() -> None:
    """Have the fork server running. Where it can't import what it should, children do so themselves, and take longer."""
    with contextlib.chdir(Path(__file__).parents[2]):
        forkserver.ensure_running()


class Child:
    """A process that does `work(report, *arguments)` and ends with 0, or 1 when that raised."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        prepare()
        self._name = [each.__name__ for each in (work, *arguments) if callable(each)][-1]
        self._hear, report = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_live, args=(work, report, arguments), daemon=True)
        self._process.start()
        # The child's is the only one, so that its end is seen here.
        report.close()

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has yet to end."""
        return self._process.is_alive()

    def hear(self, patience: float = PATIENCE) -> Any:
        """The next report.

        Raises:
            EOFError: it has ended, and nothing is left.
            AssertionError: it says nothing.
        """
        if not self._hear.poll(patience):
            self._process.kill()
            raise AssertionError(f"the child that does {self._name} says nothing for {patience:g} s")
        return self._hear.recv()

    def rest(self) -> list[Any]:
        """All reports until its end."""
        return list(self._heard())

    def _heard(self) -> Iterator[Any]:
        with contextlib.suppress(EOFError):
            while True:
                yield self.hear()

    def kill(self) -> None:
        """End it by `kill -9` in whatever it does, which must be something."""
        self._process.kill()
        assert self.wait() == -signal.SIGKILL

    def wait(self, patience: float = PATIENCE) -> int:
        """Its exit code, negative for a signal.

        Raises:
            AssertionError: it doesn't end.
        """
        self._process.join(patience)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"the child that does {self._name} has not ended in {patience:g} s")
        return self._process.exitcode


def forked(work: Callable[[], None]) -> int:
    """The id of a fork of this very process, which should be a `Child`, that does `work` and ends with 0, or 1 when that raised."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Nothing of what this process has begun is the fork's to end.
        os._exit(code)


def wait_for(pid: int, patience: float = PATIENCE) -> int:
    """The exit code of a child of this very process, negative for a signal.

    Raises:
        AssertionError: it doesn't end.
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
    """How the coverage of this process is measured, to be handed to a child; None where it isn't."""
    running = coverage.Coverage.current()
    return None if running is None else running.config.serialize()


def measured(report: Report, settings: str | None, work: Callable[..., None], *arguments: Any) -> None:
    """Do `work`, measured as the process was that `coverage_here()` was asked in."""
    if settings is not None:
        os.environ["COVERAGE_PROCESS_CONFIG"] = settings
        coverage.process_startup()
    work(report, *arguments)


def _live(work: Callable[..., None], report: Connection, arguments: tuple[Any, ...]) -> None:
    work(report.send, *arguments)
