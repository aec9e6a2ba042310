"""Landlock: a process gives up access to all files and TCP ports, except those that it grants itself. Applies to root too."""

from __future__ import annotations

import os
import stat
import struct

from albert_tools.engine.sandbox.kernel.libc import LIBC, call

#: These numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION, _PATH_BENEATH = 1, 1

# Rights (include/uapi/linux/landlock.h).
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 16, 32, 64, 128, 256, 512
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1024, 2048, 4096, 8192, 16384, 32768
#: The rights that apply to a file. The others apply only to folders.
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
#: The number of rights in each version. Later versions have 16.
_KNOWN = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP, _SCOPES = 0b11, 0b11

#: An open file or folder, and the rights to it and to everything below it.
Grant = tuple[int, int]


def version() -> int:
    """The version of the kernel's Landlock; below 1 if it has none."""
    return int(LIBC.syscall(_CREATE_RULESET, None, 0, _GET_VERSION))


def restrict(grants: list[Grant], *, handled: int | None = None) -> None:
    """Give up all rights that Landlock controls, except `grants`. The process must have called `no_new_privileges`.

    Args:
        grants: The rights that stay allowed.
        handled: The rights to give up. By default all that the kernel knows: files; from version 4 on also TCP; from version 6 on
            also signals and abstract sockets to processes outside.

    Raises:
        OSError: the kernel refuses. The process must not continue.
    """
    known = version()
    if known < 1:
        raise OSError("the kernel has no Landlock")
    rights = (1 << _KNOWN.get(known, 16)) - 1
    words = [rights, _TCP, _SCOPES][: 1 if known < 4 else 2 if known < 6 else 3]
    if handled is not None:
        rights &= handled
        words = [rights]
    attributes = struct.pack(f"<{len(words)}Q", *words)
    ruleset = call("syscall", _CREATE_RULESET, attributes, len(attributes), 0, what="landlock_create_ruleset")
    try:
        for handle, allowed in grants:
            applies = rights if stat.S_ISDIR(os.fstat(handle).st_mode) else rights & _OF_FILES
            if allowed & applies:
                rule = struct.pack("<Qi", allowed & applies, handle)
                call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0, what="landlock_add_rule")
        call("syscall", _RESTRICT_SELF, ruleset, 0, what="landlock_restrict_self")
    finally:
        os.close(ruleset)
