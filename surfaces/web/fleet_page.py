"""The fleet: queues, workers, schedules, what no worker can go on with, and what has failed. Its lists are cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.record_types import QUEUED_STATES, QueuedRun, Schedule, Worker
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.engine.runs.fleet_status import FleetStatus, read_status
from albert_tools.engine.runs.runs import MAX_SEARCHED
from albert_tools.engine.runs.schedules import next_time
from albert_tools.service import ToolService
from albert_tools.surfaces.text.times import moment
from albert_tools.surfaces.web.tool_pages import when

#: Rows of a list, failures, and runs of a worker; characters of a name, an argument and a message.
MAX_ROWS, MAX_FAILED, MAX_RUNS, _NAME, _ARGUMENT, _MESSAGE = 20, 10, 5, 80, 40, 300
Item = TypeVar("Item")


def has_fleet(service: ToolService) -> bool:
    """Whether there is something to show. Raises Failure `io_error`."""
    queue = service.queue
    return bool(queue.workers() or service.schedules.all() or queue.all() or queue.failed(1))


def fleet_page(service: ToolService) -> dict[str, Any]:
    """The values of the page. Raises Failure `io_error`."""
    fleet = read_status(service.queue, service.approvals)
    return {
        "mode": service.modes.mode,
        "total": len(fleet.runs),
        "alive": sum(worker.is_alive for worker in fleet.workers),
        "questions": fleet.questions,
        "stuck": _cut(fleet.stuck, lambda each: {"run": each[0], "why": brief(each[1], _MESSAGE)}),
        "queues": _cut(sorted(fleet.queues), lambda name: _queue(name, fleet)),
        # The dead ones first: they need a person.
        "workers": _cut(sorted(fleet.workers, key=lambda w: w.is_alive), lambda worker: _worker(worker, fleet.runs)),
        "schedules": _cut(service.schedules.all(), _schedule),
        "failed": [_failed(service, run) for run in service.queue.failed(MAX_FAILED)],
        "max_failed": MAX_FAILED,
        "searched": MAX_SEARCHED,
    }


def _cut(items: Sequence[Item], row: Callable[[Item], Mapping[str, Any]]) -> dict[str, Any]:
    return {"all": len(items), "rows": [row(item) for item in items[:MAX_ROWS]], "more": max(0, len(items) - MAX_ROWS)}


def _queue(name: str, fleet: FleetStatus) -> dict[str, Any]:
    states = fleet.queues[name]
    return {
        "name": brief(name, _NAME),
        "states": [(state, states[state]) for state in QUEUED_STATES if states[state]],
        "workers": sum(worker.is_alive and name in worker.data["queues"] for worker in fleet.workers),
    }


def _worker(worker: Worker, runs: Sequence[QueuedRun]) -> dict[str, Any]:
    mine = [run.run for run in runs if run.owner == worker.owner]
    data = worker.data
    return {
        "name": brief(worker.name, _NAME),
        "alive": worker.is_alive,
        "since": when(worker.at),
        "host": brief(data["host"], _NAME),
        "facts": f"{data['needs']}, {data['at_once']} at once, queues {', '.join(data['queues'])}, in "
        f"{brief(', '.join(data['workspaces']), _MESSAGE)}",
        "runs": mine[:MAX_RUNS],
        "more": max(0, len(mine) - MAX_RUNS),
    }


def _schedule(schedule: Schedule) -> dict[str, Any]:
    data = schedule.data
    try:
        at = f"{next_time(data['cron'], data['zone'], datetime.now(UTC)):%Y-%m-%d %H:%M %Z}"
    except Failure as failure:
        at = failure.message
    return {
        "name": schedule.name,
        "next": at,
        "cron": f"{data['cron']} {data['zone']}",
        "call": call_text(data["tool"], data["arguments"], _ARGUMENT),
        "place": brief(f"queue {data['queue']}, in {data['workspace']}", _MESSAGE),
    }


def _failed(service: ToolService, run: str) -> dict[str, Any]:
    row = {"run": run, "tool": "", "place": "", "why": ""}
    try:
        view = service.runs.show(run)
    except Failure as failure:
        return {**row, "why": brief(failure.message, _MESSAGE)}
    ended = next((turn["at"] for turn in reversed(view.history)), None)
    by = f", worker {brief(view.worker, _NAME)}" if view.worker else ""
    error = view.error or {}
    return {
        **row,
        "tool": view.tool,
        "place": f"{moment(ended) if ended else '?'}, queue {view.header['queue']}{by}",
        "why": f"{error.get('code')}: {brief(str(error.get('message')), _MESSAGE)}",
    }
