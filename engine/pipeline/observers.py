"""Telling whoever watches: a notice as a call begins, one as it ends. What they do with it is never the call's trouble."""

from __future__ import annotations

import asyncio
from typing import Any

from albert_tools.engine.call.context import Chain
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.telemetry import Ended, Span, Started, new_span
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable, export


def span_of(chain: Chain, parent: Span | None) -> Span | None:
    """The call's place in the trace; None within a request that nobody watches, but for the request's own."""
    request = chain.request
    if parent is None and not chain.depth:
        return new_span(None, request.invocation.trace)
    return new_span(parent) if request.surroundings.observer is not None else None


def started(chain: Chain, target: Target | None, tool: Any, arguments: Any) -> None:
    """A call begins, or is about to be refused."""
    request = chain.request
    if request.surroundings.observer is None or chain.span is None:
        return
    definition = target.definition if target is not None else None
    decision = chain.decision
    chain.notice = Started(
        str(tool),
        chain.call.id,
        _copy(arguments),
        definition.version if definition else None,
        definition.kind if definition else None,
        definition.description if definition else None,
        request.run.id,
        request.session.id if request.session is not None else None,
        request.invocation.request_id,
        chain.depth,
        chain.callers,
        decision.verdict if decision else None,
        decision.rule if decision else None,
        chain.mode or None,
        definition.by_hash if definition else (),
    )
    try:
        request.surroundings.observer.started(chain.span, chain.notice)
    except Exception as fault:
        _complain(fault)


def ended(
    chain: Chain,
    failure: Failure | None,
    seconds: float,
    effects: int,
    output: Any = None,
    *,
    blocked: bool = False,
) -> None:
    """It has ended: told once for each that has started."""
    observer, notice, span = chain.request.surroundings.observer, chain.notice, chain.span
    if observer is None or notice is None or span is None:
        return
    chain.notice = None
    try:
        outcome: Any = "completed" if failure is None else "blocked" if blocked else "failed"
        if failure is None:
            told = Ended(notice, outcome, seconds, retried=chain.retried, effects=effects, output=_copy(output))
        else:
            told = Ended(
                notice,
                outcome,
                seconds,
                failure.code,
                failure.category,
                failure.message,
                failure.rule,
                chain.retried,
                effects,
            )
        observer.ended(span, told)
    except Exception as fault:
        _complain(fault)


def _copy(value: Any) -> Any:
    """What an observer may do with as it likes: what is done and handed on is what was decided."""
    try:
        return export(value, MAX_ANSWER)
    except Unexportable:
        # Then it is no value of ours, and nothing is made of it.
        return value


def _complain(fault: Exception) -> None:
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "an observer of calls failed", "exception": fault})
