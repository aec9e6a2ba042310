"""What is told of calls while they happen, to whoever watches: one notice as a call begins, one as it ends.

Each call is a *span* of a *trace*, in the sense of the W3C's Trace Context: the trace is shared by everything that one request
brings about, and a span knows the one it was made by. The record and every observer use the same ids, so that what one says can be
found in the other. This module is the contract alone and loads nothing; `albert_tools.telemetry` has observers.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, NamedTuple, Protocol

#: How a call ended. A blocked one was not made at all: refused, invalid, or unknown.
Outcome = Literal["completed", "failed", "blocked"]


class Span(NamedTuple):
    """One call's place: 32, 16 and 16 lower-case hex digits. `parent_id` may be a caller's outside; `sampled` is its wish."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    #: False when whoever called from outside said that nothing is to be kept of this trace.
    sampled: bool = True


class Started(NamedTuple):
    """A call that begins. `verdict`, `rule` and `mode` are the decision's, None when it was blocked before one was reached.

    `kind`, `version` and `description` are None when no tool was found, and then `tool` is whatever was asked for. `arguments`
    are as they came, secrets included: observers redact. `session` is a session's id, never its token. `callers` are the saved
    tools that this call comes from, outermost first.
    """

    tool: str
    call_id: str
    arguments: Any = None
    version: str | None = None
    kind: str | None = None
    description: str | None = None
    run_id: str | None = None
    session: str | None = None
    request_id: str | None = None
    depth: int = 0
    callers: tuple[str, ...] = ()
    verdict: str | None = None
    rule: str | None = None
    mode: str | None = None
    #: The arguments of which nothing but the hash is to be kept.
    by_hash: tuple[str, ...] = ()


class Ended(NamedTuple):
    """What came of `started`. `code`, `category`, `message` and `rule` are the failure's, None when there is none.

    `retried` counts further attempts, `effects` what was done; `output` is as the caller gets it, secrets included.
    """

    started: Started
    outcome: Outcome
    seconds: float
    code: str | None = None
    category: str | None = None
    message: str | None = None
    rule: str | None = None
    retried: int = 0
    effects: int = 0
    result_hash: str | None = None
    output: Any = None


class Observer(Protocol):
    """Whoever watches calls. Told in the call's own task, so it must not wait; what it raises is its own trouble."""

    def started(self, span: Span, call: Started) -> None:
        """A call begins."""

    def ended(self, span: Span, call: Ended) -> None:
        """It has ended; told once for each that has started."""


_TRACE = re.compile(r"[0-9a-fA-F]{32}")
#: Version, trace, parent, flags. Later versions may have more behind it (https://www.w3.org/TR/trace-context/#traceparent-header).
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
#: Characters of a caller's trace that are looked at.
_MAX_TRACE = 512
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


def new_span(parent: Span | None = None, trace: str | None = None) -> Span:
    """A span of its own: within `parent`, else within the caller's `trace`, else of a new trace.

    `trace` is a W3C traceparent or a trace id of 32 hex digits; anything else it may be is ignored.
    """
    if parent is not None:
        return Span(parent.trace_id, _id(), parent.span_id, parent.sampled)
    if isinstance(trace, str) and len(trace) <= _MAX_TRACE:
        if _TRACE.fullmatch(trace) and trace != _NO_TRACE:
            return Span(trace.lower(), _id())
        found = _TRACEPARENT.fullmatch(trace)
        if found and found[2] != _NO_TRACE and found[3] != _NO_SPAN and _known(found[1], found[5]):
            return Span(found[2], _id(), found[3], bool(int(found[4], 16) & 1))
    return Span(_id() + _id(), _id())


def traceparent(span: Span) -> str:
    """The span as a W3C traceparent, for what is called further on."""
    return f"00-{span.trace_id}-{span.span_id}-{'01' if span.sampled else '00'}"


def _known(version: str, more: str | None) -> bool:
    return version != "ff" and (version != "00" or more is None)


#: Ids that are drawn but not used: asking the system for many at once costs a tenth of asking for each.
_drawn: list[str] = []
_BATCH = 256

# A process and its fork must not go on with the same ids.
os.register_at_fork(after_in_child=_drawn.clear)


def _id() -> str:
    try:
        # One step for any number of threads.
        return _drawn.pop()
    except IndexError:
        digits = os.urandom(8 * _BATCH).hex()
        ids = [digits[i : i + 16] for i in range(0, len(digits), 16)]
        last = ids.pop()
        _drawn.extend(ids)
        return last
