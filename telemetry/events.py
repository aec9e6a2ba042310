"""Events by structlog: ``tool_call_started``, and then ``tool_call_completed``, ``tool_call_failed`` or ``tool_call_blocked``.

Without a logger of the application's own each is a line of JSON. A line is written in one go, so that processes may share a file.
Every event says which call it is about, so that none needs another to be read with.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from albert_tools.engine.model.telemetry import Ended, Span, Started
from albert_tools.telemetry import sanitize


class StructlogObserver:
    """Tells a structlog logger of every call, arguments redacted; results aren't told.

    `logger` is the application's own. Else lines of JSON go to `path`, which is appended to and made for its owner alone, or to
    `stream`, or to standard error. `lost` counts events that couldn't be written: telling never fails a call.

    Raises:
        OSError: `path` can't be opened.
    """

    def __init__(
        self, logger: Any = None, *, stream: TextIO | None = None, path: str | os.PathLike[str] | None = None
    ) -> None:
        self.lost = 0
        self._close = _nothing
        if logger is None and path is not None:
            file = _Appended(path)
            self._close = file.close
            logger = _lines(file)
        elif logger is None:
            logger = _lines(stream or sys.stderr or open(os.devnull, "w"))  # noqa: SIM115 (closed standard error)
        self._logger = logger

    def started(self, span: Span, call: Started) -> None:
        """``tool_call_started``, with the arguments."""
        try:
            event = _about(span, call)
            given = sanitize.arguments(call)
            if given is not None:
                event["arguments"] = given
            self._logger.info("tool_call_started", **event)
        except Exception:
            self.lost += 1

    def ended(self, span: Span, call: Ended) -> None:
        """How it ended; failed and blocked ones are warnings."""
        try:
            event = _about(span, call.started)
            if call.rule is not None:
                # What the failure names is closer to what happened than the rule that let it begin.
                event["rule"] = sanitize.printable(call.rule)
            event["latency_ms"] = round(call.seconds * 1000, 3)
            if call.outcome == "completed":
                if call.result_hash is not None:
                    event["result_hash"] = call.result_hash
                tell = self._logger.info
            else:
                event["code"] = call.code
                event["category"] = call.category
                # Not `message`, which the standard library's logging keeps for itself.
                event["error"] = sanitize.line(call.message or "")
                tell = self._logger.warning
            if call.retried:
                event["retried"] = call.retried
            if call.effects:
                event["effects"] = call.effects
            tell(f"tool_call_{call.outcome}", **event)
        except Exception:
            self.lost += 1

    def close(self) -> None:
        """Let go of `path`; what is told later is lost. Streams and loggers are their owners'."""
        self._close()


def _about(span: Span, call: Started) -> dict[str, Any]:
    """What every event says."""
    about: dict[str, Any] = {"trace_id": span.trace_id, "span_id": span.span_id}
    if span.parent_id is not None:
        about["parent_id"] = span.parent_id
    about["call_id"] = call.call_id
    about["tool"] = sanitize.tool(call)
    for field, value in (
        ("version", call.version),
        ("kind", call.kind),
        ("run_id", call.run_id),
        ("verdict", call.verdict),
        ("rule", call.rule),
        ("mode", call.mode),
    ):
        if value is not None:
            about[field] = sanitize.printable(value)
    # These are the caller's to choose.
    if call.session is not None:
        about["session"] = sanitize.name(call.session)
    if call.request_id is not None:
        about["request_id"] = sanitize.name(call.request_id)
    if call.depth:
        about["depth"] = call.depth
        about["callers"] = [sanitize.printable(caller) for caller in call.callers]
    return about


class _Appended:
    """A file that lines are appended to, each by one `write`, so that those of several processes don't mix."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, text: str) -> int:
        data = text.encode()
        written = os.write(self._descriptor, data)
        if written < len(data):
            raise OSError("the line was cut off")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _lines(file: Any) -> Any:
    """A logger that writes a line of JSON for each event, whatever the application has configured for its own."""
    import structlog

    return structlog.wrap_logger(
        structlog.WriteLogger(file),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        context_class=dict,
    ).bind()


def _line(logger: Any, method: str, event: Any) -> str:
    """When and what stand first, where people look."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event")}
    return sanitize.compact(first | event)


def _nothing() -> None:
    return None
