"""Starts a command behind Landlock and ends it. The launcher kills all its descendants, which include all processes of the
command."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
from contextlib import AsyncExitStack, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.landlock_task import Task
from albert_tools.engine.sandbox.command.launchers import Launchers
from albert_tools.engine.sandbox.command.process import PATIENCE, Process, within
from albert_tools.engine.sandbox.command.seccomp_filters import command_filter
from albert_tools.engine.sandbox.command.spawn_command import NO_INPUT, Streams, bound_together, too_long
from albert_tools.engine.sandbox.command.task import Command
from albert_tools.engine.sandbox.command.view import loaders
from albert_tools.engine.sandbox.kernel import landlock
from albert_tools.engine.sandbox.kernel.process_tree import kill_descendants

#: The most bytes of the launcher's report.
_MAX_REPORT = 1 << 16
#: The version of Landlock that prevents signals to processes outside the command.
_SCOPED = 6

#: Prints the message of a shell for a missing program.
_NOT_FOUND = ("/bin/bash", "-c", 'echo "$1: command not found"; exit 127', "sandbox")


def start_landlock(command: Command, streams: Streams, resources: AsyncExitStack, temporary: str) -> Process:
    """Start a command behind Landlock. `temporary` is its private folder.

    Raises:
        Failure: `io_error`, `too_large`.
    """
    report, reporting = os.pipe2(os.O_CLOEXEC)
    resources.callback(os.close, report)
    environment = command.variables(temporary)
    path = shutil.which(command.words[0], path=environment.get("PATH", ""))
    words = [path, *command.words[1:]] if path else [*_NOT_FOUND, command.words[0]]
    limits = {**command.bounds.limits(), "RLIMIT_NPROC": _threads_of_user() + command.bounds.processes}
    filter_program = command_filter("strict", root=os.getuid() == 0, scoped=landlock.version() >= _SCOPED)
    assert filter_program is not None
    launchers = command.launchers or Launchers()
    no_input = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        only = None if command.only is None else [*command.only, *loaders()]
        task = Task(command.view, command.workspace, temporary, only)
        try:
            handles = [no_input if handle == NO_INPUT else handle for handle in streams]
            message = task.message(words, environment, limits, filter_program, handles, reporting)
            ready = launchers.take()
            process = _Launched(ready.popen, report)
            resources.push_async_callback(process.end)
            # The launcher is in the group before it gets its task, so the command is in the group from its start.
            bound_together(ready.popen.pid, command, process, resources)
            ready.send(message)
        finally:
            task.close()
    except OSError as error:
        raise Failure("io_error", f"the command can't be started: {error.strerror}") from None
    finally:
        os.close(reporting)
        os.close(no_input)
    if command.launchers is not None:
        # If this fails, the next command starts its launcher itself.
        with suppress(OSError):
            launchers.prepare()
    return process


def _threads_of_user() -> int:
    """The number of processes and threads of this user. The limit of processes counts all of them."""
    total, own = 0, os.getuid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                # This folder has a link for each thread, and two more.
                threads = os.stat(f"/proc/{name}/task")
                if threads.st_uid == own:
                    total += threads.st_nlink - 2
    return total


class _Launched(Process):
    """The launcher, which is the parent process of a command."""

    def __init__(self, popen: subprocess.Popen[bytes], report: int) -> None:
        super().__init__(popen)
        self._report = report

    async def end(self) -> None:
        if self._popen.returncode is not None:
            return
        self._popen.send_signal(signal.SIGTERM)
        if not await within(PATIENCE, self._popen):
            await asyncio.to_thread(kill_descendants, self._popen.pid)
            self._popen.kill()
            await within(PATIENCE, self._popen)
        self._popen.wait()
        os.set_blocking(self._report, False)
        with suppress(OSError, ValueError):
            kind, number, *text = os.read(self._report, _MAX_REPORT).decode().partition("\n")[0].split(" ", 2)
            if kind == "status":
                self.code = int(number) if int(number) >= 0 else 128 - int(number)
            elif int(number) == errno.E2BIG:
                raise too_long()
            else:
                raise Failure("sandbox_unavailable", f"the command can't be confined: {''.join(text)}")
