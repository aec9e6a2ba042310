"""Calls one function on untrusted text, each time in a worker of its own that a zygote has prepared.

It is for functions that are called often, and whose imports are slow. `confined_function` is for all others. The worker has the
narrow fence of programs: it can open no file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER
from albert_tools.engine.sandbox.worker.child import DEATHS, broke_protocol
from albert_tools.engine.sandbox.worker.codec import pack
from albert_tools.engine.sandbox.worker.confined_answer import answer_of
from albert_tools.engine.sandbox.worker.spawn import Work
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle
from albert_tools.engine.sandbox.worker.worker_pool import WorkerPool

#: The most calls at the same time. Further calls wait.
MAX_AT_ONCE = 4

#: Answers a question of the function.
Answer = Callable[[Any], Awaitable[Any]]


class FunctionPool(WorkerPool):
    """The workers of one function.

    Args:
        name: The function, for messages.
        work: The module that makes the workers, see `FunctionWorker`.
        limits: The memory and the processor time of a call.
        seconds: The timeout of a call, with its questions.
        max_bytes: The most bytes of the result, and of a question.
    """

    def __init__(self, name: str, work: Work, limits: RunLimits, *, seconds: float, max_bytes: int) -> None:
        super().__init__(work, limits, max_bytes, idle=1)
        self._name = name
        self._seconds = seconds
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def call(self, arguments: Any, answer: Answer) -> Any:
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
                raise Failure("timeout", f"{self._name} did not answer within {self._seconds:g} s") from None
            finally:
                zygote.release(worker)

    async def _exchange(self, worker: WorkerHandle, arguments: Any, answer: Answer) -> Any:
        await self._send(worker, "call", arguments)
        while True:
            message = await worker.receive()
            match message:
                case None:
                    raise await self._death(worker)
                case ["question", str() as text]:
                    await self._send(worker, "answer", await answer(self._decoded(text)))
                case ["result", str() as text]:
                    return self._decoded(text)
                case _:
                    return answer_of(self._name, message, self._max_bytes)

    async def _send(self, worker: WorkerHandle, kind: str, value: Any) -> None:
        rest = worker.send(pack([kind], json.dumps(value), MAX_ANSWER))
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
        code = DEATHS.get(await worker.wait() or 0, "worker_died")
        return Failure(code, f"{self._name} ended without an answer", retryable=code == "worker_died")
