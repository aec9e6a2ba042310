"""Resource limits by name (``RLIMIT_AS``, …), of this process or of another."""

from __future__ import annotations

import resource
import sys

#: The address space of a bare Python process, for systems that don't report it.
_BARE = 128 * 1024 * 1024


def lower(limits: dict[str, int], pid: int = 0) -> None:
    """Set resource limits, soft and hard. A hard limit is never raised. A limit that the system doesn't have is skipped.

    The hard limit of processor time is one second above the soft limit, so that the process dies of SIGXCPU.

    Args:
        limits: By name. Seconds for ``RLIMIT_CPU``, otherwise bytes or a count.
        pid: The process; 0 for this one.

    Raises:
        ProcessLookupError: the process has ended.
        OSError, ValueError: Linux refuses. If another system refuses a limit, the limit is skipped.
    """
    for which, pair in lowered(limits, pid):
        set_limit(which, pair, pid)


def lowered(limits: dict[str, int], pid: int = 0) -> list[tuple[int, tuple[int, int]]]:
    """The arguments of `set_limit` for these limits, see `lower`."""
    arguments = []
    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            _, hard = resource.prlimit(pid, which) if pid else resource.getrlimit(which)
            most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
            arguments.append((which, (min(value, most), min(value + (name == "RLIMIT_CPU"), most))))
    return arguments


def set_limit(which: int, pair: tuple[int, int], pid: int = 0) -> None:
    """Set one resource limit, soft and hard. Raises as `lower`."""
    try:
        if pid:
            resource.prlimit(pid, which, pair)
        else:
            resource.setrlimit(which, pair)
    except (OSError, ValueError):
        if sys.platform == "linux":
            raise


def soft_limit(name: str, pid: int) -> int:
    """A soft limit of another process (Linux only).

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
