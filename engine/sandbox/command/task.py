"""A command, its limits, and how it ended."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Literal, NamedTuple

from msgspec import Struct, field

from albert_tools.engine.sandbox.command.confinement import Kind
from albert_tools.engine.sandbox.command.launchers import Launchers
from albert_tools.engine.sandbox.command.view import HOME_NAME, View

MiB = 1024**2
GiB = 1024**3

#: The exceeded limit that ended a command.
Over = Literal["timeout", "memory", "processes"]

#: A context manager that serves a command's proxy on a listening socket.
Connect = Callable[[socket.socket], AbstractAsyncContextManager[object]]

#: The port of the proxy on the command's own loopback interface.
PROXY_PORT = 3128


#: Where programs store their caches, in the private folder. By default they write these into the workspace.
_CACHES = {
    "COVERAGE_FILE": "{}/coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "{}/hypothesis",
    "MYPY_CACHE_DIR": "{}/mypy",
    "PYTEST_ADDOPTS": "-p no:cacheprovider",
    "PYTHONDONTWRITEBYTECODE": "1",
    "RUFF_CACHE_DIR": "{}/ruff",
}


class Bounds(NamedTuple):
    """Limits of a command with all processes that it starts. Sizes are in bytes."""

    memory: int = 2 * GiB
    #: The most processes and threads.
    processes: int = 512
    #: The most bytes of one written file.
    file: int = 4 * GiB
    #: The size of each private folder.
    temporary: int = 512 * MiB
    open_files: int = 4096

    def limits(self) -> dict[str, int]:
        """The resource limits of each process, by name."""
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": self.file,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_MEMLOCK": 8 * MiB,
            "RLIMIT_MSGQUEUE": 0,
        }


class Command(Struct, frozen=True):
    """A command and its environment.

    Attributes:
        words: The program and its arguments. The program is searched in the PATH of `environment`.
        view: The files that the command sees.
        workspace: The descriptor of the workspace's folder.
        environment: All environment variables, except those that a confinement adds (HOME, TMPDIR, the proxy).
        seconds: The timeout.
        bounds: The limits of its usage.
        connect: Its network; None for no network.
        wanted: The confinement to use; None for the best one.
        only: The programs, and folders of programs, that it may start, including itself; None for all programs.
        launchers: Where it gets its launcher, if Landlock confines it; None for a new one.
    """

    words: Sequence[str]
    view: View
    workspace: int
    environment: Mapping[str, str]
    seconds: float
    bounds: Bounds = field(default_factory=Bounds)
    connect: Connect | None = None
    wanted: str | None = None
    only: Sequence[str] | None = None
    launchers: Launchers | None = None

    def variables(self, temporary: str) -> dict[str, str]:
        """The environment of the command, whose private folder is `temporary`.

        Caches are in this folder if the command can change only parts of the workspace.
        """
        caches = {} if self.view.writable is None else {n: value.format(temporary) for n, value in _CACHES.items()}
        return {"HOME": f"{temporary}/{HOME_NAME}", "TMPDIR": temporary, **caches, **self.environment}


class Ended(NamedTuple):
    """How a command ended: its exit code (128 + number for a signal) or the exceeded limit, and its confinement."""

    code: int | None
    confinement: Kind
    over: Over | None = None

    @property
    def signal(self) -> str | None:
        """The name of the signal that killed the command, if the exit code shows it."""
        if self.code is None or self.code <= 128:
            return None
        with suppress(ValueError):
            return signal.Signals(self.code - 128).name
        return None
