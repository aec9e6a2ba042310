"""Starting a command behind each kind of confinement, and ending it there.

Bubblewrap is held before it starts the command, until it has been given its limits and its connections. Killing the first process
of its process namespace ends all others in it. Behind Landlock the launcher does that, which all are below of; behind macOS's
sandbox they are looked for.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command import (
    bubblewrap,
    exec_allowlist,
    launcher,
    network_namespace,
    seatbelt,
    seccomp_filters,
)
from albert_tools.engine.sandbox.command.confinement import PATH, Kind, found
from albert_tools.engine.sandbox.command.kill_tree import MARK, kill_tree
from albert_tools.engine.sandbox.command.landlock_task import Task
from albert_tools.engine.sandbox.command.process import PATIENCE, Process, kill, readable, within
from albert_tools.engine.sandbox.command.task import PROXY_PORT, Command
from albert_tools.engine.sandbox.command.temporary_folders import Temporary
from albert_tools.engine.sandbox.kernel.cgroups import ControlGroup

#: Bytes of what bubblewrap says of the process that it started, or the launcher of how its own ended.
_MAX_SAID = 1 << 16
#: Seconds for putting namespaces together; it takes hundredths of one.
_SETTING_UP = 30.0


#: Where a command prints to, and where it complains: two descriptors, or twice the same.
Streams = tuple[int, int]


async def start(kind: Kind, command: Command, output: Streams, held: AsyncExitStack) -> Process:
    """Start a command; it prints to `output`. `held` is to be left when it has been ended.

    Raises:
        Failure: `sandbox_unavailable`, `io_error`, `too_large`.
    """
    if kind == "bwrap":
        return await _start_bwrap(command, output, held)
    # Private and empty, as behind bubblewrap, but of the disk. Nothing is waited for between making it and holding it.
    temporary = Temporary()
    held.push_async_callback(asyncio.to_thread, temporary.remove)
    if kind == "landlock":
        return _start_landlock(command, output, held, temporary.path)
    return _start_seatbelt(command, output, temporary.path)


async def _start_bwrap(command: Command, output: Streams, held: AsyncExitStack) -> Process:
    machine = found()
    said, saying = os.pipe2(os.O_CLOEXEC)
    held.callback(os.close, said)
    waiting, going = os.pipe2(os.O_CLOEXEC)
    let_go = held.enter_context(os.fdopen(going, "wb", buffering=0))
    environment = {"HOME": bubblewrap.HOME, "TMPDIR": "/tmp", **_proxied(command), **command.environment}
    words = command.words
    if command.only is not None and launcher.version() >= 1:
        words = [*exec_allowlist.in_front(_python(), [*command.only, *exec_allowlist.loaders()]), *words]
    try:
        plan = bubblewrap.plan(
            machine.bwrap,
            command.view,
            words,
            environment,
            filter_program=seccomp_filters.program("loose", root=False),
            workspace=command.workspace,
            temporary_bytes=command.bounds.temporary,
            certificates=command.connect is not None,
            nested_off=machine.nested_off,
            told=saying,
            held=waiting,
        )
        try:
            popen = _popen(plan.arguments, output, [*plan.descriptors, saying, waiting])
        finally:
            plan.close()
    except OSError as error:
        raise Failure("io_error", f"what the command is to see can't be put together: {error.strerror}") from None
    finally:
        os.close(saying)
        os.close(waiting)
    process = _Namespaced(popen)
    held.push_async_callback(process.end)
    try:
        async with asyncio.timeout(_SETTING_UP):
            pid = await _first_process(said)
        process.take(pid)
    except (TimeoutError, ValueError, OSError):
        raise Failure("sandbox_unavailable", "bubblewrap did not start the command", retryable=True) from None
    _limit(pid, command)
    _bound_together(pid, command, process, held)
    if command.connect is not None:
        listener = held.enter_context(await asyncio.to_thread(network_namespace.listen, pid, PROXY_PORT))
        await held.enter_async_context(command.connect(listener))
    let_go.write(bubblewrap.GO)
    return process


async def _first_process(said: int) -> int:
    """The number of the first process in the namespace, as bubblewrap says it."""
    text = b""
    os.set_blocking(said, False)
    while not text.rstrip().endswith(b"}"):
        await readable(said)
        data = os.read(said, _MAX_SAID)
        if not data:
            raise ValueError("nothing was said")
        text += data
    return int(json.loads(text)["child-pid"])


def _limit(pid: int, command: Command) -> None:
    limits = {**command.bounds.limits(), "RLIMIT_NPROC": command.bounds.processes}
    for name, value in limits.items():
        which = getattr(resource, name)
        with suppress(ProcessLookupError):
            _, hard = resource.prlimit(pid, which)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, which, (value, value))


def _bound_together(pid: int, command: Command, process: Process, held: AsyncExitStack) -> None:
    """Put a process, and so all that it starts, into a control group, where one can be had."""
    try:
        group = ControlGroup(command.bounds.memory, command.bounds.processes)
    except OSError:
        return
    # Nobody waits for that: the kernel takes its time, and what is left of a group is swept away at the next start.
    held.callback(asyncio.get_running_loop().run_in_executor, None, group.remove)
    # Before that, for only an empty group can be removed.
    held.push_async_callback(process.end)
    with suppress(OSError):
        group.take(pid)


def _proxied(command: Command) -> dict[str, str]:
    if command.connect is None:
        return {}
    address = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {spelled: address for name in names for spelled in (name, name.upper())}


class _Namespaced(Process):
    """Bubblewrap above a process network_namespace."""

    _first = -1

    def take(self, pid: int) -> None:
        """Know the first process of the namespace: `pid`, which hasn't been let go."""
        self._first = os.pidfd_open(pid)
        self.top = pid

    async def end(self) -> None:
        if self._first >= 0:
            handle, self._first = self._first, -1
            try:
                kill(handle)
                # It ends when all others of its namespace have.
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await readable(handle)
            finally:
                os.close(handle)
        elif self._popen.returncode is None:
            # What it has started may not have got as far as to end with it.
            await asyncio.to_thread(_end_unfinished, self._popen.pid)
        if self._popen.returncode is None:
            # It says how the command ended, if that was before; it ends with its child.
            if not await within(PATIENCE if self.top != self._popen.pid else 0, self._popen):
                self._popen.kill()
                await within(PATIENCE, self._popen)
            code = self._popen.wait()
            self.code = code if code >= 0 else 128 - code


