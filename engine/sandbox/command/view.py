"""What a command sees of the machine: its workspace, with holes and with parts that it can't change, and next to nothing else.

All paths are absolute and canonical. The workspace stands at its own path, so that what a command prints means the same outside.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Where programs and their libraries are, as far as they exist; read only.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Folders of what programs look up that is nobody's secret; read only.
LOOKED_UP = ("/etc/alternatives",)
#: Single files of it; copied, because that is quicker.
COPIED = ("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/mime.types")
#: What a program needs to know whom it talks to.
CERTIFICATES = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates")


@dataclass(frozen=True, slots=True)
class View:
    """What a command sees.

    Attributes:
        root: The workspace's folder.
        cwd: Where the command starts, in it.
        shown: What of the workspace is there, where that isn't all of it.
        hidden: What of it isn't there; of a folder nothing below either.
        sealed: What of it can be read and not changed. As with `hidden`, the folders above can't be moved away.
        readable: What beyond it can be read.
    """

    root: str
    cwd: str
    shown: tuple[str, ...] | None = None
    hidden: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    readable: tuple[str, ...] = field(default=())

    @property
    def pinned(self) -> list[str]:
        """The folders between the workspace, or what is shown of it, and what is hidden or sealed in it; outermost first."""
        tops = (self.root,) if self.shown is None else self.shown
        found = {above for path in (*self.hidden, *self.sealed) for top in tops for above in _above(path, top)}
        return sorted(found)


def _above(path: str, top: str) -> Iterator[str]:
    above = os.path.dirname(path)
    while above.startswith(f"{top}/"):
        yield above
        above = os.path.dirname(above)


def programs() -> list[str]:
    """The folders of this Python, where they aren't the system's: a command may well run it."""
    found: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        real = os.path.realpath(prefix)
        # Another user's Python, perhaps, which this one can't even look at.
        if os.access(real, os.R_OK | os.X_OK) and not any(
            real == top or real.startswith(f"{top}/") for top in (*SYSTEM, *found)
        ):
            found.append(real)
    return found


def loaders() -> list[str]:
    """What the kernel starts to load a program with its libraries."""
    folders = ("/lib", "/lib64")
    return sorted({os.path.realpath(path) for folder in folders for path in glob.glob(f"{folder}/ld-*.so*")})
