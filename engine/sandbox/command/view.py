"""What a command sees of the machine: its workspace, some parts hidden or read only, and next to nothing else.

All paths are absolute and canonical. The workspace has the same path inside as outside, so that paths in a command's output are
valid.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Programs and their libraries, as far as they exist; read only.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Folders that programs look up and that hold no secrets; read only.
LOOKED_UP = ("/etc/alternatives",)
#: Such files; copied, because that is quicker.
COPIED = ("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/mime.types")
#: What a program needs to verify servers.
CERTIFICATES = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates")


@dataclass(frozen=True, slots=True)
class View:
    """What a command sees.

    Attributes:
        root: The workspace's folder.
        cwd: The folder in it where the command starts.
        shown: The visible parts of the workspace; None: all of it.
        hidden: The invisible parts, with everything below them.
        sealed: The read-only parts. The folders above them, as above `hidden`, can't be moved.
        readable: What can be read outside the workspace.
    """

    root: str
    cwd: str
    shown: tuple[str, ...] | None = None
    hidden: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    readable: tuple[str, ...] = field(default=())

    @property
    def pinned(self) -> list[str]:
        """The folders between the visible parts and what is hidden or sealed in them; outermost first."""
        tops = (self.root,) if self.shown is None else self.shown
        found = {above for path in (*self.hidden, *self.sealed) for top in tops for above in _above(path, top)}
        return sorted(found)


def _above(path: str, top: str) -> Iterator[str]:
    above = os.path.dirname(path)
    while above.startswith(f"{top}/"):
        yield above
        above = os.path.dirname(above)


def programs() -> list[str]:
    """The folders of this Python, unless they are the system's: a command may run it."""
    found: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        real = os.path.realpath(prefix)
        # It may be another user's, and unreadable.
        if os.access(real, os.R_OK | os.X_OK) and not any(
            real == top or real.startswith(f"{top}/") for top in (*SYSTEM, *found)
        ):
            found.append(real)
    return found


def loaders() -> list[str]:
    """The dynamic linkers, which the kernel starts to load a program with its libraries."""
    folders = ("/lib", "/lib64")
    return sorted({os.path.realpath(path) for folder in folders for path in glob.glob(f"{folder}/ld-*.so*")})
