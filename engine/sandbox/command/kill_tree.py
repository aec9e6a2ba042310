"""Killing a command with everything that it started, where neither a process namespace nor a launcher does it.

A child that wants to outlive its command leaves the process group (``setsid``) or lets its parent die first
(double fork), and usually does not do both with a clean environment. So there are three ways to find it: by
the group, by descent while the parents live, and by a mark that every child inherits in its
environment. A child that strips the environment, forks twice and leaves the group escapes; so this is the last resort.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

#: The environment variable that marks what a call has started.
MARK = "ALBERT_CALL"

#: Rounds of looking for survivors: a fork may happen between looking and killing, but hardly this often.
_ROUNDS = 5


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads. It must not have been waited for, or the number may be reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_tree(pid: int, mark: str) -> None:
    """Kill `pid`, its group, its descendants, and every process that carries `mark`."""
    import psutil

    found = []
    with suppress(psutil.Error):
        found = psutil.Process(pid).children(recursive=True)
    kill_group(pid)
    for process in found:
        # psutil compares start times first, so a number that was reused is not killed.
        with suppress(psutil.Error):
            process.kill()
    kill_marked(mark)


def kill_marked(mark: str) -> None:
    """Kill every process whose environment carries `mark`, until none is left."""
    for _ in range(_ROUNDS):
        found = list(_marked(mark))
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    if not os.path.isdir("/proc/self"):
        yield from _marked_by_psutil(mark)
        return
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        # A process that has ended but isn't waited for has an empty environment, so it is not found again.
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