def _end_unfinished(pid: int) -> None:
    """End a child of this process and all below it, while it may be starting more."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for below in launcher.descendants(pid):
            with suppress(ProcessLookupError):
                os.kill(below, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _start_landlock(command: Command, output: Streams, held: AsyncExitStack, temporary: str) -> Process:
    report, reporting = os.pipe2(os.O_CLOEXEC)
    held.callback(os.close, report)
    root = os.getuid() == 0
    environment = {"HOME": f"{temporary}/home", "TMPDIR": temporary, **command.environment}
    program = shutil.which(command.words[0], path=environment.get("PATH", ""))
    # As a shell would say it; it is found missing by whoever starts it.
    words = [program or "/nowhere", *command.words[1:]]
    limits = {**command.bounds.limits(), "RLIMIT_NPROC": _threads_of_user() + command.bounds.processes}
    filtered = seccomp_filters.program("strict", root=root, scoped=launcher.version() >= 6)
    assert filtered is not None
    try:
        only = None if command.only is None else [*command.only, *exec_allowlist.loaders()]
        task = Task(command.view, command.workspace, temporary, only)
        try:
            if program is None:
                words = ["/bin/bash", "-c", 'echo "$1: command not found"; exit 127', "sandbox", command.words[0]]
            told = task.spelled(words, environment, limits, filtered)
            arguments = [_python(), "-I", "-S", "-c", _LAUNCHER, str(told), str(reporting)]
            popen = _popen(arguments, output, [*task.descriptors, reporting])
        finally:
            task.close()
    except OSError as error:
        raise Failure("io_error", f"what the command is to see can't be put together: {error.strerror}") from None
    finally:
        os.close(reporting)
    process = _Launched(popen, report)
    held.push_async_callback(process.end)
    # It hasn't got as far as starting the command, which takes it longer than this.
    _bound_together(popen.pid, command, process, held)
    return process


#: The launcher's text; where it is kept may be out of reach by then.
_LAUNCHER = inspect.getsource(launcher)


def _python() -> str:
    """A Python for the launcher: this one, or the system's where this one belongs to another user."""
    return (
        sys.executable if os.access(sys.executable, os.X_OK) else shutil.which("python3", path=PATH) or sys.executable
    )


def _threads_of_user() -> int:
    """The processes and threads that this user has: the limit of processes counts them all."""
    total, own = 0, os.getuid()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == own:
                    total += len(os.listdir(f"{entry.path}/task"))
    return total


class _Launched(Process):
    """The launcher above a command."""

    def __init__(self, popen: subprocess.Popen[bytes], report: int) -> None:
        super().__init__(popen)
        self._report = report

    async def end(self) -> None:
        if self._popen.returncode is not None:
            return
        self._popen.send_signal(signal.SIGTERM)
        if not await within(PATIENCE, self._popen):
            await asyncio.to_thread(kill_tree, self._popen.pid, "")
            await within(PATIENCE, self._popen)
        self._popen.wait()
        os.set_blocking(self._report, False)
        with suppress(OSError, ValueError, IndexError):
            told = json.loads(os.read(self._report, _MAX_SAID).splitlines()[0])
            if told.get("errno") == errno.E2BIG:
                raise _too_long()
            if "error" in told:
                raise Failure("sandbox_unavailable", f"the command can't be confined: {told['error']}")
            self.code = told["status"] if told["status"] >= 0 else 128 - told["status"]


def _start_seatbelt(command: Command, output: Streams, temporary: str) -> Process:
    mark = os.urandom(16).hex()
    environment = {"HOME": f"{temporary}/home", "TMPDIR": temporary, **command.environment, MARK: mark}
    arguments = [seatbelt.PROGRAM, "-p", seatbelt.profile(command.view, temporary), *command.words]
    return _Marked(_popen(arguments, output, [], environment, command.view.cwd), mark)


class _Marked(Process):
    """A command whose processes are found by a mark in their environment."""

    def __init__(self, popen: subprocess.Popen[bytes], mark: str) -> None:
        super().__init__(popen)
        self._mark = mark

    async def end(self) -> None:
        if self.code is None:
            await asyncio.to_thread(kill_tree, self._popen.pid, self._mark)
            code = await asyncio.to_thread(self._popen.wait)
            self.code = code if code >= 0 else 128 - code


def _popen(
    arguments: list[str],
    output: Streams,
    descriptors: list[int],
    environment: dict[str, str] | None = None,
    cwd: str = "/",
) -> subprocess.Popen[bytes]:
    """Start a process that inherits nothing else; not even an environment, which others in a namespace could read."""
    try:
        return subprocess.Popen(
            arguments,
            cwd=cwd,
            env=environment or {},
            stdin=subprocess.DEVNULL,
            stdout=output[0],
            stderr=output[1],
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise _too_long() from None
        raise Failure("io_error", f"the command could not be started: {error.strerror}", retryable=True) from None


def _too_long() -> Failure:
    return Failure(
        "too_large",
        "the command is longer than the operating system takes",
        hint="write it to a file in the workspace, and run that",
    )
