"""Running a shell command in the workspace, and being sure that it has ended.

The command gets a session of its own, an environment made from nothing, no input, and one pipe for all it
prints. The call ends when the shell ends, or its time is up, or it is called off; whichever it is, what the
command left running is killed, so that nothing holds the pipe and nothing goes on working after the answer.
Output beyond the limit is read and dropped: a command that prints without end must neither fill our memory
nor stall on a full pipe.

This is not a sandbox: the command can reach whatever the user can. Hence `gated`.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

from albert_tools.builtins.processes import MARK, kill_group, kill_marked, kill_tree
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.kinds import CommandText, TimeoutSeconds, WorkingDirectory
from albert_tools.engine.model.limits import LARGE_STRING
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

if TYPE_CHECKING:
    import asyncio

#: Bytes of output that are kept: half from the start, where a command says what it does, half from the end,
#: where it says what went wrong.
MAX_OUTPUT = 4 * LARGE_STRING

#: Seconds that a command may ask for.
MAX_TIMEOUT = 600

#: Seconds kept back from what the caller has left, for killing the command and answering with its partial
#: output.
_MARGIN = 0.3

#: Seconds to wait, when the command has ended, for output that is still in the pipe. It is there already;
#: only a process that got away can keep the pipe open longer.
_DRAIN = 0.5

#: Where programs are looked for; the caller's own PATH may hold folders that others can write.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class CommandResult(TypedDict):
    """What `bash` answers."""

    exit_code: int
    output: str
    truncated: bool
    signal: str | None


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    timeout=MAX_TIMEOUT,
    gated=True,
    schemas={"timeout": {"maximum": MAX_TIMEOUT}},
    paths={"cwd": "read"},
    judged={"command": "shell"},
)
async def bash(
    context: CallContext, command: CommandText, cwd: WorkingDirectory = "", timeout: TimeoutSeconds = 30
) -> CommandResult:
    """Run a command with bash and return what it printed, once it has ended.

    Returns {"exit_code", "output", "truncated", "signal"}. A non-zero exit code is an answer, not a failure.
    "output" is stdout and stderr together, in the order printed; bytes that are not UTF-8 appear as U+FFFD.
    Of more than 64 KiB the first and last 32 KiB are kept, with a line between that says how much is missing,
    and "truncated" is true. "signal" is null, or the name ("SIGKILL") of the signal that ended bash; then
    "exit_code" is 128 + its number.

    The command starts in the workspace, with an empty stdin and an environment of only PATH, HOME (the
    workspace), LANG and ALBERT_CALL (a mark of ours). Nothing is kept between calls. Processes left in the
    background are killed when the command ends.

    Fails with `timeout` (everything the command started is killed; details hold "output" and "truncated" so
    far; what it had done stays done), `not_found` or `not_a_directory` (cwd), `permission_denied` (not
    allowed, or cwd outside the workspace), `invalid_arguments`, `io_error`.

    Args:
        command: What bash is to run, for example "grep -rn TODO src | head".
        cwd: The folder to run it in, relative to the workspace; the workspace itself when empty.
        timeout: Seconds that it may take, up to 600; less where the caller has less left.
    """
    import asyncio

    if "\0" in command:
        raise _invalid("a command can't hold a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in command):
        raise _invalid("a command must be valid Unicode; this one holds half a surrogate pair")
    limit = max(0.0, min(timeout, context.remaining - _MARGIN))
    mark = os.urandom(16).hex()
    output = Output()
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    code: int | None = None
    process: subprocess.Popen[bytes] | None = None
    try:
        os.set_blocking(reading, False)
        try:
            process = _start(context, command, cwd, mark, writing)
        finally:
            os.close(writing)
        closed = loop.create_future()
        loop.add_reader(reading, output.take, reading, closed)
        try:
            async with asyncio.timeout(limit):
                await _ended(process)
        except TimeoutError:
            kill_tree(process.pid, mark)
            await _drain(closed)
            text, truncated = output.text()
            raise Failure(
                "timeout",
                f"the command was still running after {limit:g} s, and was killed",
                hint="give it a longer timeout, or less to do; what it had done stays done",
                details={"output": text, "truncated": truncated},
            ) from None
        kill_group(process.pid)
        code = process.wait()
        kill_marked(mark)
        await _drain(closed)
    finally:
        # Also the way out when the call is cancelled.
        loop.remove_reader(reading)
        os.close(reading)
        if process is not None:
            if code is None:
                kill_tree(process.pid, mark)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1)
            context.effect("execute", command=command, cwd=cwd or ".", exit_code=code)
    text, truncated = output.text()
    if code < 0:
        return {"exit_code": 128 - code, "output": text, "truncated": truncated, "signal": _signal(-code)}
    return {"exit_code": code, "output": text, "truncated": truncated, "signal": None}


class Output:
    """The first and last part of everything taken, in bounded memory."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Take more output."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def take(self, pipe: int, closed: asyncio.Future[None]) -> None:
        """Read what the pipe holds; called by the event loop when there is something, or the end."""
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.add(data)
        else:
            closed.get_loop().remove_reader(pipe)
            _settle(closed)

    def text(self) -> tuple[str, bool]:
        """What was kept, as text, and whether anything is missing."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace"), False
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[… {self._dropped} bytes left out …]\n{tail}", True


def _start(context: CallContext, command: str, cwd: str, mark: str, output: int) -> subprocess.Popen[bytes]:
    import shutil

    shell = shutil.which("bash", path=_PATH)
    if shell is None:
        raise Failure("io_error", "there is no bash on this machine")
    root = str(context.workspace.root)
    environment = {"PATH": _PATH, "HOME": root, "LANG": "C.UTF-8", MARK: mark}
    with context.workspace.folder(cwd or ".") as folder:
        # The folder that was judged is the one that is entered, not whatever its path leads to by then.
        held = f"/proc/self/fd/{folder}"
        place = held if os.path.isdir(held) else context.workspace.absolute(context.workspace.locate(cwd or "."))
        try:
            return subprocess.Popen(
                [shell, "--noprofile", "--norc", "-c", command],
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise Failure(
                    "too_large",
                    "the command is longer than the operating system takes",
                    hint="write it to a file in the workspace, and run that",
                ) from None
            raise Failure("io_error", f"the command could not be started: {error.strerror}", retryable=True) from None


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has ended, without taking its exit code: until that is taken, its number is its
    own."""
    import asyncio

    if not hasattr(os, "pidfd_open"):
        # Here it is taken after all, and the number is free for a moment before the group is killed.
        while process.poll() is None:
            await asyncio.sleep(0.02)
        return
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    handle = os.pidfd_open(process.pid)
    try:
        loop.add_reader(handle, _settle, ended)
        await ended
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _drain(closed: asyncio.Future[None]) -> None:
    import asyncio

    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN):
            await asyncio.shield(closed)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _invalid(message: str) -> Failure:
    violation = {"field": "command", "rule": "command", "message": f"command: {message}"}
    return Failure("invalid_arguments", message, details={"violations": [violation]})
