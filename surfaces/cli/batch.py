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
from albert_tools.engine.model.messages import counted
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import command_line
from albert_tools.surfaces.text.person import demand_person, person
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolDefinition
    from albert_tools.service import ToolService

#: The mistakes in items that are printed.
MAX_WRONG = 20


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
        count = _checked(file, definition)
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
            f"{counted(count, 'item')} in {counted(len(made.runs), 'run')}; `{shown}` prints their results when workers are done"
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


def _checked(file: IO[bytes], definition: ToolDefinition) -> int:
    """The number of the items. All of them are checked before the first run is queued. Raises Usage with all mistakes."""
    count, failed, wrong, hint = 0, 0, list[str](), None
    for number, line in _lines(file):
        count += 1
        try:
            _item(line, definition)
        except Failure as failure:
            failed += 1
            if failed <= MAX_WRONG:
                wrong.append(f"line {number}: {failure.message}")
                hint = hint or failure.hint
    if failed > MAX_WRONG:
        wrong.append(f"… and {failed - MAX_WRONG:,} more")
    if wrong:
        raise Usage("\n".join(wrong), hint)
    return count


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, each with its number."""
    file.seek(0)
    return ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())


def _item(line: bytes, definition: ToolDefinition) -> dict[str, Any]:
    """The arguments of a call, with defaults. Raises Failure `invalid_arguments`."""
    try:
        return validated_arguments(definition, json.loads(line))
    except json.JSONDecodeError as error:
        raise Failure("invalid_arguments", f"it is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise Failure("invalid_arguments", f"it is not JSON: {error}") from None


def _items(file: IO[bytes], definition: ToolDefinition) -> Iterator[dict[str, Any]]:
    return (_item(line, definition) for _, line in _lines(file))


async def _list(service: ToolService, _: argparse.Namespace, console: Console) -> int:
    batches = await asyncio.to_thread(service.batches.all)
    if console.json:
        console.document({"ok": True, "batches": [each._asdict() for each in batches]})
        return 0
    for each in reversed(batches):
        console.say(
            f"{console.paint(each.batch, 'cyan')}  {one_line(each.tool)}  {counted(each.items, 'item')}, queue {each.queue}",
            4,
        )
    if not batches:
        console.note("there are no batches; `albert batch add TOOL FILE` makes one")
    return 0


async def _show(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    batch = service.batches.get(options.batch)
    states = await asyncio.to_thread(service.batches.states, batch)
    if console.json:
        console.document({"ok": True, **batch._asdict(), "states": dict(states)})
        return 0
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    console.say(
        f"{console.paint(batch.batch, 'cyan')}  {one_line(batch.tool)}, {counted(batch.items, 'item')} in "
        f"{counted(len(batch.runs), 'run')}"
    )
    console.say(counts)
    return 0


async def _results(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    batch = service.batches.get(options.batch)
    if console.json:
        results = await asyncio.to_thread(lambda: [*service.batches.results(batch)])
        console.document({"ok": True, "batch": batch.batch, "results": results})
        return 0
    for result in service.batches.results(batch):
        console.document(result, indent=None)
    return 0


async def _cancel(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    batch = service.batches.get(options.batch)
    cancelled = await asyncio.to_thread(service.batches.cancel, batch.runs, person())
    if console.json:
        console.document({"ok": True, "batch": batch.batch, "cancelled": cancelled})
    else:
        console.say(f"cancelled {cancelled:,} of {counted(len(batch.runs), 'run')}")
    return 0
