"""One entry of a system log, in the form that every kind of log is read into."""

from __future__ import annotations

from typing import TypedDict


class LogEntry(TypedDict):
    """One entry; a field is null if the log does not say."""

    time: str | None
    unit: str | None
    level: str | None
    pid: int | None
    message: str
