"""OpenTelemetry metrics of queues: what waits, who works, and what this worker has done.

The conventions have no names for queues of runs. These names have the form of ``cicd.worker.count`` and
``db.client.connection.wait_time``, and the attribute of a failure is the conventions' ``error.type``. The gauges describe the whole
home, so all its workers report the same values: use their maximum, not their sum.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command
from albert_tools.engine.model.record_types import QUEUED_STATES
from albert_tools.telemetry import sanitize

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from albert_tools.engine.runs.fleet_status import FleetStatus

#: The bounds of the time in a queue, in seconds: from a tenth of a second to a day.
_BOUNDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
_QUEUE, _STATE = "albert.queue.name", "albert.run.state"
#: Numbers, each with its attributes.
_Numbers = Iterator[tuple[int, dict[str, str]]]


def _runs(status: FleetStatus) -> _Numbers:
    for queue, states in status.queues.items():
        for state in QUEUED_STATES:
            yield states[state], {_QUEUE: sanitize.name(queue), _STATE: state}


def _stuck(status: FleetStatus) -> _Numbers:
    stuck = Counter(run.queue for run, _ in status.stuck)
    for queue in status.queues:
        yield stuck[queue], {_QUEUE: sanitize.name(queue)}


def _workers(status: FleetStatus) -> _Numbers:
    yield sum(worker.is_alive for worker in status.workers), {}


def _questions(status: FleetStatus) -> _Numbers:
    yield status.questions, {}


#: The gauges: name, values, unit and description.
_GAUGES: tuple[tuple[str, Callable[[FleetStatus], _Numbers], str, str], ...] = (
    ("albert.queue.run.count", _runs, "{run}", "Runs of a queue that have not ended, by state."),
    ("albert.queue.stuck_run.count", _stuck, "{run}", "Runs of a queue that no worker can go on with."),
    ("albert.worker.count", _workers, "{worker}", "Workers that run."),
    ("albert.question.count", _questions, "{question}", "Questions that wait for a person."),
)


class FleetMetrics:
    """Reports metrics to `provider`, or to the default provider of the process.

    `look` returns the state of the queues. It is called once for each collection, in the thread that collects. If it raises
    Failure, the gauges have no values. After `close` it is not called.

    Raises:
        ImportError: the extra `otel` isn't installed.
    """

    def __init__(self, look: Callable[[], FleetStatus], provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry import metrics
        except ImportError as error:
            raise ImportError(f"metrics need OpenTelemetry: {install_command('otel')}") from error
        self._observation = metrics.Observation
        self._look: Callable[[], FleetStatus] | None = look
        self._lock = threading.Lock()
        self._found: FleetStatus | None = None
        self._given = {name for name, *_ in _GAUGES}
        meter = metrics.get_meter("albert_tools", meter_provider=provider)
        for name, values, unit, description in _GAUGES:
            meter.create_observable_gauge(name, [partial(self._observe, name, values)], unit, description)
        self._executed = meter.create_counter(
            "albert.worker.executions",
            "{run}",
            "How often this worker has executed a run, by the run's state after it.",
        )
        self._wait_time = meter.create_histogram(
            "albert.queue.wait_time",
            "s",
            "The time that a run has waited in its queue until this worker began it.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )

    def report(self, event: str, facts: Mapping[str, Any]) -> None:
        """Count an event of the worker."""
        if event == "taken" and "waited_s" in facts:
            self._wait_time.record(facts["waited_s"], {_QUEUE: sanitize.name(facts["queue"])})
        elif event in ("done", "failed", "suspended"):
            error = {"error.type": facts["error"]["code"]} if event == "failed" else {}
            self._executed.add(1, {_STATE: event, **error})

    def close(self) -> None:
        """Stop looking, because the home is about to be closed."""
        with self._lock:
            self._look = self._found = None

    def _observe(self, name: str, values: Callable[[FleetStatus], _Numbers], _: object) -> list[Any]:
        status = self._state(name)
        return [] if status is None else [self._observation(*each) for each in values(status)]

    def _state(self, name: str) -> FleetStatus | None:
        """The state for a gauge. A collection asks for each gauge once, so one that asks again begins the next collection."""
        with self._lock:
            if name in self._given and self._look is not None:
                self._given.clear()
                try:
                    self._found = self._look()
                except Failure:
                    self._found = None
            self._given.add(name)
            return self._found
