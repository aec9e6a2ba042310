"""A failure: the error that the caller of a tool sees, with a stable code from `error_codes`."""

from __future__ import annotations

from typing import Any, Self

from albert_tools.engine.model.error_codes import CODES, DENIALS, FailureCategory

#: The reason of a denial, by the first word of its rule. For any other rule, the code determines the reason.
_REASON_OF_RULE = {
    "session": "session",
    "lease": "lease",
    "path_traversal": "outside_workspace",
    "outside_workspace": "outside_workspace",
}


class Failure(Exception):
    """An error for the caller. It is raised inside the service and converted to data in the result.

    `code` is one of `CODES`; `hint` says what to do; `details` is JSON (violations, partial output, …). `tool` is the tool that
    failed, and `line` is the line in the saved tool. If other tools called that tool, `details["trail"]` lists the lines of the
    calls as ``{tool, line}``, outermost first.
    """

    __slots__ = ("code", "details", "hint", "line", "message", "retry_after_ms", "retryable", "rule", "tool")

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        rule: str | None = None,
        tool: str | None = None,
        line: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        if code not in CODES:
            raise AssertionError(f"unknown failure code {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        # Every denial names a rule.
        self.rule = code if rule is None and code in DENIALS else rule
        self.tool = tool
        self.line = line
        self.details = details if details is not None else {}

    def copy(self, **changes: Any) -> Self:
        """A copy without traceback and cause. A stored failure is raised as a copy, because each raise adds to its traceback."""
        return type(self)(**({name: getattr(self, name) for name in Failure.__slots__} | changes))

    def __str__(self) -> str:
        return self.message

    @property
    def denied(self) -> bool:
        """Whether the failure is a denial: the call was not executed. A saved tool may have changed something before one of its
        calls was denied; then `details["applied"]` is the number of these changes."""
        return self.code in DENIALS

    @property
    def rationale(self) -> str | None:
        """The reason of a denial, as one word that programs can compare; None for any other failure."""
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
        """The name of the error's type in the record and in programs of other languages: ``PolicyDenied``, …"""
        return CODES[self.code].kind

    @property
    def category(self) -> FailureCategory:
        """The category in which the failure is counted."""
        return CODES[self.code].category

    def as_dict(self) -> dict[str, Any]:
        """The failure as JSON; `type` is the value of `kind`."""
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
