"""The descendants of a process, from /proc."""

from __future__ import annotations

import os

#: Not imported from `signal`, because that import is slow for a small helper process.
_SIGKILL = 9


def descendants(top: int) -> list[int]:
    """All descendants of `top`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    pids: list[int] = []
    ahead = [top]
    while ahead:
        below = children.get(ahead.pop(), [])
        pids += below
        ahead += below
    return pids


def kill_descendants(top: int) -> None:
    """Kill all descendants of `top`. Processes that are forked meanwhile may be missed."""
    for pid in descendants(top):
        try:
            os.kill(pid, _SIGKILL)
        except ProcessLookupError:
            continue
