"""The fence around a worker: what the process can ask of the kernel.

On Linux a seccomp filter lets a dozen system calls through, none of which can reach anything but the process's own memory and
the one socket it holds; any other kills the process. The filter is written out here as the few dozen BPF instructions it is.
Where seccomp can't be had, Landlock closes the file system and the network, and resource limits close the rest; elsewhere, resource
limits alone remain, and `confinement` says so. Everything is irrevocable and holds for root too.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

from albert_tools.engine.model.limits import RunLimits

_KILL_PROCESS = 0x80000000
_ALLOW = 0x7FFF0000
#: BPF: load a word of the call's description; jump if equal, greater or equal, or bits set; return.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _THIRD_ARGUMENT_AT = 0, 4, 32
_PROT_EXEC = 4


class _Arch(NamedTuple):
    audit: int
    seccomp: int
    prctl: int
    mmap: int
    allowed: dict[str, int]


#: Per machine: the audit constant and the numbers of system calls (include/uapi/asm/unistd_64.h, asm-generic/unistd.h).
_ARCHES = {
    "x86_64": _Arch(
        0xC000003E,
        317,
        157,
        9,
        {
            "read": 0,
            "write": 1,
            "munmap": 11,
            "brk": 12,
            "rt_sigreturn": 15,
            "mremap": 25,
            "madvise": 28,
            "sendto": 44,
            "recvfrom": 45,
            "futex": 202,
            "exit_group": 231,
        },
    ),
    "aarch64": _Arch(
        0xC00000B7,
        277,
        167,
        222,
        {
            "read": 63,
            "write": 64,
            "munmap": 215,
            "brk": 214,
            "rt_sigreturn": 139,
            "mremap": 216,
            "madvise": 233,
            "sendto": 206,
            "recvfrom": 207,
            "futex": 98,
            "exit_group": 94,
        },
    ),
}


def _filter(arch: _Arch) -> bytes:
    """The program: right architecture, no x32, no executable mapping, a call on the list; else the process dies."""

    def op(code: int, k: int, yes: int = 0, no: int = 0) -> tuple[int, int, int, int]:
        return code, yes, no, k

    numbers = sorted(arch.allowed.values())
    n = len(numbers)
    program = [
        op(_LOAD, _ARCH_AT),
        op(_IF_EQUAL, arch.audit, 1, 0),
        op(_RETURN, _KILL_PROCESS),
        op(_LOAD, _NUMBER_AT),
        # Numbers from here up are the x32 calls of an x86-64 kernel.
        op(_IF_AT_LEAST, 0x40000000, n + 3, 0),
        op(_IF_EQUAL, arch.mmap, 0, 2),
        op(_LOAD, _THIRD_ARGUMENT_AT),
        op(_IF_SET, _PROT_EXEC, n, n + 1),
        *(op(_IF_EQUAL, number, n - i, 0) for i, number in enumerate(numbers)),
        op(_RETURN, _KILL_PROCESS),
        op(_RETURN, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *each) for each in program)


class Fence:
    """Prepared before workers are forked, because preparing needs what the fence forbids; `close` is called in each.

    `kind` is ``seccomp``, ``landlock`` or ``rlimits``.
    """

    def __init__(self, limits: RunLimits, bare_bytes: int, kind: str | None = None) -> None:
        self.kind = kind or probe()
        self._limits = limits
        self._memory = bare_bytes + limits.memory_bytes
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._arch = _ARCHES.get(os.uname().machine)
        if self.kind == "seccomp" and self._arch is not None:
            program = _filter(self._arch)
            self._program = ctypes.create_string_buffer(program)
            self._header = ctypes.create_string_buffer(
                struct.pack("@HP", len(program) // 8, ctypes.addressof(self._program))
            )

    def close(self) -> None:
        """Shut the calling process in, for good.

        Raises:
            OSError: the kernel refuses; the process must not go on.
        """
        if self._libc is None:
            self._set_limits()
            return
        if self._libc.prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
            raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
        if self.kind == "landlock":
            landlock(self._libc)
        self._set_limits()
        if self.kind != "seccomp":
            return
        assert self._arch is not None
        # SECCOMP_SET_MODE_FILTER with SPEC_ALLOW: the speculation barrier would slow all code down, and the worker
        # shares no memory with a secret.
        if self._libc.syscall(self._arch.seccomp, 1, 4, self._header) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")

    def _set_limits(self) -> None:
        cpu = self._limits.cpu_seconds
        wanted = {
            "RLIMIT_AS": self._memory,
            "RLIMIT_CPU": cpu,
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": 1,
            "RLIMIT_NPROC": 0,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
        }
        for name, value in wanted.items():
            which = getattr(resource, name, None)
            if which is None:
                continue
            _, hard = resource.getrlimit(which)
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            # One second more before the kernel stops asking politely.
            ceiling = value + 1 if name == "RLIMIT_CPU" else value
            try:
                resource.setrlimit(which, (value, ceiling))
            except (OSError, ValueError):
                if sys.platform == "linux":
                    raise


def probe() -> str:
    """The strongest fence that this machine offers, found out by asking the kernel."""
    if sys.platform != "linux":
        return "rlimits"
    libc = ctypes.CDLL(None, use_errno=True)
    arch = _ARCHES.get(os.uname().machine)
    if arch is not None:
        action = ctypes.c_uint32(_KILL_PROCESS)
        # SECCOMP_GET_ACTION_AVAIL
        if libc.syscall(arch.seccomp, 2, 0, ctypes.byref(action)) == 0:
            return "seccomp"
    # landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION)
    if libc.syscall(444, None, 0, 1) >= 1:
        return "landlock"
    return "rlimits"


def landlock(libc: ctypes.CDLL, grant: Callable[[int], object] = lambda ruleset: None) -> None:
    """No file may be opened, executed, made or removed, but as `grant` adds to the ruleset that it is given, an open descriptor.

    No TCP port may be bound or connected to, and from Landlock's sixth version on nothing outside be signalled or connected to.

    Raises:
        OSError: the kernel refuses; the process must not go on.
    """
    version = libc.syscall(444, None, 0, 1)
    if version < 1:
        raise OSError(ctypes.get_errno(), "landlock")
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    words = [files]
    if version >= 4:
        words.append(0b11)
    if version >= 6:
        words.append(0b11)
    attributes = struct.pack(f"<{len(words)}Q", *words)
    ruleset = libc.syscall(444, ctypes.c_char_p(attributes), len(attributes), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        grant(ruleset)
        if libc.syscall(446, ruleset, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def bare_bytes() -> int:
    """The address space of this process as it stands, in bytes; what a program may take is counted on top of it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 128 * 1024 * 1024


SENTENCES = {
    "seccomp": "a dozen system calls and nothing else (seccomp); anything more kills the worker",
    "landlock": "no files and no TCP (Landlock), and resource limits; weaker than seccomp: other system calls are open",
    "rlimits": "resource limits only; weaker: a flaw in Python itself would not be contained",
}
