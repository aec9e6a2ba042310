"""How much a command's processes take together, counted now and then.

Between two looks a command can take more than it may, so this bounds what it takes for long; a control group, where there is one,
bounds it at once.
"""

from __future__ import annotations

import os

from albert_tools.engine.sandbox.command.launcher import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")


def taken(top: int) -> tuple[int, int]:
    """What `top` and everything below it takes: bytes of memory that are its own, and processes."""
    total = processes = 0
    for pid in (top, *descendants(top)):
        try:
            with open(f"/proc/{pid}/statm") as file:
                fields = file.read().split()
        except OSError:
            continue
        processes += 1
        total += max(0, int(fields[1]) - int(fields[2])) * _PAGE
    return total, processes
