"""A control group: common limits for all processes of a command.

On a system with delegated groups, the service may create a group next to or below its own. On other systems, and in most
containers, only root may. Control groups are optional: without one, the usage of the command's processes is measured at
intervals.

If a group has no memory left, the kernel kills one of its processes, but the others go on. So a pipeline can end with exit code 0
and a wrong output. Only the group's counter shows this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

_ROOT = "/sys/fs/cgroup"
#: The beginning of the names of our groups. It identifies the groups of a killed service.
_PREFIX = "albert-"
#: The files with the number of killed processes, in version 2 (the first one excludes subgroups) and 1 of the interface.
_COUNTERS = ("memory.events.local", "memory.events", "memory.oom_control")


class ControlGroup:
    """The folders of one group: one folder, or, with version 1 of the interface, one for each controller."""

    def __init__(self, memory_bytes: int, processes: int) -> None:
        """Create a group with these limits.

        Raises:
            OSError: no group can be created.
        """
        self._folders: list[str] = []
        name = f"{_PREFIX}{os.getpid()}-{time.monotonic_ns():x}"
        try:
            for parent, settings in _parents(memory_bytes, processes):
                folder = f"{parent}/{name}"
                os.mkdir(folder)
                self._folders.append(folder)
                for setting, value in settings.items():
                    _write(f"{folder}/{setting}", str(value), needed=not setting.startswith("memory.swap"))
        except OSError:
            self.remove()
            raise

    def take(self, pid: int) -> None:
        """Put a process into the group. The processes that it starts later are in the group too.

        Raises:
            OSError: the system refuses.
        """
        for folder in self._folders:
            _write(f"{folder}/cgroup.procs", str(pid))

    def memory_kills(self) -> int:
        """The number of processes of the group that the kernel has killed because there was no memory left."""
        return _kills(f"{self._folders[0]}/{name}" for name in _COUNTERS)

    def remove(self) -> None:
        """Remove the group. Its processes must have ended."""
        for folder in self._folders:
            for _ in range(20):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.002)
                else:
                    break
        self._folders.clear()


def memory_kills_around() -> int:
    """As `ControlGroup.memory_kills`, but for the group of this process, or for the whole machine if its group is unknown."""
    own = _own_groups()
    places = (f"{_ROOT}/memory{own.get('memory', '/')}", f"{_ROOT}{own.get('', '/')}", f"{_ROOT}/memory", _ROOT)
    return _kills((*(f"{place}/{name}" for place in places for name in _COUNTERS), "/proc/vmstat"))


def _kills(paths: Iterable[str]) -> int:
    for path in paths:
        with suppress(OSError), open(path) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def _write(path: str, value: str, needed: bool = True) -> None:
    try:
        with open(path, "w") as file:
            file.write(value)
    except OSError:
        if needed:
            raise


def _parents(memory_bytes: int, processes: int) -> list[tuple[str, dict[str, int]]]:
    """The folders in which a group can be created, each with the group's settings.

    Raises:
        OSError: there is no such folder.
    """
    own = _own_groups()
    if "memory" in own and "pids" in own:
        return [
            (f"{_ROOT}/memory", {"memory.limit_in_bytes": memory_bytes, "memory.swappiness": 0}),
            (f"{_ROOT}/pids", {"pids.max": processes}),
        ]
    here = f"{_ROOT}{own.get('', '/')}".rstrip("/")
    settings = {"memory.max": memory_bytes, "memory.swap.max": 0, "pids.max": processes}
    # A group with processes can't delegate controllers. Its parent may.
    for parent in (here, os.path.dirname(here)):
        with suppress(OSError), open(f"{parent}/cgroup.subtree_control") as file:
            if {"memory", "pids"} <= set(file.read().split()) and os.access(parent, os.W_OK):
                return [(parent, settings)]
    raise PermissionError("no control group can be made here")


def _own_groups() -> dict[str, str]:
    """The group of this process for each controller. The key of version 2 is empty."""
    with suppress(OSError), open("/proc/self/cgroup") as file:
        return {controllers: path for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in file)}
    return {}


def sweep() -> None:
    """Remove the groups of services that have ended."""
    for top in (_ROOT, f"{_ROOT}/memory", f"{_ROOT}/pids"):
        with suppress(OSError), os.scandir(top) as entries:
            for entry in entries:
                pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
                if entry.name.startswith(_PREFIX) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                    with suppress(OSError):
                        os.rmdir(entry.path)
