"""The fence around a confined function: what its process can ask of the kernel once everything it needs is imported.

It is wider than the fence of a program's worker, because libraries with C extensions want more than a dozen system calls,
and narrower than any process that has a purpose of its own: memory, clocks, the two descriptors it holds, and reading
Python's own library folders. Landlock says which files can be opened (those, for reading); a seccomp filter says what can
be asked at all. What only an attacker asks for (a program, a process, a socket, a signal to another process) kills the
process, so that it is seen. What a library may try in good faith (a lock file, a thread, a limit) fails with an error,
and the library goes on. Memory can't be made executable, but for the libraries in those folders, which nobody can write from here.

Without Landlock no file can be opened at all; without seccomp Landlock and resource limits remain, and `DESCRIPTIONS` says
what that leaves open. Without both nothing is run.
"""

from __future__ import annotations

import errno
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from albert_tools.engine.sandbox.kernel import landlock, seccomp
from albert_tools.engine.sandbox.kernel.bpf import (
    ALLOW,
    KILL,
    Op,
    assemble,
    if_any,
    if_equal,
    load,
    only_with,
    refuse,
    without_bits,
)
from albert_tools.engine.sandbox.kernel.landlock import READ_DIR, READ_FILE, Grant
from albert_tools.engine.sandbox.kernel.restrict import restrict_process
from albert_tools.engine.sandbox.kernel.rlimits import address_space

#: Each confinement in a sentence, the strongest first.
DESCRIPTIONS = {
    "seccomp+landlock": "nothing can be written, started, reached or signalled, and only Python's libraries can be read "
    "(seccomp and Landlock)",
    "seccomp": "nothing can be opened, written, started, reached or signalled (seccomp); what is imported late is missing",
    "landlock": "no files but Python's libraries and no TCP (Landlock), and resource limits; weaker: other system calls are open",
}

_ALLOWED = """
read write futex munmap brk mremap madvise sendto recvfrom close fstat newfstatat stat lstat statx lseek readv writev pread64
getdents64 getcwd dup rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack exit exit_group getpid gettid getppid getuid geteuid
getgid getegid clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage getrlimit getrandom
sched_yield sched_getaffinity getcpu poll ppoll select pselect6 uname sysinfo membarrier rseq restart_syscall
"""
#: What nothing honest asks for here.
_HOSTILE = """
execve execveat fork vfork socket connect bind listen kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_getfd
ptrace process_vm_readv process_vm_writev mount umount2 unshare setns chroot pivot_root open_by_handle_at bpf io_uring_setup keyctl
add_key request_key userfaultfd perf_event_open init_module finit_module reboot
"""

_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 2, 4, 0x20
_CLONE_THREAD = 0x00010000
#: Bits of `openat` that do more than read: write, read and write, create, truncate.
_OPEN_CHANGES = 0o1 | 0o2 | 0o100 | 0o1000
#: What C libraries ask of a descriptor: whether it is a terminal, how much there is to read, whether it outlives a program.
_IOCTLS = (0x5401, 0x541B, 0x5450, 0x5451)
#: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Not F_SETOWN and F_SETSIG, which send signals.
_FCNTLS = (0, 1, 2, 3, 1030)

_EPERM, _EACCES, _ENOSYS = refuse(errno.EPERM), refuse(errno.EACCES), refuse(errno.ENOSYS)


class FenceLimits(NamedTuple):
    """Bounds of one confined call: bytes of memory on top of what is imported, seconds of processor time."""

    memory_bytes: int
    cpu_seconds: int


def strongest() -> str:
    """The strongest confinement that this machine offers, found out by asking the kernel; empty when it offers none."""
    if sys.platform != "linux":
        return ""
    offered = (("seccomp", seccomp.available()), ("landlock", landlock.version() >= 1))
    return "+".join(name for name, available in offered if available)


def close_fence(kind: str, limits: FenceLimits, readable: Iterable[str]) -> None:
    """Shut the calling process in, for good.

    Args:
        kind: One of `DESCRIPTIONS`.
        limits: Of the call.
        readable: Folders whose files can still be read, where Landlock is part of `kind`.

    Raises:
        OSError: the kernel refuses; the process must not go on.
        RuntimeError: the process has more than one thread, and the others would stay outside.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("what it imports starts threads, and a thread can't be confined from another one")
    files = "landlock" in kind
    with _opened(readable if files else ()) as grants:
        restrict_process(
            limits=_limits(limits),
            grants=grants if files else None,
            filter_program=_filter(files) if "seccomp" in kind else None,
        )


def _filter(files: bool) -> bytes | None:
    """The filter of this process; a call that it doesn't list fails. `files`: Landlock says which can be opened."""
    calls: dict[str, list[Op]] = {name: [ALLOW] for name in _ALLOWED.split()}
    calls |= {name: [KILL] for name in _HOSTILE.split()}
    calls |= {
        "openat": without_bits(2, _OPEN_CHANGES, _EACCES) if files else [_EACCES],
        # Executable memory only from a file, and not writable.
        "mmap": [
            load(2),
            if_any(_PROT_EXEC, 0, 5),
            if_any(_PROT_WRITE, 3, 0),
            load(3),
            if_any(_MAP_ANONYMOUS, 1, 0),
            ALLOW,
            _EPERM,
            ALLOW,
        ],
        "mprotect": without_bits(2, _PROT_EXEC, _EPERM),
        "ioctl": only_with(1, _IOCTLS, _EPERM),
        "fcntl": only_with(1, _FCNTLS, _EPERM),
        # `abort` signals its own process.
        "tgkill": only_with(0, (os.getpid(),), KILL),
        # Its own limits, and only to read them.
        "prlimit64": [
            *(load(0), if_equal(0, 1, 0), _EPERM),
            *(load(2), if_equal(0, 1, 0), _EPERM),
            *(load(2, high=True), if_equal(0, 1, 0), _EPERM),
            ALLOW,
        ],
        "clone": [load(0), if_any(_CLONE_THREAD, 0, 1), _EPERM, KILL],
        # Their arguments are in memory, where a filter can't look; C libraries then take the older calls.
        "clone3": [_ENOSYS],
        "openat2": [_ENOSYS],
        "faccessat2": [_ENOSYS],
    }
    return assemble(calls, otherwise=_EPERM)


@contextmanager
def _opened(folders: Iterable[str]) -> Iterator[list[Grant]]:
    """The grants to read these folders, while they are open. A folder that can't be opened is left out."""
    grants: list[Grant] = []
    try:
        for folder in _outermost(folders):
            with suppress(OSError):
                grants.append((os.open(folder, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY), READ_FILE | READ_DIR))
        yield grants
    finally:
        for handle, _ in grants:
            os.close(handle)


def _outermost(folders: Iterable[str]) -> list[str]:
    """The folders without those that lie in another one."""
    found: list[str] = []
    for folder in sorted({os.path.realpath(each) for each in folders}):
        if not found or not folder.startswith(f"{found[-1]}/"):
            found.append(folder)
    return found


def _limits(limits: FenceLimits) -> dict[str, int]:
    return {
        "RLIMIT_AS": address_space() + limits.memory_bytes,
        # What was imported has taken some already.
        "RLIMIT_CPU": limits.cpu_seconds + math.ceil(time.process_time()),
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_NPROC": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
