"""The pool of single-use workers, in which programs run.

A zygote forks the workers, and a few workers are always ready (`zygote_handle`). A worker runs one program (`program_run`) and is
then killed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.kernel import rlimits
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable
from albert_tools.engine.sandbox.worker.codec import pack
from albert_tools.engine.sandbox.worker.program_run import CallTool, ProgramRun
from albert_tools.engine.sandbox.worker.run_report import RunReport
from albert_tools.engine.sandbox.worker.spawn import PROGRAMS
from albert_tools.engine.sandbox.worker.worker_handle import WorkerHandle
from albert_tools.engine.sandbox.worker.worker_pool import WorkerPool

#: The number of workers that are kept ready.
IDLE = 2

#: The number of programs whose code is kept. The oldest is dropped first.
MAX_CODES = 256


class Sandbox(WorkerPool):
    """Runs programs in confined workers. One object per event loop. Call `start` before the first `run`, and `close` at the end."""

    def __init__(self, limits: RunLimits | None = None, *, idle: int = IDLE) -> None:
        """The constructor starts no process.

        Args:
            limits: The limits of runs without their own limits.
            idle: The number of workers that are kept ready.
        """
        super().__init__(PROGRAMS, limits or RunLimits(), MAX_ANSWER, idle=idle)
        self._codes: dict[str, bytes] = {}
        self.expect(sorted(vocabulary.MODULES))

    def expect(self, modules: Sequence[str]) -> None:
        """Load only these façades. Has no effect after the start."""
        super().expect([m for m in modules if m in vocabulary.MODULES])

    async def run(
        self,
        program: Program,
        arguments: dict[str, Any],
        *,
        call: CallTool,
        log: Callable[[str], None] | None = None,
        limits: RunLimits | None = None,
        report: RunReport | None = None,
    ) -> Any:
        """Run a program once, and return its result.

        Args:
            program: The output of the compiler.
            arguments: The arguments by name, as values of the domain.
            call: Answers the program's tool calls. A `Failure` of it becomes a `ToolError` in the program.
            log: Takes the program's printed output.
            limits: The limits of this run; None for the limits of the sandbox. Memory and processor time can only be lower.
            report: Is filled in when the run ends, with or without a result.

        Raises:
            Failure: the program failed or exceeded a limit. `line` is a line of its source.
        """
        limits = limits or self.limits
        zygote = await self._started()
        code = self._codes.get(program.lowered)
        settings = {
            "entry": program.entry,
            "lowered": program.lowered if code is None else "",
            "code": code or b"",
            "recursion": limits.recursion,
            "log_bytes": limits.log_bytes,
            "result_bytes": limits.result_bytes,
        }
        try:
            frame = pack(["run", settings], arguments, MAX_ANSWER)
        except Unexportable as error:
            raise Failure("not_json", error.sentence("an argument")) from None
        worker = await zygote.acquire()
        try:
            _lower_limits(worker, limits, self.limits)
            keep = None if code is not None else lambda made: self._keep(program.lowered, made)
            return await ProgramRun(worker, program, call, log, limits, report or RunReport(), keep).run(frame)
        finally:
            zygote.release(worker)

    def _keep(self, lowered: str, code: bytes) -> None:
        """Store the code that a worker made of a text, in memory only. Workers use the same interpreter."""
        if code:
            if len(self._codes) == MAX_CODES:
                del self._codes[next(iter(self._codes))]
            self._codes[lowered] = code


def _lower_limits(worker: WorkerHandle, limits: RunLimits, default: RunLimits) -> None:
    """Lower the memory or processor time limit of one worker.

    Raises:
        Failure: `worker_died`.
    """
    lower = limits.memory_bytes < default.memory_bytes or limits.cpu_seconds < default.cpu_seconds
    if not lower or sys.platform != "linux":
        return
    less = max(0, default.memory_bytes - limits.memory_bytes)
    try:
        memory = rlimits.soft_limit("RLIMIT_AS", worker.pid) - less
        rlimits.lower({"RLIMIT_AS": memory, "RLIMIT_CPU": limits.cpu_seconds}, worker.pid)
    except ProcessLookupError:
        raise Failure("worker_died", "the worker ended before it began", retryable=True) from None
