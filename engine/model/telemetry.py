"""The notices that observers get: one when a call starts, and one when it ends.

Each call is a *span* of a *trace*, as in the W3C's Trace Context. All calls of one request share a trace, and a span contains the
id of its parent. The record and all observers use the same ids. This module only defines the interface and is fast to import. The
observers are in `albert_tools.telemetry`.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, NamedTuple, Protocol

#: How a call ended. A blocked call was not executed: it was denied, it was invalid, or its tool is unknown.
Outcome = Literal["completed", "failed", "blocked"]


class Span(NamedTuple):
    """The ids of a call in a trace: 32, 16 and 16 lower-case hex digits. The parent may be the span of an outside caller."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    #: False if the outside caller requested that this trace is not recorded.
    sampled: bool = True


class Started(NamedTuple):
    """The start of a call. `verdict`, `rule` and `mode` belong to the decision; they are None if the call was blocked earlier.

    If the tool is unknown, `kind`, `version` and `description` are None, and `tool` is the requested name. `arguments` are not
    redacted, so observers must redact secrets. `session` is a session's id, never its token. `callers` are the saved tools through
    which this call was made, outermost first.
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
    #: The arguments of which only a hash may be stored.
    by_hash: tuple[str, ...] = ()


class Ended(NamedTuple):
    """The end of `started`. `code`, `category`, `message` and `rule` belong to the failure; they are None on success.

    `retried` is the number of further attempts, and `effects` lists the effects. `output` is not redacted.
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
    output: Any = None
    #: The exception of a primitive that is a fault in its code. Not redacted.
    fault: BaseException | None = None


class Observer(Protocol):
    """Gets the notices of calls, in the call's own task. Its methods must not block. Their exceptions are dropped."""

    def started(self, span: Span, call: Started) -> None:
        """Called when a call starts."""

    def ended(self, span: Span, call: Ended) -> None:
        """Called when a call has ended, once for each call that started."""


_TRACE = re.compile(r"[0-9a-fA-F]{32}")
#: Version, trace, parent, flags. Later versions may have more fields (https://www.w3.org/TR/trace-context/#traceparent-header).
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
#: The maximum length of a caller's trace, in characters. A longer trace is ignored.
_MAX_TRACE = 512
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


def new_span(parent: Span | None = None, trace: str | None = None) -> Span:
    """A new span. It is a child of `parent` if given, otherwise part of the caller's `trace` if valid, otherwise part of a new
    trace.

    `trace` is a W3C traceparent or a trace id of 32 hex digits. Any other text is ignored.
    """
    if parent is not None:
        return Span(parent.trace_id, new_id(), parent.span_id, parent.sampled)
    if isinstance(trace, str) and len(trace) <= _MAX_TRACE:
        if _TRACE.fullmatch(trace) and trace != _NO_TRACE:
            return Span(trace.lower(), new_id())
        match = _TRACEPARENT.fullmatch(trace)
        if match and match[2] != _NO_TRACE and match[3] != _NO_SPAN and _valid_version(match[1], match[5]):
            return Span(match[2], new_id(), match[3], bool(int(match[4], 16) & 1))
    ids = os.urandom(24).hex()
    return Span(ids[:32], ids[32:])


def traceparent(span: Span) -> str:
    """The span as a W3C traceparent, for another service."""
    return f"00-{span.trace_id}-{span.span_id}-{'01' if span.sampled else '00'}"


def _valid_version(version: str, more: str | None) -> bool:
    return version != "ff" and (version != "00" or more is None)


def new_id() -> str:
    """A random id of 16 hex digits: of a span, or of a run. The ids of a run's calls are ``RUN:STEP``."""
    return os.urandom(8).hex()
