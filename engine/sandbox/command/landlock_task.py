"""Creates the task of the launcher: a command behind Landlock and a strict filter. Used if namespaces aren't available.

The command can open only the granted files. The filter refuses sockets, access to other processes, and all operations that
Landlock doesn't control. This is weaker than namespaces, because the command runs among the other processes. A grant applies to
everything below a folder. So a folder with a hidden or sealed path below it gets no grant for new entries.
"""

from __future__ import annotations

import marshal
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from albert_tools.engine.sandbox.command.bubblewrap import open_beneath
from albert_tools.engine.sandbox.command.view import CERTIFICATES, COPIED, LOOKED_UP, SYSTEM, View, programs
from albert_tools.engine.sandbox.kernel import landlock
from albert_tools.engine.sandbox.kernel.landlock import EXECUTE, Grant

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_NAMES = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
#: Facts about the machine. Many programs fail if they can't read the number of processors.
_MACHINE = (
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")),
    *(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present")),
)
_READING = EXECUTE | landlock.READ_FILE | landlock.READ_DIR
_CHANGING = (
    landlock.WRITE_FILE
    | landlock.TRUNCATE
    | landlock.REMOVE_DIR
    | landlock.REMOVE_FILE
    | landlock.MAKE_DIR
    | landlock.MAKE_REG
    | landlock.MAKE_SOCK
    | landlock.MAKE_FIFO
    | landlock.MAKE_SYM
    | landlock.REFER
)
_ALL = _READING | _CHANGING


class Task:
    """The launcher's task, and the descriptors that it refers to by their index. Close it after it was sent."""

    def __init__(self, view: View, workspace: int, temporary: str, only: Sequence[str] | None = None) -> None:
        """With `only`, the command can start only these programs, and programs in these folders.

        Raises:
            OSError: the working directory can't be opened.
        """
        self.descriptors: list[int] = []
        self._hidden_folders = [path for path in view.hidden if os.path.isdir(path)]
        try:
            self.grants = [*self._system(), *self._workspace(view, workspace)]
            self.grants.append((self._hold(os.open(temporary, os.O_PATH | os.O_CLOEXEC)), _ALL))
            if only is not None:
                self.grants = [(place, rights & ~EXECUTE) for place, rights in self.grants]
                self.grants += [(place, EXECUTE) for place in map(self._opened, only) if place is not None]
            inside = os.path.relpath(view.cwd, view.root)
            self.cwd = self._hold(os.dup(workspace) if inside == "." else open_beneath(workspace, inside))
        except BaseException:
            self.close()
            raise

    def message(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        limits: Mapping[str, int],
        filter_program: bytes,
        streams: Sequence[int],
        report: int,
    ) -> list[int]:
        """The descriptors that tell a launcher its task; see `launcher.main`. Call it once. Raises OSError."""
        others = [*self.descriptors]
        task_file = os.memfd_create("albert", os.MFD_CLOEXEC)
        self._hold(task_file)
        task = {
            "command": list(command),
            "environment": dict(environment),
            "cwd": self.cwd,
            "grants": self.grants,
            "limits": dict(limits),
            "filter_program": filter_program,
        }
        with os.fdopen(os.dup(task_file), "wb") as file:
            marshal.dump(task, file)
        return [*others, *streams, report, task_file]

    def close(self) -> None:
        """Close the descriptors that only the process needs."""
        for handle in self.descriptors:
            with suppress(OSError):
                os.close(handle)
        self.descriptors.clear()

    def _opened(self, path: str) -> int | None:
        with suppress(FileNotFoundError):
            return self._hold(os.open(path, os.O_PATH | os.O_CLOEXEC))
        return None

    def _hold(self, handle: int) -> int:
        """Add an open file or folder. Returns its index."""
        self.descriptors.append(handle)
        return len(self.descriptors) - 1

    def _system(self) -> Iterator[Grant]:
        wanted = [
            (path, _READING) for path in (*SYSTEM, *LOOKED_UP, *COPIED, *CERTIFICATES, *_NAMES, *_MACHINE, *programs())
        ]
        for path, rights in (*wanted, *((path, _ALL) for path in _DEVICES)):
            with suppress(OSError):
                yield self._hold(os.open(os.path.realpath(path), os.O_PATH | os.O_CLOEXEC)), rights

    def _workspace(self, view: View, workspace: int) -> Iterator[Grant]:
        for path in view.readable:
            with suppress(OSError):
                yield self._hold(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)), _READING
        if view.shown is None:
            yield from self._below(view, os.dup(workspace), view.root)
            return
        for path in view.shown:
            with suppress(OSError):
                yield from self._below(view, open_beneath(workspace, path[len(view.root) + 1 :]), path)

    def _below(self, view: View, handle: int, path: str) -> Iterator[Grant]:
        """The grants for `path`, which is open as `handle`."""
        place = self._hold(handle)
        if path in view.hidden:
            return
        rights = _ALL if view.can_change(path) else _READING
        inner = view.sealed if rights == _ALL else view.changeable
        hiding, differing = (any(p.startswith(f"{path}/") for p in paths) for paths in (view.hidden, inner))
        if not (hiding or differing) or not stat.S_ISDIR(os.fstat(handle).st_mode):
            yield place, rights
            return
        if not hiding:
            # Everything below this folder can be read, also what can't be changed.
            yield place, _READING
        elif not any(p.startswith(f"{path}/") for p in self._hidden_folders):
            # The names below can be read: only the content of the hidden files is secret.
            yield place, landlock.READ_DIR
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        try:
            names = os.listdir(listing)
        finally:
            os.close(listing)
        for name in names:
            below = f"{path}/{name}"
            if hiding or rights == _ALL or any(f"{top}/".startswith(f"{below}/") for top in view.changeable):
                with suppress(OSError):
                    yield from self._below(view, open_beneath(handle, name), below)
