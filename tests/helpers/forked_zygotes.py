"""Zygotes for tests that are not about their start. A process that has imported everything and is warm forks them.

A new zygote spends its time on starting Python, on imports and on warming up, and most tests have a service of their own. What a
zygote does afterwards is the same. The tests of the sandbox and of the judging processes start zygotes as users do.
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from albert_tools.engine.judging.judging_limits import ALL_TASKS, JUDGING
from albert_tools.engine.model import vocabulary
from albert_tools.engine.sandbox.worker import spawn, worker_pool
from albert_tools.engine.sandbox.worker.spawn import PROGRAMS, Spawned, Work

#: The environment variable that tells a child where the processes listen that fork zygotes.
VARIABLE = "TEST_ZYGOTES"

_BOOT = """
import gc, os, signal, socket, sys
sys.path.extend(sys.argv[4:])
from importlib import import_module
from albert_tools.engine.sandbox.kernel.prctl import die_with_parent
from albert_tools.engine.sandbox.worker import zygote
work, address, modules = sys.argv[1], sys.argv[2], sys.argv[3].split()
module = import_module(work)
worker = module.prepare(modules)
worker.rehearse()
while worker.warm_up():
    pass
# A fork of this process is warm. A rehearsal in it would only copy its pages.
worker.rehearse = lambda: None
prepare = module.prepare
# Nearly all services ask for the same modules.
module.prepare = lambda wanted: worker if wanted == modules else prepare(wanted)
gc.collect()
gc.freeze()
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.bind(address)
asked.listen(100)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
die_with_parent()
while True:
    client, _ = asked.accept()
    _, (control, *_), _, _ = socket.recv_fds(client, 1, 1)
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        asked.close()
        client.close()
        os.dup2(control, 0)
        os.close(control)
        zygote.main(0, work)
    os.close(control)
    socket.send_fds(client, [str(pid).encode()], [os.pidfd_open(pid)])
    client.close()
"""

_started: dict[str, Path] = {}


class _Process:
    """What a service needs of a process that another process has started."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def poll(self) -> int | None:
        """0 if the process has ended."""
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        return 0 if ended.poll(0) else None

    def wait(self) -> int:
        """Wait for the end."""
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        ended.poll()
        return 0

    def kill(self) -> None:
        """End the process."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._pidfd)


def share() -> str:
    """Start the processes for this process and the workers that pytest-xdist starts in it. Returns the value of `VARIABLE`."""
    return os.environ.get(VARIABLE) or os.environ.setdefault(VARIABLE, start())


def start() -> str:
    """Start the processes that fork zygotes, once. Returns the value of `VARIABLE`."""
    if not _started:
        folder = Path(tempfile.mkdtemp(prefix="zygotes-"))
        atexit.register(shutil.rmtree, folder, True)
        for work, modules in ((JUDGING, ALL_TASKS), (PROGRAMS, sorted(vocabulary.MODULES))):
            _started[work.module] = _parent(work, modules, folder / work.module.rpartition(".")[2])
    return os.pathsep.join(f"{module}={path}" for module, path in _started.items())


def use(value: str) -> None:
    """Use the processes of `VARIABLE` in this process; if it is empty, start zygotes as users do."""
    if not value:
        _call(_spawn_zygote)
        return
    _started.update((module, Path(path)) for module, _, path in (one.partition("=") for one in value.split(os.pathsep)))
    _call(_fork_zygote)


def used() -> str:
    """The value of `VARIABLE` with which a child starts its zygotes as this process does."""
    return start() if spawn.spawn_zygote is _fork_zygote else ""


@contextmanager
def not_used() -> Iterator[None]:
    """Start zygotes as users do."""
    before = spawn.spawn_zygote
    _call(_spawn_zygote)
    try:
        yield
    finally:
        _call(before)


_spawn_zygote = spawn.spawn_zygote


def _call(function: Callable[..., Spawned]) -> None:
    for module in (spawn, worker_pool):
        vars(module)["spawn_zygote"] = function


def _fork_zygote(work: Work = PROGRAMS, output: int = subprocess.DEVNULL) -> Spawned:
    address = _started.get(work.module)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        try:
            asked.connect(str(address))
        except OSError:
            # There is no such process, or it has not imported everything yet.
            ours.close()
            return _spawn_zygote(work, output)
        socket.send_fds(asked, [b"z"], [theirs.fileno()])
        pid, (pidfd,), _, _ = socket.recv_fds(asked, 20, 1)
    ours.setblocking(False)
    process: Any = _Process(int(pid), pidfd)
    return process, ours


def _parent(work: Work, modules: Any, address: Path) -> Path:
    paths = spawn._library_paths("albert_tools", "msgspec", *work.packages)
    process, control = spawn.spawn_python(
        _BOOT, [work.module, str(address), " ".join(modules), *paths],
        spawn.ENVIRONMENT, subprocess.DEVNULL,
    )  # fmt: skip
    atexit.register(spawn.discard, (process, control))
    return address
