"""The process of a mounted server, confined like a command, and its streams for the MCP client.

The process sees the workspace under the rules, without git folders. It reaches the named hosts through the filtering proxy. Its
secrets are the first bytes that it reads, so they are on no command line. All that it writes is bounded: a message by its length,
and all messages since the last call by their sum.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, JSONRPCError, jsonrpc_message_adapter

from albert_tools.builtins.mounts.server_limits import MAX_MESSAGE, too_long, too_much
from albert_tools.builtins.shell.confined_command import base_environment
from albert_tools.engine.model.bounds import KiB
from albert_tools.engine.sandbox.command.mounts import Mounts, in_place, mounts
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.process import Process
from albert_tools.engine.sandbox.command.run_command import collecting, confinement_of, watch
from albert_tools.engine.sandbox.command.start_command import start
from albert_tools.engine.sandbox.command.task import Command, Connect
from albert_tools.engine.sandbox.command.view import View
from albert_tools.engine.workspace.git_folders import repositories
from albert_tools.engine.workspace.openat import identity
from albert_tools.engine.workspace.sandbox_view import command_view
from albert_tools.engine.workspace.workspace import Workspace

#: Bytes of the server's standard error that are kept, for the message about its end.
_MAX_ERRORS = 4 * KiB
#: Seconds for the server to end by itself when its input ends.
_STOP_SECONDS = 1.0

#: Seconds between two measurements of what the server uses. It may run for days.
_LOOK = 2.0
#: An answer that can't be read. A notification has no id, and nobody waits for it.
_ANSWER = re.compile(rb'\{(?=.*"jsonrpc")(?=.*"id").*"(result|error)"', re.DOTALL)

#: Reads the value of each named variable, up to a NUL, from the input that the server then gets.
_WITH_SECRETS = 'while [[ $1 != -- ]]; do IFS= read -r -d "" "$1"; export "$1"; shift; done; shift; exec "$@"'


class ConfinedServer:
    """One process.

    `view` is what it sees, and `why` says why it ended. `finished` is true when its output has ended. `ended` is called when all
    its messages are delivered.
    """

    def __init__(
        self, words: Sequence[str], secrets: Mapping[str, str], connect: Connect | None, ended: Callable[[], object]
    ) -> None:
        self._ended = ended
        self._words = words
        self._secrets = secrets
        self._connect = connect
        self._errors = Output(_MAX_ERRORS)
        self._size = self._count = 0
        self._gone = asyncio.Event()
        self.view: View | None = None
        #: For bubblewrap: the mounts of this process before, and the first process inside. For Landlock: the files at its paths.
        self._before: Mounts = {}
        self._pid = -1
        self._identities: dict[str, tuple[int, int]] = {}
        self.why = ""
        self.finished = False
        self.confinement = ""

    @property
    def errors(self) -> str:
        """The end of what the server wrote to standard error."""
        return self._errors.shown(_MAX_ERRORS).text.strip()

    def asked(self) -> None:
        """A call begins, so the server may send messages again."""
        self._size = self._count = 0

    def sees(self, now: View) -> bool:
        """Whether the process sees what a command would see now. It doesn't, if the rules or the files have changed since."""
        if self.view != now:
            return False
        if self.confinement == "bwrap":
            return in_place(now, self._pid, self._before)
        # Landlock's rules are about files: another file at a path has other rights. Those of Seatbelt are about paths.
        return self.confinement != "landlock" or self._identities == _identities(now)

    @asynccontextmanager
    async def streams(self, workspace: Workspace, record_seen: Callable[[], None]) -> AsyncIterator[tuple[Any, Any]]:
        """Start the process, and give the streams of its messages. It is killed at the end. `record_seen` is called before it
        starts, when it is known what it can see.

        Raises:
            Failure: `sandbox_unavailable`, `io_error`, `too_large`.
        """
        async with AsyncExitStack() as resources:
            self._before = mounts()
            self.view, root = resources.enter_context(seen_by_server(workspace))
            record_seen()
            words = ["/bin/bash", "--noprofile", "--norc", "-c", _WITH_SECRETS, "sandbox", *self._secrets, "--"]
            command = Command(
                [*words, *self._words] if self._secrets else self._words,
                self.view,
                root,
                base_environment(),
                math.inf,
                connect=self._connect,
            )
            self.confinement = await confinement_of(command)
            if self.confinement == "landlock":
                self._identities = _identities(self.view)
            reader, writer, process = await self._started(command, resources)
            self._pid = process.top
            for value in self._secrets.values():
                writer.write(value.encode() + b"\0")
            delivered, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            sent, sending = anyio.create_memory_object_stream[SessionMessage](0)
            receiving = asyncio.create_task(self._receive(reader, delivered))
            receiving.add_done_callback(lambda _: self._ended())
            tasks = [
                receiving,
                asyncio.create_task(self._send(writer, sending)),
                asyncio.create_task(self._watch(process, command)),
            ]
            try:
                yield received, sent
            finally:
                writer.close()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_STOP_SECONDS):
                        await process.ended()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for stream in (delivered, received, sent, sending):
                    stream.close()

    async def _started(
        self, command: Command, resources: AsyncExitStack
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Process]:
        loop = asyncio.get_running_loop()
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        reader = asyncio.StreamReader(MAX_MESSAGE)
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_input))
        resources.callback(reading.close)
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(our_output, "wb")
        )
        resources.callback(writing.close)
        errors, _ = collecting(self._errors, resources)
        try:
            streams = their_input, their_output, errors
            process = await start(self.confinement, command, streams, resources)  # type: ignore[arg-type]
        finally:
            for handle in (their_input, their_output, errors):
                os.close(handle)
        return reader, asyncio.StreamWriter(writing, protocol, None, loop), process

    async def _receive(self, reader: asyncio.StreamReader, delivered: Any) -> None:
        """Deliver each line that is a message, until the output ends or a line is too long."""
        async with delivered:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    self.why = self.why or too_long()
                    return
                except (asyncio.IncompleteReadError, OSError):
                    self.finished = True
                    # The session reports the end of this stream, with `why`.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_STOP_SECONDS):
                            await self._gone.wait()
                    return
                self._size, self._count = self._size + len(line), self._count + 1
                if why := too_much(self._size, self._count):
                    self.why = self.why or why
                    return
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    # Servers refuse calls that come too early with the code by which the SDK says that the connection has ended.
                    if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
                        message.error.code = INTERNAL_ERROR
                    await delivered.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                except ValueError:
                    # Servers print other lines by mistake. But a call would wait for this answer until its time is over.
                    if _ANSWER.match(line):
                        self.why = self.why or "it sent a message that can't be read"
                        return
                # A flood of lines must not stop the other tasks.
                await asyncio.sleep(0)

    async def _send(self, writer: asyncio.StreamWriter, sending: Any) -> None:
        with suppress(OSError):
            async for message in sending:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()

    async def _watch(self, process: Process, command: Command) -> None:
        over = await watch(process, command, _LOOK)
        if over is not None:
            self.why = self.why or f"it used too much of: {over}"
        await process.end()
        self.why = self.why or f"it ended with exit code {process.code}"
        self._gone.set()


def _identities(view: View) -> dict[str, tuple[int, int]]:
    """Which files are at the paths in a view."""
    found = {}
    for path in {*view.tops, *view.changeable, *view.pinned, *view.sealed, *view.hidden, *view.readable}:
        with suppress(OSError):
            found[path] = identity(os.lstat(path))
    return found


@contextmanager
def seen_by_server(workspace: Workspace) -> Iterator[tuple[View, int]]:
    """The view of a server for a call: that of a command, without git folders. A command that runs for long could change them
    unseen. Nobody names the files that a server reads, so the call may show all that it sees.

    Raises:
        Failure: See `command_view`.
    """
    root = str(workspace.root)
    with command_view(workspace, "", hide=repositories(root).git_folders) as (view, handle):
        workspace.judge.note_visible([view.root, *view.readable])
        yield view, handle
