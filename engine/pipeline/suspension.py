"""Denied for now: what a run that goes on was to do next may not be done at this moment, and may be later.

A run that waited for an answer, or was cut short, has begun something: it would be lost if going on with it at a bad moment, in a
lockdown say, or within a full window of calls, ended it. So where what it was about to do is denied by something that passes, it
waits again. What a program is denied further on it is told of, as always: it may have other ways.
"""

from __future__ import annotations

from albert_tools.engine.call.context import Chain
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import MODES
from albert_tools.engine.model.failure import Failure


def denied_for_now(failure: Failure, target: Target, chain: Chain) -> bool:
    """Whether a call of a run that goes on is one that the run was at, and is denied by what passes."""
    run = chain.request.run
    if not run.resumed or run.steps is None or not failure.denied:
        return False
    return _passes(failure, target, chain) and (not chain.depth or run.steps.was_at(chain.step))


def _passes(failure: Failure, target: Target, chain: Chain) -> bool:
    if failure.code == "rate_limited":
        # A limit of no calls at all never has room again.
        return failure.retry_after_ms is not None
    if failure.code in ("governance_unavailable", "sandbox_unavailable"):
        return True
    if failure.details.get("asked") == "nobody":
        return True
    try:
        # What is forbidden in NORMAL too is meant to be.
        return _forbidden(target, chain, chain.mode) and not _forbidden(target, chain, "NORMAL")
    except Exception:
        # A fault while judging is one that may have passed, too, when somebody tries again.
        return True


def _forbidden(target: Target, chain: Chain, mode: str) -> bool:
    """Whether the mode alone forbids the tool, whatever it touches."""
    authority = chain.request.surroundings.authority
    if authority is None or mode not in MODES:
        return False
    gated = target.primitive is not None and target.primitive.gated
    return authority.policy.permits(target.definition, gated, mode).verdict == "deny"


def waits(failure: Failure, run: str) -> Failure:
    """What the run ends with for this time."""
    when = "" if failure.retry_after_ms is None else f" in {max(1, round(failure.retry_after_ms / 1000)):,} seconds"
    return Failure(
        "suspended",
        f"{failure.message}; the run waits",
        hint=f"the run {run} can be resumed{when or ' once that has passed'}",
        retryable=True,
        retry_after_ms=failure.retry_after_ms,
        rule=failure.rule,
        tool=failure.tool,
        details={"run": run, "denied": failure.code},
    )
