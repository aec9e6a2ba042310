"""Calls one function on untrusted input, each time in a worker of its own that a zygote has prepared.

The answer is as untrusted as the input (`confined_answer`).
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.child import DEATHS, broke_protocol
from albert_tools.engine.sandbox.worker.codec import pack
from albert_tools.engine.sandbox.worker.confined_answer import failure_of
from albert_tools.engine.sandbox.worker.function_worker import MAX_GIVEN
from albert_tools.engine.sandbox.worker.spawn import Work
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle
from albert_tools.engine.sandbox.worker.worker_pool import WorkerPool

#: The most calls at the same time. Further calls wait.
MAX_AT_ONCE = 4

#: Answers a question of the function.
Answer = Callable[[Any], Awaitable[Any]]

_SMALLER = "give it less at once"
#: For each kind of death: the message after the function's name, and the hint.
_DEATHS: dict[str, tuple[str, str | None]] = {
    "sandbox_violation": ("was ended: it tried what a confined function may not", None),
    "cpu_limit": ("used up its processor time", _SMALLER),
    "memory_limit": ("used up the memory", _SMALLER),
}


class FunctionPool(WorkerPool):
    """The workers of one function.

    Args:
        name: The function, for messages.
        work: The module that makes the workers, see `FunctionWorker`.
        limits: The memory and the processor time of a call.
        seconds: The timeout of a call, with its questions.
        max_bytes: The most bytes of the result, and of a question.
        idle: The number of workers that are kept ready.
    """

    def __init__(
        self, name: str, work: Work, limits: RunLimits, *, seconds: float, max_bytes: int, idle: int = 1
    ) -> None:
        super().__init__(work, limits, max_bytes, idle=idle)
        self._name = name
        self._seconds = seconds
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def call(self, arguments: Any, answer: Answer | None = None) -> Any:
        """The result of the function. `arguments` and the results of `answer` are JSON.

        Raises:
            Failure: the function's own `Failure`; `exception` for any other exception that it raises; `timeout`, `cpu_limit`,
                `memory_limit`, `result_limit`; `sandbox_violation`; `worker_died` if it crashes; `sandbox_unavailable`.
        """
        async with self._slots:
            zygote = await self._started()
            worker = await zygote.acquire()
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._exchange(worker, arguments, answer)
            except TimeoutError:
                raise Failure(
                    "timeout",
                    f"{self._name} did not answer within {self._seconds:.3g} s, and was stopped",
                    hint=_SMALLER,
                    details={"seconds": round(self._seconds, 3)},
                ) from None
            finally:
                zygote.release(worker)

    async def _exchange(self, worker: WorkerHandle, arguments: Any, answer: Answer | None) -> Any:
        await self._send(worker, "call", arguments)
        while True:
            message = await worker.receive()
            match message:
                case None:
                    raise await self._death(worker)
                case ["question", str() as text] if answer is not None:
                    await self._send(worker, "answer", await answer(self._decoded(text)))
                case ["result", str() as text]:
                    return self._decoded(text)
                case _:
                    raise failure_of(self._name, message)

    async def _send(self, worker: WorkerHandle, kind: str, value: Any) -> None:
        rest = worker.send(pack([kind], json.dumps(value), MAX_GIVEN))
        if rest is not None:
            await rest

    def _decoded(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise broke_protocol(self._name, "a text that is not JSON") from None

    async def _death(self, worker: WorkerHandle) -> Failure:
        """The failure for a worker that ended without an answer."""
        if worker.violation:
            return broke_protocol(self._name, worker.violation)
        status = await worker.wait() or 0
        if (code := DEATHS.get(status)) is not None:
            message, hint = _DEATHS[code]
            return Failure(code, f"{self._name} {message}", hint=hint)
        how = f"ended with {status}" if status >= 0 else f"crashed with {_signal_name(-status)}"
        return Failure("worker_died", f"{self._name} {how} on what it was given", hint="give it something else")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
