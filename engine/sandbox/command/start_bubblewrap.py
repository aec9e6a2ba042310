"""Starts a command by bubblewrap and ends it. If the first process of its process namespace is killed, all others in it end too."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command import bubblewrap, exec_allowlist, network_namespace
from albert_tools.engine.sandbox.command.confinement import found
from albert_tools.engine.sandbox.command.process import PATIENCE, Process, kill, readable, within
from albert_tools.engine.sandbox.command.seccomp_filters import command_filter
from albert_tools.engine.sandbox.command.spawn_command import Streams, bound_together, spawn
from albert_tools.engine.sandbox.command.standalone import python, script
from albert_tools.engine.sandbox.command.task import PROXY_PORT, Command
from albert_tools.engine.sandbox.command.view import loaders
from albert_tools.engine.sandbox.kernel import landlock
from albert_tools.engine.sandbox.kernel.process_tree import kill_descendants
from albert_tools.engine.sandbox.kernel.rlimits import lower

#: The most bytes of bubblewrap's information about the started process.
_MAX_INFO = 1 << 16
#: Seconds to wait for the namespaces. Usually this takes some hundredths of a second.
_SETTING_UP = 30.0

_ALLOWLIST = script("exec_allowlist", exec_allowlist.KERNEL) + "main()"


async def start_bubblewrap(command: Command, streams: Streams, resources: AsyncExitStack) -> Process:
    """Start a command in its own namespaces.

    Bubblewrap waits before it starts the command, until the command's limits and connections are set.

    Raises:
        Failure: `sandbox_unavailable`, `io_error`, `too_large`.
    """
    machine = found()
    said, saying = os.pipe2(os.O_CLOEXEC)
    resources.callback(os.close, said)
    waiting, going = os.pipe2(os.O_CLOEXEC)
    let_go = resources.enter_context(os.fdopen(going, "wb", buffering=0))
    environment = {**_proxied(command), **command.variables("/tmp")}
    words = command.words
    if command.only is not None and landlock.version() >= 1:
        allowed = [*command.only, *loaders()]
        words = [python(), "-I", "-S", "-c", _ALLOWLIST, str(len(allowed)), *allowed, *words]
    try:
        plan = bubblewrap.plan(
            machine.bwrap,
            command.view,
            words,
            environment,
            filter_program=command_filter("loose"),
            workspace=command.workspace,
            temporary_bytes=command.bounds.temporary,
            certificates=command.connect is not None,
            nested_off=machine.nested_off,
            info=saying,
            gate=waiting,
        )
        try:
            popen = spawn(plan.arguments, streams, [*plan.descriptors, saying, waiting])
        finally:
            plan.close()
    except OSError as error:
        raise Failure("io_error", f"the command's view of the files can't be set up: {error.strerror}") from None
    finally:
        os.close(saying)
        os.close(waiting)
    process = _Namespaced(popen)
    resources.push_async_callback(process.end)
    try:
        async with asyncio.timeout(_SETTING_UP):
            pid = await _first_process(said)
        process.take(pid)
    except (TimeoutError, ValueError, OSError):
        raise Failure("sandbox_unavailable", "bubblewrap did not start the command", retryable=True) from None
    with suppress(ProcessLookupError):
        lower({**command.bounds.limits(), "RLIMIT_NPROC": command.bounds.processes}, pid)
    bound_together(pid, command, process, resources)
    if command.connect is not None:
        listener = resources.enter_context(await asyncio.to_thread(network_namespace.listen, pid, PROXY_PORT))
        await resources.enter_async_context(command.connect(listener))
    let_go.write(bubblewrap.GO)
    return process


async def _first_process(said: int) -> int:
    """The id of the first process in the namespace, as bubblewrap reports it."""
    text = b""
    os.set_blocking(said, False)
    while not text.rstrip().endswith(b"}"):
        await readable(said)
        data = os.read(said, _MAX_INFO)
        if not data:
            raise ValueError("nothing was said")
        text += data
    return int(json.loads(text)["child-pid"])


def _proxied(command: Command) -> dict[str, str]:
    if command.connect is None:
        return {}
    address = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {spelled: address for name in names for spelled in (name, name.upper())}


class _Namespaced(Process):
    """The bubblewrap process, which is the parent of a command's namespaces."""

    _first = -1

    def take(self, pid: int) -> None:
        """Set `pid` as the first process of the namespace. It must still wait at the gate."""
        self._first = os.pidfd_open(pid)
        self.top = pid

    async def end(self) -> None:
        if self._first >= 0:
            handle, self._first = self._first, -1
            try:
                kill(handle)
                # This process ends after all others in its namespace have ended.
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await readable(handle)
            finally:
                os.close(handle)
        elif self._popen.returncode is None:
            # The processes that bubblewrap has started may not yet be set to end with it. Kill them too.
            await asyncio.to_thread(_end_unfinished, self._popen.pid)
        if self._popen.returncode is None:
            # Bubblewrap ends with its child. If the command ended earlier, bubblewrap's exit status contains the command's.
            if not await within(PATIENCE if self.top != self._popen.pid else 0, self._popen):
                self._popen.kill()
                await within(PATIENCE, self._popen)
            code = self._popen.wait()
            self.code = code if code >= 0 else 128 - code


def _end_unfinished(pid: int) -> None:
    """Kill a child of this process and all its descendants. The child is stopped first, so that it can't fork meanwhile."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        kill_descendants(pid)
        os.kill(pid, signal.SIGKILL)
