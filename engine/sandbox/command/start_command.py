"""Starts a command with the given confinement."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from albert_tools.engine.sandbox.command.confinement import Kind
from albert_tools.engine.sandbox.command.process import Process
from albert_tools.engine.sandbox.command.spawn_command import Streams
from albert_tools.engine.sandbox.command.start_bubblewrap import start_bubblewrap
from albert_tools.engine.sandbox.command.start_landlock import start_landlock
from albert_tools.engine.sandbox.command.start_seatbelt import start_seatbelt
from albert_tools.engine.sandbox.command.task import Command
from albert_tools.engine.sandbox.command.temporary_folders import Temporary


async def start(kind: Kind, command: Command, streams: Streams, resources: AsyncExitStack) -> Process:
    """Start a command with these streams. The caller closes `resources` after the command has ended.

    Raises:
        Failure: `sandbox_unavailable`, `io_error`, `too_large`.
    """
    if kind == "bwrap":
        return await start_bubblewrap(command, streams, resources)
    # Private and empty, as with bubblewrap, but on disk. There must be no await between its creation and the registered removal.
    temporary = Temporary()
    resources.push_async_callback(asyncio.to_thread, temporary.remove)
    if kind == "landlock":
        return start_landlock(command, streams, resources, temporary.path)
    return start_seatbelt(command, streams, temporary.path)
