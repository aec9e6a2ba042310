"""``albert batch``: calls a tool for each of many items, by the workers of a queue."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from albert_tools.engine.call.arguments import validated_arguments
from albert_tools.engine.call.context import Queued
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import command_line
from albert_tools.surfaces.text.person import demand_person, person
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolDefinition
    from albert_tools.service import ToolService


def batch(options: argparse.Namespace, console: Console) -> int:
    """Add, list, show, print or cancel."""
    demand_person("batches are made and shown")
    work = {"add": _add, "list": _list, "show": _show, "results": _results, "cancel": _cancel}[options.action]
    return asyncio.run(_within(work, options, console))


async def _within(work: Any, options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        code: int = await work(service, options, console)
        return code


async def _add(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    with tempfile.TemporaryFile() as file:
        _copy(options.items, file)
        definition = (await service.describe(options.tool)).definition
        # All items are checked before the first run is queued.
        count = sum(1 for _ in _items(file, definition))
        if not count:
            raise Usage("there are no items", "write a JSON object on each line of the file")
        queued = Queued(options.queue, options.priority)
        made = await service.batches.add(definition, _items(file, definition), count, queued, options.per_run)
    if console.json:
        console.document({"ok": True, **made._asdict(), "runs": len(made.runs)})
    else:
        console.write(f"{made.batch}\n")
        shown = command_line(options.home, "batch", "results", made.batch)
        console.note(
            f"{count:,} items in {len(made.runs):,} runs; `{shown}` prints their results when workers are done"
        )
    return 0


def _copy(name: str, file: IO[bytes]) -> None:
    """Copy the file, or stdin, because it is read twice and must not change meanwhile."""
    if name == "-":
        shutil.copyfileobj(sys.stdin.buffer, file)
        return
    try:
        with open(name, "rb") as given:
            shutil.copyfileobj(given, file)
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _items(file: IO[bytes], definition: ToolDefinition) -> Iterator[dict[str, Any]]:
    """The arguments of each call, with defaults."""
    file.seek(0)
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield validated_arguments(definition, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise Usage(f"line {number} is not JSON: {error}") from None
        except Failure as failure:
            raise Usage(f"line {number}: {failure.message}", failure.hint) from None


async def _list(service: ToolService, _: argparse.Namespace, console: Console) -> int:
    found = await asyncio.to_thread(service.batches.all)
    if console.json:
        console.document({"ok": True, "batches": [each._asdict() for each in found]})
        return 0
    for each in reversed(found):
        console.say(
            f"{console.paint(each.batch, 'cyan')}  {one_line(each.tool)}  {each.items:,} items, queue {each.queue}", 4
        )
    if not found:
        console.note("there are no batches; `albert batch add TOOL FILE` makes one")
    return 0


async def _show(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    found = service.batches.get(options.batch)
    states = await asyncio.to_thread(service.batches.states, found)
    if console.json:
        console.document({"ok": True, **found._asdict(), "states": dict(states)})
        return 0
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    console.say(
        f"{console.paint(found.batch, 'cyan')}  {one_line(found.tool)}, {found.items:,} items in {len(found.runs):,} runs"
    )
    console.say(counts)
    return 0


async def _results(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    found = service.batches.get(options.batch)
    if console.json:
        results = await asyncio.to_thread(lambda: [*service.batches.results(found)])
        console.document({"ok": True, "batch": found.batch, "results": results})
        return 0
    for result in service.batches.results(found):
        console.write(json.dumps(result, ensure_ascii=False) + "\n")
    return 0


async def _cancel(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    found = service.batches.get(options.batch)
    cancelled = await asyncio.to_thread(service.batches.cancel, found.runs, person())
    if console.json:
        console.document({"ok": True, "batch": found.batch, "cancelled": cancelled})
    else:
        console.say(f"cancelled {cancelled:,} of {len(found.runs):,} runs")
    return 0
