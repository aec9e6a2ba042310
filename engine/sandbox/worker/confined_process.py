"""The process of one confined call."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.child import DEATHS, Child, broke_protocol
from albert_tools.engine.sandbox.worker.json_frames import JsonUnpacker
from albert_tools.engine.sandbox.worker.spawn import spawn_python

#: Seconds for starting and importing. A busy machine needs that long.
START_SECONDS = 60.0
#: The most bytes of printed output that are stored, from its end. A report of a crash contains them.
MAX_PRINTED = 4096

_BOOT = """
import sys
sys.path.extend(sys.argv[1:])
from albert_tools.engine.sandbox.worker import confined_child
confined_child.main()
"""

_ENVIRONMENT = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    # The fence refuses a process with several threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

_SMALLER = "give it less at once"
#: For each kind of death: the message after the function's name, and the hint.
_DEATHS: dict[str, tuple[str, str | None]] = {
    "sandbox_violation": ("was ended: it tried what a confined function may not", None),
    "cpu_limit": ("used up its processor time", _SMALLER),
    "memory_limit": ("used up the memory", _SMALLER),
}


class ConfinedProcess(Child):
    """The process that calls one function. `name` is used in messages only."""

    def __init__(self, name: str, paths: Sequence[str], max_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self._name = name
        self._printed = bytearray()
        self._pipe, printing = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._process, sock = spawn_python(("-I", "-S", "-B"), _BOOT, paths, _ENVIRONMENT, printing)
        except Failure:
            os.close(self._pipe)
            raise
        finally:
            os.close(printing)
        super().__init__(sock, JsonUnpacker(max_bytes), loop)
        loop.add_reader(self._pipe, self._on_printed)

    async def prepare(self, settings: bytes) -> None:
        """Send the settings, and wait until the imports are done and the fence is closed.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                message = await self._exchange(settings)
        except TimeoutError:
            raise self._unavailable(f"it was not ready within {START_SECONDS:g} s") from None
        except Failure as failure:
            raise self._unavailable(failure.message) from None
        if message[0] != "ready":
            raise self._unavailable(str(message[-1])[:2000])

    async def ask(self, arguments: bytes, seconds: float) -> list[Any]:
        """Send the arguments, and return the one message that follows.

        Raises:
            Failure: `timeout`, `cpu_limit`, `memory_limit`, `sandbox_violation`, `worker_died`.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(arguments)
        except TimeoutError:
            raise Failure(
                "timeout",
                f"{self._name} did not answer within {seconds:.3g} s, and was stopped",
                hint=_SMALLER,
                details={"seconds": round(seconds, 3)},
            ) from None

    async def end(self) -> None:
        """Kill the process and release its resources."""
        self.close()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        if self._process.poll() is None:
            # Kill the whole process group, because without a system call filter the process could have started others.
            os.killpg(self._process.pid, signal.SIGKILL)
            # If this coroutine is cancelled, the thread still waits for the process.
            await asyncio.shield(asyncio.to_thread(self._process.wait))

    async def _exchange(self, message: bytes) -> list[Any]:
        rest = self.send(message)
        if rest is not None:
            await rest
        answer = await self.receive()
        if answer is not None:
            return answer
        if self.violation:
            raise broke_protocol(self._name, self.violation)
        raise await self._death()

    async def _death(self) -> Failure:
        """The failure for a process that ended without an answer."""
        # The socket is closed a moment before the process ends.
        status = await asyncio.to_thread(self._process.wait)
        self._on_printed()
        details = {"printed": self._printed.decode("utf-8", "replace")} if self._printed else {}
        code = DEATHS.get(status)
        if code is not None:
            message, hint = _DEATHS[code]
            return Failure(code, f"{self._name} {message}", hint=hint, details=details)
        how = f"ended with {status}" if status >= 0 else f"crashed with {_signal_name(-status)}"
        return Failure(
            "worker_died", f"{self._name} {how} on what it was given", hint="give it something else", details=details
        )

    def _unavailable(self, why: str) -> Failure:
        return Failure(
            "sandbox_unavailable",
            f"{self._name} can't be run confined: {why}",
            hint="this is a fault of the tool or the machine, not of the call; `albert doctor` says what confines here",
        )

    def _on_printed(self) -> None:
        try:
            data = os.read(self._pipe, 1 << 16)
        except OSError:
            return
        if not data:
            self._loop.remove_reader(self._pipe)
        self._printed += data
        del self._printed[:-MAX_PRINTED]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
