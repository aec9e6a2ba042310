"""Spans as the SDK exports them: names, attributes, parents, errors and ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from albert_tools.engine.model.telemetry import Ended, Span, new_span
from albert_tools.telemetry import OpenTelemetryObserver, SharedIds, current_trace
from albert_tools.telemetry.spans import MAX_OPEN
from tests.helpers.traced_calls import SECRET, nested, printed, refused, started

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Exported:
    """A provider and the spans that it exported."""

    def __init__(self, ids: Any = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(id_generator=ids)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> dict[str, ReadableSpan]:
        """The spans by name."""
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def only(self) -> dict[str, Any]:
        """The attributes of the only span."""
        (span,) = self._exporter.get_finished_spans()
        return dict(span.attributes or {})


@pytest.fixture
def exported() -> Exported:
    return Exported()


def once(observer: OpenTelemetryObserver, ended: Ended, trace: str | None = None) -> Span:
    """Make one call."""
    span = new_span(None, trace)
    observer.started(span, ended.started)
    observer.ended(span, ended)
    return span


def test_a_completed_call(exported: Exported) -> None:
    call = started(session="s1", request_id="q1")
    span = once(OpenTelemetryObserver(exported.provider), Ended(call, "completed", 0.1, effects=2))
    made = exported.spans()["execute_tool read_file"]
    assert made.kind is SpanKind.INTERNAL
    assert made.status.status_code is StatusCode.UNSET
    assert made.parent is None
    assert dict(made.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Read a file.",
        "albert.tool.kind": "primitive",
        "albert.tool.version": "v1",
        "albert.run.id": "r1",
        "albert.session.id": "s1",
        "albert.request.id": "q1",
        "albert.policy.verdict": "allow",
        "albert.policy.rule_id": "defaults.read",
        "albert.mode": "NORMAL",
        "albert.depth": 0,
        "albert.trace.id": span.trace_id,
        "albert.span.id": span.span_id,
        "albert.outcome": "completed",
        "albert.effects": 2,
    }
    assert made.instrumentation_scope is not None
    assert made.instrumentation_scope.name == "albert_tools"


def test_three_nested_calls(exported: Exported) -> None:
    nested(OpenTelemetryObserver(exported.provider))
    spans = exported.spans()
    outer, middle, inner = (spans[f"execute_tool {name}"] for name in ("report", "fetch_all", "http_request"))
    assert outer.parent is None
    assert middle.parent is not None
    assert inner.parent is not None
    assert middle.parent.span_id == outer.context.span_id
    assert inner.parent.span_id == middle.context.span_id
    assert not inner.parent.is_remote
    assert {s.context.trace_id for s in spans.values()} == {outer.context.trace_id}
    assert (inner.attributes or {})["albert.callers"] == ("report", "fetch_all")
    assert (inner.attributes or {})["albert.retried"] == 1


def test_an_error(exported: Exported) -> None:
    nested(OpenTelemetryObserver(exported.provider))
    made = exported.spans()["execute_tool http_request"]
    assert (made.status.status_code, made.status.description) == (StatusCode.ERROR, "no answer within 1 s")
    attributes = made.attributes or {}
    assert (attributes["error.type"], attributes["albert.failure.category"]) == ("timeout", "timeout")
    assert attributes["albert.outcome"] == "failed"


def test_a_blocked_call_names_the_rule_that_blocked_it(exported: Exported) -> None:
    once(OpenTelemetryObserver(exported.provider), refused())
    found = exported.only()
    assert (found["albert.outcome"], found["error.type"]) == ("blocked", "permission_denied")
    assert found["albert.policy.rule_id"] == "user.deny"
    assert "albert.policy.verdict" not in found


def test_arguments_and_results_are_exported_only_on_request_and_without_secrets() -> None:
    ended = Ended(
        started(arguments={"token": "hunter22", "path": "a\n"}),
        "completed",
        0.1,
        output={"api_key": "hunter22", "n": 1},
    )
    quiet, telling = Exported(), Exported()
    once(OpenTelemetryObserver(quiet.provider), ended)
    assert not {name for name in quiet.only() if name.endswith((".arguments", ".result"))}
    once(OpenTelemetryObserver(telling.provider, arguments=True, results=True), ended)
    found = telling.only()
    assert json.loads(found["gen_ai.tool.call.arguments"]) == {"token": "[redacted]", "path": "a\n"}
    assert json.loads(found["gen_ai.tool.call.result"]) == {"api_key": "[redacted]", "n": 1}
    assert "hunter22" not in str(found)


def test_names_and_messages_from_outside(exported: Exported) -> None:
    name = f"x\n\x1b[2J {SECRET}"
    call = started(name, kind=None, description=None, session=name, request_id=name)
    once(OpenTelemetryObserver(exported.provider), Ended(call, "blocked", 0.0, "unknown_tool", "validation", name))
    (made,) = exported.spans().values()
    told = [made.name, made.status.description or "", *map(str, (made.attributes or {}).values())]
    assert all(text.isprintable() and "ghp_" not in text for text in told)
    assert made.name == r"execute_tool x\n\x1b[2J [redacted]"


@pytest.mark.parametrize("ids", [SharedIds, lambda: None])
def test_a_callers_traceparent_is_the_parent(ids: Any) -> None:
    exported = Exported(ids())
    spans = nested(OpenTelemetryObserver(exported.provider), f"00-{TRACE}-{PARENT}-01")
    outer = exported.spans()["execute_tool report"]
    assert outer.parent is not None
    assert (f"{outer.parent.trace_id:032x}", f"{outer.parent.span_id:016x}") == (TRACE, PARENT)
    assert outer.parent.is_remote
    assert {f"{s.context.trace_id:032x}" for s in exported.spans().values()} == {TRACE} == {s.trace_id for s in spans}


def test_a_caller_that_asks_for_no_sampling_gets_none(exported: Exported) -> None:
    nested(OpenTelemetryObserver(exported.provider), f"00-{TRACE}-{PARENT}-00")
    assert exported.spans() == {}


@pytest.mark.parametrize("given", [None, TRACE])
def test_shared_ids_are_those_of_the_records(given: str | None) -> None:
    exported = Exported(SharedIds())
    spans = nested(OpenTelemetryObserver(exported.provider), given)
    made = list(exported.spans().values())
    assert {f"{s.context.span_id:016x}" for s in made} == {s.span_id for s in spans}
    assert {f"{s.context.trace_id:032x}" for s in made} == {spans[0].trace_id}
    assert given in (None, spans[0].trace_id)
    with exported.provider.get_tracer("other").start_as_current_span("other") as other:
        assert f"{other.get_span_context().trace_id:032x}" != spans[0].trace_id


def test_within_the_applications_span() -> None:
    exported = Exported(SharedIds())
    observer = OpenTelemetryObserver(exported.provider)
    assert current_trace() is None
    with exported.provider.get_tracer("app").start_as_current_span("request") as request:
        nested(observer)
        context = request.get_span_context()
        assert current_trace() == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
        # If a call names the application's trace, the record has it too.
        assert nested(observer, current_trace())[0].trace_id == f"{context.trace_id:032x}"
    spans = exported.spans()
    outer, middle = spans["execute_tool report"], spans["execute_tool fetch_all"]
    assert outer.parent is not None
    assert middle.parent is not None
    assert outer.parent.span_id == spans["request"].context.span_id
    assert middle.parent.span_id == outer.context.span_id


def test_a_provider_that_is_set_later_is_used_too() -> None:
    # In a separate process, because a provider can be set only once.
    code = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from albert_tools.telemetry import OpenTelemetryObserver
from tests.helpers.traced_calls import nested
observer = OpenTelemetryObserver()
nested(observer)
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
nested(observer)
print(sorted(span.name for span in exporter.get_finished_spans()))
"""
    assert printed(code) == "['execute_tool fetch_all', 'execute_tool http_request', 'execute_tool report']\n"


def test_the_oldest_open_span_is_ended_when_there_are_too_many(exported: Exported) -> None:
    observer = OpenTelemetryObserver(exported.provider)
    first = new_span()
    observer.started(first, started("lost"))
    for _ in range(MAX_OPEN):
        observer.started(new_span(), started("later"))
    assert list(exported.spans()) == ["execute_tool lost"]
    observer.ended(first, Ended(started("lost"), "completed", 0.0))
    assert len(exported.spans()) == 1


def test_without_the_library_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from albert_tools.telemetry import OpenTelemetryObserver, SharedIds, current_trace
for make in (OpenTelemetryObserver, SharedIds, current_trace):
    try:
        make()
    except ImportError as error:
        print(error)
"""
    assert (
        printed(code)
        == 'spans need OpenTelemetry: pip install "albert-tools[otel]"; in a clone: pip install ".[otel]"\n' * 3
    )


def test_the_observer_does_not_change_the_current_span(exported: Exported) -> None:
    nested(OpenTelemetryObserver(exported.provider))
    assert not trace.get_current_span().get_span_context().is_valid
