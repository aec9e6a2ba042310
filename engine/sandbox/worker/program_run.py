"""Runs one program in one worker: answers its calls and enforces its limits.

The parent process and the kernel enforce all limits; the worker's cooperation is not needed. At a time limit, the worker is
killed. Memory and processor time are resource limits of the process. Sizes are counted again on this side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.error_codes import CODES, ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_FIBRES, RunLimits
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.model.tracebacks import forget
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, BadFrame, Unexportable, export
from albert_tools.engine.sandbox.worker.child import broke_protocol
from albert_tools.engine.sandbox.worker.codec import pack
from albert_tools.engine.sandbox.worker.program_failures import ProgramFailures
from albert_tools.engine.sandbox.worker.run_report import RunReport
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle

#: Answers a call with a name, arguments and a key. Raises `Failure` if the call fails.
CallTool = Callable[[str, dict[str, Any], str], Awaitable[Any]]


class ProgramRun(Struct):
    """One program in one worker."""

    worker: WorkerHandle
    program: Program
    call: CallTool
    log: Callable[[str], None] | None
    limits: RunLimits
    report: RunReport = field(default_factory=RunReport)
    #: Takes the compiled program. None if the worker got the code, or when it has sent it.
    keep_code: Callable[[bytes], None] | None = None
    #: When the program's own time last started to run. It does not run during tool calls.
    _since: float = 0.0
    _calls_out: int = 0
    _log_left: int = 0
    #: The reason why this side killed the worker.
    _stopped: Failure | None = None
    #: The failures that were sent as answers to calls, by the number of the call. The program may raise any of them later.
    _sent_failures: dict[int, Failure] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _timer: asyncio.TimerHandle | None = None

    async def run(self, frame: bytes | bytearray) -> Any:
        """Send the program, and return its result.

        Raises:
            Failure: the program failed or exceeded a limit, or its worker ended.
        """
        loop = asyncio.get_running_loop()
        self._log_left = self.limits.log_bytes
        self._since = loop.time()
        self._check_own_time(loop)
        whole = asyncio.timeout(self.limits.run_seconds)
        try:
            async with whole:
                self.report.clock = whole
                rest = self.worker.send(frame)
                if rest is not None:
                    await rest
                return await self._serve()
        except TimeoutError:
            if not whole.expired():
                raise
            raise self._limit("run_limit") from None
        finally:
            self.report.clock = None
            if not self._calls_out:
                self.report.own_seconds += loop.time() - self._since
            if self._timer is not None:
                self._timer.cancel()
            for task in self._tasks:
                task.cancel()

    async def _serve(self) -> Any:
        while True:
            message = await self.worker.receive()
            if message is None:
                raise await self._death()
            try:
                match message:
                    case [
                        "call",
                        int() as number,
                        str() as name,
                        str() as key,
                        bool() as overlapping,
                        dict() as values,
                    ]:
                        await self._on_call(number, name, key, overlapping, export(values, MAX_ANSWER))
                    case ["print", str() as text]:
                        self._on_print(text)
                    case ["code", bytes() as code] if self.keep_code is not None:
                        self.keep_code(code)
                        self.keep_code = None
                    case ["damaged", str() as text] if self.keep_code is not None:
                        raise self._failures.damaged(text)
                    case ["result", value]:
                        return export(value, self.limits.result_bytes)
                    case ["error", dict() as error]:
                        raise self._failures.error(error, self._sent_failures)
                    case ["limit", str() as code, list() as lines]:
                        raise self._limit(code, lines)
                    case _:
                        raise BadFrame("a message that workers don't send")
            except (BadFrame, Unexportable) as error:
                self.worker.kill()
                raise broke_protocol("the worker", error, self.program.name) from None

    async def _on_call(self, number: int, name: str, key: str, overlapping: bool, arguments: dict[str, Any]) -> None:
        self.report.calls += 1
        if self.report.calls > self.limits.calls:
            raise self._limit("call_limit")
        if not overlapping:
            await self._answer(number, name, arguments, key)
            return
        if len(self._tasks) >= MAX_FIBRES:
            raise BadFrame("more calls at once than there are fibres")
        task = asyncio.create_task(self._answer(number, name, arguments, key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_print(self, text: str) -> None:
        self._log_left -= len(text.encode())
        if self._log_left < 0:
            raise self._limit("log_limit")
        if self.log is not None:
            self.log(text)

    async def _answer(self, number: int, name: str, arguments: dict[str, Any], key: str) -> None:
        """Make a call and send its answer, for which the program waits. Without an answer, the run ends."""
        self._pause_own_time()
        try:
            frame = await self._frame(number, name, arguments, key)
        except (Exception, asyncio.CancelledError) as fault:
            task = asyncio.current_task()
            if isinstance(fault, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # The program can't catch this failure, because it doesn't get it.
            self._stop(fault if isinstance(fault, Failure) else _without_answer(name, fault))
            return
        finally:
            self._resume_own_time()
        rest = self.worker.send(frame)
        if rest is not None:
            await rest

    async def _frame(self, number: int, name: str, arguments: dict[str, Any], key: str) -> bytes | bytearray:
        """Make a call. Returns its output or its failure as a frame.

        Raises:
            Failure: The failure ends the run.
            Exception: A fault of the service. How the call ended may not be recorded.
        """
        try:
            return pack(["value", number], await self.call(name, arguments, key), MAX_ANSWER)
        except Unexportable as error:
            return self._failure_frame(number, Failure("invalid_result", error.sentence(f"the output of {name}")), name)
        except Failure as failure:
            if failure.code in ENDING:
                raise
            # The journal keeps the failure, and a traceback would keep the arguments.
            forget(failure)
            return self._failure_frame(number, failure, name)

    def _failure_frame(self, number: int, failure: Failure, called: str) -> bytes | bytearray:
        # The tool that the program called, even if a tool inside that tool failed.
        sent = self._sent_failures[number] = failure.copy(tool=called, details=_passed_on(failure))
        # How much is left of a budget depends on what other calls got. Only the agent reads that, if the failure ends the run.
        message = CODES[sent.code].meaning if sent.code == "budget_exceeded" else sent.message
        facts = {"code": sent.code, "message": message, "tool": called, "retryable": sent.retryable}
        return pack(["failure", number, facts])

    # A program's own time runs while no tool call is pending.

    def _pause_own_time(self) -> None:
        if not self._calls_out:
            self.report.own_seconds += asyncio.get_running_loop().time() - self._since
        self._calls_out += 1

    def _resume_own_time(self) -> None:
        self._calls_out -= 1
        if not self._calls_out:
            self._since = asyncio.get_running_loop().time()

    def _check_own_time(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check the time again when it would be used up without further calls. So one timer is enough for any number of calls."""
        spent = self.report.own_seconds + (0.0 if self._calls_out else loop.time() - self._since)
        left = self.limits.own_seconds - spent
        if left <= 0:
            self._stop(self._failures.limit("time_limit"))
        else:
            self._timer = loop.call_later(max(left, 0.001), self._check_own_time, loop)

    # The end of a run.

    @property
    def _failures(self) -> ProgramFailures:
        return ProgramFailures(self.program, self.limits)

    def _stop(self, failure: Failure) -> None:
        """Kill the worker. The run then ends with `failure`."""
        self._stopped = self._stopped or failure
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self.worker.kill()

    def _limit(self, code: str, lines: object = ()) -> Failure:
        self.worker.kill()
        return self._failures.limit(code, lines)

    async def _death(self) -> Failure:
        if self._stopped is None and self.worker.violation:
            self.worker.kill()
            return broke_protocol("the worker", self.worker.violation, self.program.name)
        exit_code = None if self._stopped else await self.worker.wait()
        return self._stopped or self._failures.death(exit_code, compiling=self.keep_code is not None)


def _without_answer(called: str, fault: BaseException) -> Failure:
    """The failure of a run in which a call ended with a fault of the service."""
    failure = Failure(
        "internal_error",
        f"the call of {called} ended with a fault of the service: {describe_fault(fault)}",
        hint="whether the call took effect is not known; report the fault to the developers of Albert Tools",
        tool=called,
    )
    failure.__cause__ = fault
    return failure


def _passed_on(failure: Failure) -> dict[str, Any]:
    """The details that a failure keeps when a program does not catch it. The others, such as an output, belong to its call."""
    return {name: failure.details[name] for name in ("trail", "rationale_code") if name in failure.details}
