"""Starts launchers ahead of their commands.

A launcher is a Python process, which takes longer to start than most commands take to run. So a service starts one while a command
runs, and it waits for the next command. Until then it knows nothing and has no descriptor except its socket.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from albert_tools.engine.sandbox.command import launcher
from albert_tools.engine.sandbox.command.standalone import python, script

#: The most descriptors that the kernel passes in one message.
_AT_ONCE = 253


class Launcher(NamedTuple):
    """A launcher that waits for its task, and the socket to it."""

    popen: subprocess.Popen[bytes]
    control: socket.socket

    def send(self, descriptors: Sequence[int]) -> None:
        """Give it its task; see `launcher.main`. Raises OSError."""
        with self.control:
            for i in range(0, len(descriptors), _AT_ONCE):
                text = launcher.MORE if i + _AT_ONCE < len(descriptors) else launcher.LAST
                socket.send_fds(self.control, [text], descriptors[i : i + _AT_ONCE])


class Launchers:
    """The launchers of one service. Use it in one thread: the kernel ends them together with the thread that has started them."""

    def __init__(self) -> None:
        self._ready: Launcher | None = None

    def take(self) -> Launcher:
        """The launcher that is ready, or a new one. Raises OSError."""
        ready, self._ready = self._ready, None
        if ready is None:
            return _started()
        if ready.popen.poll() is None:
            return ready
        ready.control.close()
        return _started()

    def prepare(self) -> None:
        """Start the launcher of the next command. Raises OSError."""
        self._ready = self._ready or _started()

    async def aclose(self) -> None:
        """End the launcher that is ready."""
        ready, self._ready = self._ready, None
        if ready is not None:
            ready.control.close()
            await asyncio.to_thread(ready.popen.wait)


def _started() -> Launcher:
    own, its = socket.socketpair()
    program = os.memfd_create("albert", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(program), "w", encoding="utf-8") as file:
            file.write(f"{_program()}main({os.getpid()}, {program})\n")
        popen = subprocess.Popen(
            [python(), "-I", "-S", f"/proc/self/fd/{program}"],
            cwd="/",
            env={},
            stdin=its.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[program],
            start_new_session=True,
        )
    except BaseException:
        own.close()
        raise
    finally:
        its.close()
        os.close(program)
    return Launcher(popen, own)


@cache
def _program() -> str:
    return script("launcher", launcher.KERNEL)
