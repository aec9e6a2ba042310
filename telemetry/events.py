"""Structlog events: ``tool_call_started``, then ``tool_call_completed``, ``tool_call_failed`` or ``tool_call_blocked``.

By default, each event is a line of JSON, written by one system call. So several processes can write to the same file. Every event
contains the ids of its call, so it can be understood without the other events.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from albert_tools.engine.model.telemetry import Ended, Span, Started
from albert_tools.telemetry import sanitize


class StructlogObserver:
    """Logs every call with structlog. Arguments are redacted; results are not logged.

    `logger` is a logger of the application. Without it, lines of JSON are appended to `path`, which is created with access only
    for its owner; without `path`, they are written to `stream`, by default standard error. `lost` counts the events that couldn't
    be written. A failed event never causes a call to fail.

    Raises:
        OSError: `path` can't be opened.
    """

    def __init__(
        self, logger: Any = None, *, stream: TextIO | None = None, path: str | os.PathLike[str] | None = None
    ) -> None:
        self.lost = 0
        self._close: Callable[[], None] = lambda: None
        if logger is None and path is not None:
            file = _Appended(path)
            self._close = file.close
            logger = _lines(file)
        elif logger is None:
            logger = _lines(stream or sys.stderr or open(os.devnull, "w"))  # noqa: SIM115 (standard error is closed)
        self._logger = logger

    def started(self, span: Span, call: Started) -> None:
        """Log ``tool_call_started``, with the arguments."""
        try:
            event = _about(span, call)
            arguments = sanitize.arguments(call)
            if arguments is not None:
                event["arguments"] = arguments
            self._logger.info("tool_call_started", **event)
        except Exception:
            self.lost += 1

    def ended(self, span: Span, call: Ended) -> None:
        """Log the outcome; as a warning if the call failed or was blocked."""
        try:
            event = _about(span, call.started)
            if call.rule is not None:
                # The rule of the failure is more specific than the rule that allowed the call.
                event["rule"] = sanitize.printable(call.rule)
            event["latency_ms"] = round(call.seconds * 1000, 3)
            if call.outcome == "completed":
                log = self._logger.info
            else:
                event["code"] = call.code
                event["category"] = call.category
                # The key is not `message`, because the standard library's logging reserves that name.
                event["error"] = sanitize.line(call.message or "")
                log = self._logger.warning
            if call.fault is not None:
                event["traceback"] = sanitize.trace(call.fault)
            if call.retried:
                event["retried"] = call.retried
            if call.effects:
                event["effects"] = call.effects
            log(f"tool_call_{call.outcome}", **event)
        except Exception:
            self.lost += 1

    def close(self) -> None:
        """Close `path`. Later events are lost. Streams and loggers belong to the application and stay open."""
        self._close()


def _about(span: Span, call: Started) -> dict[str, Any]:
    """The keys that all events contain."""
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
    # The caller chooses these texts, so they are sanitized as untrusted.
    if call.session is not None:
        about["session"] = sanitize.name(call.session)
    if call.request_id is not None:
        about["request_id"] = sanitize.name(call.request_id)
    if call.depth:
        about["depth"] = call.depth
        about["callers"] = [sanitize.printable(caller) for caller in call.callers]
    return about


class _Appended:
    """A file to which lines are appended. Each line is one `write`, so that lines of several processes don't mix."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        if not os.fspath(path).startswith(("/dev/", "/proc/self/fd/")):
            # If the file is in the workspace, a command could have put a link in its place, or a pipe that nobody reads.
            how |= os.O_NOFOLLOW | os.O_NONBLOCK
        self._descriptor = os.open(path, how, 0o600)

    def write(self, text: str) -> int:
        data = text.encode()
        written = os.write(self._descriptor, data)
        if written < len(data):
            raise OSError("the line was cut off")
        return len(text)

    def flush(self) -> None:
        """Do nothing, because the file has no buffer."""

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _lines(file: Any) -> Any:
    """A logger that writes a line of JSON for each event. It ignores the application's structlog configuration."""
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
    """Encode an event. Time, level and event are the first keys, for human readers."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event")}
    return sanitize.compact(first | event)
