"""Kills a command with all processes that it started, on macOS, which has no process namespaces.

A child can try to survive its command: it leaves the process group (``setsid``), or its parent ends first (double fork). It
rarely does both and also removes its environment variables. So the processes are found in three ways: by the process group, by
descent while their parents are alive, and by a mark in the environment, which every child inherits. A child that clears its
environment, forks twice and leaves the group escapes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

#: The environment variable with the mark of a call. All its processes inherit it.
MARK = "ALBERT_CALL"

#: The most rounds of kills. A process can fork between a search and its kill, but hardly that often.
_ROUNDS = 6


def kill_tree(pid: int, mark: str) -> None:
    """Kill `pid`, its group, its descendants, and every process with `mark`.

    Call this before `wait`, because afterwards the number may be reused.
    """
    import psutil

    processes: list[psutil.Process] = []
    with suppress(psutil.Error):
        processes = psutil.Process(pid).children(recursive=True)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for _ in range(_ROUNDS):
        for process in processes:
            # psutil compares start times first, so it doesn't kill a process with a reused number.
            with suppress(psutil.Error):
                process.kill()
        processes = list(_marked(mark))
        if not processes:
            return


def _marked(mark: str) -> Iterator[psutil.Process]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
