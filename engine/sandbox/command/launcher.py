"""The launcher: the parent process of a command that Landlock confines. It is a separate program (`standalone`).

It reads its task and starts the command with restricted rights. It is a subreaper: all processes that the command starts stay its
descendants, even after double forks. It kills them when the command ends, when the service sends SIGTERM, and when the service
dies. It reports the command's exit status through a pipe.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from albert_tools.engine.sandbox.kernel.prctl import adopt_orphans, die_with_parent
from albert_tools.engine.sandbox.kernel.process_tree import kill_descendants
from albert_tools.engine.sandbox.kernel.restrict import restrict_process

#: The modules in `kernel` that this module imports, for `standalone`.
KERNEL = ("libc", "prctl", "landlock", "seccomp", "rlimits", "restrict", "process_tree")


def main() -> None:
    """The first argument is the descriptor of the task, the second is the descriptor for the report."""
    reading, report = int(sys.argv[1]), int(sys.argv[2])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    adopt_orphans()
    with os.fdopen(reading, "rb") as file:
        task = json.loads(file.read())
    die_with_parent(signal.SIGTERM, task["service"])
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        _become_command(task, report)
    status: int | None = None
    while status is None:
        if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
            break
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                status = ended
            if pid in (0, child):
                break
    _end_all()
    if status is not None:
        os.write(report, json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _become_command(task: dict, report: int) -> None:  # type: ignore[type-arg]
    """In the child: restrict this process, and execute the command. Never returns."""
    try:
        die_with_parent()
        os.setsid()
        os.umask(0o022)
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.fchdir(task["cwd"])
        for handle in {report, task["cwd"], *(handle for handle, _ in task["grants"])}:
            os.set_inheritable(handle, False)
        restrict_process(
            grants=task["grants"],
            limits=task["limits"],
            without_capabilities=True,
            filter_program=bytes.fromhex(task["filter"]),
        )
        os.execve(task["command"][0], task["command"], task["environment"])
    except BaseException as error:
        os.write(report, json.dumps({"error": str(error), "errno": getattr(error, "errno", None)}).encode() + b"\n")
    finally:
        os._exit(127)


def _end_all() -> None:
    """Kill all descendants and wait for them, until none is left."""
    while True:
        kill_descendants(os.getpid())
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            # Some processes are still dying or newly forked. Wait for one, then search again.
            signal.sigtimedwait({signal.SIGCHLD}, 0.02)
        except ChildProcessError:
            return
