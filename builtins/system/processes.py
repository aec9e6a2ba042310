"""The state of processes: whether they run, when they started, and which resources they use.

A result has only information that every user of the machine can see of every process. It never has command lines, environments,
folders or open files, which may contain secrets. Information that the system hides about another user's process is null.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, TypedDict

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.definition import one_of
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound

if TYPE_CHECKING:
    import psutil

#: Processes of one result, oldest first.
MAX_PROCESSES = 50
#: Seconds over which the use of the processor is measured.
SAMPLE_SECONDS = 0.1
#: The largest process number of any system.
MAX_PID = 2**31 - 1

_DEAD = frozenset({"zombie", "dead"})

Pid = Annotated[int, Bound(minimum=1, maximum=MAX_PID)]
ProcessName = Annotated[str, Bound(minLength=1, maxLength=256)]


class Process(TypedDict):
    """One process. A field is null if the system does not report the information."""

    pid: int
    name: str
    status: str
    own: bool
    cpu_percent: float | None
    memory_bytes: int | None
    threads: int | None
    started_unix: float
    age_seconds: float


class Health(TypedDict):
    """Result of `check_process_health`."""

    running: bool
    count: int
    processes: list[Process]
    truncated: bool


@primitive(
    effects=["read"],
    family="system",
    timeout=30,
    outputs={
        ".running": "little",
        ".count": "little",
        ".processes": f"at most {MAX_PROCESSES} items",
        ".truncated": "little",
    },
    source="command",
    invariants=[one_of("pid", "name")],
)
def check_process_health(context: CallContext, pid: Pid | None = None, name: ProcessName | None = None) -> Health:
    """Report whether a process runs, and its state: one process by number, or all with one name.

    Returns {"running", "count", "processes", "truncated"}. No such process is a result, not a failure: "running" is false,
    "count" is 0. "running" is true if at least one of them is neither a zombie nor dead. "processes" lists the 50 oldest, oldest
    first, as {"pid", "name", "status", "own", "cpu_percent", "memory_bytes", "threads", "started_unix", "age_seconds"};
    "count" is the number of all, "truncated" says whether there are more than listed. "status" is "running", "sleeping",
    "disk-sleep", "stopped", "zombie" or another word of the system; "own" says whether the process belongs to the user that
    Albert runs as; "cpu_percent" is of one core, over a tenth of a second; "memory_bytes" is resident memory. What the system
    hides about another user's process is null. Command lines and environments are never returned.

    Fails with `invalid_arguments` unless exactly one of pid and name is given.

    Args:
        pid: The process number.
        name: The exact name of the program, as `ps` and `top` show it: "postgres", not "/usr/bin/postgres -D …".
    """
    if pid is None and name is None:
        raise refused_argument("pid", "give either pid or name", rule="required")
    matching_processes = _by_number(pid) if pid is not None else _by_name(name or "")
    shown = matching_processes[:MAX_PROCESSES]
    for process in shown:
        _cpu_percent(process)
    if shown:
        time.sleep(SAMPLE_SECONDS)
    now = time.time()
    processes = [state for process in shown if (state := _state(process, now)) is not None]
    gone = len(shown) - len(processes)
    context.effect("read", what="processes", count=len(processes))
    return {
        "running": any(p["status"] not in _DEAD for p in processes),
        "count": len(matching_processes) - gone,
        "processes": processes,
        "truncated": len(matching_processes) > len(shown),
    }


def _by_number(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        return [psutil.Process(pid)]
    except (psutil.Error, OSError, OverflowError):
        return []


def _by_name(name: str) -> list[psutil.Process]:
    import psutil

    matches = []
    for process in psutil.process_iter():
        try:
            if process.name() == name:
                matches.append((process.create_time(), process.pid, process))
        except (psutil.Error, OSError):
            continue
    return [process for _, _, process in sorted(matches, key=lambda match: match[:2])]


def _cpu_percent(process: psutil.Process) -> float | None:
    import psutil

    try:
        return float(process.cpu_percent(None))
    except (psutil.Error, OSError):
        return None


def _state(process: psutil.Process, now: float) -> Process | None:
    """The state of a process; None if it has ended."""
    import psutil

    try:
        with process.oneshot():
            started = process.create_time()
            memory = threads = None
            try:
                memory, threads = process.memory_info().rss, process.num_threads()
            except (psutil.AccessDenied, psutil.ZombieProcess):
                pass
            return {
                "pid": process.pid,
                "name": process.name(),
                "status": str(process.status()),
                "own": process.uids().effective == os.geteuid(),
                "cpu_percent": _cpu_percent(process),
                "memory_bytes": memory,
                "threads": threads,
                "started_unix": started,
                "age_seconds": round(max(0.0, now - started), 3),
            }
    except (psutil.Error, OSError):
        return None
