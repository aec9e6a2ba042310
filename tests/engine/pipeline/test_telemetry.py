"""Trace and span ids: a caller's trace is continued, an invalid one is ignored, and ids are unique."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.telemetry import Span, new_span, traceparent
from tests.helpers.traced_calls import printed

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def test_a_span_of_a_new_trace() -> None:
    span = new_span()
    assert re.fullmatch(r"[0-9a-f]{32}", span.trace_id)
    assert re.fullmatch(r"[0-9a-f]{16}", span.span_id)
    assert span.parent_id is None
    assert span.sampled


def test_a_child_span_stays_in_the_trace() -> None:
    outer = new_span(None, f"00-{TRACE}-{PARENT}-00")
    inner = new_span(outer, "f" * 32)
    assert inner == Span(TRACE, inner.span_id, outer.span_id, False)
    assert inner.span_id != outer.span_id


@pytest.mark.parametrize(
    ("trace", "parent", "sampled"),
    [
        (f"00-{TRACE}-{PARENT}-01", PARENT, True),
        (f"00-{TRACE}-{PARENT}-00", PARENT, False),
        (f"00-{TRACE}-{PARENT}-02", PARENT, False),
        (f"cc-{TRACE}-{PARENT}-01-what-will-be-said", PARENT, True),
        (TRACE, None, True),
        (TRACE.upper(), None, True),
    ],
)
def test_a_callers_trace(trace: str, parent: str | None, sampled: bool) -> None:
    span = new_span(None, trace)
    assert (span.trace_id, span.parent_id, span.sampled) == (TRACE, parent, sampled)
    assert span.span_id != PARENT


@pytest.mark.parametrize(
    "trace",
    [
        "",
        "0" * 32,
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
        f"{TRACE}\n",
        f" {TRACE}",
        f"00-{TRACE}-{PARENT}",
        "٤" * 32,
        f"cc-{TRACE}-{PARENT}-01-{'x' * 1000}",
        42,
        b"0" * 32,
        ["00"],
    ],
)
def test_an_invalid_trace_is_ignored(trace: object) -> None:
    span = new_span(None, trace)  # type: ignore[arg-type]
    assert span.parent_id is None
    assert span.trace_id not in (TRACE, "0" * 32)
    assert re.fullmatch(r"[0-9a-f]{32}", span.trace_id)


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.?", fullmatch=True))
def test_ids_are_valid_for_any_trace(trace: str) -> None:
    span = new_span(None, trace)
    assert re.fullmatch(r"(?!0+$)[0-9a-f]{32}", span.trace_id)
    assert re.fullmatch(r"(?!0+$)[0-9a-f]{16}", span.span_id)
    assert span.parent_id is None or re.fullmatch(r"(?!0+$)[0-9a-f]{16}", span.parent_id)


def test_a_written_traceparent_is_parsed_back() -> None:
    for sampled in (True, False):
        span = Span(TRACE, PARENT, None, sampled)
        assert new_span(None, traceparent(span))[::2] == (TRACE, PARENT)
        assert new_span(None, traceparent(span)).sampled is sampled


def test_threads_share_no_ids() -> None:
    found: list[list[str]] = [[] for _ in range(8)]

    def draw(mine: list[str]) -> None:
        mine.extend(new_span().span_id for _ in range(2_000))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({span_id for mine in found for span_id in mine}) == 16_000


def test_a_fork_shares_no_ids_with_its_parent() -> None:
    # In a separate process, because forking a process with threads is unsafe.
    code = """
import os
from albert_tools.engine.model.telemetry import new_span
new_span()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, " ".join(new_span().span_id for _ in range(100)).encode())
    os._exit(0)
os.wait()
theirs = set(os.read(reading, 65536).decode().split())
assert len(theirs) == 100
assert not theirs & {new_span().span_id for _ in range(500)}
"""
    assert printed(code) == ""


def test_the_telemetry_module_loads_no_library() -> None:
    code = (
        "import sys; import albert_tools.engine.model.telemetry, albert_tools.telemetry;"
        "print([m for m in ('structlog', 'opentelemetry', 'pydantic') if m in sys.modules])"
    )
    assert printed(code) == "[]\n"
