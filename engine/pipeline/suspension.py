"""Suspend a resumed run again if its next call is denied for a temporary reason.

A resumed run has already done part of its work, which would be lost if a lockdown or an exhausted rate limit ended the run. So the
run is suspended again if the call at which it was interrupted is denied for such a reason. If a later call is denied, the program
gets the denial, because it may have another way to continue.
"""

from __future__ import annotations

from albert_tools.engine.call.context import NOT_RESUMED, Call, Run
from albert_tools.engine.model.definition import Mode
from albert_tools.engine.model.failure import Failure


def denied_for_now(failure: Failure, call: Call, run: Run) -> bool:
    """Whether a resumed run was interrupted at this call, and the denial is temporary."""
    if run.options.resumed is NOT_RESUMED or not failure.denied:
        return False
    return _is_temporary(failure, call, run) and (not call.depth or run.journal.was_interrupted_at(call.step))


def _is_temporary(failure: Failure, call: Call, run: Run) -> bool:
    if failure.code == "rate_limited":
        # A limit of zero calls has no `retry_after_ms`, because it never allows a call.
        return failure.retry_after_ms is not None
    if failure.code in ("governance_unavailable", "sandbox_unavailable"):
        return True
    if failure.details.get("asked") == "nobody":
        return True
    try:
        return _forbidden(call, run, call.mode) and not _forbidden(call, run, "NORMAL")
    except Exception:
        # The fault may no longer exist at the next attempt.
        return True


def _forbidden(call: Call, run: Run, mode: Mode) -> bool:
    """Whether the rules deny every call of the tool in this mode."""
    authority, target = run.service.authority, call.target
    if authority is None:
        return False
    gated = target.primitive is not None and target.primitive.gated
    return authority.policy.permits(target.definition, gated, mode).verdict == "deny"


def suspended_by(failure: Failure, run: str) -> Failure:
    """The failure that suspends a run after a temporary denial."""
    when = "" if failure.retry_after_ms is None else f" in {max(1, round(failure.retry_after_ms / 1000)):,} seconds"
    return Failure(
        "suspended",
        f"{failure.message}; the run waits",
        hint=f"the run {run} can be resumed{when or ' when the reason for the denial has ended'}",
        retryable=True,
        retry_after_ms=failure.retry_after_ms,
        rule=failure.rule,
        tool=failure.tool,
        details={"run": run, "denied": failure.code},
    )
