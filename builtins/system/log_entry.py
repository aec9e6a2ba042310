"""One entry of a system log. Every kind of log is converted to this form."""

from __future__ import annotations

from typing import TypedDict


class LogEntry(TypedDict):
    """One entry. A field is null if the log does not contain the information."""

    time: str | None
    unit: str | None
    level: str | None
    pid: int | None
    message: str
