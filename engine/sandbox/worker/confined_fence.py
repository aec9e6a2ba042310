"""The fence around a confined function: what its process can ask of the kernel once everything it needs is imported.

It is wider than the fence of a program's worker, because libraries with C extensions want more than a dozen system calls,
and narrower than any process that has a purpose of its own: memory, clocks, the two descriptors it holds, and reading
Python's own library folders. Landlock says which files can be opened (those, for reading); a seccomp filter says what can
be asked at all. What only an attacker asks for (a program, a process, a socket, a signal to somebody else) kills the
process, so that it is seen; what a library may try in good faith (a lock file, a thread, a limit) is refused with an error,
and it goes on. Memory can't be made executable, but for the libraries in those folders, which nobody can write from here.

Without Landlock no file can be opened at all; without seccomp Landlock and resource limits remain, and `CONFINEMENTS` says
what that leaves open. Without both nothing is run.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import resource
import struct
import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from albert_tools.engine.sandbox.worker.fence import landlock

#: Each confinement in a sentence, the strongest first.
CONFINEMENTS = {
    "seccomp+landlock": "nothing can be written, started, reached or signalled, and only Python's libraries can be read "
    "(seccomp and Landlock)",
    "seccomp": "nothing can be opened, written, started, reached or signalled (seccomp); what is imported late is missing",
    "landlock": "no files but Python's libraries and no TCP (Landlock), and resource limits; weaker: other system calls are open",
}

_KILL = 0x80000000
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000

#: BPF: load a word of the call's description; jump if equal, at least, or any bit is set; return.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16

_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 2, 4, 0x20
_CLONE_THREAD = 0x00010000
#: Bits of `openat` that do more than read: write, read and write, create, truncate.
_OPEN_CHANGES = 0o1 | 0o2 | 0o100 | 0o1000
#: What C libraries ask of a descriptor: whether it is a terminal, how much there is to read, whether it outlives a program.
_IOCTLS = (0x5401, 0x541B, 0x5450, 0x5451)
#: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Not F_SETOWN and F_SETSIG, which send signals.
_FCNTLS = (0, 1, 2, 3, 1030)

#: Per machine: the audit constant (include/uapi/linux/audit.h), and which number of each pair below is its.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

#: System calls by their numbers (include/uapi/asm/unistd_64.h, asm-generic/unistd.h); None where a machine has no such call.
_Calls = dict[str, tuple[int | None, int | None]]

_ALLOWED: _Calls = {
    "read": (0, 63),
    "write": (1, 64),
    "futex": (202, 98),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "stat": (4, None),
    "lstat": (6, None),
    "statx": (332, 291),
    "lseek": (8, 62),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "dup": (32, 23),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "getrandom": (318, 278),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "restart_syscall": (219, 128),
}

#: What nothing honest asks for here.
_HOSTILE: _Calls = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "reboot": (169, 142),
}

#: What is judged by its arguments.
_JUDGED: _Calls = {
    "openat": (257, 56),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "tgkill": (234, 131),
    "prlimit64": (302, 261),
    "clone": (56, 220),
    "clone3": (435, 435),
    "openat2": (437, 437),
    "faccessat2": (439, 439),
}

_SECCOMP = {"x86_64": 317, "aarch64": 277}

_Op = tuple[int, int, int, int]


class FenceLimits(NamedTuple):
    """Bounds of one confined call: bytes of memory on top of what is imported, seconds of processor time."""

    memory_bytes: int
    cpu_seconds: int


def strongest() -> str:
    """The strongest confinement that this machine offers, found out by asking the kernel; empty when it offers none."""
    if sys.platform != "linux":
        return ""
    libc = ctypes.CDLL(None, use_errno=True)
    machine = os.uname().machine
    action = ctypes.c_uint32(_KILL)
    # SECCOMP_GET_ACTION_AVAIL; landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION).
    filters = machine in _SECCOMP and libc.syscall(_SECCOMP[machine], 2, 0, ctypes.byref(action)) == 0
    files = libc.syscall(444, None, 0, 1) >= 1
    return "+".join(name for name, there in (("seccomp", filters), ("landlock", files)) if there)


def close_fence(kind: str, limits: FenceLimits, readable: Iterable[str]) -> None:
    """Shut the calling process in, for good.

    Args:
        kind: One of `CONFINEMENTS`.
        limits: Of the call.
        readable: Folders whose files can still be read, where Landlock is part of `kind`.

    Raises:
        OSError: the kernel refuses; the process must not go on.
        RuntimeError: the process has more than one thread, and the others would stay outside.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("what it imports starts threads, and a thread can't be confined from another one")
    machine = os.uname().machine
    program = _filter(machine, os.getpid(), "landlock" in kind) if "seccomp" in kind else b""
    if libc.prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    _set_limits(limits)
    if "landlock" in kind:
        landlock(libc, partial(_open_to_reading, libc, readable))
    if program:
        text = ctypes.create_string_buffer(program)
        header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(text)))
        if libc.syscall(_SECCOMP[machine], 1, 0, header) != 0:  # SECCOMP_SET_MODE_FILTER
            raise OSError(ctypes.get_errno(), "seccomp")


