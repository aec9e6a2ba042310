"""``albert fleet status``: the queues, the workers, the open questions, and what no worker can go on with."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from albert_tools.engine.runs.fleet_status import FleetStatus, read_status
from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.worker import worker_line
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.person import demand_person

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import Mode
    from albert_tools.service import ToolService

#: The runs without a worker that are listed.
MAX_LISTED = 20


def fleet_status(options: argparse.Namespace, console: Console) -> int:
    """Print the state of all queues."""
    demand_person("the state of all queues is printed")
    fleet, mode = in_service(options, _look)
    if console.json:
        console.document({**_document(fleet), "mode": mode})
        return 0
    if mode != "NORMAL":
        console.say(f"the mode is {console.paint(mode, 'yellow')}: `albert mode` says why", 2)
    for queue, states in sorted(fleet.queues.items()):
        counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items())) or "no run"
        console.say(f"{console.paint(one_line(queue), 'cyan')}  {counts}", 2)
    if not fleet.queues:
        console.say("no run waits or runs in a queue")
    for worker in fleet.workers:
        console.say(worker_line(worker, console), 4)
    if not fleet.workers:
        console.say("no worker runs")
    if fleet.questions:
        console.say(f"{fleet.questions:,} open question{'s' * (fleet.questions > 1)}: `albert approvals`")
    for run, why in fleet.stuck[:MAX_LISTED]:
        console.say(f"{console.paint(run.run, 'cyan')}  {console.paint(run.state, 'yellow')}  {one_line(why)}", 4)
    if len(fleet.stuck) > MAX_LISTED:
        console.say(f"… and {len(fleet.stuck) - MAX_LISTED:,} more")
    return 0


async def _look(service: ToolService) -> tuple[FleetStatus, Mode]:
    return read_status(service.queue, service.approvals), service.modes.mode


def _document(fleet: FleetStatus) -> dict[str, object]:
    return {
        "ok": True,
        "queues": {name: dict(states) for name, states in fleet.queues.items()},
        "workers": [each.as_dict() for each in fleet.workers],
        "questions": fleet.questions,
        "stuck": [{**run._asdict(), "why": why} for run, why in fleet.stuck],
    }
