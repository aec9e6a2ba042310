"""Resource limits by name (``RLIMIT_AS``, …), of this process or of another."""

from __future__ import annotations

import resource
import sys

#: What a Python process is taken to use where the system doesn't say.
_BARE = 128 * 1024 * 1024


def lower(limits: dict[str, int], pid: int = 0) -> None:
    """Set resource limits, soft and hard. No hard limit is raised; a limit that the system doesn't know is left out.

    The limit of processor time is hard one second later than it is soft, so that the process dies of SIGXCPU.

    Args:
        limits: By name; seconds for ``RLIMIT_CPU``, otherwise bytes or a number of things.
        pid: The process; 0 for this one.

    Raises:
        ProcessLookupError: the process has ended.
        OSError, ValueError: Linux refuses. Other systems may refuse single limits, which are left out then.
    """
    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is None:
            continue
        _, hard = resource.prlimit(pid, which) if pid else resource.getrlimit(which)
        most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
        pair = min(value, most), min(value + (name == "RLIMIT_CPU"), most)
        try:
            if pid:
                resource.prlimit(pid, which, pair)
            else:
                resource.setrlimit(which, pair)
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise


def soft_limit(name: str, pid: int) -> int:
    """A soft limit of another process, on Linux.

    Raises:
        ProcessLookupError: the process has ended.
    """
    return resource.prlimit(pid, getattr(resource, name))[0]


def address_space() -> int:
    """The address space of this process in bytes."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return _BARE
