"""OpenTelemetry spans, by its conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/).

Each call has one span, ``execute_tool {name}``. Its parent is the span of the calling tool. If there is no calling tool, the
parent is the span in the caller's traceparent; without a traceparent, it is the current span of the application. OpenTelemetry
generates its own ids. With a provider that uses `SharedIds`, the record, the events and the spans have the same ids. The
attributes `albert.trace.id` and `albert.span.id` always contain the ids of the record.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.messages import install_command
from albert_tools.engine.model.telemetry import Ended, Span, Started, traceparent
from albert_tools.telemetry import sanitize

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import TracerProvider

#: The most open spans. If there are more, the oldest one is ended.
MAX_OPEN = 10_000
#: The most characters of a tool's description.
MAX_DESCRIPTION = 1_000

_MISSING = f"spans need OpenTelemetry: {install_command('otel')}"

#: In each thread, the span of the call that is being started.
_STARTING = threading.local()


class OpenTelemetryObserver:
    """Creates a span for every call, with `provider` or the default provider of the process.

    With `arguments` and `results`, the spans include these as JSON, redacted and shortened as in the record.

    Raises:
        ImportError: the extra `otel` isn't installed.
    """

    def __init__(
        self, provider: TracerProvider | None = None, *, arguments: bool = False, results: bool = False
    ) -> None:
        trace = _library()
        self._trace = trace
        self._tracer = trace.get_tracer("albert_tools", tracer_provider=provider)
        self._arguments = arguments
        self._results = results
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OtelSpan] = OrderedDict()

    def started(self, span: Span, call: Started) -> None:
        """Start the span."""
        tool = sanitize.tool(call)
        attributes = _attributes(span, call, tool)
        if self._arguments:
            attributes["gen_ai.tool.call.arguments"] = sanitize.compact(sanitize.arguments(call))
        _STARTING.span = span
        try:
            begun = self._tracer.start_span(
                f"execute_tool {tool}",
                self._parent(span),
                kind=self._trace.SpanKind.INTERNAL,
                attributes=attributes,
            )
        finally:
            _STARTING.span = None
        oldest = None
        with self._lock:
            self._open[span.span_id] = begun
            if len(self._open) > MAX_OPEN:
                _, oldest = self._open.popitem(last=False)
        if oldest is not None:
            oldest.end()

    def ended(self, span: Span, call: Ended) -> None:
        """End the span; with status error if the call failed or was blocked."""
        with self._lock:
            begun = self._open.pop(span.span_id, None)
        if begun is None:
            return
        try:
            if begun.is_recording():
                self._add_outcome(begun, call)
        finally:
            begun.end()

    def _add_outcome(self, begun: OtelSpan, call: Ended) -> None:
        attributes: dict[str, Any] = {"albert.outcome": call.outcome, "albert.effects": call.effects}
        if call.retried:
            attributes["albert.retried"] = call.retried
        if call.rule is not None:
            # The rule of the failure is more specific than the rule that allowed the call.
            attributes["albert.policy.rule_id"] = sanitize.printable(call.rule)
        if call.outcome != "completed":
            attributes["error.type"] = call.code or "_OTHER"
            if call.category is not None:
                attributes["albert.failure.category"] = call.category
            if call.fault is not None:
                stack = "\n".join(sanitize.trace(call.fault))
                begun.add_event(
                    "exception", {"exception.type": type(call.fault).__name__, "exception.stacktrace": stack}
                )
            begun.set_status(self._trace.StatusCode.ERROR, sanitize.line(call.message or ""))
        elif self._results:
            attributes["gen_ai.tool.call.result"] = sanitize.compact(sanitize.value(call.output))
        begun.set_attributes(attributes)

    def _parent(self, span: Span) -> Context | None:
        """The context of the parent span; None means the current context."""
        if span.parent_id is None:
            return None
        with self._lock:
            caller = self._open.get(span.parent_id)
        if caller is None:
            context = self._trace.SpanContext(
                int(span.trace_id, 16),
                int(span.parent_id, 16),
                is_remote=True,
                trace_flags=self._trace.TraceFlags(self._trace.TraceFlags.SAMPLED if span.sampled else 0),
            )
            caller = self._trace.NonRecordingSpan(context)
        within: Context = self._trace.set_span_in_context(caller)
        return within


class SharedIds:
    """An `IdGenerator` that uses the ids of the record for the spans of calls: ``TracerProvider(id_generator=SharedIds())``.

    Other spans get random ids, as with the SDK's own generator.

    Raises:
        ImportError: the extra `otel` isn't installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        except ImportError as error:
            raise ImportError(_MISSING) from error

        self._random = RandomIdGenerator()

    def generate_span_id(self) -> int:
        """The id of the next span."""
        span = getattr(_STARTING, "span", None)
        return self._random.generate_span_id() if span is None else int(span.span_id, 16)

    def generate_trace_id(self) -> int:
        """The id of the next trace."""
        span = getattr(_STARTING, "span", None)
        return self._random.generate_trace_id() if span is None else int(span.trace_id, 16)

    def is_trace_id_random(self) -> bool:
        """Whether the trace id is random. A caller may have chosen the trace id of a call."""
        return getattr(_STARTING, "span", None) is None


def _library() -> Any:
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return trace


def current_trace() -> str | None:
    """The current span as a traceparent. Pass it as `trace` to `invoke`, so that the record contains the caller's trace.

    Raises:
        ImportError: the extra `otel` isn't installed.
    """
    context = _library().get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return traceparent(Span(f"{context.trace_id:032x}", f"{context.span_id:016x}", None, context.trace_flags.sampled))


@lru_cache(maxsize=1_000)
def _described(description: str) -> str:
    """A tool's description, sanitized. It is cached, because it is equal at every call."""
    return sanitize.line(description, MAX_DESCRIPTION)


def _attributes(span: Span, call: Started, tool: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call.call_id,
        # The convention doesn't distinguish primitives and composites; `albert.tool.kind` does.
        "gen_ai.tool.type": "function",
        "albert.trace.id": span.trace_id,
        "albert.span.id": span.span_id,
        "albert.depth": call.depth,
    }
    if call.description is not None:
        attributes["gen_ai.tool.description"] = _described(call.description)
    for attribute, value in (
        ("albert.tool.kind", call.kind),
        ("albert.tool.version", call.version),
        ("albert.run.id", call.run_id),
        ("albert.policy.verdict", call.verdict),
        ("albert.policy.rule_id", call.rule),
        ("albert.mode", call.mode),
    ):
        if value is not None:
            attributes[attribute] = sanitize.printable(value)
    for attribute, chosen in (("albert.session.id", call.session), ("albert.request.id", call.request_id)):
        if chosen is not None:
            attributes[attribute] = sanitize.name(chosen)
    if call.callers:
        attributes["albert.callers"] = [sanitize.printable(caller) for caller in call.callers]
    return attributes
