"""A command, its bounds, and how it ended."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from albert_tools.engine.sandbox.command.confinement import Kind
from albert_tools.engine.sandbox.command.view import View

MiB = 1024**2
GiB = 1024**3

#: Why a command was ended.
Over = Literal["timeout", "memory", "processes"]

#: A context in which a command's proxy is served on a listening socket.
Connect = Callable[[socket.socket], AbstractAsyncContextManager[object]]

#: The port of a command's own loopback on which it finds the proxy.
PROXY_PORT = 3128


class Bounds(NamedTuple):
    """What a command may use, with everything that it starts; sizes in bytes."""

    memory: int = 2 * GiB
    #: Processes and threads.
    processes: int = 512
    #: One file that it writes.
    file: int = 4 * GiB
    #: Each of its private folders.
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


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and in which surroundings.

    Attributes:
        words: The program and its arguments; the program is looked up in the PATH of `environment`.
        view: What it sees.
        workspace: The workspace's open folder.
        environment: Its whole environment, except for what a confinement adds (HOME, TMPDIR, the proxy).
        seconds: Its timeout.
        bounds: What it may use.
        connect: Its network; None: no network.
        wanted: The confinement to use; None: the best one.
        only: The programs, and folders of programs, that it may start, itself included; None: any.
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


class Ended(NamedTuple):
    """How a command ended: its exit code (128 + number for a signal), or why it was ended; and what confined it."""

    code: int | None
    confinement: Kind
    over: Over | None = None

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, if the exit code tells."""
        if self.code is None or self.code <= 128:
            return None
        with suppress(ValueError):
            return signal.Signals(self.code - 128).name
        return None
