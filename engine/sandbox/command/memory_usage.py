"""How much memory a command's processes use together, counted now and then.

Between two counts a command can use more than it may. A control group, if there is one, bounds it at once.
"""

from __future__ import annotations

import os
from contextlib import suppress

from albert_tools.engine.sandbox.kernel.process_tree import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: KiB of shared memory of a process that need no closer look.
_LITTLE = 1024
#: Descriptors that one count looks at, for files without a name.
_MAX_DESCRIPTORS = 20_000


def taken(top: int) -> tuple[int, int]:
    """The bytes of memory that `top` and everything below it use, and the number of these processes.

    Memory that processes share is counted as mapped memory or as files in memory, whichever is more.
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
    """A process's part of the memory that it shares with others, in bytes."""
    # A process may choose a name that is not UTF-8.
    with open(f"/proc/{pid}/status", errors="replace") as file:
        if not any(line.startswith("RssShmem:") and int(line.split()[1]) > _LITTLE for line in file):
            return 0
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss_Shmem:"))
