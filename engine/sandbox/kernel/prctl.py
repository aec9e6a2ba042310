"""What a process settles about itself: who ends it, what it can become, which capabilities it has."""

from __future__ import annotations

import os
import struct
import sys

from albert_tools.engine.sandbox.kernel.libc import LIBC, call

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
#: Not from `signal`, which takes a lean process long to import.
_SIGKILL = 9


def die_with_parent(number: int = _SIGKILL, parent: int | None = None) -> None:
    """Receive a signal when the parent ends; Linux only. With `parent`, end at once if that process has ended already."""
    if sys.platform == "linux":
        call("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0, what="PR_SET_PDEATHSIG")
        if parent is not None and os.getppid() != parent:
            os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (a subreaper)."""
    call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, what="PR_SET_CHILD_SUBREAPER")


def no_new_privileges() -> None:
    """Never gain privileges by starting a program; Landlock and seccomp require it."""
    call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, what="PR_SET_NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """Give up every capability, for good."""
    for capability in range(64):
        # Fails for the numbers that the kernel doesn't know, and for a user who has none to drop.
        LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("<Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable, in two halves.
    call("capset", header, bytes(24))
