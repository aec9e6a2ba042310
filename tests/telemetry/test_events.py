"""Events: each is one line of JSON, contains no secrets, and can't control a terminal."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import structlog

from albert_tools import SyncToolService, primitive
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.telemetry import Ended, new_span
from albert_tools.telemetry import OpenTelemetryObserver, StructlogObserver, from_environment
from tests.helpers.traced_calls import SECRET, nested, refused, start, started

HOSTILE = 'x\n{"event":"tool_call_completed"}\r\x1b[2J\x9b31m\u2028\u202e\ud800'


def lines(text: str) -> list[dict[str, Any]]:
    """Return every line, parsed as JSON."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_the_two_events_of_a_completed_call() -> None:
    stream = io.StringIO()
    observer = StructlogObserver(stream=stream)
    span = new_span()
    call = started(session="s1", request_id="q1")
    observer.started(span, call)
    observer.ended(span, Ended(call, "completed", 0.0125, effects=1))
    first, last = lines(stream.getvalue())
    assert list(first)[:3] == ["timestamp", "level", "event"]
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "tool_call_started",
        "level": "info",
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "call_id": "c1",
        "tool": "read_file",
        "version": "v1",
        "kind": "primitive",
        "run_id": "r1",
        "session": "s1",
        "request_id": "q1",
        "verdict": "allow",
        "rule": "defaults.read",
        "mode": "NORMAL",
        "arguments": {"path": "notes.md"},
    }
    assert last["event"] == "tool_call_completed"
    assert (last["latency_ms"], last["effects"]) == (12.5, 1)
    assert last["span_id"] == first["span_id"]
    assert "arguments" not in last
    assert observer.lost == 0


def test_events_of_nested_calls_that_fail() -> None:
    stream = io.StringIO()
    spans = nested(StructlogObserver(stream=stream))
    events = lines(stream.getvalue())
    assert [e["event"] for e in events] == ["tool_call_started"] * 3 + ["tool_call_failed"] * 3
    assert [e["tool"] for e in events[3:]] == ["http_request", "fetch_all", "report"]
    assert [e.get("parent_id") for e in events[:3]] == [s.parent_id for s in spans]
    assert {e["trace_id"] for e in events} == {spans[0].trace_id}
    failed = events[3]
    assert (failed["level"], failed["code"], failed["category"]) == ("warning", "timeout", "timeout")
    assert (failed["error"], failed["retried"]) == ("no answer within 1 s", 1)
    assert failed["callers"] == ["report", "fetch_all"]


def test_a_blocked_call_names_the_rule_that_blocked_it() -> None:
    stream = io.StringIO()
    StructlogObserver(stream=stream).ended(new_span(), refused())
    (event,) = lines(stream.getvalue())
    assert (event["event"], event["rule"], event["code"]) == ("tool_call_blocked", "user.deny", "permission_denied")
    assert "verdict" not in event


def test_a_fault_has_its_traceback_without_secrets(tmp_path: Path) -> None:
    @primitive(effects=["read"])
    def broken() -> None:
        """Fail."""
        raise KeyError(f"\x1b[31m token=hunter22 {SECRET}")

    (tmp_path / "work").mkdir()
    stream = io.StringIO()
    observer = StructlogObserver(stream=stream)
    with SyncToolService.open(
        home=tmp_path / "home", workspace=tmp_path / "work", primitives=[broken], telemetry=observer
    ) as service:
        assert service.invoke("broken", {}).error.code == "internal_error"
    trace = lines(stream.getvalue())[1]["traceback"]
    assert trace[0] == "Traceback (most recent call last):"
    assert any("in broken" in line for line in trace)
    assert trace[-1].startswith("KeyError: ")
    assert not any(secret in stream.getvalue() for secret in ("hunter22", SECRET, "\x1b"))


def test_events_have_no_secrets() -> None:
    stream = io.StringIO()
    observer = StructlogObserver(stream=stream)
    call = started(
        SECRET,
        kind=None,
        arguments={"token": "hunter22", "nested": [{"password": "hunter22"}], "url": f"https://x/?a={SECRET}"},
        request_id=f"bearer {SECRET}",
        session=SECRET,
    )
    observer.started(new_span(), call)
    observer.ended(new_span(), Ended(call, "failed", 0.0, "io_error", "exception", f"token=hunter22 {SECRET}"))
    observer.started(new_span(), call._replace(arguments=SECRET))
    assert len(lines(stream.getvalue())) == 3
    assert lines(stream.getvalue())[0]["arguments"]["token"] == "[redacted]"
    assert "hunter22" not in stream.getvalue()
    assert "ghp_" not in stream.getvalue()


def hostile(observer: StructlogObserver) -> None:
    """Two notices with `HOSTILE` in every field that a caller chooses."""
    call = started(
        HOSTILE, kind=None, arguments={HOSTILE: HOSTILE, "n": float("nan")}, session=HOSTILE, request_id=HOSTILE
    )
    call = call._replace(callers=(HOSTILE,), depth=1)
    observer.started(new_span(), call)
    observer.ended(new_span(), Ended(call, "blocked", 0.0, "unknown_tool", "validation", HOSTILE, rule=HOSTILE))


