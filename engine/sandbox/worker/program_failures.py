"""The failures of a run. Each way in which a worker can end becomes a `Failure` with line numbers of the program's source."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_ROUNDS, RunLimits
from albert_tools.engine.sandbox.worker.child import DEATHS, believable, broke_protocol

#: The message and the hint of each limit.
_LIMITS: dict[str, tuple[str, str | None]] = {
    "time_limit": (
        "stopped after {limits.own_seconds:g} s of its own time",
        "do less, or in smaller steps; time spent in tool calls does not count",
    ),
    "run_limit": (
        "stopped after {limits.run_seconds:.3g} s in all, calls included",
        "split the work over several runs",
    ),
    "cpu_limit": ("stopped after {limits.cpu_seconds} s of processor time", "do less, or in smaller steps"),
    "memory_limit": (
        "stopped because it needs more than {limits.memory_bytes:,} bytes of memory",
        "work on one file or one part at a time",
    ),
    "recursion_limit": (
        "stopped because its calls nest more than {limits.recursion:,} deep",
        "go over a list of what is left to do instead",
    ),
    "loop_limit": (
        f"stopped after {MAX_ROUNDS:,} rounds of its loops",
        "check that each while loop ends, and add to a list in a loop over it only what is not in it yet",
    ),
    "call_limit": (
        "stopped at {limits.calls:,} tool calls",
        "call less often, or call a tool for many items with `start_batch`",
    ),
    "log_limit": ("stopped because it printed more than {limits.log_bytes:,} bytes", "print less"),
}
#: If C code runs out of memory or stack, the worker dies of one of these signals.
_PROGRAM_DEATHS = DEATHS | {
    -number: "memory_limit" for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGKILL)
}
#: The most lines of a trace, and the most characters of a text, that are accepted from a worker.
_MAX_LINES, _MAX_TEXT = 20, 4000


class ProgramFailures(NamedTuple):
    """Creates the failures of one run."""

    program: Program
    limits: RunLimits

    def limit(self, code: str, lines: object = ()) -> Failure:
        """The program exceeded a limit. `lines` are lines of the lowered text, outermost call first."""
        if code not in _LIMITS:
            return broke_protocol("the worker", "a limit that doesn't exist", self.program.name)
        sentence, hint = _LIMITS[code]
        trace = self._source_lines(lines)
        return Failure(
            code,
            sentence.format(limits=self.limits),
            hint=hint,
            tool=self.program.name,
            line=trace[-1] if trace else None,
        )

    def damaged(self, why: str) -> Failure:
        """The lowered text is not Python, so it isn't the output of the compiler."""
        return Failure(
            "damaged",
            f"the saved program can't be compiled: {why[:_MAX_TEXT]}",
            hint="define the tool again",
            tool=self.program.name,
        )

    def death(self, exit_code: int | None, compiling: bool = False) -> Failure:
        """The worker ended without an answer. `exit_code` is negative for a signal; `compiling` says that nothing had run yet."""
        code = "worker_died" if exit_code is None else _PROGRAM_DEATHS.get(exit_code, "worker_died")
        if code in _LIMITS:
            return self.limit(code)
        if code == "sandbox_violation" and compiling:
            return self.damaged("it is not Python")
        message = "the program tried what a worker may not, so it was ended"
        if code == "worker_died":
            message = "the worker ended without an answer"
        return Failure(code, message, tool=self.program.name, retryable=code == "worker_died")

    def error(self, error: dict[str, Any], sent: Mapping[int, Failure]) -> Failure:
        """The program ended with an exception, which the worker describes in `error`.

        `sent` are the failures of its calls, by the number of the call. If the exception is one of them, it is forwarded.
        """
        trace = self._source_lines(error.get("lines"))
        line = trace[-1] if trace else None
        trail = [{"tool": self.program.name, "line": line}]
        kind = _text(error, "type")
        details: dict[str, Any] = {"lines": trace, "trail": trail, **({"type": kind} if kind else {})}
        number = error.get("call")
        passed_on = sent.get(number) if isinstance(number, int) else None
        if passed_on is not None:
            # If the failure comes from another saved tool, it keeps its line there, and its trail follows.
            trail += passed_on.details.get("trail", []) if passed_on.line is not None else []
            line = line if passed_on.line is None else passed_on.line
            return passed_on.copy(line=line, details={**passed_on.details, **details})
        code, message = _text(error, "code"), _text(error, "message")
        if code in _LIMITS or not believable(code):
            if code != "tool_error":
                details["code"] = code
            code = "tool_error"
        if code == "exception":
            message = f"{kind}: {message}" if message else kind
        tool = _text(error, "tool") or self.program.name
        return Failure(code, message, retryable=error.get("retryable") is True, tool=tool, line=line, details=details)

    def _source_lines(self, lines: object) -> list[int]:
        table = self.program.lines
        given = lines[:_MAX_LINES] if isinstance(lines, list) else []
        return [table[n - 1] for n in given if isinstance(n, int) and 0 < n <= len(table)]


def _text(error: dict[str, Any], name: str) -> str:
    value = error.get(name)
    return value[:_MAX_TEXT] if isinstance(value, str) else ""
