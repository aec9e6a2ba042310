"""Kills a command with all processes that it started. Used only without a process namespace and without a launcher.

A child can try to survive its command: it leaves the process group (``setsid``), or its parent ends first (double fork). It
rarely does both and also removes its environment variables. So the processes are found in three ways: by the process group, by
descent while their parents are alive, and by a mark in the environment, which every child inherits. A child that clears its
environment, forks twice and leaves the group escapes. So this way is used only if there is no better one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

#: The environment variable with the mark of a call. All its processes inherit it.
MARK = "ALBERT_CALL"

#: The most search rounds. A process can fork between a search and its kill, but hardly that often.
_ROUNDS = 5


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads. Call this before `wait`, because afterwards the number may be reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_tree(pid: int, mark: str) -> None:
    """Kill `pid`, its group, its descendants, and every process with `mark`."""
    import psutil

    descendants = []
    with suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True)
    kill_group(pid)
    for process in descendants:
        # psutil compares start times first, so it doesn't kill a process with a reused number.
        with suppress(psutil.Error):
            process.kill()
    kill_marked(mark)


def kill_marked(mark: str) -> None:
    """Kill every process whose environment contains `mark`, until no such process is found."""
    for _ in range(_ROUNDS):
        pids = list(_marked(mark))
        if not pids:
            return
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    if not os.path.isdir("/proc/self"):
        yield from _marked_by_psutil(mark)
        return
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        # A zombie process has an empty environment, so it is not found again.
        with suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                    if wanted in file.read().split(b"\0"):
                        yield int(name)


def _marked_by_psutil(mark: str) -> Iterator[int]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process.pid
