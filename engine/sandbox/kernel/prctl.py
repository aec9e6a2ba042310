"""Settings of a process: its end with its parent, its privileges, and its capabilities."""

from __future__ import annotations

import os
import struct
import sys

from albert_tools.engine.sandbox.kernel.libc import LIBC, call

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
#: Not imported from `signal`, because that import is slow for a small helper process.
_SIGKILL = 9


def die_with_parent(number: int = _SIGKILL, parent: int | None = None) -> None:
    """Receive a signal when the parent ends (Linux only). If process `parent` is given and has already ended, exit at once."""
    if sys.platform == "linux":
        call("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0, what="PR_SET_PDEATHSIG")
        if parent is not None and os.getppid() != parent:
            os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (a subreaper)."""
    call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, what="PR_SET_CHILD_SUBREAPER")


def no_new_privileges() -> None:
    """Never gain privileges by executing a program (Linux only). Landlock and seccomp require this setting."""
    if sys.platform == "linux":
        call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, what="PR_SET_NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """Give up every capability permanently."""
    for capability in range(64):
        # This fails for numbers that the kernel doesn't know, and for a user without capabilities.
        LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("<Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable sets, in two halves.
    call("capset", header, bytes(24))
