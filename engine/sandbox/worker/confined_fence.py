"""The fence around a confined function: the system calls and files that its process can use after its imports.

This fence is wider than the fence of a program's worker, because libraries with C extensions need more than a dozen system calls.
It still allows only memory, clocks, the two open descriptors, and reading Python's own library folders. Landlock limits which
files can be opened for reading. A seccomp filter limits the system calls.

Some calls are made only by an attacker: starting a program or a process, opening a socket, signalling another process. They kill
the process, so that the attack is noticed. Other calls may be made by a harmless library: a lock file, a thread, a resource
limit. They fail with an error, and the library continues. Memory can't be made executable, except for libraries in the readable
folders, which the process can't write.

Without Landlock, no file can be opened. Without seccomp, only Landlock and resource limits apply, and `DESCRIPTIONS` says what
remains possible. Without both, the function doesn't run.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from albert_tools.engine.model.folders import outermost
from albert_tools.engine.model.limits import RunLimits
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
from albert_tools.engine.sandbox.kernel.restrict import restriction
from albert_tools.engine.sandbox.worker.fence import Fence, process_limits

#: A sentence about each confinement, strongest first.
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
#: Calls that a harmless library never makes here.
_HOSTILE = """
execve execveat fork vfork socket connect bind listen kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_getfd
ptrace process_vm_readv process_vm_writev mount umount2 unshare setns chroot pivot_root open_by_handle_at bpf io_uring_setup keyctl
add_key request_key userfaultfd perf_event_open init_module finit_module reboot
"""

_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 2, 4, 0x20
_CLONE_THREAD = 0x00010000
#: Bits of `openat` that allow more than reading: write, read and write, create, truncate.
_OPEN_CHANGES = 0o1 | 0o2 | 0o100 | 0o1000
#: Harmless requests of C libraries: is the descriptor a terminal, how many bytes can be read, close the descriptor at `exec`.
_IOCTLS = (0x5401, 0x541B, 0x5450, 0x5451)
#: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Not F_SETOWN and F_SETSIG, which send signals.
_FCNTLS = (0, 1, 2, 3, 1030)

_EPERM, _EACCES, _ENOSYS = refuse(errno.EPERM), refuse(errno.EACCES), refuse(errno.ENOSYS)


def strongest() -> str:
    """The strongest confinement that the kernel of this machine supports; empty if it supports none."""
    if sys.platform != "linux":
        return ""
    offered = (("seccomp", seccomp.available()), ("landlock", landlock.version() >= 1))
    return "+".join(name for name, available in offered if available)


def wide_fence(limits: RunLimits, kind: str, readable: Iterable[str]) -> Fence:
    """The fence around a confined function. It is made when the imports are done.

    Args:
        limits: The limits of the call; the memory is counted in addition to that of the imports.
        kind: One of `DESCRIPTIONS`.
        readable: The folders whose files can still be read, if Landlock is part of `kind`.

    Raises:
        RuntimeError: the process has several threads. A fork has only one of them, so another may hold a lock for ever.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("what it imports starts threads, and a process with threads can't be forked safely")
    files = "landlock" in kind
    folders = outermost(map(os.path.realpath, readable)) if files else []
    most = process_limits(limits, files=64)

    def close() -> None:
        with _opened(folders) as grants:
            restriction(
                limits=most,
                grants=grants if files else None,
                filter_program=_filter(files) if "seccomp" in kind else None,
            )()

    return Fence(kind, close)


def _filter(files: bool) -> bytes | None:
    """The filter of this process. A call that it doesn't list fails. `files`: whether Landlock limits the files that can be
    opened."""
    calls: dict[str, list[Op]] = {name: [ALLOW] for name in _ALLOWED.split()}
    calls |= {name: [KILL] for name in _HOSTILE.split()}
    calls |= {
        "openat": without_bits(2, _OPEN_CHANGES, _EACCES) if files else [_EACCES],
        # Executable memory must be backed by a file, and must not be writable.
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
        # `abort` sends a signal to its own process.
        "tgkill": only_with(0, (os.getpid(),), KILL),
        # The process may only read its own limits.
        "prlimit64": [
            *(load(0), if_equal(0, 1, 0), _EPERM),
            *(load(2), if_equal(0, 1, 0), _EPERM),
            *(load(2, high=True), if_equal(0, 1, 0), _EPERM),
            ALLOW,
        ],
        "clone": [load(0), if_any(_CLONE_THREAD, 0, 1), _EPERM, KILL],
        # The arguments of these calls are in memory, which a filter can't read. On ENOSYS, C libraries use the older calls.
        "clone3": [_ENOSYS],
        "openat2": [_ENOSYS],
        "faccessat2": [_ENOSYS],
    }
    return assemble(calls, otherwise=_EPERM)


@contextmanager
def _opened(folders: Iterable[str]) -> Iterator[list[Grant]]:
    """Open these folders and yield the grants to read them. A folder that can't be opened is skipped."""
    grants: list[Grant] = []
    try:
        for folder in folders:
            with suppress(OSError):
                grants.append((os.open(folder, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY), READ_FILE | READ_DIR))
        yield grants
    finally:
        for handle, _ in grants:
            os.close(handle)