def test_a_hostile_name_stays_on_its_line() -> None:
    stream = io.StringIO()
    observer = StructlogObserver(stream=stream)
    hostile(observer)
    text = stream.getvalue()
    assert text.isascii()
    assert [c for c in text if not c.isprintable()] == ["\n", "\n"]
    first, last = lines(text)
    assert first["tool"].startswith(r"x\n{")
    assert first["arguments"]["n"] == "NaN"
    assert last["event"] == "tool_call_blocked"
    assert observer.lost == 0


def test_a_hostile_name_is_escaped_for_the_applications_own_renderer_too() -> None:
    stream = io.StringIO()
    # This renderer escapes nothing.
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream), processors=[lambda _, __, event: " ".join(map(str, event.values()))]
    )
    observer = StructlogObserver(logger)
    hostile(observer)
    assert [c for c in stream.getvalue() if not c.isprintable()] == ["\n", "\n"]
    assert observer.lost == 0


def test_the_applications_logger_can_be_one_of_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    logger = structlog.wrap_logger(
        logging.getLogger("calls"),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    observer = StructlogObserver(logger.bind(service="mine"))
    with caplog.at_level(logging.INFO, "calls"):
        nested(observer)
    assert observer.lost == 0
    last = caplog.records[-1]
    assert (last.getMessage(), last.levelname) == ("tool_call_failed", "WARNING")
    assert (last.__dict__["tool"], last.__dict__["service"]) == ("report", "mine")


@pytest.mark.slow
def test_several_processes_write_to_one_private_file(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    code = (
        "import os, sys; from albert_tools.telemetry import from_environment; from tests.helpers.traced_calls import nested\n"
        "observer = from_environment(os.environ)\n"
        "for _ in range(50): nested(observer)"
    )
    running = [start(code, ALBERT_TELEMETRY=str(path)) for _ in range(3)]
    assert [process.communicate() for process in running] == [("", "")] * 3
    assert len(lines(path.read_text(encoding="utf-8"))) == 900
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_events_that_can_not_be_written_are_counted_as_lost(tmp_path: Path) -> None:
    observer = StructlogObserver(path=tmp_path / "calls.jsonl")
    nested(observer)
    observer.close()
    observer.close()
    nested(observer)
    assert observer.lost == 6
    full = StructlogObserver(path="/dev/full")
    nested(full)
    full.close()
    assert full.lost == 6


def test_json_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    observer = from_environment({"ALBERT_TELEMETRY": " json "})
    assert observer is not None
    nested(observer)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(lines(shown.err)) == 6


def test_otel_makes_spans() -> None:
    assert isinstance(from_environment({"ALBERT_TELEMETRY": "otel"}), OpenTelemetryObserver)


def test_without_the_variable_there_is_no_observer() -> None:
    assert from_environment({}) is None
    assert from_environment({"ALBERT_TELEMETRY": ""}) is None


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("jsonl", "invalid_arguments", "ALBERT_TELEMETRY is 'jsonl', which is none of json, otel and a path"),
        ("\x1b[2J", "invalid_arguments", r"ALBERT_TELEMETRY is '\x1b[2J', which is none of json, otel and a path"),
        ("/", "io_error", "ALBERT_TELEMETRY: '/' can't be opened: Is a directory"),
        (
            "/no/such/folder/x",
            "io_error",
            "ALBERT_TELEMETRY: '/no/such/folder/x' can't be opened: No such file or directory",
        ),
        ("/a\0b", "io_error", r"ALBERT_TELEMETRY: '/a\x00b' can't be opened: a path cannot contain a NUL character"),
    ],
)
def test_invalid_values_of_the_variable(value: str, code: str, message: str) -> None:
    with pytest.raises(Failure) as refused:
        from_environment({"ALBERT_TELEMETRY": value})
    assert (refused.value.code, refused.value.message) == (code, message)
    assert refused.value.hint == (
        "ALBERT_TELEMETRY=json writes to standard error, ALBERT_TELEMETRY=/path/calls.jsonl to a file, and "
        "ALBERT_TELEMETRY=otel to OpenTelemetry"
    )


def test_lines_are_not_appended_to_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").symlink_to(".profile")
    with pytest.raises(Failure, match="can't be opened: it is a link"):
        from_environment({"ALBERT_TELEMETRY": str(tmp_path / "calls.jsonl")})
    assert not (tmp_path / ".profile").exists()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failure, match="can't be opened: it is a pipe that nobody reads"):
        from_environment({"ALBERT_TELEMETRY": str(tmp_path / "pipe")})
    observer = from_environment({"ALBERT_TELEMETRY": "/dev/fd/2"})
    assert observer is not None
    observer.close()


def test_a_path_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    observer = from_environment({"ALBERT_TELEMETRY": "~/calls.jsonl"})
    assert observer is not None
    nested(observer)
    assert len(lines((tmp_path / "calls.jsonl").read_text(encoding="utf-8"))) == 6
