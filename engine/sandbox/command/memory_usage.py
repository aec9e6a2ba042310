"""Measures the memory that the processes of a command use together, at intervals.

Between two measurements, a command can exceed its limit. A control group, if available, enforces the limit at once.
"""

from __future__ import annotations

import os
from contextlib import suppress

from albert_tools.engine.sandbox.kernel.process_tree import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: KiB of shared memory. A process with less is not examined further.
_LITTLE = 1024
#: The most descriptors that one measurement examines, to find unnamed files in memory.
_MAX_DESCRIPTORS = 20_000


def taken(top: int) -> tuple[int, int]:
    """The bytes of memory that `top` and its descendants use, and the number of these processes.

    Shared memory is measured twice, as mapped memory and as files in memory. The larger value counts.
    """
    total = processes = shared = 0
    files: dict[tuple[int, int], int] = {}
    left = _MAX_DESCRIPTORS
    for pid in (top, *descendants(top)):
        try:
            with open(f"/proc/{pid}/statm") as file:
                fields = file.read().split()
        except OSError:
            continue
        processes += 1
        total += max(0, int(fields[1]) - int(fields[2])) * _PAGE
        with suppress(OSError, ValueError):
            shared += _mapped(pid)
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd")[:left]:
                left -= 1
                with suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{name}").startswith("/memfd:"):
                        facts = os.stat(f"/proc/{pid}/fd/{name}")
                        files[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return total + max(shared, sum(files.values())), processes


def _mapped(pid: int) -> int:
    """A process's share of the memory that it shares with others, in bytes."""
    # A process may have a name that is not UTF-8.
    with open(f"/proc/{pid}/status", errors="replace") as file:
        if not any(line.startswith("RssShmem:") and int(line.split()[1]) > _LITTLE for line in file):
            return 0
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss_Shmem:"))
