"""Calls into the C library that raise `OSError`.

Lean helper processes run the text of this module, and of those here that import it (`engine.sandbox.command.standalone`). So these
modules import little, only from the standard library, and name each other in full
(``from albert_tools.engine.sandbox.kernel.libc import …``).
"""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def call(function: str, *arguments: object, what: str = "") -> int:
    """Call a function of the C library, and give what it returns.

    Args:
        function: Its name. For ``syscall`` the first argument is the number of the system call.
        arguments: Ints, bytes, or None for a null pointer.
        what: What the error message names; the function, when not given.

    Raises:
        OSError: the function returned a negative number.
    """
    result = int(getattr(LIBC, function)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what or function}: {os.strerror(number)}")
    return result
