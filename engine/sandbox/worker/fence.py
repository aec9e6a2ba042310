"""The fence around a worker: what the process can ask of the kernel.

On Linux a seccomp filter lets a dozen system calls through, which reach nothing but the process's own memory and the one socket
that it holds; any other call kills the process. Without seccomp, Landlock closes the file system and the network, and resource
limits close the rest. Without both, resource limits alone remain, and `DESCRIPTIONS` says so. Everything is for good and applies
to root too.
"""

from __future__ import annotations

import sys

from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.kernel import landlock, seccomp
from albert_tools.engine.sandbox.kernel.bpf import ALLOW, KILL, Op, assemble, without_bits
from albert_tools.engine.sandbox.kernel.restrict import restrict_process
from albert_tools.engine.sandbox.kernel.rlimits import address_space

#: Each kind of fence in a sentence, the strongest first.
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


class Fence:
    """Prepared before workers are forked; `close` is called in each.

    `kind` is a key of `DESCRIPTIONS`.
    """

    def __init__(self, limits: RunLimits, kind: str | None = None) -> None:
        self.kind = kind or probe()
        self._filter = assemble(_CALLS, otherwise=KILL) if self.kind == "seccomp" else None
        self._limits = {
            # What the program may take is counted on top of the bare worker.
            "RLIMIT_AS": address_space() + limits.memory_bytes,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": 1,
            "RLIMIT_NPROC": 0,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
        }

    def close(self) -> None:
        """Shut the calling process in, for good.

        Raises:
            OSError: the kernel refuses; the process must not go on.
        """
        restrict_process(
            limits=self._limits,
            grants=[] if self.kind == "landlock" else None,
            filter_program=self._filter,
            # The worker shares no memory with a secret, so it needs no barrier.
            filter_flags=seccomp.NO_BARRIER,
        )


def probe() -> str:
    """The strongest fence that this machine offers, found out by asking the kernel."""
    if sys.platform != "linux":
        return "rlimits"
    if seccomp.available():
        return "seccomp"
    return "landlock" if landlock.version() >= 1 else "rlimits"
