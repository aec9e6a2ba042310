"""Starts a command in macOS's sandbox and ends it. Its processes are found by a mark in their environment."""

from __future__ import annotations

import asyncio
import os
import subprocess

from albert_tools.engine.sandbox.command import seatbelt
from albert_tools.engine.sandbox.command.kill_tree import MARK, kill_tree
from albert_tools.engine.sandbox.command.process import Process
from albert_tools.engine.sandbox.command.spawn_command import Streams, spawn
from albert_tools.engine.sandbox.command.task import Command


def start_seatbelt(command: Command, streams: Streams, temporary: str) -> Process:
    """Start a command. `temporary` is its private folder.

    Raises:
        Failure: `io_error`, `too_large`.
    """
    mark = os.urandom(16).hex()
    environment = {**command.variables(temporary), MARK: mark}
    arguments = [seatbelt.PROGRAM, "-p", seatbelt.profile(command.view, temporary), *command.words]
    return _Marked(spawn(arguments, streams, [], environment, command.view.cwd), mark)


class _Marked(Process):
    """A command whose processes are found by a mark in their environment."""

    def __init__(self, popen: subprocess.Popen[bytes], mark: str) -> None:
        super().__init__(popen)
        self._mark = mark

    async def end(self) -> None:
        if self.code is None:
            await asyncio.to_thread(kill_tree, self._popen.pid, self._mark)
            code = await asyncio.to_thread(self._popen.wait)
            self.code = code if code >= 0 else 128 - code
