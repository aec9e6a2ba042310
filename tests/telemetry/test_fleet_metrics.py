"""Metrics of the queues as the SDK collects them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from albert_tools import ToolService
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.runs.fleet_status import FleetStatus, read_status
from albert_tools.surfaces.worker.worker import Worker
from albert_tools.telemetry.fleet_metrics import FleetMetrics

SOURCE = '''def check(text: str) -> str:
    """Refuse the text "bad".

    Args:
        text: The text.
    """
    if text == "bad":
        raise ToolError("no")
    return text
'''


def collected(reader: InMemoryMetricReader) -> dict[tuple[str, ...], Any]:
    """What a collection has: by the name and the attributes, a number, or the count of a histogram."""
    data = reader.get_metrics_data()
    metrics = [] if data is None else [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    return {
        (metric.name, *(str(value) for _, value in sorted((point.attributes or {}).items()))): getattr(
            point, "value", None
        )
        or getattr(point, "count", 0)
        for metric in metrics
        for point in metric.data.data_points
    }


def depth(**states: int) -> dict[tuple[str, ...], int]:
    names = ("queued", "running", "suspended", "answered", "interrupted")
    return {("albert.queue.run.count", "default", name): states.get(name, 0) for name in names}


async def test_queues_workers_and_what_a_worker_has_executed(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    reader, looks = InMemoryMetricReader(), 0
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path / "project") as service:

        def look() -> FleetStatus:
            nonlocal looks
            looks += 1
            return read_status(service.queue, service.approvals)

        metrics = FleetMetrics(look, MeterProvider([reader], shutdown_on_exit=False))
        await service.define(SOURCE)
        for text in ("good", "bad", "good"):
            await service.enqueue("check", {"text": text})
        assert collected(reader) == {
            **depth(queued=3),
            ("albert.queue.stuck_run.count", "default"): 3,
            ("albert.worker.count",): 0,
            ("albert.question.count",): 0,
        }
        assert looks == 1
        worker = Worker({str(service.workspace.root): service}, "ada", ["default"], 2, metrics.report)
        stopped = asyncio.Event()
        working = asyncio.create_task(worker.work(stopped))
        while service.queue.all():
            await asyncio.sleep(0.05)
        assert collected(reader).items() >= {**depth(), ("albert.worker.count",): 1}.items()
        stopped.set()
        await working
        executed = {
            ("albert.worker.executions", "done"): 2,
            ("albert.worker.executions", "failed", "tool_error"): 1,
            ("albert.queue.wait_time", "default"): 3,
        }
        assert collected(reader) == {**executed, ("albert.worker.count",): 0, ("albert.question.count",): 0}
        assert looks == 3
        metrics.close()
        assert collected(reader) == executed
        assert looks == 3


def test_each_reader_looks_once_and_a_home_that_fails_has_no_values() -> None:
    readers, fails, looks = [InMemoryMetricReader(), InMemoryMetricReader()], False, 0

    def look() -> FleetStatus:
        nonlocal looks
        looks += 1
        if fails:
            raise Failure("io_error", "the server is away")
        return FleetStatus([], {}, [], [], looks)

    _ = FleetMetrics(look, MeterProvider(readers, shutdown_on_exit=False))
    assert [collected(reader)["albert.question.count",] for reader in (*readers, *readers)] == [1, 2, 3, 4]
    fails = True
    assert collected(readers[0]) == {}
    assert looks == 5
