"""The launcher: the parent process of a command that Landlock confines. It is a separate program (`standalone`).

It starts the command with restricted rights. It is a subreaper: all processes that the command starts stay its descendants, even
after double forks. It kills them when the command ends, when the service sends SIGTERM, and when the service dies. It reports the
command's exit status through a pipe.

It starts ahead of its command (`launchers`), and gets the task by a socket. The first command of a service waits for it. So it
avoids modules whose import is slow (`json`, `signal`, `socket`, `typing`, `contextlib`).
"""

from __future__ import annotations

import _socket
import marshal
import os
import struct

from albert_tools.engine.sandbox.kernel.prctl import adopt_orphans, die_with_parent, no_new_privileges
from albert_tools.engine.sandbox.kernel.process_tree import kill_descendants
from albert_tools.engine.sandbox.kernel.restrict import restriction
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
#: The text of the messages with descriptors: more follow, or this is the last one.
MORE, LAST = b"+", b"."


def main(service: int, program: int) -> None:
    """Wait for the task of process `service`, and do it. `program` is the descriptor of this program.

    The messages on standard input, a socket, contain descriptors: those that `run` refers to by their index, the command's standard
    input, output and error, the one for the report, and a file with the other arguments of `run`.
    """
    os.close(program)
    die_with_parent(SIGTERM, service)
    control, text = _socket.socket(fileno=0), MORE
    descriptors: list[int] = []
    while text == MORE:
        text, parts, _, _ = control.recvmsg(1, _socket.CMSG_SPACE(1024), _socket.MSG_CMSG_CLOEXEC)
        for _, _, handles in parts:
            descriptors += struct.unpack(f"{len(handles) // 4}i", handles)
    if text != LAST:
        os._exit(0)  # The service needs it no more.
    control.detach()
    *others, stdin, stdout, stderr, report, task = descriptors
    for number, handle in enumerate((stdin, stdout, stderr)):
        os.dup2(handle, number)
    with open(f"/proc/self/fd/{task}", "rb") as file:
        arguments = marshal.load(file)  # noqa: S302 (written by the service)
    run(descriptors=others, report=report, **arguments)


def run(
    command: list[str],
    environment: dict[str, str],
    cwd: int,
    grants: list[tuple[int, int]],
    limits: dict[str, int],
    filter_program: bytes,
    descriptors: list[int],
    report: int,
) -> None:
    """Run a command. The report is ``status <exit code>``, or ``error <errno> <text>`` if the command can't be started.

    Args:
        command: The path of the program, and its arguments.
        environment: All environment variables.
        cwd: The index of the working directory in `descriptors`.
        grants: The rights that Landlock allows, each with the index of a file or folder.
        limits: Resource limits by name.
        filter_program: The seccomp filter.
        descriptors: The open files and folders. The command doesn't get them.
        report: The descriptor for the report.
    """
    block_only(SIGCHLD, SIGTERM)
    adopt_orphans()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.setsid()
            os.umask(0o022)
            os.fchdir(descriptors[cwd])
            restore(SIGINT, SIGPIPE, SIGTERM, SIGXFSZ)
            block_only()
            rights = [(descriptors[i], allowed) for i, allowed in grants]
            no_new_privileges()
            restriction(grants=rights, limits=limits, without_capabilities=True, filter_program=filter_program)()
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