def _filter(machine: str, pid: int, files: bool) -> bytes:
    """The program: each call's number in turn, each followed by what is done about it; what is on no list is refused."""
    audit, which = _MACHINES[machine]
    program: list[_Op] = [
        _op(_LOAD, _ARCH_AT),
        _op(_IF_EQUAL, audit, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER_AT),
        # Numbers from here up are the x32 calls of an x86-64 kernel.
        _op(_IF_AT_LEAST, 0x40000000, 0, 1),
        _op(_RETURN, _KILL),
    ]
    judged = {name: _judgement(name, pid, files) for name in _JUDGED}
    for calls, answer in ((_ALLOWED, _ALLOW), (_HOSTILE, _KILL), (_JUDGED, None)):
        for name, numbers in calls.items():
            number = numbers[which]
            if number is not None:
                block = judged[name] if answer is None else [_op(_RETURN, answer)]
                program += [_op(_IF_EQUAL, number, 0, len(block)), *block]
    program.append(_op(_RETURN, _ERRNO | errno.EPERM))
    return b"".join(struct.pack("<HBBI", *each) for each in program)


def _op(code: int, k: int, yes: int = 0, no: int = 0) -> _Op:
    return code, yes, no, k


def _argument(index: int, high: bool = False) -> _Op:
    return _op(_LOAD, _ARGUMENTS_AT + 8 * index + 4 * high)


def _refuse(number: int) -> _Op:
    return _op(_RETURN, _ERRNO | number)


def _judgement(name: str, pid: int, files: bool) -> list[_Op]:
    """What is done about a call by its arguments; each way through it ends in a return."""
    allow, kill = _op(_RETURN, _ALLOW), _op(_RETURN, _KILL)
    match name:
        case "openat" if files:
            return [_argument(2), _op(_IF_SET, _OPEN_CHANGES, 0, 1), _refuse(errno.EACCES), allow]
        case "openat":
            return [_refuse(errno.EACCES)]
        case "mmap":
            return [
                _argument(2),
                _op(_IF_SET, _PROT_EXEC, 0, 5),
                _op(_IF_SET, _PROT_WRITE, 3, 0),
                _argument(3),
                _op(_IF_SET, _MAP_ANONYMOUS, 1, 0),
                allow,
                _refuse(errno.EPERM),
                allow,
            ]
        case "mprotect":
            return [_argument(2), _op(_IF_SET, _PROT_EXEC, 0, 1), _refuse(errno.EPERM), allow]
        case "ioctl" | "fcntl":
            known = _IOCTLS if name == "ioctl" else _FCNTLS
            tests = [_op(_IF_EQUAL, command, len(known) - i, 0) for i, command in enumerate(known)]
            return [_argument(1), *tests, _refuse(errno.EPERM), allow]
        case "tgkill":
            # `abort` signals its own process.
            return [_argument(0), _op(_IF_EQUAL, pid, 0, 1), allow, kill]
        case "prlimit64":
            # One's own, and only to be told.
            zero = [(0, False), (2, False), (2, True)]
            none = [(_argument(*at), _op(_IF_EQUAL, 0, 1, 0), _refuse(errno.EPERM)) for at in zero]
            return [*(op for ops in none for op in ops), allow]
        case "clone":
            return [_argument(0), _op(_IF_SET, _CLONE_THREAD, 0, 1), _refuse(errno.EPERM), kill]
        case _:
            # Their arguments are in memory, where a filter can't look; C libraries then take the older calls.
            return [_refuse(errno.ENOSYS)]


def _open_to_reading(libc: ctypes.CDLL, folders: Iterable[str], ruleset: int) -> None:
    for folder in folders:
        try:
            handle = os.open(folder, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
        except OSError:
            # Less can be read; whoever needs it says so.
            continue
        try:
            # LANDLOCK_RULE_PATH_BENEATH; reading files and folders.
            rule = struct.pack("<Qi", 0b1100, handle)
            if libc.syscall(445, ruleset, 1, ctypes.c_char_p(rule), 0) != 0:
                raise OSError(ctypes.get_errno(), "landlock_add_rule")
        finally:
            os.close(handle)


def _set_limits(limits: FenceLimits) -> None:
    with open("/proc/self/statm") as file:
        bare = int(file.read().split()[0]) * resource.getpagesize()
    wanted = {
        resource.RLIMIT_AS: bare + limits.memory_bytes,
        # What was imported has taken some already.
        resource.RLIMIT_CPU: limits.cpu_seconds + math.ceil(time.process_time()),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for which, value in wanted.items():
        _, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        # One second more before the kernel stops asking politely.
        resource.setrlimit(which, (value, value + 1 if which == resource.RLIMIT_CPU else value))
