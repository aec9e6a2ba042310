"""Whether the mounts of a running command are still where bubblewrap has put them.

A mount lies on a file, not on its path. If the file is moved, its mount goes with it; if it is deleted or replaced, its mount ends;
and another mount can cover it. Then the command sees a file that is hidden, or one that is no longer at that path.
"""

from __future__ import annotations

import os
import re

from albert_tools.engine.model.folders import around, within
from albert_tools.engine.sandbox.command.bubblewrap import workspace_mounts
from albert_tools.engine.sandbox.command.view import View

_ESCAPED = re.compile(rb"\\([0-7]{3})")

#: What is mounted at each path: the device of a file system, and a path in it.
Mounts = dict[str, tuple[bytes, str]]


def mounts(process: int | str = "self") -> Mounts:
    """The mounts that a process sees. See ``proc_pid_mountinfo(5)``. Empty if the system doesn't say."""
    try:
        with open(f"/proc/{process}/mountinfo", "rb") as file:
            lines = [line.split(b" ") for line in file]
    except OSError:
        return {}
    return {_text(fields[4]): (fields[2], _text(fields[3])) for fields in lines}


def in_place(view: View, pid: int, before: Mounts) -> bool:
    """Whether the process `pid` has all the mounts of a view. `before` are the mounts of this process before that one started: what
    is mounted in the workspace later can cover them."""
    own, theirs = mounts(), mounts(pid)
    wanted = {**dict.fromkeys(view.readable, "--ro-bind"), **workspace_mounts(view)}
    return _below(view.root, own) == _below(view.root, before) and all(
        path in theirs and (not how or theirs[path] == _at(own, path)) for path, how in wanted.items()
    )


def _below(top: str, own: Mounts) -> Mounts:
    return {path: what for path, what in own.items() if within(path, top)}


def _at(own: Mounts, path: str) -> tuple[bytes, str]:
    """The file system of a path, and the path in it."""
    point = next((place for place in (path, *around(path)) if place in own), "/")
    device, root = own.get(point, (b"", "/"))
    return device, os.path.normpath(os.path.join(root, os.path.relpath(path, point)))


def _text(field: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), field))
