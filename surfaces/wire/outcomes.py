"""Which failures are denied and which are errors, and what the response says about them.

*Denied* means that the request may not be made, and nothing was done. *Error* means that it may be made, but it failed.
"""

from __future__ import annotations

from typing import Any, Literal

from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.wire import tool_pb2 as pb
from albert_tools.surfaces.wire.tool_table import field_of

_DENIED = (
    "permission_denied",
    "governance_unavailable",
    "sandbox_unavailable",
    "budget_exceeded",
    "unknown_tool",
    "invalid_arguments",
    "dedupe_conflict",
    "invalid_source",
)
#: Every error code with the kind of its response.
OUTCOMES: dict[str, Literal["denied", "error"]] = {code: "denied" if code in _DENIED else "error" for code in CODES}
#: How long to wait before asking again whether a person has answered.
ASK_AGAIN_MS = 5000
#: The most violations in one response.
MAX_VIOLATIONS = 1100


def failed(request_id: str, tool: str, failure: Failure) -> pb.ToolResponse:
    """The response for a failure of a tool, by its name in `ToolRequest`."""
    message = f"{failure.message}; {failure.hint}" if failure.hint else failure.message
    if OUTCOMES[failure.code] == "denied":
        return denied(
            request_id,
            failure.rule or failure.code,
            f"{tool}_{failure.rationale or failure.code}",
            message,
            _violations(tool, failure.details),
        )
    wait = failure.retry_after_ms
    if failure.code == "suspended":
        wait = ASK_AGAIN_MS
    # A rate limit without a time allows no call at all.
    retryable = failure.retryable or (failure.code in ("rate_limited", "suspended") and wait is not None)
    error = pb.ToolError(
        error_code=failure.code, message=_text(message), retryable=retryable, retry_after_ms=max(0, wait or 0)
    )
    return pb.ToolResponse(request_id=request_id, error=error)


def denied(
    request_id: str, rule: str, rationale: str, message: str, violations: list[pb.ValidationError]
) -> pb.ToolResponse:
    """The response for a denial. The rationale is written in capitals."""
    denial = pb.ToolDenied(
        rule_id=_text(rule),
        rationale_code=_text(rationale).upper(),
        message=_text(message),
        violations=violations[:MAX_VIOLATIONS],
    )
    return pb.ToolResponse(request_id=request_id, denied=denial)


def _violations(tool: str, details: dict[str, Any]) -> list[pb.ValidationError]:
    """The violations of the arguments, or the findings in a source, by the fields of the request."""
    violations = [
        pb.ValidationError(field=_text(field_of(tool, v["field"])), rule=_text(v["rule"]), message=_text(v["message"]))
        for v in details.get("violations", ())
    ]
    for diagnostic in details.get("diagnostics", ()):
        place = f"source:{diagnostic['span']['line']}:{diagnostic['span']['column']}"
        violations.append(
            pb.ValidationError(field=place, rule=diagnostic["code"], message=_text(diagnostic["message"]))
        )
    return violations


def _text(text: str) -> str:
    """A text as protobuf accepts it: without halves of surrogate pairs, which may come from a file name."""
    return text.encode("utf-8", "backslashreplace").decode()
