"""Runs one confined command until it ends or exceeds a limit. Afterwards, no process of it is left."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.confinement import Kind, found
from albert_tools.engine.sandbox.command.memory_usage import taken
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.process import Process
from albert_tools.engine.sandbox.command.spawn_command import NO_INPUT
from albert_tools.engine.sandbox.command.start_command import start
from albert_tools.engine.sandbox.command.task import Command, Ended, Over

#: Seconds between two measurements of a command's usage.
LOOK = 0.25
#: Seconds to read the remaining output after the command has ended. The output is already in the pipe. Only an escaped process
#: could keep the pipe open longer.
_DRAIN = 0.5


async def run(command: Command, output: Output, errors: Output | None = None) -> Ended:
    """Run a command until it ends or exceeds a limit.

    Args:
        command: The command.
        output: Collects the output of both streams, in the order of printing.
        errors: Collects standard error, if given; then `output` collects only standard output.

    Raises:
        Failure: `sandbox_unavailable`, `io_error`, `too_large`.
    """
    kind = await confinement_of(command)
    async with AsyncExitStack() as resources:
        printing, printed = collecting(output, resources)
        complaining, complained = collecting(errors, resources) if errors is not None else (printing, printed)
        try:
            process = await start(kind, command, (NO_INPUT, printing, complaining), resources)
        finally:
            for handle in {printing, complaining}:
                os.close(handle)
        over = await watch(process, command)
        await process.end()
        if over is None and process.lost_to_memory():
            over = "memory"
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                await asyncio.gather(asyncio.shield(printed), asyncio.shield(complained))
        return Ended(process.code if over is None else None, kind, over)


async def confinement_of(command: Command) -> Kind:
    """The confinement for a command.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    kind = (await asyncio.to_thread(found)).best(command.wanted)
    if command.connect is not None and kind != "bwrap":
        raise Failure(
            "sandbox_unavailable",
            f"a command can have a network only behind bubblewrap, and this machine has {kind}",
            hint="run it without network, or install bubblewrap",
        )
    return kind


def collecting(output: Output, resources: AsyncExitStack) -> tuple[int, asyncio.Future[None]]:
    """A descriptor to print to, and a future for the end of the output. `output` reads from the pipe until `resources` close."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    resources.callback(os.close, reading)
    os.set_blocking(reading, False)
    closed: asyncio.Future[None] = loop.create_future()
    loop.add_reader(reading, output.take, reading, closed)
    resources.callback(loop.remove_reader, reading)
    return writing, closed


async def watch(process: Process, command: Command, look: float = LOOK) -> Over | None:
    """Wait until a command ends or exceeds a limit. Returns the exceeded limit, or None.

    Its usage is measured every `look` seconds.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + command.seconds
    ended = asyncio.ensure_future(process.ended())
    try:
        while True:
            left = until - loop.time()
            if left <= 0:
                return "timeout"
            done, _ = await asyncio.wait({ended}, timeout=min(left, look))
            if done:
                ended.result()
                return None
            memory, processes = await asyncio.to_thread(taken, process.top)
            if memory > command.bounds.memory or process.lost_to_memory():
                return "memory"
            if processes > command.bounds.processes:
                return "processes"
    finally:
        ended.cancel()
