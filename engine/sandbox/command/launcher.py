"""The launcher: the parent process of a command that Landlock confines. It is a separate program (`standalone`).

It starts the command with restricted rights. It is a subreaper: all processes that the command starts stay its descendants, even
after double forks. It kills them when the command ends, when the service sends SIGTERM, and when the service dies. It reports the
command's exit status through a pipe.

It starts anew for every command. So it avoids modules whose import is slow (`json`, `signal`, `typing`, `contextlib`).
"""

from __future__ import annotations

import os

from albert_tools.engine.sandbox.kernel.prctl import adopt_orphans, die_with_parent
from albert_tools.engine.sandbox.kernel.process_tree import kill_descendants
from albert_tools.engine.sandbox.kernel.restrict import restrict_process
from albert_tools.engine.sandbox.kernel.signals import (
    SIGCHLD,
    SIGINT,
    SIGPIPE,
    SIGTERM,
    SIGXFSZ,
    block_only,
    restore,
    wait_briefly,
    wait_for,
)

#: The modules in `kernel` that this module imports, for `standalone`.
KERNEL = ("libc", "prctl", "landlock", "seccomp", "rlimits", "restrict", "process_tree", "signals")


def main(
    command: list[str],
    environment: dict[str, str],
    cwd: int,
    grants: list[tuple[int, int]],
    limits: dict[str, int],
    filter_program: bytes,
    descriptors: list[int],
    report: int,
    service: int,
) -> None:
    """Run a command. The report is ``status <exit code>``, or ``error <errno> <text>`` if the command can't be started.

    Args:
        command: The path of the program, and its arguments.
        environment: All environment variables.
        cwd: The descriptor of the working directory.
        grants: The rights that Landlock allows.
        limits: Resource limits by name.
        filter_program: The seccomp filter.
        descriptors: The inherited descriptors. The command doesn't get them.
        report: The descriptor for the report.
        service: The process that has started this one.
    """
    block_only(SIGCHLD, SIGTERM)
    adopt_orphans()
    die_with_parent(SIGTERM, service)
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.setsid()
            os.umask(0o022)
            os.fchdir(cwd)
            for handle in descriptors:
                os.set_inheritable(handle, False)
            restore(SIGINT, SIGPIPE, SIGTERM, SIGXFSZ)
            block_only()
            restrict_process(grants=grants, limits=limits, without_capabilities=True, filter_program=filter_program)
            os.execve(command[0], command, environment)
        except BaseException as error:
            os.write(report, f"error {getattr(error, 'errno', None) or 0} {error}\n".encode("utf-8", "replace"))
        finally:
            os._exit(127)
    status = _wait_for(child)
    _end_all()
    if status is not None:
        os.write(report, f"status {os.waitstatus_to_exitcode(status)}\n".encode())
    # Skip Python's clean-up, because it takes a millisecond.
    os._exit(0)


def _wait_for(child: int) -> int | None:
    """The wait status of `child`, when it has ended; None after SIGTERM. Reaps all processes that end before."""
    while wait_for(SIGCHLD, SIGTERM) != SIGTERM:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                return status
            if pid == 0:
                break
    return None


def _end_all() -> None:
    """Kill all descendants and wait for them, until none is left."""
    try:
        while True:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            kill_descendants(os.getpid())
            # Some processes are still dying or newly forked. Wait for one, then search again.
            wait_briefly(SIGCHLD)
    except ChildProcessError:
        return
