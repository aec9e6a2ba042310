"""What can go wrong, as codes.

A code is stable: programs match on ``error.code``, the command line maps it to an exit code, and the tests name
it. The sentence beside it is for reading. Each code is of one of five categories, for those who count. `CODES` is the
whole list; a code that is not on it is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

#: What sort of thing goes wrong; failures are counted by it.
FailureCategory = Literal["permission", "validation", "timeout", "exception", "exhaustion"]
FAILURE_CATEGORIES: tuple[FailureCategory, ...] = get_args(FailureCategory)


class Code(NamedTuple):
    """What a code says: the name of its kind, as records and other languages call it, its category, its meaning."""

    kind: str
    category: FailureCategory
    meaning: str


#: Every code there is.
CODES: dict[str, Code] = {
    "permission_denied": Code("PolicyDenied", "permission", "a rule, or the absence of one, said no"),
    "governance_unavailable": Code(
        "GovernanceUnavailable", "permission", "nothing can be judged, so everything is denied"
    ),
    "suspended": Code("Suspended", "permission", "waits for a person's answer; nothing is lost"),
    "rate_limited": Code(
        "RateLimited", "exhaustion", "more calls within the time than a rule allows; `retry_after_ms` says when"
    ),
    "budget_exceeded": Code("BudgetExceeded", "exhaustion", "the session's budget has no room for the call"),
    "unknown_tool": Code("UnknownTool", "validation", "no tool of that name, or no such version"),
    "invalid_arguments": Code("ValidationFailed", "validation", "the arguments break the tool's schema"),
    "invalid_result": Code("ValidationFailed", "validation", "the output breaks the tool's result schema"),
    "not_json": Code("ValidationFailed", "validation", "a value that can not cross the boundary"),
    "not_found": Code("NotFound", "exception", "there is nothing at that path"),
    "exists": Code("Conflict", "exception", "something is there already"),
    "not_a_file": Code("IOFailed", "exception", "the path names something that is not a regular file"),
    "not_a_directory": Code("IOFailed", "exception", "the path names something that is not a folder"),
    "encoding_error": Code("EncodingError", "exception", "bytes that are not text in the encoding asked for"),
    "too_large": Code("ResourceExhausted", "exhaustion", "a size over its limit"),
    "io_error": Code("IOFailed", "exception", "the operating system refused"),
    "network_error": Code("IOFailed", "exception", "no answer from the other side"),
    "service_error": Code(
        "ServiceFailed", "exception", "the other side answered that it can't, or what nobody can read"
    ),
    "timeout": Code("Timeout", "timeout", "a call took longer than it may"),
    "time_limit": Code("Timeout", "timeout", "the program's own time is used up"),
    "run_limit": Code("Timeout", "timeout", "the whole run took longer than it may"),
    "cpu_limit": Code("ResourceExhausted", "exhaustion", "the processor time is used up"),
    "memory_limit": Code("ResourceExhausted", "exhaustion", "the memory is used up"),
    "process_limit": Code("ResourceExhausted", "exhaustion", "more processes at once than a command may have"),
    "recursion_limit": Code("ResourceExhausted", "exhaustion", "calls nest deeper than they may"),
    "call_limit": Code("ResourceExhausted", "exhaustion", "more tool calls than a run may make"),
    "result_limit": Code("ResourceExhausted", "exhaustion", "a value larger than may cross the boundary"),
    "log_limit": Code("ResourceExhausted", "exhaustion", "more printed than a run may print"),
    "depth_limit": Code("ResourceExhausted", "exhaustion", "saved tools nest deeper than they may"),
    "tool_error": Code("ToolFailed", "exception", "the program raised ToolError"),
    "exception": Code("ToolFailed", "exception", "the program raised an exception"),
    "sandbox_violation": Code("SandboxViolation", "permission", "the worker tried what a worker may not"),
    "sandbox_unavailable": Code("GovernanceUnavailable", "permission", "no sandbox can be had, so nothing runs"),
    "worker_died": Code("Internal", "exception", "the worker ended without an answer"),
    "outdated": Code("Outdated", "validation", "a tool it calls has changed or is gone; check it again"),
    "damaged": Code("Damaged", "exception", "what the store holds is not what was saved"),
    "dedupe_conflict": Code("Conflict", "validation", "the same key with other arguments"),
    "cancelled": Code("Cancelled", "exception", "somebody called it off"),
    "diverged": Code("Diverged", "exception", "the program asks for another call than the run's journal has"),
    "unknown_outcome": Code(
        "UnknownOutcome", "exception", "whether an effect that was interrupted took place is not known"
    ),
    "example_failed": Code("ExampleFailed", "validation", "an example of the source did not come out as it says"),
    "invalid_source": Code("ValidationFailed", "validation", "the source was refused"),
    "internal_error": Code("Internal", "exception", "a fault in Albert Tools itself"),
}

#: Codes that mean "refused before anything was done".
DENIALS = frozenset(
    {"permission_denied", "governance_unavailable", "sandbox_unavailable", "rate_limited", "budget_exceeded"}
)

#: Why a call was denied, in a word, where neither the failure nor its rule says it.
_RATIONALES = {
    "governance_unavailable": "unavailable",
    "sandbox_unavailable": "unavailable",
    "rate_limited": "rate_limit",
    "budget_exceeded": "budget",
}
_PLACES = {
    "session": "session",
    "lease": "lease",
    "path_traversal": "outside_workspace",
    "outside_workspace": "outside_workspace",
}

#: Failures that end a run where it stands: no program sees them, and no step has ended with one.
ENDING = frozenset({"suspended", "cancelled", "diverged", "unknown_outcome"})


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
    def rationale(self) -> str | None:
        """Why it was denied, in a word that programs can match on; None for what is no denial."""
        if not self.denied:
            return None
        if "rationale_code" in self.details:
            return str(self.details["rationale_code"])
        place = (self.rule or "").partition(".")[0]
        return _RATIONALES.get(self.code) or _PLACES.get(place, "denied")

    @property
    def kind(self) -> str:
        """The name of its kind, as records and other languages call it: ``PolicyDenied``, ``NotFound``, …"""
        return CODES[self.code].kind

    @property
    def category(self) -> FailureCategory:
        """What sort of thing went wrong."""
        return CODES[self.code].category

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; `type` names the kind of `code`."""
        source = None
        if self.line is not None:
            trail = self.details.get("trail")
            source = {"tool": trail[-1]["tool"], "line": self.line} if trail else {"line": self.line}
        return {
            "code": self.code,
            "type": self.kind,
            "category": self.category,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "retry_after_ms": self.retry_after_ms,
            "rule": self.rule,
            "tool": self.tool,
            "source": source,
            "details": self.details,
        }
