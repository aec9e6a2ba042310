"""The fence around a worker: the system calls that its process can make.

On Linux, a seccomp filter allows a dozen system calls. They only affect the process's own memory and its one socket. Any other
call kills the process. Without seccomp, Landlock blocks the file system and the network, and resource limits block most of the
rest. Without both, only resource limits apply, and `DESCRIPTIONS` says so. A fence is permanent and applies to root too.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.kernel import landlock, seccomp
from albert_tools.engine.sandbox.kernel.bpf import ALLOW, KILL, Op, assemble, refuse, without_bits
from albert_tools.engine.sandbox.kernel.restrict import restriction
from albert_tools.engine.sandbox.kernel.rlimits import address_space

#: A sentence about each kind of fence, strongest first.
DESCRIPTIONS = {
    "seccomp": "a dozen system calls and nothing else (seccomp); anything more kills the worker",
    "landlock": "no files and no TCP (Landlock), and resource limits; weaker than seccomp: other system calls are open",
    "rlimits": "resource limits only; weaker: a flaw in Python itself would not be contained",
}

_PROT_EXEC = 4
_ALLOWED = "read write munmap brk rt_sigreturn mremap madvise sendto recvfrom futex exit_group"
_CALLS: dict[str, list[Op]] = {
    "mmap": without_bits(2, _PROT_EXEC, KILL),
    **{name: [ALLOW] for name in _ALLOWED.split()},
}


class Fence(NamedTuple):
    """A fence around a worker. It is made before workers are forked, and each worker calls `close`.

    `kind` is a key of `DESCRIPTIONS`. `close` confines the calling process permanently. It raises OSError if the kernel refuses;
    then the process must not continue.
    """

    kind: str
    close: Callable[[], None]


def narrow_fence(limits: RunLimits, kind: str = "", refused: Sequence[str] = ()) -> Fence:
    """A fence that leaves a worker a dozen system calls. The system calls `refused` fail instead of killing the worker."""
    kind = kind or probe()
    calls = _CALLS | {name: [refuse(errno.EACCES)] for name in refused}
    close = restriction(
        limits=process_limits(limits, files=1),
        grants=[] if kind == "landlock" else None,
        filter_program=assemble(calls, otherwise=KILL) if kind == "seccomp" else None,
        # The worker's memory contains no secrets, so it needs no barrier against speculation.
        filter_flags=seccomp.NO_BARRIER,
    )
    return Fence(kind, close)


def process_limits(limits: RunLimits, files: int) -> dict[str, int]:
    """The resource limits of a worker. The memory of a call is counted in addition to what this process has now."""
    return {
        "RLIMIT_AS": address_space() + limits.memory_bytes,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": files,
        "RLIMIT_NPROC": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }


def probe() -> str:
    """The strongest fence that the kernel of this machine supports."""
    if sys.platform != "linux":
        return "rlimits"
    if seccomp.available():
        return "seccomp"
    return "landlock" if landlock.version() >= 1 else "rlimits"
