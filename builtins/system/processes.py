"""How a process is: whether it lives, how long it has, what it takes.

Everything that is told is what any user of the machine sees of any process. Command lines, environments, folders and open files are
not: other people's secrets stand in them. What the system doesn't tell of somebody else's process is null, not a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from albert_tools.engine.model.definition import one_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import Bound

if TYPE_CHECKING:
    import psutil

#: Processes of one name that are told of, the oldest first.
MAX_PROCESSES = 50
#: Seconds over which the processor's use is taken.
SAMPLE_SECONDS = 0.1
#: Numbers of processes are positive; no system counts further.
MAX_PID = 2**31 - 1

_DEAD = frozenset({"zombie", "dead"})

Pid = Annotated[int, Bound(minimum=1, maximum=MAX_PID)]
ProcessName = Annotated[str, Bound(minLength=1, maxLength=256)]


class Process(TypedDict):
    """One process; null is what the system doesn't tell."""

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
    """What `check_process_health` answers."""

    running: bool
    count: int
    processes: list[Process]
    truncated: bool


@primitive(
    effects=["read"],
    family="system",
    timeout=30,
    invariants=[one_of("pid", "name")],
)
def check_process_health(context: CallContext, pid: Pid | None = None, name: ProcessName | None = None) -> Health:
    """Tell whether a process runs, and how it is; by its number, or all of one name.

    Returns {"running", "count", "processes", "truncated"}. That there is no such process is an answer, not a failure:
    "running" is false, "count" 0. "running" is true when one of them is neither a zombie nor dead. "processes" has
    {"pid", "name", "status", "own", "cpu_percent", "memory_bytes", "threads", "started_unix", "age_seconds"} of each,
    the oldest first, at most 50; "truncated" says whether there were more, "count" how many there are. "status" is
    "running", "sleeping", "disk-sleep", "stopped", "zombie" or another word of the system's; "own" whether it belongs
    to the user that Albert runs as; "cpu_percent" is of one core, over a tenth of a second; "memory_bytes" is what it
    holds in memory. What the system doesn't tell of another user's process is null. Command lines and environments are
    never told.

    Fails with `invalid_arguments` when not exactly one of pid and name is given.

    Args:
        pid: The number of the process.
        name: The name of the program, exactly, as `ps` and `top` have it: "postgres", not "/usr/bin/postgres -D …".
    """
    import time

    if pid is None and name is None:
        message = "give pid or name: which process is meant?"
        violations = [{"field": "pid", "rule": "required", "message": f"pid: {message}"}]
        raise Failure("invalid_arguments", message, details={"violations": violations})
    found = _by_number(pid) if pid is not None else _by_name(name or "")
    shown = found[:MAX_PROCESSES]
    for process in shown:
        _use(process)
    if shown:
        time.sleep(SAMPLE_SECONDS)
    now = time.time()
    processes = [told for process in shown if (told := _told(process, now)) is not None]
    gone = len(shown) - len(processes)
    context.effect("read", what="processes", count=len(processes))
    return {
        "running": any(p["status"] not in _DEAD for p in processes),
        "count": len(found) - gone,
        "processes": processes,
        "truncated": len(found) > len(shown),
    }


def _by_number(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        return [psutil.Process(pid)]
    except (psutil.Error, OSError, OverflowError):
        return []


def _by_name(name: str) -> list[psutil.Process]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == name:
                found.append((process.create_time(), process.pid, process))
        except (psutil.Error, OSError):
            continue
    return [process for _, _, process in sorted(found, key=lambda f: f[:2])]


def _use(process: psutil.Process) -> float | None:
    import psutil

    try:
        return float(process.cpu_percent(None))
    except (psutil.Error, OSError):
        return None


def _told(process: psutil.Process, now: float) -> Process | None:
    """What there is to say of it; None when it has ended meanwhile."""
    import os

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
                "cpu_percent": _use(process),
                "memory_bytes": memory,
                "threads": threads,
                "started_unix": started,
                "age_seconds": round(max(0.0, now - started), 3),
            }
    except (psutil.Error, OSError):
        return None
