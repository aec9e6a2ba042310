"""The batches of one call: those that it starts, and those that its session has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from albert_tools.engine.batches import Batch, Batches
from albert_tools.engine.call.arguments import validated_arguments
from albert_tools.engine.call.context import DEFAULT_PRIORITY, Call, Queued, Run
from albert_tools.engine.call.target import Target
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.runs.lifecycle import derived_id


class OwnBatches:
    """As `BatchAccess`."""

    def __init__(self, batches: Batches, call: Call, run: Run) -> None:
        self._batches = batches
        self._call = call
        self._run = run

    async def start(self, tool: str, items: Sequence[Mapping[str, Json]], queue: str, per_run: int) -> tuple[str, int]:
        """As `BatchAccess`."""
        from albert_tools.grammar.source_error import SourceError

        run, session = self._run, self._run.session
        if run.batch:
            raise _nested()
        if tool in RESERVED:
            raise Failure(
                "invalid_arguments", f"{tool} is for the agent; a batch can't call it", hint="call it yourself"
            )
        # Nothing is said about tools that the lease does not cover.
        session.demand(tool, (), lambda: run.lookup.author(tool))
        target = self._pinned(tool)
        if "tool" in target.definition.declared.uses.values():
            raise _nested()
        given = [*self._checked(target, items)]
        queued = Queued(queue, DEFAULT_PRIORITY, batch=derived_id(run.id, self._call.place), session=session.origin)
        try:
            batch = await self._batches.add(target.definition, given, len(given), queued, per_run)
        except SourceError as error:
            raise Failure("invalid_arguments", f"no batch can call {target.definition.name}: {error}") from None
        return batch.batch, len(batch.runs)

    def read(self, batch: str, first: int, count: int) -> Json:
        """As `BatchAccess`."""
        own_batch = self._batches.get(batch, self._is_own)
        results = self._batches.part(own_batch, first, count)
        following = first + len(results)
        return {
            "tool": own_batch.tool,
            "items": own_batch.items,
            "runs": dict(self._batches.states(own_batch)),
            "results": results,
            "next_item": following if following < own_batch.items else None,
        }

    def _pinned(self, tool: str) -> Target:
        """The tool in the version that the program was checked against; for a call from outside, in the newest."""
        call, lookup = self._call, self._run.lookup
        if not call.depth:
            return lookup.look_up(tool, None, covers=self._run.session.covers)
        name, version = call.callers[-1], call.trail[-1]
        unsaved = self._run.options.unsaved
        is_unsaved = unsaved is not None and unsaved.version == version
        caller = lookup.look_up(name, version, unsaved if is_unsaved else None).version
        pin = next((each for each in caller.calls if each.name == tool), None) if caller is not None else None
        if pin is None:
            raise Failure("permission_denied", f"{name} was not checked to call {tool!r}", rule="pins", tool=name)
        return lookup.look_up(tool, pin.version)

    def _checked(self, target: Target, items: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
        checked_items = []
        for number, item in enumerate(items):
            try:
                checked_items.append(validated_arguments(target.definition, item))
            except Failure as failure:
                raise failure.copy(message=f"items[{number}]: {failure.message}") from None
        return checked_items

    def _is_own(self, batch: Batch) -> bool:
        origin, sessions = self._run.session.origin, self._run.service.record.sessions
        if origin is None:
            return True
        return batch.session is not None and sessions.is_within(batch.session, origin)


def _nested() -> Failure:
    """The failure of a batch of batches. With them, the number of runs could grow without a bound."""
    return Failure("permission_denied", "a run of a batch can't start a batch", rule="batch")
