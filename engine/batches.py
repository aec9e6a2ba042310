"""Batches: one tool is called for each of many items, by runs of a queue that have a part of the items each.

The runs of a batch execute a small program that is written here and checked like any source. So each of their calls passes the
pipeline, and a run that is interrupted goes on where it was. The ids of the runs follow from the batch's id and their numbers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from albert_tools.engine.call.context import Queued
from albert_tools.engine.model.definition import Json, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.running import Running
from albert_tools.engine.runs.lifecycle import derived_id
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sources import Sources

T = TypeVar("T")
#: The items of a run, unless the caller says otherwise, and the most.
DEFAULT_ITEMS, MAX_ITEMS = 100, 1000


class Batch(NamedTuple):
    """A batch: its id, its tool, the number of its items, the most items of a run, and the queue."""

    batch: str
    tool: str
    version: str
    items: int
    per_run: int
    queue: str

    @property
    def runs(self) -> list[str]:
        """The ids of its runs, in the order of the items."""
        return [derived_id(self.batch, number) for number in range(-(-self.items // self.per_run))]


class Batches:
    """The batches of a home."""

    def __init__(self, ledger: Ledger, running: Running, runs: RunManager, sources: Sources) -> None:
        self._ledger = ledger
        self._running = running
        self._runs = runs
        self._sources = sources

    async def add(
        self, definition: ToolDefinition, items: Iterable[dict[str, Json]], count: int, queued: Queued, per_run: int
    ) -> Batch:
        """Queue the runs of a batch. Only the items of one run are in memory.

        Args:
            definition: The tool.
            items: The arguments of each call, with all parameters.
            count: The number of items.
            queued: The queue and the priority.
            per_run: The most items of a run.

        Raises:
            Failure: Those of `Running.enqueue`; `outdated` if the tool's name now means another version.
            SourceError: The tool can't be called in this way.
        """
        version = (await self._sources.compiled(program(definition)))[0]
        (callee,) = version.calls
        if callee.version != definition.version:
            raise Failure("outdated", f"{definition.name} has another version now", hint="begin again")
        batch = Batch(os.urandom(8).hex(), definition.name, definition.version, count, per_run, queued.queue)
        self._ledger.append("batch", batch._asdict())
        for number, part in enumerate(parts(items, per_run)):
            run = derived_id(batch.batch, number)
            await self._running.enqueue(version.name, {"items": part}, queued, unsaved=version, run_id=run)
        return batch

    def get(self, batch: str) -> Batch:
        """A batch, by its id or the first digits of the id. Raises Failure `not_found`, `io_error`."""
        found = [each for each in self.all() if batch and each.batch.startswith(batch)]
        if len(found) != 1:
            why = "there is no batch" if not found else "several batches begin with"
            raise Failure("not_found", f"{why} {batch[:40]!r}", hint="`albert batch` lists them")
        return found[0]

    def all(self) -> list[Batch]:
        """All batches, oldest first. Raises Failure `io_error`."""
        entries = self._ledger.entries(("batch",))
        return [Batch(*(entry.data[name] for name in Batch._fields)) for entry in entries]

    def states(self, batch: Batch) -> Counter[str]:
        """The number of its runs by state. A run that was not queued counts as missing."""
        return Counter(self._state(run) for run in batch.runs)

    def results(self, batch: Batch) -> Iterator[Json]:
        """The result of each item in order: ``{value}``, or ``{error}`` with the message of a failure. One run at a time is read.

        Raises:
            Failure: `suspended` at the first run that has not ended; that of a run that has failed.
        """
        for run in batch.runs:
            try:
                found = self._runs.recorded(run)
            except Failure as failure:
                if failure.code != "not_found":
                    raise
                raise Failure("suspended", failure.message, hint="wait for its end: `albert batch show`") from None
            if found.error is not None:
                raise found.error
            yield from found.output

    def _state(self, run: str) -> str:
        try:
            return self._runs.show(run).state
        except Failure as failure:
            if failure.code != "not_found":
                raise
            return "missing"


def program(definition: ToolDefinition) -> str:
    """The source that calls a tool for each item."""
    given = ", ".join(f'{p.name}=item["{p.name}"]' for p in definition.parameters)
    call = f"tools.{definition.name}({given})"
    return f'''from typing import Any


def each_of_a_batch(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Call a tool for each item.

    Args:
        items: The arguments of each call.
    """
    return parallel(_one(item) for item in items)


def _one(item: dict[str, Any]) -> dict[str, Any]:
    try:
        return {{"value": {call}}}
    except ToolError as error:
        return {{"error": str(error)}}
'''


def parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    left = iter(items)
    while part := list(islice(left, size)):
        yield part
