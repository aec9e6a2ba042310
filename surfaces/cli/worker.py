"""``albert worker``: executes the runs of queues until it is stopped; lists workers; evicts one that stands still."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.queue_table import RETRY_SECONDS
from albert_tools.surfaces.cli.service_options import home_of, open_service
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.times import about, since_1970

if TYPE_CHECKING:
    from albert_tools.engine.model.record_types import Worker
    from albert_tools.service import ToolService
    from albert_tools.surfaces.worker.worker import Report

#: The colour of each event.
_COLOURS = {"done": "green", "failed": "red", "problem": "red", "taken": "cyan"}
_COLOURS |= dict.fromkeys(("suspended", "later", "lost", "cancelled"), "yellow")
#: What follows an event.
_THEN = {
    "later": f"; it is tried again in {RETRY_SECONDS:g} s",
    "lost": "; it goes on in a worker that takes it again",
}


def worker(options: argparse.Namespace, console: Console) -> int:
    """Start, list or evict."""
    demand_person("workers are started, listed and evicted")
    if options.action == "list":
        return _list(options, console)
    return _evict(options, console) if options.action == "evict" else asyncio.run(_start(options, console))


async def _start(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.pipeline.enqueue import demand_queue
    from albert_tools.surfaces.cli.run import telemetry_of
    from albert_tools.surfaces.worker.checkout import leave_workspaces
    from albert_tools.surfaces.worker.worker import Worker, services_of

    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop() -> None:
        # The next signal ends the process, and other workers go on with its runs.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        console.note("waiting for the runs under way; Ctrl-C again ends at once, and other workers go on with them")
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    name = options.name or f"{socket.gethostname()}-{os.getpid()}"
    queues = options.queues.split(",") if options.queues else ["default"]
    folders = [Path(folder) for folder in (options.folders or "").split(",") if folder]
    async with open_service(options, telemetry=telemetry_of()) as service:
        for queue in queues:
            demand_queue(service.ruling().governance.queues, queue)
        async with services_of(service, folders) as services:
            leave_workspaces(*services)
            if not console.json:
                console.note(f"worker {one_line(name)}: {', '.join(queues)}, in {', '.join(sorted(services))}")
            with _reports(service, console) as report:
                await Worker(services, name, queues, options.at_once, report).work(stopped)
    return 0


@contextmanager
def _reports(service: ToolService, console: Console) -> Iterator[Report]:
    """What a worker reports its events to: the console, and OpenTelemetry if the environment says so."""
    say = partial(_say, console)
    if os.environ.get("ALBERT_TELEMETRY", "").strip() != "otel":
        yield say
        return
    from albert_tools.engine.runs.fleet_status import read_status
    from albert_tools.telemetry.fleet_metrics import FleetMetrics

    with closing(FleetMetrics(lambda: read_status(service.queue, service.approvals))) as metrics:

        def report(event: str, facts: Mapping[str, Any]) -> None:
            say(event, facts)
            metrics.report(event, facts)

        yield report


def _say(console: Console, event: str, facts: Mapping[str, Any]) -> None:
    if console.json:
        console.document({"event": event, **facts})
        console.flush()
        return
    if console.quiet:
        return
    parts = [str(facts[name]) for name in ("run", "tool", "queue", "schedule", "at") if facts.get(name)]
    error = facts.get("error")
    why = f": {error['message']}{_THEN.get(event, '')}" if error else ""
    console.say(f"{console.paint(event.ljust(9), _COLOURS.get(event, 'dim'))}  {one_line('  '.join(parts) + why)}", 2)
    console.flush()


def _list(options: argparse.Namespace, console: Console) -> int:
    with home_of(options).record as record:
        workers = record.queue.workers()
    if console.json:
        console.document({"ok": True, "workers": [each.as_dict() for each in workers]})
        return 0
    for each in workers:
        console.say(worker_line(each, console), 4)
    if not workers:
        console.note("there are no workers; `albert worker` starts one")
    return 0


def worker_line(worker: Worker, console: Console) -> str:
    """A worker in a list."""
    state = console.paint("runs", "green") if worker.is_alive else console.paint("dead", "red")
    started = since_1970(worker.at)
    ago = f"{about(time.time() - started)} ago" if started is not None else ""
    places = one_line(", ".join(worker.data["workspaces"]))
    return (
        f"{console.paint(one_line(worker.name), 'cyan')}  {state}  {ago}  {worker.data['needs']}, "
        f"queues {', '.join(worker.data['queues'])}, {worker.data['at_once']} at once, in {places}"
    )


def _evict(options: argparse.Namespace, console: Console) -> int:
    with home_of(options).record as record:
        worker = next((each for each in record.queue.workers() if each.name == options.worker), None)
        if worker is None:
            raise Failure(
                "not_found", f"there is no worker {options.worker[:80]!r}", hint="`albert worker list` shows them"
            )
        if worker.is_alive:
            record.evict(worker.owner, f"end the process {worker.data['pid']} on {worker.data['host']}")
    if console.json:
        console.document({"ok": True, "worker": worker.name})
    else:
        console.say(f"evicted {one_line(worker.name)}; other workers go on with its runs")
    return 0
