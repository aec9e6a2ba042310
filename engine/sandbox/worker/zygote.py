"""The zygote: a small process that only forks workers.

It is started before the service imports large modules. It loads one module that makes the workers, and the modules that these
need, and then never imports again. The service sends the list of modules on the control socket, and later one byte for each new
worker (`zygote_report`). The zygote reports each worker by a message with two descriptors: the service's end of the worker's
socket, and a pidfd to kill the worker. When a worker ends, the zygote reports its wait status. When the control socket closes, or
the service dies, the zygote and all workers end.

The zygote runs as ``python -S -s -P`` with an environment of a few fixed variables. So it reads no `.pth` files and nothing of
the user's.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import warnings
from importlib import import_module
from typing import NoReturn, Protocol

from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.kernel.prctl import die_with_parent, no_new_privileges
from albert_tools.engine.sandbox.worker.fence import Fence
from albert_tools.engine.sandbox.worker.zygote_report import BORN, ENDED, FAILED, READY, REPORT, SPARE

#: The pause after which the zygote may use its time for warming up. A short command has ended by then.
IDLE_MILLISECONDS = 300


class Worker(Protocol):
    """One worker. It is made before the fork, and used after it. Its module has a function ``prepare(modules)`` that makes it.

    `recursion` is Python's recursion limit in the worker. `closed` says that it imports and prints nothing.
    """

    recursion: int
    closed: bool

    def fence(self, limits: RunLimits, kind: str) -> Fence:
        """The fence around the worker; `kind` is a weaker one than the machine supports, or empty."""

    def rehearse(self) -> None:
        """Do a little typical work, before each fork and in each worker that is kept ready, so that the real work is fast."""

    def warm_up(self) -> bool:
        """Do more typical work, while nothing is requested. Returns false when there is nothing more to do."""

    def connect(self, sock: socket.socket) -> None:
        """Set the socket to the service."""

    def serve(self) -> NoReturn:
        """Report that this process is confined, and do the work."""


def main(control_fd: int, work: str) -> NoReturn:
    """Load the module `work`, read the settings, prepare the worker, and report this. Then fork a worker for each request until
    the control socket closes."""
    control = socket.socket(fileno=control_fd)
    control.setblocking(True)
    die_with_parent()
    try:
        prepare = import_module(work).prepare
        limits, kind, modules = _settings(control)
        worker: Worker = prepare(modules)
        if worker.closed:
            _stop_importing()
            _silence()
        sys.setrecursionlimit(worker.recursion)
        fence = worker.fence(limits, kind)
        # Each worker inherits this, and its fence needs it.
        no_new_privileges()
        worker.rehearse()
        gc.collect()
        gc.freeze()
    except BaseException as error:
        # The import of an application's module can raise anything, even `SystemExit`.
        _report(control, FAILED, f"{type(error).__name__}: {error}")
        os._exit(1)
    _report(control, READY, fence.kind)

    alive: set[int] = set()
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    pause: int | None = IDLE_MILLISECONDS
    while True:
        events = poll.poll(pause)
        if not events:
            pause = 0 if worker.warm_up() else None
            gc.freeze()
        for fd, _ in events:
            if fd == woken:
                os.read(woken, 4096)
                _reap(control, alive)
                continue
            requests = control.recv(64)
            if not requests:
                _end(alive)
            for request in requests:
                alive.add(_fork(control, worker, fence, rehearsed=request == SPARE))


def _settings(control: socket.socket) -> tuple[RunLimits, str, list[str]]:
    """The settings in the first line: seconds of processor time, bytes of memory, a fence or an empty text, and the modules."""
    line = b""
    while not line.endswith(b"\n"):
        more = control.recv(4096)
        if not more:
            os._exit(0)
        line += more
    cpu, memory, kind, *modules = line.decode().strip().split(",")
    return RunLimits(cpu_seconds=int(cpu), memory_bytes=int(memory)), kind, modules


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _report(control: socket.socket, what: int, text: str) -> None:
    data = text.encode()[:2000]
    control.sendall(REPORT.pack(what, 0, 0, len(data)) + data)


def _reap(control: socket.socket, alive: set[int]) -> None:
    while alive:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        alive.discard(pid)
        control.sendall(REPORT.pack(ENDED, pid, status & 0xFFFFFFFF, 0))


def _fork(control: socket.socket, worker: Worker, fence: Fence, *, rehearsed: bool) -> int:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        try:
            _work(theirs, worker, fence, rehearsed)
        finally:
            os._exit(70)
    theirs.close()
    handles = [ours.fileno()]
    if hasattr(os, "pidfd_open"):
        handles.append(os.pidfd_open(pid))
    socket.send_fds(control, [REPORT.pack(BORN, pid, len(handles), 0)], handles)
    for handle in handles[1:]:
        os.close(handle)
    ours.close()
    return pid


def _work(sock: socket.socket, worker: Worker, fence: Fence, rehearsed: bool) -> NoReturn:
    """In the worker: close all descriptors except the socket and what it prints to, close the fence, and serve."""
    die_with_parent()
    os.dup2(sock.fileno(), 0)
    os.closerange(1 if worker.closed else 3, 1 << 20)
    sock.detach()
    only_socket = socket.socket(fileno=0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if rehearsed:
        worker.rehearse()
    fence.close()
    worker.connect(only_socket)
    worker.serve()


def _stop_importing() -> None:
    """Disable all imports from disk."""
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.path.clear()
    sys.path_importer_cache.clear()


class _Nowhere:
    """Discards the output of the library, such as the trace of `re.DEBUG`."""

    def write(self, text: str) -> int:
        """Discard a text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


def _silence() -> None:
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = _Nowhere()


def _end(alive: set[int]) -> NoReturn:
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(0)
