"""Notify the observer when a call begins and when it ends. An observer's exception never affects the call."""

from __future__ import annotations

import asyncio
from typing import Any

from albert_tools.engine.call.context import UNJUDGED, Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.telemetry import Ended, Span, Started, new_span
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable, export

#: The notice of a call's beginning; None if there is no observer.
Notice = Started | None


def span_of(run: Run, parent: Span | None) -> Span | None:
    """The span of a call by a program. Only an observer needs it."""
    return new_span(parent) if run.service.observer is not None else None


def started(call: Call, run: Run, refused: Failure | None = None) -> Notice:
    """Report that a call begins, or that it was refused."""
    observer = run.service.observer
    if observer is None or call.span is None:
        return None
    # Decisions are written already, see `begin`.
    run.entries.try_to_flush()
    definition = call.target.definition
    known = bool(definition.name)
    verdict, rule = (call.decision.verdict, call.decision.rule) if call.decision is not UNJUDGED else (None, None)
    if refused is not None and refused.denied and verdict is None:
        verdict, rule = "deny", refused.rule
    notice = Started(
        call.name,
        call.id,
        _copy(call.arguments or call.given),
        definition.version if known else None,
        definition.kind if known else None,
        definition.description if known else None,
        run.id,
        run.session.id,
        run.invocation.request_id,
        call.depth,
        call.callers,
        verdict,
        rule,
        call.mode if verdict is not None else None,
        definition.by_hash,
    )
    try:
        observer.started(call.span, notice)
    except Exception as fault:
        _report(fault)
    return notice


def ended(
    call: Call, run: Run, notice: Notice, outcome: Failure | Any, seconds: float, *, blocked: bool = False
) -> None:
    """Report the end of a call whose beginning was reported. `blocked` states whether the call was refused."""
    observer = run.service.observer
    if observer is None or notice is None or call.span is None:
        return
    run.entries.try_to_flush()
    report = call.report
    try:
        if not isinstance(outcome, Failure):
            end = Ended(
                notice,
                "completed",
                seconds,
                retried=report.retried,
                effects=len(report.effects),
                output=_copy(outcome),
            )
        else:
            end = Ended(
                notice,
                "blocked" if blocked else "failed",
                seconds,
                outcome.code,
                outcome.category,
                outcome.message,
                outcome.rule,
                report.retried,
                len(report.effects),
                fault=outcome.__cause__,
            )
        observer.ended(call.span, end)
    except Exception as fault:
        _report(fault)


def _copy(value: Any) -> Any:
    """A copy, so that an observer can't change the values that are executed or returned."""
    try:
        return export(value, MAX_ANSWER)
    except Unexportable:
        # The pipeline refuses a value that can't be copied, so nothing uses it.
        return value


def _report(fault: Exception) -> None:
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "an observer of calls failed", "exception": fault})
