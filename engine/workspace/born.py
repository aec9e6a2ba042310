"""When a file was made. A new file can have the number of the one that it replaces, and only this time tells them apart."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from albert_tools.engine.sandbox.kernel.libc import LIBC

#: Of `statx`: the current folder, "don't follow a link", the time of birth, and where the answer has it.
_HERE, _NO_FOLLOW, _BIRTH, _BIRTH_AT = -100, 0x100, 0x800, 80


def born(path: str) -> int | None:
    """The time when the file or folder at `path` was made, in nanoseconds; None if the system doesn't know it. A link at the end is
    not followed.

    Raises:
        OSError: there is no such file.
    """
    if not sys.platform.startswith("linux"):
        return int(getattr(os.lstat(path), "st_birthtime", 0) * 1e9) or None
    answer = ctypes.create_string_buffer(256)
    try:
        if LIBC.statx(_HERE, os.fsencode(path), _NO_FOLLOW, _BIRTH, answer) != 0:
            return None
    except AttributeError:
        # An old C library.
        return None
    (known,) = struct.unpack_from("@I", answer)
    seconds, rest = struct.unpack_from("@qI", answer, _BIRTH_AT)
    return seconds * 10**9 + rest if known & _BIRTH else None
