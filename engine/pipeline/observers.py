"""Notify the observer when a call begins and when it ends. An observer's exception never affects the call."""

from __future__ import annotations

import asyncio
from typing import Any

from albert_tools.engine.call.context import Call
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.telemetry import Ended, Span, Started, new_span
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable, export


def span_of(call: Call, parent: Span | None) -> Span | None:
    """The span of a call. A request always has a span, for its result. Nested calls only have a span if there is an observer."""
    request = call.request
    if parent is None and not call.depth:
        return new_span(None, request.invocation.trace)
    return new_span(parent) if request.context.observer is not None else None


def started(call: Call, target: Target | None, tool: Any, arguments: Any) -> None:
    """Report that a call begins or is refused. `target` is None for an unknown tool."""
    request = call.request
    if request.context.observer is None or call.span is None:
        return
    definition = target.definition if target is not None else None
    decision = call.decision
    call.notice = Started(
        str(tool),
        call.id,
        _copy(arguments),
        definition.version if definition else None,
        definition.kind if definition else None,
        definition.description if definition else None,
        request.run.id,
        request.session.id if request.session is not None else None,
        request.invocation.request_id,
        call.depth,
        call.callers,
        decision.verdict if decision else None,
        decision.rule if decision else None,
        call.mode or None,
        definition.by_hash if definition else (),
    )
    try:
        request.context.observer.started(call.span, call.notice)
    except Exception as fault:
        _report(fault)


def ended(
    call: Call,
    failure: Failure | None,
    seconds: float,
    effects: int,
    output: Any = None,
    *,
    blocked: bool = False,
) -> None:
    """Report the end of a call whose beginning was reported. `blocked` states whether the call was refused."""
    observer, notice, span = call.request.context.observer, call.notice, call.span
    if observer is None or notice is None or span is None:
        return
    call.notice = None
    try:
        if failure is None:
            end = Ended(notice, "completed", seconds, retried=call.retried, effects=effects, output=_copy(output))
        else:
            end = Ended(
                notice,
                "blocked" if blocked else "failed",
                seconds,
                failure.code,
                failure.category,
                failure.message,
                failure.rule,
                call.retried,
                effects,
            )
        observer.ended(span, end)
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
