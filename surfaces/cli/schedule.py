"""``albert schedule``: begins runs of a tool at certain times."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime

from albert_tools.engine.model.recorded_call import call_text
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.person import demand_person, person


def schedule(options: argparse.Namespace, console: Console) -> int:
    """Add, list or remove."""
    demand_person("schedules are made and listed")
    return asyncio.run({"add": _add, "list": _list, "remove": _remove}[options.action](options, console))


async def _add(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.call.arguments import validated_arguments
    from albert_tools.engine.pipeline.enqueue import demand_queue
    from albert_tools.engine.runs.schedules import next_time
    from albert_tools.surfaces.cli.arguments import read_arguments

    async with open_service(options) as service:
        demand_queue(service.ruling().governance.queues, options.queue)
        definition = (await service.describe(options.tool, options.version)).definition
        arguments = validated_arguments(definition, read_arguments(options.arguments, options.args, definition))
        facts = {
            "cron": options.cron,
            "zone": options.zone,
            "queue": options.queue,
            "priority": options.priority,
            "tool": options.tool,
            "version": definition.version,
            "arguments": arguments,
            "workspace": str(service.workspace.root),
            "by": person(),
        }
        before = service.schedules.add(options.name, **facts)
        added = service.schedules.get(options.name)
    first = next_time(options.cron, options.zone, datetime.now(UTC))
    if console.json:
        replaced = None if before is None else before.data
        document = {"name": added.name, **added.data}
        console.document({"ok": True, "schedule": document, "next": first.isoformat(), "replaced": replaced})
    else:
        now = "" if before is None else "now "
        console.say(
            f"{options.name} {now}begins {call_text(options.tool, arguments, 30)}, first at {first:%Y-%m-%d %H:%M %Z}",
            2,
        )
        if before is not None:
            old = before.data
            made = call_text(old["tool"], old["arguments"], 30)
            console.say(f"it replaces {one_line(old['cron'])} {one_line(old['zone'])}  {made}", 2)
        console.note(f"a worker of the queue {options.queue} must run then: `albert worker --queues {options.queue}`")
    return 0


async def _list(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.runs.schedules import next_time

    async with open_service(options) as service:
        schedules = await asyncio.to_thread(service.schedules.all)
    now = datetime.now(UTC)
    rows = [(each, next_time(each.data["cron"], each.data["zone"], now)) for each in schedules]
    if console.json:
        documents = [{"name": each.name, "last": each.last, "next": at.isoformat(), **each.data} for each, at in rows]
        console.document({"ok": True, "schedules": documents})
        return 0
    for each, at in rows:
        data = each.data
        place = f"queue {data['queue']}, in {one_line(data['workspace'])}"
        console.say(
            f"{console.paint(each.name, 'cyan')}  {one_line(data['cron'])} {one_line(data['zone'])}, next "
            f"{at:%Y-%m-%d %H:%M %Z}  {call_text(data['tool'], data['arguments'], 30)}  "
            f"{console.paint(place, 'dim')}",
            4,
        )
    if not rows:
        console.note("there are no schedules; `albert schedule add NAME CRON TOOL` makes one")
    return 0


async def _remove(options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        await asyncio.to_thread(service.schedules.remove, options.name, person())
    if console.json:
        console.document({"ok": True, "schedule": options.name})
    else:
        console.say(f"removed the schedule {options.name}; the runs that it has begun stay")
    return 0
