"""The files that a command sees: its workspace, with some parts hidden or read-only, and few other files.

All paths are absolute and canonical. The workspace has the same path inside as outside, so paths in a command's output are valid.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator

from msgspec import Struct, field

from albert_tools.engine.model.folders import within

#: Folders of programs and their libraries, if they exist. Read-only.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Folders that programs read and that contain no secrets. Read-only.
LOOKED_UP = ("/etc/alternatives",)
#: Single files of this kind. They are copied, because copying is faster than mounting.
COPIED = ("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/mime.types")
#: Certificates with which a program verifies servers.
CERTIFICATES = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates")


#: The name of the home folder in a command's private folder. It is hidden, because settings in it can name programs: a command that
#: writes there asks.
HOME_NAME = ".home"


class View(Struct, frozen=True):
    """The files that a command sees.

    Attributes:
        root: The workspace's folder.
        cwd: The working directory, a folder in the workspace.
        shown: The visible parts of the workspace; None for the whole workspace.
        hidden: The invisible parts, with everything below them.
        sealed: The read-only parts. The folders above `hidden` and `sealed` parts can't be moved.
        readable: Readable paths outside the workspace.
        writable: The only visible parts that the command can change, none within another; None for all visible parts.
    """

    root: str
    cwd: str
    shown: tuple[str, ...] | None = None
    hidden: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    readable: tuple[str, ...] = field(default=())
    writable: tuple[str, ...] | None = None

    @property
    def tops(self) -> tuple[str, ...]:
        """The visible parts."""
        return (self.root,) if self.shown is None else self.shown

    @property
    def changeable(self) -> tuple[str, ...]:
        """The parts that the command can change, except the hidden and sealed parts in them."""
        return self.tops if self.writable is None else self.writable

    @property
    def pinned(self) -> list[str]:
        """The folders between a changeable part and the hidden or sealed parts in it, outermost first."""
        folders = {a for path in (*self.hidden, *self.sealed) for top in self.changeable for a in _above(path, top)}
        return sorted(folders)

    def can_change(self, path: str) -> bool:
        """Whether a path lies in a changeable part, and in no sealed one."""
        return within(path, *self.changeable) and not within(path, *self.sealed)


def _above(path: str, top: str) -> Iterator[str]:
    above = os.path.dirname(path)
    while above.startswith(f"{top}/"):
        yield above
        above = os.path.dirname(above)


def programs() -> list[str]:
    """The folders of this Python installation, because a command may run it. Folders inside `SYSTEM` are left out."""
    folders: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        real = os.path.realpath(prefix)
        # The folder may belong to another user and be unreadable.
        if os.access(real, os.R_OK | os.X_OK) and not within(real, *SYSTEM, *folders):
            folders.append(real)
    return folders


def own_python(root: str) -> list[str]:
    """The folders of this Python installation that are in a workspace. A change of a file there changes the service."""
    return [path for path in programs() if within(path, root)]


def imported_from(root: str) -> list[str]:
    """The folders in a workspace from which this Python imports, except its own installation: those of a script, of `python -m`, or
    of a project that is installed editable."""
    own = own_python(root)
    folders = [(folder, os.path.realpath(folder)) for folder in sys.path if not folder or os.path.isabs(folder)]
    return [folder for folder, real in folders if within(real, root) and not within(real, *own)]


def loaders() -> list[str]:
    """The dynamic linkers. The kernel starts them to load a program with its libraries."""
    folders = ("/lib", "/lib64")
    return sorted({os.path.realpath(path) for folder in folders for path in glob.glob(f"{folder}/ld-*.so*")})
