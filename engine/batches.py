"""Batches: one tool is called for each of many items, by runs of a queue that have a part of the items each.

The runs of a batch execute a small program that is written here and checked like any source. So each of their calls passes the
pipeline, and a run that is interrupted goes on where it was. The ids of the runs follow from the batch's id and their numbers.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from albert_tools.engine.call.context import Queued
from albert_tools.engine.call.journal_reader import OVER
from albert_tools.engine.model.definition import Json, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import MAX_NAME
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.running import Running
from albert_tools.engine.runs.lifecycle import derived_id
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sources import Sources

T = TypeVar("T")
#: The items of a run, unless the caller says otherwise, and the most.
DEFAULT_ITEMS, MAX_ITEMS = 100, 1000


class Batch(NamedTuple):
    """A batch: its id, its tool, the number of its items, the most items of a run, the queue, and the id of the session of the call
    that has started it."""

    batch: str
    tool: str
    version: str
    items: int
    per_run: int
    queue: str
    session: str | None = None

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
        self,
        definition: ToolDefinition,
        items: Iterable[dict[str, Json]],
        count: int,
        queued: Queued,
        per_run: int,
    ) -> Batch:
        """Queue the runs of a batch. Only the items of one run are in memory. If one is refused, those before it are cancelled.

        Args:
            definition: The tool.
            items: The arguments of each call, with all parameters.
            count: The number of items.
            queued: The queue and the priority. It can name the batch; what was done of it before is then not done again.
            per_run: The most items of a run.

        Raises:
            Failure: Those of `Running.enqueue`; `outdated` if the tool's name now means another version.
            SourceError: The tool can't be called in this way.
        """
        version = (await self._sources.compiled(program(definition)))[0]
        (callee,) = version.calls
        if callee.version != definition.version:
            raise Failure("outdated", f"{definition.name} has another version now", hint="begin again")
        queued = replace(queued, batch=queued.batch or os.urandom(8).hex())
        batch = Batch(queued.batch, definition.name, definition.version, count, per_run, queued.queue, queued.session)
        is_known = any(each.batch == batch.batch for each in self.all())
        if not is_known:
            self._ledger.append("batch", batch._asdict())
        begun = []
        try:
            for run, part in zip(batch.runs, parts(items, per_run), strict=True):
                if not is_known or self._state(run) == "missing":
                    await self._running.enqueue(version.name, {"items": part}, queued, unsaved=version, run_id=run)
                begun.append(run)
        except (Failure, asyncio.CancelledError):
            self.cancel(begun, f"batch {batch.batch}")
            raise
        return batch

    def cancel(self, runs: Iterable[str], by: str) -> int:
        """Cancel those of the runs that have not ended. Returns their number. Raises Failure `damaged`, `io_error`."""
        cancelled = 0
        for run in runs:
            try:
                if self._runs.show(run).state not in OVER:
                    self._runs.cancel(run, by)
                    cancelled += 1
            except Failure as failure:
                if failure.code not in ("not_found", "exists"):
                    raise
        return cancelled

    def get(self, batch: str, of: Callable[[Batch], bool] = lambda _: True) -> Batch:
        """A batch, by its id or the first digits of the id, among those `of` which this is true.

        Raises:
            Failure: `not_found`, `io_error`.
        """
        matches = [each for each in self.all() if batch and each.batch.startswith(batch) and of(each)]
        if len(matches) != 1:
            why = "there is no batch" if not matches else "several batches begin with"
            raise Failure(
                "not_found",
                f"{why} {batch[:40]!r}",
                hint="give the id that `start_batch` returned; `albert batch` lists all",
            )
        return matches[0]

    def all(self) -> list[Batch]:
        """All batches, oldest first. Raises Failure `io_error`."""
        entries = self._ledger.entries(("batch",))
        return [Batch(**{name: entry.data[name] for name in Batch._fields if name in entry.data}) for entry in entries]

    def states(self, batch: Batch) -> Counter[str]:
        """The number of its runs by state. A run that was not queued counts as missing."""
        return Counter(self._state(run) for run in batch.runs)

    def results(self, batch: Batch) -> Iterator[Json]:
        """The result of each item in order: ``{value}``, or ``{error}`` with the message of a failure. One run at a time is read.

        Raises:
            Failure: `suspended` at the first run that has not ended; after all results, that of the first run that has failed.
        """
        error: Failure | None = None
        for number, run in enumerate(batch.runs):
            ended = self._result(run)
            if ended is None:
                hint = f"wait for its end: `albert batch show {batch.batch}`"
                raise Failure("suspended", f"the run {run} has no result yet", hint=hint)
            yield from self._results(batch, number, ended)
            error = error or ended.error
        if error is not None:
            raise error

    def part(self, batch: Batch, first: int, count: int) -> list[Json]:
        """At most `count` results from item `first` on, as `results`; fewer if a run has not ended.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        part: list[Json] = []
        start, left_out = divmod(first, batch.per_run)
        for number, run in enumerate(batch.runs[start:], start):
            ended = self._result(run)
            if ended is None:
                break
            part += self._results(batch, number, ended)[left_out:]
            left_out = 0
            if len(part) >= count:
                break
        return part[:count]

    def _result(self, run: str) -> ToolResult | None:
        """The result of a run; None if it has not ended."""
        try:
            return self._runs.recorded(run)
        except Failure as failure:
            if failure.code != "not_found":
                raise
            return None

    def _results(self, batch: Batch, number: int, ended: ToolResult) -> list[Json]:
        """The results of the items of a run. If the run has failed, items whose calls have not ended get its error."""
        if ended.error is None:
            assert isinstance(ended.output, list)
            return ended.output
        outputs = self._runs.outputs(batch.runs[number])
        steps = (f"0.{item}.0" for item in range(min(batch.per_run, batch.items - number * batch.per_run)))
        ends = (outputs.get(step, ended.error) for step in steps)
        return [{"error": end.message} if isinstance(end, Failure) else {"value": end} for end in ends]

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
    name = f"batch_of_{definition.name.replace('.', '_')}"[:MAX_NAME]
    call = f"tools.{definition.name}({given})"
    return f'''from typing import Any


def {name}(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
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
