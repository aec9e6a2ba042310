"""What can go wrong, as codes.

A code is stable: programs match on ``error.code``, the command line maps it to an exit code, and the tests name
it. The sentence beside it is for reading. `CODES` is the whole list; a code that is not on it is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Every code with the name of its kind, as records and other languages call it, and its meaning.
CODES: dict[str, tuple[str, str]] = {
    "permission_denied": ("PolicyDenied", "a rule, or the absence of one, said no"),
    "governance_unavailable": ("GovernanceUnavailable", "nothing can be judged, so everything is denied"),
    "unknown_tool": ("UnknownTool", "no tool of that name, or no such version"),
    "invalid_arguments": ("ValidationFailed", "the arguments break the tool's schema"),
    "invalid_result": ("ValidationFailed", "the output breaks the tool's result schema"),
    "not_json": ("ValidationFailed", "a value that can not cross the boundary"),
    "not_found": ("NotFound", "there is nothing at that path"),
    "exists": ("Conflict", "something is there already"),
    "not_a_file": ("IOFailed", "the path names something that is not a regular file"),
    "not_a_directory": ("IOFailed", "the path names something that is not a folder"),
    "encoding_error": ("EncodingError", "bytes that are not text in the encoding asked for"),
    "too_large": ("ResourceExhausted", "a size over its limit"),
    "io_error": ("IOFailed", "the operating system refused"),
    "network_error": ("IOFailed", "no answer from the other side"),
    "timeout": ("Timeout", "a call took longer than it may"),
    "time_limit": ("Timeout", "the program's own time is used up"),
    "run_limit": ("Timeout", "the whole run took longer than it may"),
    "cpu_limit": ("ResourceExhausted", "the processor time is used up"),
    "memory_limit": ("ResourceExhausted", "the memory is used up"),
    "recursion_limit": ("ResourceExhausted", "calls nest deeper than they may"),
    "call_limit": ("ResourceExhausted", "more tool calls than a run may make"),
    "result_limit": ("ResourceExhausted", "a value larger than may cross the boundary"),
    "log_limit": ("ResourceExhausted", "more printed than a run may print"),
    "depth_limit": ("ResourceExhausted", "saved tools nest deeper than they may"),
    "tool_error": ("ToolFailed", "the program raised ToolError"),
    "exception": ("ToolFailed", "the program raised an exception"),
    "sandbox_violation": ("SandboxViolation", "the worker tried what a worker may not"),
    "sandbox_unavailable": ("GovernanceUnavailable", "no sandbox can be had, so nothing runs"),
    "worker_died": ("Internal", "the worker ended without an answer"),
    "outdated": ("Outdated", "a tool it calls has changed or is gone; check it again"),
    "damaged": ("Damaged", "what the store holds is not what was saved"),
    "dedupe_conflict": ("Conflict", "the same key with other arguments"),
    "cancelled": ("Cancelled", "somebody called it off"),
    "example_failed": ("ExampleFailed", "an example of the source did not come out as it says"),
    "invalid_source": ("ValidationFailed", "the source was refused"),
    "internal_error": ("Internal", "a fault in Albert Tools itself"),
}

#: Codes that mean "refused before anything was done".
DENIALS = frozenset({"permission_denied", "governance_unavailable", "sandbox_unavailable"})


@dataclass(slots=True)
class Failure(Exception):
    """A failure that callers may see: raised inside, returned as data at the edge.

    `code` is one of `CODES`; `hint` says what to do; `details` is JSON (violations, partial output, …);
    `tool` is the tool that failed and `line` a line of the saved tool that it failed in; where that one was called by
    others, `details["trail"]` is the way there, ``{tool, line}`` each, outermost first.
    """

    code: str
    message: str
    hint: str | None = None
    retryable: bool = False
    retry_after_ms: int | None = None
    rule: str | None = None
    tool: str | None = None
    line: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise AssertionError(f"unknown failure code {self.code!r}")
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return self.message

    @property
    def denied(self) -> bool:
        """Whether this is a denial: nothing was done."""
        return self.code in DENIALS

    @property
    def kind(self) -> str:
        """The name of its kind, as records and other languages call it: ``PolicyDenied``, ``NotFound``, …"""
        return CODES[self.code][0]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; `type` names the kind of `code`."""
        source = None
        if self.line is not None:
            trail = self.details.get("trail")
            source = {"tool": trail[-1]["tool"], "line": self.line} if trail else {"line": self.line}
        return {
            "code": self.code,
            "type": self.kind,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "retry_after_ms": self.retry_after_ms,
            "rule": self.rule,
            "tool": self.tool,
            "source": source,
            "details": self.details,
        }
