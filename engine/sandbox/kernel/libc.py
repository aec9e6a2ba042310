"""Calls of C functions that raise `OSError`.

Small helper processes execute the text of this module and of the modules in this folder that import it
(`engine.sandbox.command.standalone`). So these modules import little, only from the standard library, and they import each other
by their full names (``from albert_tools.engine.sandbox.kernel.libc import …``).
"""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def call(function: str, *arguments: object, what: str = "") -> int:
    """Call a function of the C library, and return its result.

    Args:
        function: Its name. For ``syscall``, the first argument is the number of the system call.
        arguments: Ints, bytes, or None for a null pointer.
        what: The name in the error message; by default the function.

    Raises:
        OSError: the function returned a negative number.
    """
    result = int(getattr(LIBC, function)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what or function}: {os.strerror(number)}")
    return result
