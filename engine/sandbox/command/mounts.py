"""Whether the mounts of a running command are still where bubblewrap has put them.

A mount lies on a file, not on its path. If the file is moved, its mount goes with it; if it is deleted or replaced, its mount ends.
Then the command sees at that path what it must not, or what is there no more.
"""

from __future__ import annotations

import os
import re

from albert_tools.engine.model.folders import around
from albert_tools.engine.sandbox.command.bubblewrap import workspace_mounts
from albert_tools.engine.sandbox.command.view import View

_ESCAPED = re.compile(rb"\\([0-7]{3})")


def in_place(view: View, pid: int) -> bool:
    """Whether the process `pid` has all the mounts of a view."""
    try:
        own, theirs = _mounts("self"), _mounts(pid)
    except OSError:
        return False
    wanted = {**dict.fromkeys(view.readable, "--ro-bind"), **workspace_mounts(view)}
    return all(path in theirs and (not how or theirs[path] == _source(own, path)) for path, how in wanted.items())


def _mounts(process: int | str) -> dict[str, str]:
    """What is mounted at each path that a process sees: a path in a file system. See ``proc_pid_mountinfo(5)``."""
    with open(f"/proc/{process}/mountinfo", "rb") as file:
        lines = [line.split(b" ") for line in file]
    return {_text(fields[4]): _text(fields[3]) for fields in lines}


def _text(field: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), field))


def _source(mounts: dict[str, str], path: str) -> str:
    """What bubblewrap mounts for a path: the same path in its file system."""
    point = next(place for place in (path, *around(path), "/") if place in mounts)
    return os.path.normpath(os.path.join(mounts[point], os.path.relpath(path, point)))
