"""A failure: the error that the caller of a tool sees, with a stable code from `error_codes`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from albert_tools.engine.model.error_codes import CODES, DENIALS, FailureCategory

#: Reason of a denial, by the first word of its rule; else that of its code.
_REASON_OF_RULE = {
    "session": "session",
    "lease": "lease",
    "path_traversal": "outside_workspace",
    "outside_workspace": "outside_workspace",
}


@dataclass(slots=True)
class Failure(Exception):
    """An error for the caller: raised inside, returned as data at the edge.

    `code` is one of `CODES`; `hint` says what to do; `details` is JSON (violations, partial output, …). `tool` is the tool that
    failed, `line` the line of the saved tool in which it failed. If that tool was called by others, `details["trail"]` has the
    lines of the calls, outermost first, each as ``{tool, line}``.
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
        """The reason of a denial, in one word that programs can compare; None for any other failure."""
        reason = CODES[self.code].denial
        if reason is None:
            return None
        if "rationale_code" in self.details:
            return str(self.details["rationale_code"])
        if reason != "denied":
            return reason
        return _REASON_OF_RULE.get((self.rule or "").partition(".")[0], reason)

    @property
    def kind(self) -> str:
        """The name of the error's type, as the record and programs in other languages call it: ``PolicyDenied``, …"""
        return CODES[self.code].kind

    @property
    def category(self) -> FailureCategory:
        """The category that the failure is counted by."""
        return CODES[self.code].category

    def as_dict(self) -> dict[str, Any]:
        """The failure as JSON; `type` is the name of its kind."""
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
