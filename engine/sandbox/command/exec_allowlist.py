"""Letting a command start certain programs and no others, by a Landlock rule of its own, whatever else confines it.

For git, which knows more ways to be told by a repository what to run than anybody has counted: the settings are switched off one
by one, and what was forgotten fails here. It is put on by a process inside the sandbox that then becomes the command; bubblewrap
itself couldn't mount anything with it. The file is also that process, run with the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
#: Landlock's right to start a file as a program.
_EXECUTE = 1


def become(allowed: list[str], command: list[str]) -> None:
    """Be `command`, and start nothing but what is among the files and folders `allowed`, as far as they exist.

    Raises:
        OSError: the kernel refuses, or there is no such command.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("<Q", _EXECUTE)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for path in allowed:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rule = struct.pack("<Qi", _EXECUTE, handle)
        if libc.syscall(_ADD_RULE, ruleset, 1, ctypes.c_char_p(rule), 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
        os.close(handle)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)
    os.execvp(command[0], command)


def in_front(python: str, allowed: list[str]) -> list[str]:
    """The words that, put before a command, make it start only what is `allowed`."""
    import inspect

    # By its text: where this file is kept may be out of reach in there.
    return [python, "-I", "-S", "-c", inspect.getsource(sys.modules[__name__]), str(len(allowed)), *allowed]


def loaders() -> list[str]:
    """What the kernel starts to load a program with its libraries."""
    import glob

    return sorted({os.path.realpath(path) for folder in ("/lib", "/lib64") for path in glob.glob(f"{folder}/ld-*.so*")})


if __name__ == "__main__":
    try:
        become(sys.argv[2 : 2 + int(sys.argv[1])], sys.argv[2 + int(sys.argv[1]) :])
    except OSError as error:
        print(f"{sys.argv[2 + int(sys.argv[1])]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
