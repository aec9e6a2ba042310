"""The descendants of a process, from /proc."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


def descendants(top: int) -> list[int]:
    """All descendants of `top`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    ahead = [top]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def kill_descendants(top: int) -> None:
    """Kill all descendants of `top`. Processes that are forked meanwhile may be missed."""
    for pid in descendants(top):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
