"""Installs a seccomp filter in this process permanently. `bpf` assembles filters."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

from albert_tools.engine.sandbox.kernel.libc import LIBC, call

#: The number of the system call `seccomp`, for each machine.
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_KILL_PROCESS = 0x80000000
#: Turns off the barrier against speculation, which slows down all code.
NO_BARRIER = 4


def available() -> bool:
    """Whether the system calls of this machine are known, and its kernel supports filters that kill the process."""
    number = _SECCOMP.get(os.uname().machine)
    action = ctypes.c_uint32(_KILL_PROCESS)
    return number is not None and LIBC.syscall(number, _GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0


def prepared(program: bytes, flags: int = 0) -> Callable[[], None]:
    """The function that filters all further system calls of the process that calls it, which must have called
    `no_new_privileges`. It raises OSError if the kernel refuses; then the process must not continue."""
    instructions = ctypes.create_string_buffer(program, len(program))
    number = _SECCOMP[os.uname().machine]

    def install() -> None:
        header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
        call("syscall", number, _SET_MODE_FILTER, flags, header, what="seccomp")

    return install
