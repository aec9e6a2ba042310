"""The process above a command that Landlock confines. Run as a file of its own, with the standard library only.

It reads what is to be done, starts the command with everything taken from it that it is not to have, and stays above it: whatever
the command starts ends up below this process (a subreaper), however often it forks, and is killed when the command ends, when the
service says so (SIGTERM) or when the service is gone. What the command came to goes back through a pipe.

The order within the command: no new privileges, Landlock, limits, no capabilities, the filter; each is for good.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 24, 38, 36
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}

# Landlock's rights (include/uapi/linux/landlock.h).
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 16, 32, 64, 128, 256, 512
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1024, 2048, 4096, 8192, 16384, 32768
#: The number of rights that each version of the interface knows.
_KNOWN = {1: 13, 2: 14, 3: 15, 4: 15}
#: What can be done with a file; the rest is for folders.
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READING = EXECUTE | READ_FILE | READ_DIR
CHANGING = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)


def version() -> int:
    """Which version of Landlock the kernel has; below 1 for none."""
    return int(_LIBC.syscall(_CREATE_RULESET, None, 0, 1))


def restrict(grants: list[tuple[int, int]]) -> None:
    """Leave this process the rights to these open files and folders, and to nothing else.

    Raises:
        OSError: the kernel refuses; the process must not go on.
    """
    known = version()
    if known < 1:
        raise OSError(ctypes.get_errno(), "Landlock can't be had")
    rights = (1 << _KNOWN.get(known, 16)) - 1
    # TCP; and from the sixth version on abstract sockets and signals to anyone outside.
    words = [rights, 0b11, 0b11][: 1 if known < 4 else 2 if known < 6 else 3]
    attributes = struct.pack(f"<{len(words)}Q", *words)
    ruleset = _LIBC.syscall(_CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for handle, allowed in grants:
        of_folder = (os.fstat(handle).st_mode & 0o170000) == 0o040000
        mask = rights if of_folder else rights & _OF_FILES
        if not allowed & mask:
            continue
        rule = struct.pack("<Qi", allowed & mask, handle)
        if _LIBC.syscall(_ADD_RULE, ruleset, 1, ctypes.c_char_p(rule), 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    if _LIBC.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def limit(limits: dict[str, int]) -> None:
    """Set resource limits, by name, soft and hard; none is raised."""
    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            _, hard = resource.getrlimit(which)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def _drop_capabilities() -> None:
    for capability in range(64):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    # _LINUX_CAPABILITY_VERSION_3, this process; effective, permitted, inheritable, twice.
    header, sets = struct.pack("<Ii", 0x20080522, 0), bytes(24)
    if _LIBC.syscall(_CAPSET[os.uname().machine], ctypes.c_char_p(header), ctypes.c_char_p(sets)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _filter(program: bytes) -> None:
    content = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(content)))
    if _LIBC.syscall(_SECCOMP[os.uname().machine], 1, 0, header) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _become(task: dict[str, Any], report: int) -> None:
    """In the child: give everything up, and be the command. Comes back only with an error."""
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        os.umask(0o022)
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.fchdir(task["cwd"])
        if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
        restrict([(handle, rights) for handle, rights in task["grants"]])
        limit(task["limits"])
        _drop_capabilities()
        os.set_inheritable(report, False)
        for handle in {handle for handle, _ in task["grants"]} | {task["cwd"]}:
            os.set_inheritable(handle, False)
        _filter(bytes.fromhex(task["filter"]))
        os.execve(task["command"][0], task["command"], task["environment"])
    except BaseException as error:
        os.write(report, json.dumps({"error": str(error), "errno": getattr(error, "errno", None)}).encode() + b"\n")
    finally:
        os._exit(127)


def descendants(top: int) -> list[int]:
    """Every process below `top`."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(name))
    found: list[int] = []
    ahead = [top]
    while ahead:
        below = parents.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def _end_all() -> None:
    """Kill and collect everything below, until there is nothing."""
    while True:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            # There are some, still dying or just born: wait for one, then look again.
            signal.sigtimedwait({signal.SIGCHLD}, 0.02)
        except ChildProcessError:
            return


def main() -> None:
    """Read the task from the descriptor that the arguments name first, report to the second."""
    reading, report = int(sys.argv[1]), int(sys.argv[2])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    with os.fdopen(reading, "rb") as file:
        task = json.loads(file.read())
    if os.getppid() != task["service"]:
        return
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        _become(task, report)
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


if __name__ == "__main__":
    main()
