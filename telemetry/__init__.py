"""Observers of calls: counters, structlog events, OpenTelemetry spans. Each observer imports its library when it is created."""

from albert_tools.telemetry.counters import Counters as Counters
from albert_tools.telemetry.environment import from_environment as from_environment
from albert_tools.telemetry.events import StructlogObserver as StructlogObserver
from albert_tools.telemetry.several import several as several
from albert_tools.telemetry.spans import OpenTelemetryObserver as OpenTelemetryObserver
from albert_tools.telemetry.spans import SharedIds as SharedIds
from albert_tools.telemetry.spans import current_trace as current_trace

__all__ = [
    "Counters",
    "OpenTelemetryObserver",
    "SharedIds",
    "StructlogObserver",
    "current_trace",
    "from_environment",
    "several",
]
