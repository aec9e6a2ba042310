"""The fence around a worker: the system calls that its process can make.

On Linux, a seccomp filter allows a dozen system calls. They only affect the process's own memory and its one socket. Any other
call kills the process. Without seccomp, Landlock blocks the file system and the network, and resource limits block most of the
rest. Without both, only resource limits apply, and `DESCRIPTIONS` says so. A fence is permanent and applies to root too.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import Protocol

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


class AnyFence(Protocol):
    """A fence around a worker. It is prepared before workers are forked, and each worker calls `close`."""

    kind: str

    def close(self) -> None:
        """Confine the calling process permanently.

        Raises:
            OSError: the kernel refuses. The process must not continue.
        """


class Fence:
    """The narrow fence. `kind` is a key of `DESCRIPTIONS`. The system calls `refused` fail instead of killing the worker."""

    def __init__(self, limits: RunLimits, kind: str = "", refused: Sequence[str] = ()) -> None:
        self.kind = kind or probe()
        calls = _CALLS | {name: [refuse(errno.EACCES)] for name in refused}
        limits_of_process = {
            # The program's memory is counted in addition to the memory of the empty worker.
            "RLIMIT_AS": address_space() + limits.memory_bytes,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": 1,
            "RLIMIT_NPROC": 0,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
        }

        self._restrict = restriction(
            limits=limits_of_process,
            grants=[] if self.kind == "landlock" else None,
            filter_program=assemble(calls, otherwise=KILL) if self.kind == "seccomp" else None,
            # The worker's memory contains no secrets, so it needs no barrier against speculation.
            filter_flags=seccomp.NO_BARRIER,
        )

    def close(self) -> None:
        """See `AnyFence`."""
        self._restrict()


def probe() -> str:
    """The strongest fence that the kernel of this machine supports."""
    if sys.platform != "linux":
        return "rlimits"
    if seccomp.available():
        return "seccomp"
    return "landlock" if landlock.version() >= 1 else "rlimits"
